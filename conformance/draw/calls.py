"""Draw single calls: dims of src, a shape, and how src lies in memory.

A drawn call does not say what it means; the contracts do.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..meaning.domain import Lengths
from ..model import LAYOUTS, ExpectedResult, Layout, Step
from ..model.types import WIDTH
from ..plan.contents import EDGES

T = TypeVar("T")
MAX_ELEMENTS = 70_000


class SeededDraws:
    """Draws that depend on nothing but a text, on every machine and every version of Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random  # its other methods may change with the version of Python

    def number(self, least: int, most: int) -> int:
        return least + int(self._random() * (most - least + 1))

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]


def sometimes(draw: SeededDraws, times: int, of: int) -> bool:
    """Return True in `times` of `of` draws."""
    return draw.number(1, of) > of - times


class DrawnCall(NamedTuple):
    """A call that is not in a case yet."""

    src: Lengths
    shape: Lengths
    special_zero: bool


# ── dims ──────────────────────────────────────────────────────────────────────────────────────────

_DIMS = (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 0, 1, 2, 3, 7, 8, 9, 11, 13, 255, 256, 257, 32767, 32768, 65535, 65536, 65537)
"""Small ones often, so that few elements show the failure."""
_RANKS = (1, 2, 3, 2, 3, 0, 4, 5, 6, 9, 12, 13)
_EVERY_RANK = tuple(range(1, 13))
_LAST_PLACE = 13
_LENGTHS_AT_LIMITS = (*(2**power + more for power in (15, 16, 31, 32, 33, 62) for more in (0, 1, -1)), 2**63 - 1)


def list_factors(number: int) -> list[int]:
    """List the prime factors of a number, the smallest first."""
    primes, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            primes.append(divisor)
            number //= divisor
        divisor += 1
    return [*primes, number] if number > 1 else primes


def draw_dims(draw: SeededDraws) -> Lengths:
    """Draw dims of src: small, or long in one dimension, or many and short."""
    lengths: list[int] = []
    rank = draw.choice(_RANKS)
    for _ in range(rank):
        length = draw.choice(_DIMS)
        fits = length * math.prod(lengths) <= (MAX_ELEMENTS if rank <= 5 else 64)
        lengths.append(length if fits else 1)
    return tuple(lengths)


def draw_full_dims(draw: SeededDraws) -> Lengths:
    """Draw dims without a 0: of any rank, or a number of elements distributed among a few dims."""
    rank = draw.choice(_EVERY_RANK)
    if sometimes(draw, 1, 2):
        return distribute(draw, draw_count(draw), min(rank, 6))
    lengths: list[int] = []
    for _ in range(rank):
        length = draw.choice((2, 3, 1, 4, 5, 2, 3, 7, 6, 9))
        lengths.append(length if length * math.prod(lengths) <= 9000 else draw.choice((1, 2, 1)))
    return tuple(lengths) if math.prod(lengths) <= MAX_ELEMENTS else tuple(min(length, 2) for length in lengths)


def draw_small_dims(draw: SeededDraws, ranks: Sequence[int] = _EVERY_RANK) -> Lengths:
    """Draw dims without a 0, for at most some hundred elements."""
    lengths: list[int] = []
    for _ in range(draw.choice(ranks)):
        length = draw.choice((2, 3, 1, 4, 5, 2, 7))
        lengths.append(length if length * math.prod(lengths) <= 300 else 1)
    for at in range(len(lengths) - 1, 0, -1):  # put the long ones anywhere
        other = draw.number(0, at)
        lengths[at], lengths[other] = lengths[other], lengths[at]
    return tuple(lengths)


def draw_count(draw: SeededDraws) -> int:
    """Draw a number of elements, most often one at which loops and buffers change."""
    kind = draw.choice(("few", "few", "few", "power", "power", "block", "block", "prime", "many"))
    near = draw.choice((-1, 0, 1))
    if kind == "power":
        return max(1, (1 << draw.number(1, 16)) + near)
    if kind == "block":
        return 64 * draw.number(1, 70) + near
    if kind == "prime":
        return draw.choice((127, 251, 509, 1009, 1021, 2039, 4093, 8191, 16381, 65521))
    if kind == "many":
        return draw.number(1, draw.choice((4000, 40_000, 200_000)))
    return draw.number(1, 1100)


def distribute(draw: SeededDraws, volume: int, rank: int) -> Lengths:
    """Distribute the prime factors of a volume among dims at random."""
    lengths = [1] * rank
    for factor in list_factors(volume):
        lengths[draw.number(0, rank - 1)] *= factor
    return tuple(lengths)


def draw_same_volume(draw: SeededDraws, src: Lengths, ranks: Sequence[int] = _RANKS) -> Lengths:
    """Draw other dims of the same volume, or no dims."""
    rank, volume = draw.choice(ranks), math.prod(src)
    if volume == 0:
        return tuple(draw.choice((0, 1, 2, 3)) for _ in range(min(rank, 4)))
    return distribute(draw, volume, rank) if rank else ()


# ── legal shapes ──────────────────────────────────────────────────────────────────────────────────


def draw_legal_call(draw: SeededDraws, src: Lengths) -> DrawnCall:
    """Draw a legal call on a src with elements: as it is, with a -1, with copied zeros, or with both."""
    if sometimes(draw, 1, 2):
        shape, zero = list(draw_same_volume(draw, src, _EVERY_RANK)), sometimes(draw, 1, 2)
        free = list(range(len(shape)))
    else:
        shape, free = _copy_some(draw, src)
        zero = True
    if free and sometimes(draw, 2, 5):
        shape[draw.choice(free)] = -1
    return DrawnCall(src, tuple(shape), zero)


def _copy_some(draw: SeededDraws, src: Lengths) -> tuple[list[int], list[int]]:
    """Return a shape in which some dims of src are copied by a 0, and the indices of the other entries."""
    rank = draw.choice(_EVERY_RANK)
    copied = [at for at in range(min(rank, len(src))) if sometimes(draw, 1, 2)]
    rest = math.prod(src) // math.prod(src[at] for at in copied)
    if len(copied) == rank and rest > 1:
        rank += 1
    free = [at for at in range(rank) if at not in copied]
    shape = [0] * rank
    for at, length in zip(free, distribute(draw, rest, len(free)) if free else (), strict=True):
        shape[at] = length
    return shape, free


def guess_answer(call: DrawnCall) -> Lengths:
    """Guess dst from the entries of shape. The guess is right for a legal call on a src with elements."""
    lengths = [
        call.src[at] if length == 0 and call.special_zero and at < len(call.src) else length
        for at, length in enumerate(call.shape)
    ]
    rest = math.prod(length for length in lengths if length > 0)
    return tuple(math.prod(call.src) // max(rest, 1) if length < 0 else length for length in lengths)


# ── changes: each does one thing to an entry of shape, chosen by two numbers ──────────────────────

Change = Callable[[Lengths, list[int], int, int], None]


def _replace_entry(entries: Callable[[int, int], Sequence[int]]) -> Change:
    """Return a change that puts other entries in the place of one, given that entry and the second number."""

    def change(src: Lengths, shape: list[int], at: int, more: int) -> None:
        shape[at : at + 1] = entries(shape[at], more)

    return change


_infer = _replace_entry(lambda entry, more: [-1])
_negative = _replace_entry(lambda entry, more: [-entry if entry > 1 else (-2, -3, -(2**31), -(2**63))[more % 4]])
_off_by_one = _replace_entry(lambda entry, more: [entry + (1, -1, 2)[more % 3]])
_shorter = _replace_entry(lambda entry, more: [])
_huge = _replace_entry(lambda entry, more: [_LENGTHS_AT_LIMITS[more % len(_LENGTHS_AT_LIMITS)]])
_wraps_length = _replace_entry(lambda entry, more: [entry + 2 ** (32, 16, 8, 33)[more % 4]])


def _zero(src: Lengths, shape: list[int], at: int, more: int) -> None:
    if at < len(src) and more % 2:
        shape[:] = [*src[: at + 1], *shape[at + 1 :]]  # so that the copy is more likely to be legal
    shape[at] = 0


def _make_copying(src: Lengths, shape: list[int], at: int, more: int) -> None:
    """Make shape the dims of src, some of them as zeros, the last two perhaps multiplied into one."""
    shape[:] = [0 if more >> place & 1 else length for place, length in enumerate(src)] or [1]
    if len(shape) > 2 and at % 2:
        shape[-2:] = [math.prod(src[-2:])]


def _negate_two(src: Lengths, shape: list[int], at: int, more: int) -> None:
    for place in {at, more % len(shape)}:
        shape[place] = -abs(shape[place])


def _lengthen(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape.insert(at, (1, 0, -1, 2, 1, 0, -1, -4)[more % 8])


def _wrap_volume(src: Lengths, shape: list[int], at: int, more: int) -> None:
    """Set lengths with a product that is right only if it wraps at 32 or 64 bits."""
    modulus = 2 ** (32, 64)[more % 2]
    root = 1 << (modulus.bit_length() // 2)
    for odd in (3, 5, 7, 13, 419)[at % 5 :]:
        rest = pow(odd, -1, modulus) * math.prod(src) % modulus
        if math.prod(src) and rest < 2**63:
            shape[:] = [odd, rest]
            return
    shape[:] = [root, root]


CHANGES: tuple[Change, ...] = (
    _infer, _zero, _make_copying, _off_by_one, _negative, _lengthen, _negate_two, _shorter,
    _huge, _wraps_length, _wrap_volume,
)  # fmt: skip


def draw_plain_call(draw: SeededDraws, src: Lengths | None = None) -> DrawnCall:
    """Draw a call: dims, other dims of the same volume, and a few changes."""
    if src is None:
        src = draw_dims(draw)
    shape = list(draw_same_volume(draw, src))
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        change, at, more = draw.choice(CHANGES), draw.number(0, _LAST_PLACE), draw.number(0, 63)
        if shape or change in (_lengthen, _make_copying):
            change(src, shape, at % max(len(shape), 1), more)
    return DrawnCall(src, tuple(shape), sometimes(draw, 1, 2))


def spoil(draw: SeededDraws, call: DrawnCall) -> DrawnCall:
    """Return a call with one change of its shape, after which few calls are legal."""
    shape = list(call.shape) or [2]
    often = (_off_by_one, _huge, _wrap_volume)
    change = draw.choice((*often, *often, _negative, _negate_two, _zero, _shorter, _wraps_length))
    change(call.src, shape, draw.number(0, len(shape) - 1), draw.number(0, 63))
    return call._replace(shape=tuple(shape))


def draw_any_call(draw: SeededDraws) -> DrawnCall:
    """Draw a call of any kind: legal with elements, the same with a change, or any other."""
    if sometimes(draw, 1, 3):
        return draw_plain_call(draw)
    call = draw_legal_call(draw, draw_full_dims(draw))
    return spoil(draw, call) if sometimes(draw, 1, 4) else call


# ── how src lies in memory ────────────────────────────────────────────────────────────────────────


def draw_step(draw: SeededDraws, type_: str, call: DrawnCall, links: Sequence[DrawnCall] = ()) -> Step:
    """Draw how a call lies in memory: layout, permission to overwrite, bit patterns."""
    layout: Layout = draw.choice(LAYOUTS) if sometimes(draw, 2, 5) else "dense"
    if layout == "far" and math.prod(call.src) > MAX_FAR_ELEMENTS:
        layout = "stepped"
    bits = None
    if math.prod(call.src) > 0 and layout != "broadcast" and sometimes(draw, 1, 2):
        bits = _draw_bits(draw, type_, math.prod(call.src))
    return step_of(type_, (call, *links), layout=layout, in_place=sometimes(draw, 1, 6), bits=bits)


def step_of(type_: str, calls: Sequence[DrawnCall], **more: Any) -> Step:
    """Return a step with a node for each call; src is that of the first call, and nothing is expected."""
    shapes, zeros = tuple(call.shape for call in calls), tuple(call.special_zero for call in calls)
    return Step(type_, calls[0].src, shapes, zeros, {"*": ExpectedResult("unspecified")}, **more)


MAX_FAR_ELEMENTS = 40
"""Each element of the layout `far` takes 128 KiB of memory."""
MAX_BIT_PATTERNS = 61
"""Bit patterns in a list: a prime, so that a list and a dimension seldom end together."""


def _draw_bits(draw: SeededDraws, type_: str, volume: int) -> str | None:
    """Draw bit patterns: of any numbers, and some of them, or all, the special ones of the type."""
    if type_ == "bool":
        return None
    words, digits, most = EDGES[type_], 2 * WIDTH[type_], min(volume, MAX_BIT_PATTERNS)
    start, apart = draw.number(0, 1 << 32), draw.choice((1, 2, 5, MAX_BIT_PATTERNS))
    ends = (0, most - 1) if sometimes(draw, 1, 5) else ()  # equal ends, as a weak digest of the elements has them
    number = hashlib.shake_128(str(start).encode()).hexdigest(digits * most // 2)  # one decision, not a hundred
    drawn = [number[digits * k : digits * (k + 1)] for k in range(most)]
    for k in range(-start % apart, most, apart):
        drawn[k] = f"{words[(start + k) % len(words)]:0{digits}x}"
    for k in ends:
        drawn[k] = f"{words[0]:0{digits}x}"
    return " ".join(drawn)
