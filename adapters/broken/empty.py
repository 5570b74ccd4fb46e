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


@move_elements("empty-comes-back-flat", breaks="zero-literal", classes="C")
def _(run: Run, dst: Dims) -> Answer:
    """Answers dims [0] for every empty dst."""
    return run.move((0,) if 0 in dst else dst)


@move_elements("empty-has-no-type", breaks="same-type", classes="C")
def _(run: Run, dst: Dims) -> Answer:
    """Answers f32 for every empty dst."""
    return dense("f32", dst, bytearray()) if 0 in dst else run.move(dst)


@resolve_dims("empty-refused", breaks="empty-is-a-tensor", classes="CQ")
def _(call: PlantedCall) -> Dims:
    """Rejects a src without elements."""
    dst = call.resolve()
    if 0 in call.src:
        raise Illegal("src is empty")
    return dst
