"""Which calls an operation can express: its type of shape holds every entry."""

from __future__ import annotations

from ..model import Call, Operation


def _bounds(integer: str) -> tuple[int, int]:
    bits = int(integer[1:])
    return (0, 2**bits - 1) if integer[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _misfit(integer: str, shape: tuple[int, ...]) -> int | None:
    """Return the first entry that a type of integers cannot hold."""
    if integer[0] not in "su" or not integer[1:].isdigit():
        return None
    lowest, highest = _bounds(integer)
    return next((d for d in shape if not lowest <= d <= highest), None)


def holding_type(operation: Operation, shape: tuple[int, ...]) -> str:
    """Return the first listed type that holds every entry, or else the first."""
    fitting = (each for each in operation.shape_types if _misfit(each, shape) is None)
    return next(fitting, operation.shape_types[0])


def inexpressible(operation: Operation, call: Call) -> str | None:
    """Say why the operation has no such call; None if it has."""
    shape_type = call.form.shape_type if call.form else holding_type(operation, call.shape)
    misfit = _misfit(shape_type, call.shape)
    return None if misfit is None else f"its shape is {shape_type}, which cannot hold {misfit}"
