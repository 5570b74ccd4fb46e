"""The elements that a tensor of a case holds: scrambled numbers by default, or bit patterns that are worth a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from ..model.types import WIDTH

Words = np.ndarray[Any, np.dtype[Any]]
"""Elements as unsigned integers, flat."""


def _list_edges_of_integers(bits: int) -> tuple[int, ...]:
    """Return 0, 1, the limits with and without a sign and their neighbours, and bits in turn."""
    top, ones = 1 << bits - 1, (1 << bits) - 1
    return 1, 0, top - 1, top, ones, ones - 1, top + 1, 2, ones // 3, ones - ones // 3


EDGES: Mapping[str, tuple[int, ...]] = {
    "f32": (
        0x3F800000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7FA00000, 0xFFC12345, 0x3F808000, 0x3F800001, 0x33000000,
        0x477FF000, 0x7F800000, 0xFF800001, 0x00000000, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF800000,
        0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FBFFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF7FFFFF, 0xFFBFFFFF,
    ),
    "bf16": (
        0x3F80, 0x8000, 0x0001, 0x807F, 0x7FA0, 0xFFC1, 0x3F81, 0x0000, 0x8001, 0x007F, 0x0080, 0x7F7F, 0x7F80,
        0xFF80, 0x7FC0, 0x7F81, 0x7FFF, 0x3300, 0x477F, 0xFF81, 0xFF7F, 0xFFFF,
    ),
    "f16": (
        0x3C00, 0x8000, 0x0001, 0x83FF, 0x7D00, 0xFE01, 0x3C01, 0x0000, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7C00,
        0xFC00, 0x7E00, 0x7C01, 0x7FFF, 0x1400, 0x77FF, 0xFC01, 0xFBFF, 0xFFFF,
    ),
    "f64": (
        0x3FF0000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x7FF4000000000000,
        0xFFF8000000012345, 0x3FF0000020000000, 0x3FF0000000000001, 0x0000000000000000, 0x8000000000000001,
        0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
        0x7FF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,
        0xFFF0000000000001,
    ),
    "bool": (1, 0),
    **{type_: _list_edges_of_integers(8 * WIDTH[type_]) for type_ in WIDTH if type_[0] in "su"},
}  # fmt: skip
"""Bit patterns worth a test, by type: zeros, subnormals, limits, infinities, NaNs, values that rounding changes."""
_EXPONENT_BITS = {"f32": 8, "bf16": 8, "f16": 5, "f64": 11}
_MAX_PLACES = 1 << 17
SPREAD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: its multiples spread evenly over all words."""


class Scramble(NamedTuple):
    """The order in which default elements run through the patterns of a type, each of them once.

    The patterns, positive numbers first, are cut into as many places as `places` says. Consecutive elements jump from
    place to place by `jump`, so that they differ in sign, exponent and fraction. In a place there are 2^`fine`
    patterns, one for each round through all places.
    """

    places: int
    jump: int
    fine: int
    low: int
    """The pattern of the first number: the smallest normal one."""
    positive: int
    """The number of elements of positive sign."""
    gap: int
    """Patterns between the last positive number and the first negative one."""

    @property
    def size(self) -> int:
        """The number of elements before they repeat."""
        return self.places << self.fine


@lru_cache(len(WIDTH))
def scramble_of(type_: str) -> Scramble:
    """Return the scramble of a type: of the normal numbers of both signs, of all integers, or of two booleans."""
    bits = 1 if type_ == "bool" else 8 * WIDTH[type_]
    numbers, low, gap = 1 << bits, 0, 0
    if type_ in _EXPONENT_BITS:
        fraction = bits - 1 - _EXPONENT_BITS[type_]
        low = 1 << fraction
        numbers = 2 * ((1 << _EXPONENT_BITS[type_]) - 2) << fraction
        gap = 2 * low
    fine = next(fine for fine in count() if numbers >> fine <= _MAX_PLACES)
    places = numbers >> fine
    jump = next(step for step in count(int(places * 0.618)) if gcd(step, places) == 1)
    return Scramble(places, jump, fine, low, numbers // 2, gap)


@lru_cache(len(WIDTH))
def _make_first_turn(type_: str) -> Words:
    """Return the elements of the first round through all places."""
    scramble, wide = scramble_of(type_), np.uint64
    place = np.arange(scramble.places, dtype=wide)
    at = place * wide(scramble.jump) % wide(scramble.places) << wide(scramble.fine)
    words = at + wide(scramble.low) + wide(scramble.gap) * (at >= scramble.positive)
    if scramble.fine:
        words ^= place * wide(SPREAD) >> wide(64 - scramble.fine)
    first = words.astype(f"<u{WIDTH[type_]}")
    first.flags.writeable = False
    return first


def make_default_words(type_: str, start: int, size: int) -> Words:
    """Return `size` default elements from the element `start` of the scramble on."""
    scramble, first = scramble_of(type_), _make_first_turn(type_)
    words = np.empty(size, first.dtype)
    turn, place = divmod(start % scramble.size, scramble.places)
    done = 0
    while done < size:
        part = first[place : place + size - done]
        noise = turn * SPREAD % (1 << scramble.fine)
        np.bitwise_xor(part, first.dtype.type(noise), out=words[done : done + part.size])
        done, turn, place = done + part.size, turn + 1, 0
    return words


class DefaultElements:
    """The bytes of default elements, each part made when it is read: for tensors that memory should hold only once."""

    def __init__(self, type_: str, start: int, size: int) -> None:
        self._type, self._start, self._bytes = type_, start, size * WIDTH[type_]

    def __len__(self) -> int:
        return self._bytes

    def __getitem__(self, part: slice, /) -> memoryview:
        begin, end, _ = part.indices(self._bytes)
        first, behind = begin // WIDTH[self._type], -(-end // WIDTH[self._type])
        words = make_default_words(self._type, self._start + first, max(behind - first, 0)).view(np.uint8)
        at = begin - first * WIDTH[self._type]
        return words[at : at + max(end - begin, 0)].data


def repeat_words(type_: str, words: Sequence[int], size: int) -> Words:
    """Return words over and over; np.resize takes a thousand times as long for a single one."""
    return np.tile(np.array(words, f"<u{WIDTH[type_]}"), -(-size // len(words)))[:size]


def rotate_edges(type_: str, start: int) -> list[int]:
    """Return the EDGES of a type, rotated by `start`."""
    words = EDGES[type_]
    at = start % len(words)
    return [*words[at:], *words[:at]]
