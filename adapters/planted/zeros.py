"""Backends that read a 0 in shape wrongly."""

from __future__ import annotations

import math

from .base import Dims, PlantedCall, overlook, resolve_dims

resolve_dims.plant("zero-flag-ignored", "zero-copies", "A", "Reads every 0 as a length, whatever special_zero says.",
                   lambda call: call.resolve(zero=False))  # fmt: skip
resolve_dims.plant("zero-always-copies", "zero-literal", "A", "Copies for every 0, whatever special_zero says.",
                   lambda call: call.resolve(zero=True))  # fmt: skip
resolve_dims.plant("zero-flag-forgotten-at-run-time", "zero-copies", "AI",
                   "Never copies for a 0 if the shape arrives with the run.",
                   lambda call: call.resolve(zero=call.zero and call.constant))  # fmt: skip
resolve_dims.plant("zero-flag-forgotten-in-constants", "zero-literal", "AI",
                   "Copies for every 0 if the shape is known at compilation.",
                   lambda call: call.resolve(zero=call.zero or call.constant))  # fmt: skip
resolve_dims.plant("zero-flag-forgotten-on-empty", "zero-copies", "AC", "Never copies for a 0 if src is empty.",
                   lambda call: call.resolve(zero=call.zero and 0 not in call.src))  # fmt: skip
overlook("zero-empties-anything", "zero-empties", "E", "Empties dst for a literal 0 even if src has elements.")
overlook("zero-meets-infer", "zero-meets-infer", "B", "Accepts -1 beside a literal 0 and infers 0.")
resolve_dims.plant("zero-is-one", "zero-literal", "A", "Reads a 0 as 1 when special_zero is false.", lambda call:
                   call.resolve(shape=call.shape if call.zero else tuple(d or 1 for d in call.shape)))  # fmt: skip


@resolve_dims("zero-flag-forgotten-without-a-rank", breaks="zero-copies", classes="AI")
def _(call: PlantedCall) -> Dims:
    """Never copies for a 0 of a constant shape if the graph does not say the rank of src."""
    is_rank_known = call.program.graph.src.dims is not None
    return call.resolve(zero=call.zero and (is_rank_known or not call.constant))


@resolve_dims("zeros-counted-from-the-right", breaks="zero-in-front-copies-the-first-length", classes="N")
def _(call: PlantedCall) -> Dims:
    """Copies the dimension that is as far from the end of src as the 0 is from the end of shape."""
    src, shift = call.src, len(call.src) - len(call.shape)
    copied = (src[i + shift] if call.zero and d == 0 and i + shift >= 0 else d for i, d in enumerate(call.shape))
    return call.resolve(shape=tuple(copied), zero=call.zero and 0 not in src)


@resolve_dims("zeros-taken-in-turn", breaks="corresponding-is-the-same-index", classes="N")
def _(call: PlantedCall) -> Dims:
    """Copies the first dimension of src for the first 0, the second for the second, and so on."""
    lengths = iter(call.src)
    copied = tuple(next(lengths, 0) if call.zero and d == 0 else d for d in call.shape)
    return call.resolve(shape=copied, zero=call.zero and 0 not in call.src)


@resolve_dims("zeros-speak-of-the-last-dimension", breaks="zero-copies", classes="N")
def _(call: PlantedCall) -> Dims:
    """Copies the last dimension of src for a 0 at the end of shape."""
    last = call.zero and call.shape[-1:] == (0,) and len(call.src) > 0
    return call.resolve(shape=(*call.shape[:-1], call.src[-1])) if last else call.resolve()


@resolve_dims("zeros-skipped-in-the-count", breaks="zero-empties", classes="E")
def _(call: PlantedCall) -> Dims:
    """Leaves lengths of 0 out when it compares volumes."""
    if call.zero or 0 not in call.shape:
        return call.resolve()
    call.resolve(src=tuple(d or 1 for d in call.src), shape=tuple(d or 1 for d in call.shape))
    return call.fill()


@resolve_dims("overflow-is-not-empty", breaks="zero-empties", classes="D")
def _(call: PlantedCall) -> Dims:
    """Returns src as it is if a literal 0 is beside lengths with a product of more than 31 bits."""
    literal = not call.zero and 0 in call.shape and 0 not in call.src
    return call.src if literal and math.prod(d for d in call.shape if d > 0) >> 31 else call.resolve()
