"""Small values that an ONNX graph computes from constants and dims, such as the shape of a reshape.

A value with an unknown length in it is an array of objects: numbers, names of lengths such as `batch` or `3*batch`, and
None. Few operations take it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .nodes import Dims, known_dims, write_product

Value = NDArray[Any]
MAX_ELEMENTS = 1024
"""Elements of a value to compute; shapes and indices have far fewer."""
_MISTAKES = (IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError, KeyError)


def compute(operation: str, attributes: Mapping[str, Any], inputs: Sequence[Value | None]) -> Value | None:
    """Return the output of an operation; None if it is not one of those that compute shapes, or too large."""
    has_names = any(value is not None and value.dtype == object for value in inputs)
    function = (_OF_NAMES if has_names else OPERATIONS).get(operation)
    if function is None or any(value is None for value in inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(attributes, *inputs), object if has_names else None)
    except _MISTAKES:
        return None
    if has_names and all(isinstance(each, int) for each in result.flat):
        result = result.astype(np.int64)
    return result if result.size <= MAX_ELEMENTS and result.dtype.kind in "biufO" else None


def compute_shape(attributes: Mapping[str, Any], dims: Dims | None) -> Value | None:
    """Return what the operation Shape gives; None if not even the rank is known."""
    if dims is None:
        return None
    part = dims[slice(attributes.get("start", 0), attributes.get("end"))]
    return np.array(part, object if known_dims(part) is None else np.int64)


def _find_axes(attributes: Mapping[str, Any], given: Value | None) -> Any:
    """Return the axes as a tuple: those that an input gives, or else the attribute; None if neither does."""
    chosen = attributes.get("axes") if given is None else given.ravel().tolist()
    return None if chosen is None else tuple(chosen)


def _slice(attributes: Mapping[str, Any], data: Value, *bounds: Value) -> Value:
    given = [each.tolist() for each in bounds] or [attributes["starts"], attributes["ends"]]
    starts, ends = given[:2]
    axes = given[2] if len(given) > 2 else attributes.get("axes", range(len(starts)))
    steps = given[3] if len(given) > 3 else [1] * len(starts)
    chosen: list[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0:
            raise ValueError("not followed")
        chosen[axis] = slice(start, end, step)
    return data[tuple(chosen)]


def _divide(_: Mapping[str, Any], a: Value, b: Value) -> Value:
    """Divide; whole numbers only where all ways to round agree."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    if (a < 0).any() or (b <= 0).any():
        raise ValueError("not followed")
    return np.asarray(a // b)


def _take_remainder(attributes: Mapping[str, Any], a: Value, b: Value) -> Value:
    if (b == 0).any():
        raise ValueError("not followed")
    return np.asarray(np.fmod(a, b) if attributes.get("fmod") else np.mod(a, b))


def _fill_shape(attributes: Mapping[str, Any], shape: Value) -> Value:
    value = attributes.get("value", np.zeros(1, np.float32))
    if not isinstance(value, np.ndarray) or math.prod(shape.tolist()) > MAX_ELEMENTS:
        raise ValueError("not followed")
    return np.full(tuple(shape.tolist()), value.reshape(-1)[0])


def _reduce_product(attributes: Mapping[str, Any], data: Value, axes: Value | None = None) -> Value:
    chosen = _find_axes(attributes, axes)
    if not chosen and attributes.get("noop_with_empty_axes"):
        return data
    return np.asarray(data.prod(chosen or None, keepdims=bool(attributes.get("keepdims", 1))))


def _cast(attributes: Mapping[str, Any], data: Value) -> Value:
    if np.dtype(attributes["to"]) not in (np.int32, np.int64):
        raise ValueError("not followed")
    return data


def _multiply_names(_: Mapping[str, Any], a: Value, b: Value) -> Value:
    """Write products such as `3*batch`; None if a factor is not known, or has a name that cannot be in a product."""

    def times(one: object, other: object) -> int | str | None:
        parts = [part for factor in (one, other) for part in str(factor).split("*")]
        number = math.prod(int(part) for part in parts if part.isdecimal())
        return None if None in (one, other) else write_product(number, [part for part in parts if not part.isdecimal()])

    return np.asarray(np.frompyfunc(times, 2, 1)(a.astype(object), b.astype(object)))


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "Identity": lambda _, data: data,
    "Gather": lambda attributes, data, indices: np.take(data, indices, attributes.get("axis", 0)),
    "Unsqueeze": lambda attributes, data, axes=None: np.expand_dims(data, _find_axes(attributes, axes)),
    "Squeeze": lambda attributes, data, axes=None: np.squeeze(data, _find_axes(attributes, axes)),
    "Concat": lambda attributes, *parts: np.concatenate(parts, attributes["axis"]),
    "Slice": _slice,
    "Cast": lambda attributes, data: data.astype(attributes["to"]),
    "Add": lambda _, a, b: a + b,
    "Sub": lambda _, a, b: a - b,
    "Mul": lambda _, a, b: a * b,
    "Div": _divide,
    "Mod": _take_remainder,
    "Equal": lambda _, a, b: a == b,
    "Where": lambda _, *parts: np.where(*parts),
    "Floor": lambda _, data: np.floor(data),
    "Ceil": lambda _, data: np.ceil(data),
    "ConstantOfShape": _fill_shape,
    "ReduceProd": _reduce_product,
    "Reshape": lambda _, data, shape: data.reshape(shape),  # a 0 in shape fails, or has nothing to copy
}
_MOVES = ("Identity", "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Reshape")
_OF_NAMES = {name: OPERATIONS[name] for name in _MOVES} | {"Cast": _cast, "Mul": _multiply_names}
