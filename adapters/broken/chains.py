"""Backends that treat the nodes of a graph as if they did not follow one another."""

from __future__ import annotations

from .base import Call, Dims, resolve_dims
from .inference import infer_only_first


@resolve_dims("chains-fused", breaks="nodes-compose", classes="A")
def _(call: Call) -> Dims:
    """Skips every node of a chain but the last."""
    return call.resolve() if call.position == len(call.program.graph.nodes) - 1 else call.src


@resolve_dims("chains-copy-from-the-first", breaks="nodes-compose", classes="A")
def _(call: Call) -> Dims:
    """Copies dimensions from the src of the chain instead of the src of the node."""
    first = call.program.first
    copies = call.zero and call.position > 0
    return call.resolve(
        shape=tuple(first[i] if copies and d == 0 and i < len(first) else d for i, d in enumerate(call.shape))
    )


@resolve_dims("later-nodes-may-infer-twice", breaks="nodes-compose", classes="ME")
def _(call: Call) -> Dims:
    """Accepts several -1 in every node but the first; the first -1 is inferred and the others are 1."""
    return call.resolve(shape=infer_only_first(call.shape) if call.position else call.shape)
