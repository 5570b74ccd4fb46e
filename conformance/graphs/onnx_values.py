"""Small integer tensors of an ONNX graph, computed from the dims of others as far as these are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..meaning.partial import Length, Lengths, factors_of

Values = NDArray[Any]
"""An array of lengths: whole numbers, names, and None for what is not known."""
MOST_VALUES = 1024


def values_of(items: Sequence[Length], dims: Sequence[int] | None = None) -> Values:
    """Return lengths as an array."""
    array = np.empty(len(items), dtype=object)
    array[:] = list(items)
    return array if dims is None else array.reshape(tuple(dims))


def compute(kind: str, attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values | None:
    """Return the output of an operation; None if it is no operation on shapes, or its inputs do not fit it."""
    operation = _OPERATIONS.get(kind)
    if operation is None or not inputs or any(each is None for each in inputs[:1]):
        return None
    try:
        result = operation(attributes, inputs)
    except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, AttributeError, KeyError):
        return None
    return result if result is not None and result.size <= MOST_VALUES else None


def shape_of(attributes: Mapping[str, Any], dims: Lengths) -> Values:
    """Return the output of Shape."""
    return values_of(dims[attributes.get("start", 0) : attributes.get("end")])


def _integers(values: Values | None) -> list[int]:
    """Return the numbers; TypeError if one is not known."""
    if values is None or any(type(each) is not int for each in values.flat):
        raise TypeError
    return list(values.flat)


def _axes(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> list[int] | None:
    if len(inputs) > 1:
        return _integers(inputs[1])
    return list(attributes["axes"]) if "axes" in attributes else None


def _gather(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
    data, index = inputs[0], inputs[1]
    assert data is not None
    assert index is not None
    where = np.array(_integers(index), dtype=np.int64).reshape(index.shape)
    return np.asarray(np.take(data, where, axis=attributes.get("axis", 0)), dtype=object)


def _concat(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values | None:
    if any(each is None for each in inputs):
        return None
    return np.concatenate([each for each in inputs if each is not None], axis=attributes.get("axis", 1))


def _unsqueeze(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
    assert inputs[0] is not None
    return np.expand_dims(inputs[0], tuple(_axes(attributes, inputs) or ()))


def _squeeze(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
    assert inputs[0] is not None
    axes = _axes(attributes, inputs)
    return np.asarray(np.squeeze(inputs[0], None if axes is None else tuple(axes)), dtype=object)


def _slice(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
    data, rest = inputs[0], inputs[1:]
    assert data is not None
    if "starts" in attributes:  # until opset 9
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
        axes, steps = list(attributes.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = _integers(rest[0]), _integers(rest[1])
        axes = _integers(rest[2]) if len(rest) > 2 and rest[2] is not None else list(range(len(starts)))
        steps = _integers(rest[3]) if len(rest) > 3 and rest[3] is not None else [1] * len(starts)
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[axis] = slice(start, None if step < 0 and end < -data.shape[axis] else end, step)
    return np.asarray(data[tuple(index)], dtype=object)


def _cast(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values | None:
    return inputs[0] if attributes.get("to") in (6, 7) else None  # INT32, INT64


def _elementwise(combine: Callable[[Length, Length], Length]) -> Callable[..., Values]:
    def operation(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
        a, b = inputs
        if a is None or b is None:
            raise TypeError
        pairs = np.broadcast(a, b)
        if pairs.size > MOST_VALUES:
            raise ValueError
        return values_of([combine(x, y) for x, y in pairs], pairs.shape)

    return operation


def _times(a: Length, b: Length) -> Length:
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    factor, names = factors_of([a, b])
    return None if factor < 1 else "*".join([*([str(factor)] if factor != 1 else []), *sorted(names.elements())])


def _numbers(operation: Callable[[int, int], int]) -> Callable[[Length, Length], Length]:
    return lambda a, b: operation(a, b) if isinstance(a, int) and isinstance(b, int) else None


def _divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # towards 0, as in C


def _product(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values | None:
    data = inputs[0]
    if data is None or data.ndim != 1:
        return None
    total: Length = 1
    for each in data:
        total = _times(total, each)
    return values_of([total], (1,) if attributes.get("keepdims", 1) else ())


def _reshape(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values:
    assert inputs[0] is not None
    return inputs[0].reshape(tuple(_integers(inputs[1])))


def _constant_of_shape(attributes: Mapping[str, Any], inputs: Sequence[Values | None]) -> Values | None:
    dims = _integers(inputs[0])
    value = attributes.get("value")
    if math.prod(dims) > MOST_VALUES or min(dims, default=0) < 0 or type(value) is not int:
        return None
    return np.full(tuple(dims), value, dtype=object)


_OPERATIONS: Mapping[str, Callable[..., Values | None]] = {
    "Gather": _gather, "Concat": _concat, "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Slice": _slice, "Cast": _cast,
    "Identity": lambda attributes, inputs: inputs[0], "Reshape": _reshape, "ReduceProd": _product,
    "Mul": _elementwise(_times), "Add": _elementwise(_numbers(lambda a, b: a + b)),
    "Sub": _elementwise(_numbers(lambda a, b: a - b)), "Div": _elementwise(_numbers(_divide)),
    "ConstantOfShape": _constant_of_shape,
}  # fmt: skip
