"""Backends that treat the nodes of a graph as if they did not follow one another."""

from __future__ import annotations

from conformance.model import Graph, Node, Tensor
from conformance.model.types import WIDTH

from .base import Answer, Dims, PlantedCall, ProgramRun, change_dims, execute_run, overlook, read_graph, resolve_dims
from .inference import infer_only_first
from .numbers import cut_to_s32


def is_last(call: PlantedCall) -> bool:
    return call.position == len(call.program.graph.nodes) - 1


resolve_dims.plant("chains-fused", "nodes-compose", "A", "Skips every node of a chain but the last.",
                   lambda call: call.resolve() if is_last(call) else call.src)  # fmt: skip
resolve_dims.plant("later-nodes-may-infer-twice", "nodes-compose", "ME",
                   "Accepts several -1 in every node but the first; the first -1 is inferred and the others are 1.",
                   lambda call: call.resolve(shape=infer_only_first(call.shape)) if call.position else
                   call.resolve())  # fmt: skip
resolve_dims.plant("thirty-two-nodes-at-most", "nodes-compose", "J", "Skips every node after the thirty-second.",
                   lambda call: call.resolve() if call.position < 32 else call.src)  # fmt: skip


@resolve_dims("chains-copy-from-the-first", breaks="nodes-compose", classes="A")
def _(call: PlantedCall) -> Dims:
    """Copies dimensions from the src of the chain instead of the src of the node."""
    first = call.program.first
    copies = call.zero and call.position > 0
    return call.resolve(
        shape=tuple(first[i] if copies and d == 0 and i < len(first) else d for i, d in enumerate(call.shape))
    )


@change_dims("a-chain-of-three-loses-a-leading-one", breaks="nodes-compose", classes="J")
def _(call: PlantedCall, dst: Dims) -> Dims:
    """Drops a leading 1 of the last of three or more nodes."""
    return dst[1:] if is_last(call) and call.position >= 2 and len(dst) > 1 and dst[0] == 1 else dst


change_dims.plant("ones-in-a-chain-become-one", "nodes-compose", "J",
                  "Answers one dimension if a node after the first has only ones.",
                  lambda call, dst: (1,) if call.position and len(dst) > 2 and set(dst) == {1} else dst)  # fmt: skip
change_dims.plant("later-lengths-in-32-bits", "nodes-compose", "D", "Cuts lengths of later nodes to 32 bits.",
                  lambda call, dst: tuple(map(cut_to_s32, dst)) if call.position else dst)  # fmt: skip
overlook("later-volumes-are-not-checked", "nodes-compose", "E", "Accepts any volume after the fourth node.",
         lambda call: call.position > 3 and min(call.shape, default=0) > 0, overlooked=("same-volume",),
         answer=lambda call: call.src)  # fmt: skip
overlook("nine-entries-of-a-later-node-need-not-divide", "nodes-compose", "E",
         "Rounds an inferred length down among nine or more entries of a later node.",
         lambda call: call.position > 0 and len(call.shape) > 8 and -1 in call.shape,
         overlooked=("same-volume",))  # fmt: skip


@read_graph("entries-have-the-width-of-the-first-shape", breaks="nodes-compose", classes="D")
def _(graph: Graph) -> Graph:
    """Reads constant shapes of 64 bits as if their entries had 32, if the first shape of the graph has."""
    widths = [WIDTH.get(node.shape.type, 0) if node.shape is not None else 0 for node in graph.nodes]

    def read(node: Node, width: int) -> Node:
        if node.shape is None or node.shape.values is None or width <= widths[0]:
            return node
        halves = [half for entry in node.shape.values for half in (entry, -1 if entry < 0 else 0)]
        return node._replace(shape=node.shape._replace(values=tuple(halves[: len(node.shape.values)])))

    return graph._replace(nodes=tuple(map(read, graph.nodes, widths)))


@execute_run("channel-shuffles-are-fused", breaks="nodes-compose", classes="F")
def _(run: ProgramRun) -> Answer:
    """Exchanges the groups and their channels if a node splits the channels of an image and the next one joins them."""
    answer, nodes = run.answer(), run.program.graph.nodes
    split = nodes[0].shape.values if nodes[0].shape is not None else None
    if isinstance(answer, Tensor) or len(nodes) != 2 or split is None or min(split, default=0) < 1:
        return answer
    if run.src.dims != answer.shape or (len(answer.shape), len(split)) != (4, 5):
        return answer
    return answer.reshape(split).swapaxes(1, 2).reshape(answer.shape)


@read_graph("branches-before-the-last-are-dropped", breaks="same-volume", classes="E")
def _(graph: Graph) -> Graph:
    """Drops branches that nobody takes, and what is illegal in them, if three or more nodes have constant shapes."""
    *others, last = graph.nodes
    is_constant = all(node.shape is not None and node.shape.values is not None for node in graph.nodes)
    return graph._replace(nodes=(last,)) if last.takes_src and len(others) > 1 and is_constant else graph
