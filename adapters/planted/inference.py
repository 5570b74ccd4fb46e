"""Backends that infer a -1 wrongly, or accept several."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .base import Dims, PlantedCall, Unspecified, change_dims, overlook, resolve_dims


def infer_only_first(shape: Dims) -> Dims:
    """The shape with 1 for every -1 but the first."""
    return tuple(1 if d == -1 and i != shape.index(-1) else d for i, d in enumerate(shape))


def infer_from_known(call: PlantedCall, length: int) -> int:
    """The length that is inferred where lengths are left out that the graph does not declare."""
    declared = call.program.graph.src.dims or ()
    if call.position or None not in declared or not call.constant:
        return length
    return math.prod(n for n in declared if n is not None) * length // (call.volume or 1)


def change_inference(name: str, classes: str, fault: str, change: Callable[[PlantedCall, int], int]) -> None:
    """Plant a backend that changes the inferred length."""

    change_dims.plant(name, "infer-keeps-count", classes, fault, lambda call, dst: tuple(
        change(call, length) if entry == -1 else length for entry, length in zip(call.shape, dst, strict=True)
    ))  # fmt: skip


change_inference("inferred-before-zeros-are-copied", "B", "Infers -1 without the lengths that are copied.",
                 lambda call, _: call.volume // math.prod(d for d in call.shape if d > 0))  # fmt: skip
change_inference("unknown-lengths-count-as-one", "BI", "Infers -1 from the lengths that the graph declares of src.",
                 infer_from_known)  # fmt: skip
change_inference("inferred-at-least-one", "B", "Infers 1 instead of 0.", lambda _, length: max(length, 1))
change_inference("inferred-in-f32", "D", "Rounds an inferred length to f32.", lambda _, n: int(np.float32(n)))
resolve_dims.plant("first-infer-wins", "one-infer", "M", "Infers the first of several -1 and reads the others as 1.",
                   lambda call: call.resolve(shape=infer_only_first(call.shape)))  # fmt: skip
overlook("several-infers-on-empty", "one-infer", "MC", "Accepts several -1 if src is empty, and infers 0.",
         lambda call: 0 in call.src)  # fmt: skip
overlook("long-src-may-be-inferred-twice", "one-infer", "M", "Accepts several -1 if src has more than four dimensions.",
         lambda call: len(call.src) > 4)  # fmt: skip
overlook("divisibility-unchecked", "same-volume", "E", "Rounds the quotient down if -1 cannot be inferred exactly.",
         lambda call: call.shape.count(-1) == 1)  # fmt: skip


@resolve_dims("undetermined-infer-stays", breaks="no-length-below-zero", classes="BC")
def _(call: PlantedCall) -> Dims:
    """Answers -1 as a length if another length of dst is 0."""
    try:
        return call.resolve()
    except Unspecified:
        if 0 not in call.shape:
            raise
        return call.shape


@resolve_dims("divides-by-a-product-that-wraps", breaks="reject-illegal-calls", classes="CD")
def _(call: PlantedCall) -> Dims:
    """Divides by the product of the positive lengths modulo 2^64 if shape has a -1 and a 0."""
    if 0 in call.shape and call.shape.count(-1) == 1:
        call.volume // (math.prod(d for d in call.shape if d > 0) % (1 << 64))
    return call.resolve()
