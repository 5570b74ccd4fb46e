"""Backends that reject legal calls."""

from __future__ import annotations

from collections.abc import Callable

from conformance.model import Graph, Node, Rejected

from ..reference import can_be_true, check_form
from .base import Dims, PlantedCall, plant, read_graph, reject_legal

reject_legal("rank-five-at-most", "dst-has-shape-rank", "Q", "Rejects more than five dimensions.",
             lambda call, _: max(len(call.src), len(call.shape)) > 5)  # fmt: skip
reject_legal("millions-not-supported", "infer-keeps-count", "Q", "Rejects more than 2^20 elements.",
             lambda call, _: call.volume > 1 << 20)  # fmt: skip
reject_legal("inferred-at-the-ends", "infer-keeps-count", "Q", "Rejects a -1 after the fourth entry if not the last.",
             lambda call, _: -1 in call.shape[4:-1])  # fmt: skip


def has_nothing_to_do(call: PlantedCall, dst: Dims) -> bool:
    agrees = call.node.result is None or can_be_true(call.node.result, dst)
    return agrees and dst == call.src and 0 not in dst and not call.program.chained


reject_legal("nothing-to-do-is-rejected", "src-is-kept", "O",
             "Rejects a legal reshape to the dims that src already has.",
             has_nothing_to_do)  # fmt: skip


def reject_nodes(name: str, breaks: str, classes: str, fault: str, when: Callable[[Node, str], bool]) -> None:
    """Plant a backend that rejects some well-formed nodes, by the node and the type of src."""

    def check(node: Node, src_type: str) -> None:
        check_form(node, src_type)
        if when(node, src_type):
            raise Rejected("compile", "not supported")

    plant(name, breaks, classes, fault, check=check)


def takes_shape_at_run(node: Node, _: str) -> bool:
    return node.shape is not None and node.shape.values is None


reject_nodes("half-precision-not-supported", "types-offered", "Q", "Rejects f16.",
             lambda _, src_type: src_type == "f16")  # fmt: skip
reject_nodes("reshape-of-wide-shapes-rejected", "types-demanded-of-reshape", "Q", "Rejects shapes of s64 in Reshape-1.",
             lambda node, _: node.operation == "Reshape-1" and node.shape is not None and node.shape.type == "s64",
             )  # fmt: skip
reject_nodes("shape-only-beforehand", "shape-given", "IQ", "Rejects a shape that arrives with the run.",
             takes_shape_at_run)  # fmt: skip
reject_nodes("reshape-takes-constants-only", "constant-and-runtime", "Q", "Rejects a late shape of Reshape.",
             lambda node, _: node.operation == "Reshape-1" and takes_shape_at_run(node, _))  # fmt: skip


@read_graph("static-needs-company", breaks="literal-lengths", classes="O")
def _(graph: Graph) -> Graph:
    """Rejects a StaticReshape that is alone in its graph."""
    if len(graph.nodes) == 1 and graph.nodes[0].operation == "StaticReshape":
        raise Rejected("compile", "a partition of one reshape is not supported")
    return graph
