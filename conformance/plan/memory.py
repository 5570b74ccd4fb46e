"""Lay out the tensors of a case in guarded memory, and make the bytes that a right answer holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..model import STRIDED, Layout, Tensor
from ..model.types import WIDTH, dtype_of

GUARD = 64
"""Bytes before and after the elements, and between them where a layout leaves gaps, that no backend may write."""
_MARK = 0xA5
HUGE = 1 << 24
"""Tensors of this many bytes or more are compared in place, without another copy."""
MOST_DIMS, _FAR = 256, 1 << 64
"""The largest rank of an answer, and the largest distance of a length from 0."""
_NORMAL = {
    "f32": (0x00800000, 0x3F800000, 0x7F800000),
    "bf16": (0x0080, 0x3F80, 0x7F80),
    "f16": (0x0400, 0x3C00, 0x7C00),
    "f64": (0x0010 << 48, 0x3FF0 << 48, 0x7FF0 << 48),
}
"""Smallest positive normal, 1.0, and the pattern after the largest finite number, by type."""


EDGES: Mapping[str, tuple[int, ...]] = {
    "f32": (
        0x3F800000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7FA00000, 0xFFC12345, 0x3F808000, 0x3F800001, 0x33000000,
        0x477FF000, 0x7F800000, 0xFF800001, 0x00000000, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF800000,
        0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FBFFFFF, 0x7FFFFFFF, 0xFFFFFFFF,
    ),
    "bf16": (
        0x3F80, 0x8000, 0x0001, 0x807F, 0x7FA0, 0xFFC1, 0x3F81, 0x0000, 0x8001, 0x007F, 0x0080, 0x7F7F, 0x7F80,
        0xFF80, 0x7FC0, 0x7F81, 0x7FFF, 0x3300, 0x477F,
    ),
    "f16": (
        0x3C00, 0x8000, 0x0001, 0x83FF, 0x7D00, 0xFE01, 0x3C01, 0x0000, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7C00,
        0xFC00, 0x7E00, 0x7C01, 0x7FFF, 0x1400, 0x77FF,
    ),
}  # fmt: skip
"""Bit patterns worth a test, by type: zeros, subnormals, limits, infinities, NaNs, values that rounding changes."""


class Source(NamedTuple):
    """The elements of a tensor to be made, and their layout in memory."""

    type: str
    dims: tuple[int, ...]
    layout: Layout = "dense"
    bits: str | None = None
    start: int = 0
    """The distance of the first default element from the pattern of 1.0."""


def digest_of(elements: bytes | memoryview) -> str:
    """Return the first 8 bytes of the SHA-256 of a tensor's elements, as evidence holds it."""
    return hashlib.sha256(elements).hexdigest()[:16]


@dataclass(eq=False)
class Image:
    """A tensor ready for a call, a copy of its memory, and its elements in row-major order."""

    tensor: Tensor
    before: bytes
    elements: bytes | memoryview

    @cached_property
    def digest(self) -> str:
        """`digest_of` the elements."""
        return digest_of(self.elements)

    @property
    def touched(self) -> bool:
        """True if a call changed the memory, guards and gaps included."""
        return bool(self.tensor.memory != self.before)  # type: ignore[comparison-overlap]

    def restore(self) -> None:
        """Restore the memory after a call that changed it."""
        self.tensor.memory[:] = self.before


def strides_of(dims: tuple[int, ...], layout: Layout, width: int) -> tuple[int, ...]:
    """Return the byte strides of a layout."""
    padding = 3 if layout == "padded" and len(dims) > 1 else 0
    step = width * (2 if layout == "padded" and len(dims) == 1 else 1)
    order = [*range(len(dims) - 1, -1, -1)]  # from the axis that runs fastest
    if layout == "transposed":
        order.reverse()
    if layout == "channels-last" and len(dims) > 2:
        order = [1, *(axis for axis in order if axis != 1)]
    strides = [0] * len(dims)
    for count, axis in enumerate(order):
        strides[axis] = step
        step *= max(dims[axis], 1) + (padding if count == 0 else 0) + (layout == "cropped" and axis == 1)
    if layout == "broadcast" and dims:
        strides[0] = 0
    if layout == "reversed" and dims:
        strides[-1] = -strides[-1]
    return tuple(strides)


def has_no_memory(dims: tuple[int, ...]) -> bool:
    """True if such dims have no elements in memory: a length is 0 or less, or there are 2^60 elements or more."""
    return any(length <= 0 for length in dims) or bool(volume_of(dims) >> 60)


def dims_error(dims: tuple[int, ...]) -> str | None:
    """Return what is wrong with an answer's dims: too many, or a length of more than 64 bits; None if nothing is."""
    if len(dims) > MOST_DIMS:
        return f"{len(dims):,} dims, where at most {MOST_DIMS:,} are taken"
    far = next((length for length in dims if abs(length) > _FAR), None)
    return f"a length of {far.bit_length()} bits, where at most 64 are taken" if far is not None else None


def volume_of(dims: tuple[int, ...]) -> int:
    """Return the number of elements."""
    return math.prod(dims)


def patterns(source: Source) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the elements of a source as unsigned integers, flat, in row-major order."""
    volume = volume_of(source.dims)
    width = WIDTH[source.type]
    kind = np.dtype(f"<u{width}")
    if source.bits == "all":
        return np.arange(volume, dtype=kind)
    if source.bits not in (None, "edges"):
        words = [int(word, 16) for word in source.bits.split()]
        return np.resize(np.array(words, dtype=kind), volume)
    repeats = source.dims[0] if source.layout == "broadcast" and source.dims else 1
    distinct = volume // repeats if repeats else 0
    if source.bits == "edges":
        flat = np.resize(np.array(edge_patterns(source.type, source.start), kind), distinct)
        return np.tile(flat, repeats) if repeats > 1 else flat
    low, one, high = _normal(source.type)
    span = count_patterns(source.type)
    begin = (one - low + source.start) % span
    if begin + distinct <= span:
        flat = np.arange(begin + low, begin + low + distinct, dtype=kind)
    else:  # the patterns repeat; copying is fast
        flat = np.resize(np.roll(np.arange(low, high, dtype=kind), -begin), distinct)
    return np.tile(flat, repeats) if repeats > 1 else flat


def count_patterns(type_: str) -> int:
    """Return how many default elements there are before they repeat."""
    low, _, high = _normal(type_)
    return high - low


def _normal(type_: str) -> tuple[int, int, int]:
    return _NORMAL.get(type_) or (0, 1, 2 if type_ == "bool" else 1 << (8 * WIDTH[type_] - 1))


def edge_patterns(type_: str, start: int) -> list[int]:
    """Return the EDGES of a type, rotated by `start`."""
    words = EDGES[type_]
    at = start % len(words)
    return [*words[at:], *words[:at]]


def image_of(source: Source) -> Image:
    """Lay out a source in memory of its own, between guards."""
    width = WIDTH[source.type]
    flat = patterns(source)
    strides = strides_of(source.dims, source.layout, width)
    reach = [(length - 1) * stride for length, stride in zip(source.dims, strides, strict=True)]
    below = -sum(step for step in reach if step < 0)
    above = sum(step for step in reach if step > 0)
    offset = GUARD + below + (3 * width if source.layout == "offset" else 0)
    if not flat.size:
        memory = bytearray([_MARK]) * (2 * GUARD)
        return Image(Tensor(source.type, source.dims, strides, memory, GUARD), bytes(memory), b"")
    memory = bytearray([_MARK]) * (offset + above + width + GUARD)
    if flat.nbytes >= HUGE and source.layout == "dense":
        memory[offset : offset + flat.nbytes] = flat.view(np.uint8).data
        before = bytes(memory)
        tensor = Tensor(source.type, source.dims, strides, memory, offset)
        return Image(tensor, before, memoryview(before)[offset : offset + flat.nbytes])
    elements = flat.tobytes()
    if source.layout not in STRIDED:
        memory[offset : offset + len(elements)] = elements
    else:
        np.ndarray(source.dims, flat.dtype, memory, offset, strides)[...] = flat.reshape(source.dims)
    return Image(Tensor(source.type, source.dims, strides, memory, offset), bytes(memory), elements)


def shape_image(type_: str, dims: tuple[int, ...], values: tuple[int, ...]) -> Image:
    """Lay out a shape operand in guarded memory."""
    elements = np.array(values, dtype=dtype_of(type_)).tobytes()
    memory = bytearray([_MARK]) * GUARD + bytearray(elements) + bytearray([_MARK]) * GUARD
    return Image(Tensor(type_, dims, strides_of(dims, "dense", WIDTH[type_]), memory, GUARD), bytes(memory), elements)
