"""The Acme accelerator, played by the NumPy reference: one operation, and no shape past six entries."""

from conformance import Claims, Graph, Identity, Program, Rejected
from conformance.adapters.reference import Reference


class Acme(Reference):
    identity = Identity("acme", "2026")
    claims = Claims(("StaticReshape",))

    def compile(self, graph: Graph) -> Program:
        if any(node.shape and len(node.shape.values or ()) > 6 for node in graph.nodes):
            raise Rejected("compile", "more than six entries")
        return super().compile(graph)
