"""Backends that handle tensors without elements wrongly."""

from __future__ import annotations

from ..reference import dense
from .base import Answer, Dims, Illegal, PlantedCall, Run, move_elements, resolve_dims


@move_elements("empty-has-no-memory", breaks="zero-literal", classes="C")
def _(run: Run, dst: Dims) -> Answer:
    """Fails to allocate memory for an empty dst."""
    if 0 in dst:
        raise MemoryError("allocation of 0 bytes failed")
    return run.move(dst)


move_elements.plant("empty-comes-back-flat", "zero-literal", "C", "Answers dims [0] for every empty dst.",
                    lambda run, dst: run.move((0,) if 0 in dst else dst))  # fmt: skip
move_elements.plant("empty-has-no-type", "same-type", "C", "Answers f32 for every empty dst.",
                    lambda run, dst: dense("f32", dst, bytearray()) if 0 in dst else run.move(dst))  # fmt: skip


@resolve_dims("empty-refused", breaks="empty-is-a-tensor", classes="CQ")
def _(call: PlantedCall) -> Dims:
    """Rejects a src without elements."""
    dst = call.resolve()
    if 0 in call.src:
        raise Illegal("src is empty")
    return dst


@resolve_dims("two-empty-lengths-infer-nothing", breaks="infer-keeps-count", classes="CQ")
def _(call: PlantedCall) -> Dims:
    """Rejects a -1 if two lengths of src are 0."""
    dst = call.resolve()
    if call.src.count(0) > 1 and -1 in call.shape:
        raise Illegal("nothing can be inferred")
    return dst
