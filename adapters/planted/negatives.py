"""Backends that accept lengths below -1."""

from __future__ import annotations

import math

from .base import Dims, PlantedCall, overlook, resolve_dims

resolve_dims.plant("any-negative-infers", "lower-bound", "L", "Reads every negative length as -1.",
                   lambda call: call.resolve(shape=tuple(max(d, -1) for d in call.shape)))  # fmt: skip
overlook("negatives-of-many-elements", "lower-bound", "L", "Infers any negative if src has more than 4096 elements.",
         lambda call: call.volume > 4096 and min(call.shape) < -1, overlooked=("lower-bound", "one-infer"))  # fmt: skip
resolve_dims.plant("negatives-cancel", "lower-bound", "L",
                   "Drops the sign of lengths below -1 if there are exactly two.",
                   lambda call: call.resolve(shape=tuple(-d if d < -1 else d for d in call.shape))
                   if sum(d < -1 for d in call.shape) == 2 else call.resolve())  # fmt: skip


@resolve_dims("minus-three-multiplies", breaks="lower-bound", classes="L")
def _(call: PlantedCall) -> Dims:
    """Reads -3 as the product of the next two lengths of src, as some libraries do."""
    at, shape = 0, []
    for length in call.shape:
        pair = call.src[at : at + 2]
        shape.append(math.prod(pair) if length == -3 and len(pair) == 2 else length)
        at += 2 if length == -3 else 1
    return call.resolve(shape=tuple(shape))


@resolve_dims("minus-four-splits", breaks="lower-bound", classes="L")
def _(call: PlantedCall) -> Dims:
    """Drops a -4 before two lengths, as libraries do in which it splits a length of src."""
    splits = -4 in call.shape and call.shape.index(-4) + 2 < len(call.shape)
    return call.resolve(shape=tuple(d for d in call.shape if not (splits and d == -4)))
