"""Backends that treat the nodes of a graph as if they did not follow one another."""

from __future__ import annotations

from .base import Dims, PlantedCall, overlook, resolve_dims
from .inference import infer_only_first

resolve_dims.plant("chains-fused", "nodes-compose", "A", "Skips every node of a chain but the last.", lambda call:
                   call.resolve() if call.position == len(call.program.graph.nodes) - 1 else call.src)  # fmt: skip
resolve_dims.plant("later-nodes-may-infer-twice", "nodes-compose", "ME",
                   "Accepts several -1 in every node but the first; the first -1 is inferred and the others are 1.",
                   lambda call: call.resolve(shape=infer_only_first(call.shape)) if call.position else
                   call.resolve())  # fmt: skip
resolve_dims.plant("six-nodes-at-most", "nodes-compose", "J", "Skips every node after the sixth.",
                   lambda call: call.resolve() if call.position < 6 else call.src)  # fmt: skip


@resolve_dims("chains-copy-from-the-first", breaks="nodes-compose", classes="A")
def _(call: PlantedCall) -> Dims:
    """Copies dimensions from the src of the chain instead of the src of the node."""
    first = call.program.first
    copies = call.zero and call.position > 0
    return call.resolve(
        shape=tuple(first[i] if copies and d == 0 and i < len(first) else d for i, d in enumerate(call.shape))
    )


@resolve_dims("a-chain-of-three-loses-a-leading-one", breaks="nodes-compose", classes="J")
def _(call: PlantedCall) -> Dims:
    """Drops a leading 1 of the last of three or more nodes."""
    dst, last = call.resolve(), len(call.program.graph.nodes) - 1
    return dst[1:] if call.position == last >= 2 and dst[:1] == (1,) and len(dst) > 1 else dst


@resolve_dims("ones-in-a-chain-become-one", breaks="nodes-compose", classes="J")
def _(call: PlantedCall) -> Dims:
    """Answers one dimension if a node after the first has only ones."""
    dst = call.resolve()
    return (1,) if call.position and len(dst) > 2 and set(dst) == {1} else dst


overlook("later-volumes-are-not-checked", "nodes-compose", "E", "Accepts any volume after the fourth node.",
         lambda call: call.position > 3 and min(call.shape, default=0) > 0, overlooked=("same-volume",),
         answer=lambda call: call.src)  # fmt: skip
overlook("nine-entries-of-a-later-node-need-not-divide", "nodes-compose", "E",
         "Rounds an inferred length down among nine or more entries of a later node.",
         lambda call: call.position > 0 and len(call.shape) > 8 and -1 in call.shape,
         overlooked=("same-volume",))  # fmt: skip
