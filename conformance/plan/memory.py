"""Lay out the tensors of a case in guarded memory, and make the bytes that a right answer holds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..model import LAYOUTS, STRIDED, Elements, Layout, Tensor
from ..model.cases import families_of
from ..model.types import WIDTH, dtype_of
from .contents import EDGES as EDGES  # noqa: PLC0414 - adapters import it from here
from .contents import DefaultElements, Words, make_default_words, repeat_words, rotate_edges

GUARD_BYTES = 64
"""Bytes before and after the elements, and between them where a layout leaves gaps, that no backend may write."""
GUARD_BYTE = 0xA5
"""The byte of these places."""
_GUARDS = bytes([GUARD_BYTE]) * GUARD_BYTES
_ALWAYS_READ_BYTES = 1 << 26
"""Bytes of an answer that are read even where src is small."""
COPY_LIMIT_BYTES = 1 << 24
"""Tensors of this many bytes or more are compared in place, without a copy."""
_PART_BYTES = 1 << 18
_FAR_STEP = (1 << 16) + 1
"""Elements between neighbours along the first axis of `far`, beside those that lie there."""
MAX_ANSWER_RANK, _MAX_ANSWER_LENGTH = 256, 1 << 64
"""The largest rank of an answer, and the largest distance of a length from 0."""
REPEATING = tuple(layout for layout in LAYOUTS if "broadcast" in families_of(layout))
"""Layouts in which several elements lie in one place."""


class TensorSpec(NamedTuple):
    """The elements of a tensor to be made, and their layout in memory."""

    type: str
    dims: tuple[int, ...]
    layout: Layout = "dense"
    bits: str | None = None
    start: int = 0
    """The number of the first default element in the scramble of the type."""


def digest_of_elements(elements: Elements) -> str:
    """Return the first 8 bytes of the SHA-256 of a tensor's elements, as evidence holds it."""
    digest = hashlib.sha256()
    for part in _cut(elements):
        digest.update(part)
    return digest.hexdigest()[:16]


@dataclass(eq=False)
class GuardedBuffer:
    """A tensor ready for a call, a copy of its memory, and its elements in row-major order."""

    tensor: Tensor
    copy: bytes | None
    """None if the tensor is large, and its elements, which lie between two guards, can be made again."""
    elements: Elements
    """Those of each right answer, too."""

    @property
    def before(self) -> bytes:
        """Its memory before any call."""
        return _GUARDS + bytes(self.elements[:]) + _GUARDS if self.copy is None else self.copy

    @cached_property
    def digest(self) -> str:
        return digest_of_elements(self.elements)

    @property
    def touched(self) -> bool:
        """True after a call that changed the memory, guards and gaps included."""
        memory: Any = self.tensor.memory
        if self.copy is not None:
            return bool(memory != self.copy)
        are_guards_intact = memory[:GUARD_BYTES] == memory[-GUARD_BYTES:] == _GUARDS
        return not (are_guards_intact and are_equal(memoryview(memory)[GUARD_BYTES:-GUARD_BYTES], self.elements))

    def restore(self) -> None:
        self.tensor.memory[:] = self.before


def strides_of(dims: tuple[int, ...], layout: Layout, width: int) -> tuple[int, ...]:
    """Return the byte strides of a layout."""
    if layout not in STRIDED:
        return _find_dense_strides(dims, width)
    rank, parts = len(dims), layout.split("+")
    wide = "stepped" in parts or (parts == ["padded"] and rank == 1)
    step = width * (7 if "stepped-7" in parts else 3 if "stepped-3" in parts else 2 if wide else 1)
    repeated, turned = _axes_of("broadcast", parts, rank), _axes_of("reversed", parts, rank)
    strides = [0] * rank
    for count, axis in enumerate(_sort_axes(rank, parts[0])):
        step += _FAR_STEP * width if layout == "far" and axis == 0 else 0
        strides[axis] = 0 if axis in repeated else -step if axis in turned else step
        gap = 3 if "padded" in parts and count == 0 else 1 if "cropped" in parts and axis == 1 else 0
        step *= 1 if axis in repeated else max(dims[axis], 1) + (gap if rank > 1 else 0)
    if layout in ("overlapping", "windows") and rank > 1:
        strides[0] = width if layout == "overlapping" else 2 * width
    return tuple(strides)


def _axes_of(family: str, parts: Sequence[str], rank: int) -> Collection[int]:
    """Return the axes that a layout repeats or reverses."""
    axes = {
        "first": {0}, "middle": {rank // 2}, "last": {rank - 1}, "two": {0, rank - 1}, "first-two": {0, 1},
        "all": range(rank),
    }  # fmt: skip
    which = next((part.partition("-") for part in parts if part.partition("-")[0] == family), None)
    return axes[which[2] or {"broadcast": "first", "reversed": "last"}[family]] if which else ()


@lru_cache(4096)
def _find_dense_strides(dims: tuple[int, ...], width: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(dims):
        strides.append(width)
        width *= length or 1
    return tuple(reversed(strides))


def _sort_axes(rank: int, layout: str) -> list[int]:
    """Return the axes of a layout in the order of their strides, the smallest first."""
    order = [*range(rank - 1, -1, -1)]
    if layout == "transposed":
        order.reverse()
    if layout == "swapped":
        order[-2:] = order[:-3:-1]
    if layout == "inner-swapped":
        order[1:-1] = order[-2:0:-1]
    if layout == "pairs-swapped":
        order[: rank - rank % 2] = [axis for at in range(0, rank - 1, 2) for axis in (order[at + 1], order[at])]
    if layout == "permuted":
        order = [*order[-1:], *order[:-1]]
    first = {"channels-last": 1, "blocked": 2}.get(layout)
    return [first, *(axis for axis in order if axis != first)] if first and rank > first + 1 else order


def reach_of(dims: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return how far the elements of a tensor lie below and above the one with every index 0, if there are any."""
    steps = [(length - 1) * stride for length, stride in zip(dims, strides, strict=True)]
    return -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)


def has_no_memory(dims: tuple[int, ...]) -> bool:
    """Ask whether a length is 0 or less, or there are 2^60 elements or more."""
    return any(length <= 0 for length in dims) or bool(volume_of(dims) >> 60)


def find_dims_error(dims: tuple[int, ...]) -> str | None:
    """Return what is wrong with an answer's dims: too many, or a length of more than 64 bits; None if nothing is."""
    if len(dims) > MAX_ANSWER_RANK:
        return f"{len(dims):,} dims, where at most {MAX_ANSWER_RANK:,} are taken"
    far = next((length for length in dims if abs(length) > _MAX_ANSWER_LENGTH), None)
    return f"a length of {far.bit_length()} bits, where at most 64 are taken" if far is not None else None


def are_equal(one: Elements, other: Elements) -> bool:
    """Compare bytes; a memoryview would be compared element by element, so parts of it are copied."""
    if isinstance(one, bytes) and isinstance(other, bytes):
        return one == other
    if one is other:
        return True
    pairs = zip(_cut(one), _cut(other), strict=True) if len(one) == len(other) else [(b"", b"other length")]
    return all(bytes(part) == bytes(same) for part, same in pairs)


def _cut(elements: Elements) -> Iterator[bytes | memoryview]:
    for at in range(0, len(elements), _PART_BYTES):
        yield elements[at : at + _PART_BYTES]


def volume_of(dims: tuple[int, ...]) -> int:
    return math.prod(dims)


def size_of(type_: str, dims: tuple[int, ...]) -> int:
    """Return the bytes of a tensor's elements; 0 if it has no memory."""
    return 0 if has_no_memory(dims) else volume_of(dims) * WIDTH[type_]


def count_max_answer_bytes(src: tuple[int, ...]) -> int:
    """Return the bytes of the largest answer that is read from another process: no right one is half as large."""
    return max(_ALWAYS_READ_BYTES, 2 * size_of("f64", src))  # no type is wider


def patterns(src_spec: TensorSpec) -> Words:
    """Return the elements of a source, and so of each right answer: unsigned integers, flat, in row-major order."""
    volume = volume_of(src_spec.dims)
    if src_spec.layout not in REPEATING or not volume:
        return _make_words(src_spec, volume)
    steps = tuple(map(abs, strides_of(src_spec.dims, src_spec.layout, 1)))
    words = _make_words(src_spec, 1 + sum(reach_of(src_spec.dims, steps)))
    return view_of(words, words.dtype, src_spec.dims, tuple(step * words.itemsize for step in steps)).reshape(-1)


def view_of(
    memory: Any, kind: np.dtype[Any], dims: tuple[int, ...], strides: tuple[int, ...], offset: int = 0
) -> Words:
    """View the elements in a memory, without the dims of length 1: tensors may have more dims than NumPy has."""
    axes = [(n, s) for n, s in zip(dims, strides, strict=True) if n != 1]
    return np.ndarray(tuple([n for n, _ in axes]), kind, memory, offset, tuple([s for _, s in axes]))


def _make_words(src_spec: TensorSpec, size: int) -> Words:
    """Return the first elements of a source, before any is repeated."""
    kind = np.dtype(f"<u{WIDTH[src_spec.type]}")
    if src_spec.bits is None:
        return make_default_words(src_spec.type, src_spec.start, size)
    if src_spec.bits == "edges":
        return repeat_words(src_spec.type, rotate_edges(src_spec.type, src_spec.start), size)
    if src_spec.bits == "all":
        return np.arange(size, dtype=kind)
    return repeat_words(src_spec.type, [int(word, 16) for word in src_spec.bits.split()], size)


def lay_out(src_spec: TensorSpec) -> GuardedBuffer:
    """Lay out a source in new memory, between guards."""
    width, volume = WIDTH[src_spec.type], volume_of(src_spec.dims)
    strides = strides_of(src_spec.dims, src_spec.layout, width)
    large = None
    if src_spec.bits is None and volume * width >= COPY_LIMIT_BYTES and src_spec.layout not in REPEATING:
        large = DefaultElements(src_spec.type, src_spec.start, volume)
    if large and src_spec.layout == "dense":
        memory = bytearray([GUARD_BYTE]) * (2 * GUARD_BYTES + len(large))
        for at in range(0, len(large), _PART_BYTES):
            part = large[at : at + _PART_BYTES]
            memory[GUARD_BYTES + at : GUARD_BYTES + at + len(part)] = part
        return GuardedBuffer(Tensor(src_spec.type, src_spec.dims, strides, memory, GUARD_BYTES), None, large)
    flat = patterns(src_spec)
    elements: Elements = large or flat.tobytes()
    if src_spec.layout == "dense" or not flat.size:
        before = _GUARDS + elements[:] + _GUARDS
        return GuardedBuffer(
            Tensor(src_spec.type, src_spec.dims, strides, bytearray(before), GUARD_BYTES), before, elements
        )
    below, above = 0, flat.nbytes - width
    if src_spec.layout in STRIDED:
        below, above = reach_of(src_spec.dims, strides)
    offset = GUARD_BYTES + below + {"offset": 3 * width, "offset-8": 8}.get(src_spec.layout, 0)
    memory = bytearray([GUARD_BYTE]) * (offset + above + width + GUARD_BYTES)
    if src_spec.layout not in STRIDED:
        memory[offset : offset + len(elements)] = elements[:]
    else:
        view = view_of(memory, flat.dtype, src_spec.dims, strides, offset)
        view[...] = flat.reshape(view.shape)
    return GuardedBuffer(Tensor(src_spec.type, src_spec.dims, strides, memory, offset), bytes(memory), elements)


def lay_out_shape(
    type_: str, dims: tuple[int, ...], values: tuple[int, ...], step: int = 1, later: int = 0
) -> GuardedBuffer:
    """Lay out a shape operand in guarded memory, its entries `step` places apart; if below 0, in reverse.

    `later`: the places between the guard and the first byte of the shape.
    """
    row = np.array(values, dtype=dtype_of(type_))
    width, apart, count = row.itemsize, abs(step), row.size
    memory = bytearray([GUARD_BYTE]) * (2 * GUARD_BYTES + width * (later + apart * max(count - 1, 0) + min(count, 1)))
    strides = tuple(stride * step for stride in strides_of(dims, "dense", width))
    offset = GUARD_BYTES + width * (later + (apart * max(count - 1, 0) if step < 0 else 0))
    np.ndarray(count, row.dtype, memory, offset, width * step)[...] = row.ravel()
    return GuardedBuffer(Tensor(type_, dims, strides, memory, offset), bytes(memory), row.tobytes())
