"""Compile every row that `conformance export benchdnn` writes, and keep what the library dumps under the same name.

    ONEDNN_GRAPH_DUMP=graph python -m tests.exchange.dump_graphs

runs in the folder in which the dumps are to lie. Rows that the library rejects have no dump.
"""

from contextlib import suppress
from pathlib import Path

from conformance.adapter import load_adapter
from conformance.exchange.benchdnn_export import choose_graphs
from conformance.exchange.choose import dims_of_outputs
from conformance.load.cases import load_suite
from conformance.model import Declared, Graph, Rejected, Unsupported
from conformance.plan.rows import Row, plan_of
from conformance.plan.steps import RowStep


def dump_all() -> None:
    """Compile each program once; the library writes a file when it divides the graph, or never if it is built so."""
    Path("kept").mkdir()
    adapter = load_adapter("onednn")  # it compiles a graph for each type
    if not any(Path().glob("graph-*.json")):
        return
    _keep_as(None)
    for group in choose_graphs(plan_of(load_suite()).rows).chosen:
        for number, (step, *_) in group.graphs:
            with suppress(Rejected, Unsupported):
                adapter.compile(_declare_outputs(group.rows[0], step))
            _keep_as("-".join(filter(None, (group.name_of(step), number))))
        group.rows[0].free_steps()


def _declare_outputs(row: Row, step: RowStep) -> Graph:
    """Return the graph of a step with the dims of the right answer declared of each output, as the export does."""
    pairs = zip(step.graph.nodes, dims_of_outputs(row, step), strict=True)
    nodes = tuple(node._replace(result=Declared(step.src_spec.type, dims)) for node, dims in pairs)
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
