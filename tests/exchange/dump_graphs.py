"""Compile every row that `conformance export benchdnn` writes, and keep what the library dumps under the same name.

    ONEDNN_GRAPH_DUMP=graph python -m tests.exchange.dump_graphs

runs in the folder in which the dumps are to lie. Rows that the library rejects have no dump.
"""

from contextlib import suppress
from pathlib import Path

from conformance.adapter import load_adapter
from conformance.exchange.benchdnn_export import choose_graphs
from conformance.exchange.choose import Chosen, GraphCalls, dims_of_outputs
from conformance.load.cases import load_suite
from conformance.model import Declared, Graph, Rejected, Unsupported
from conformance.plan.rows import plan_of


def dump_all() -> None:
    """Compile each program once; the library writes a file when it divides the graph, or never if it is built so."""
    Path("kept").mkdir()
    adapter = load_adapter("onednn")  # it compiles a graph for each type
    if not any(Path().glob("graph-*.json")):
        return
    _keep_as(None)
    for group in choose_graphs(plan_of(load_suite()).rows).chosen:
        for program in group.programs:
            with suppress(Rejected, Unsupported):
                adapter.compile(_declare_outputs(group, program))
            _keep_as(f"{group.name}{f'-{program.number}' if program.number else ''}")
        group.rows[0].free_steps()


def _declare_outputs(group: Chosen, program: GraphCalls) -> Graph:
    """Return the graph of a program with the dims of the right answer declared of each output, as the export does."""
    step = program.steps[0]
    pairs = zip(step.graph.nodes, dims_of_outputs(group.rows[0], step), strict=True)
    nodes = tuple(node._replace(result=Declared(step.source.type, dims)) for node, dims in pairs)
    return step.graph._replace(nodes=nodes)


def _keep_as(name: str | None) -> None:
    """Move the new dump to the folder `kept`; without a name, delete it."""
    for path in Path().glob("graph-*.json"):
        if name is None or path.stem.endswith("-partitioning"):
            path.unlink()
        else:
            path.rename(f"kept/{name}.json")


if __name__ == "__main__":
    dump_all()
