"""Hypothesis strategies for new cases, whose calls are legal, illegal or unspecified.

A shape begins as other dims of the same volume. Then it is changed a little: a -1, a 0, a sign, a length that wraps.
The contracts say what the call means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ..meaning.domain import Lengths
from ..model import LAYOUTS, Case, Expected, Layout, Operand, Place, Step
from ..model.types import WIDTH
from ..plan.memory import EDGES

Draw = Callable[[st.SearchStrategy[Any]], Any]
_EXPECT = {"*": Expected("unspecified")}
_PLACE = Place("found.yaml", 1)
_MOST_ELEMENTS = 70_000


class Plain(NamedTuple):
    """A call that is not in a case yet."""

    src: Lengths
    shape: Lengths
    special_zero: bool


# ── dims ──────────────────────────────────────────────────────────────────────────────────────────

_DIM = st.sampled_from(
    (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 0, 1, 2, 3, 7, 8, 9, 11, 13, 255, 256, 257, 32767, 32768, 65535, 65536, 65537)
)
"""Small ones often, so that few elements show the failure."""
_RANK = st.sampled_from((1, 2, 3, 2, 3, 0, 4, 5, 6, 9, 12, 13))
_AT = st.integers(0, 13)
_HUGE = (*(2**power + more for power in (15, 16, 31, 32, 33, 62) for more in (0, 1, -1)), 2**63 - 1)


def factors(number: int) -> list[int]:
    """List the prime factors of a number, the smallest first."""
    primes, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            primes.append(divisor)
            number //= divisor
        divisor += 1
    return [*primes, number] if number > 1 else primes


def dims(draw: Draw) -> Lengths:
    """Draw the dims of a src: small, or long in one dimension, or many and short."""
    lengths: list[int] = []
    rank = draw(_RANK)
    for _ in range(rank):
        length = draw(_DIM)
        fits = length * math.prod(lengths) <= (_MOST_ELEMENTS if rank <= 5 else 64)
        lengths.append(length if fits else 1)
    return tuple(lengths)


def same_volume(draw: Draw, src: Lengths) -> Lengths:
    """Draw other dims of the same volume: its prime factors, distributed among them at random."""
    count, digits = draw(_RANK), draw(st.integers(0, 1 << 24))
    if math.prod(src) == 0:
        return tuple((0, 1, 2, 3)[digits >> 2 * at & 3] for at in range(min(count, 4)))
    lengths = [1] * count
    for factor in factors(math.prod(src)) if count else ():
        digits, at = divmod(digits, count)
        lengths[at] *= factor
    return tuple(lengths)


# ── changes: each does one thing to an entry of shape, chosen by two numbers ──────────────────────


def _infer(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] = -1


def _zero(src: Lengths, shape: list[int], at: int, more: int) -> None:
    if at < len(src) and more % 2:
        shape[:] = [*src[: at + 1], *shape[at + 1 :]]  # so that the copy is more likely to be legal
    shape[at] = 0


def _copies(src: Lengths, shape: list[int], at: int, more: int) -> None:
    """Make shape the dims of src, some of them as zeros, the last two perhaps multiplied into one."""
    shape[:] = [0 if more >> place & 1 else length for place, length in enumerate(src)] or [1]
    if len(shape) > 2 and at % 2:
        shape[-2:] = [math.prod(src[-2:])]


def _negative(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] = -shape[at] if shape[at] > 1 else (-2, -3, -(2**31), -(2**63))[more % 4]


def _two_negatives(src: Lengths, shape: list[int], at: int, more: int) -> None:
    for place in {at, more % len(shape)}:
        shape[place] = -abs(shape[place])


def _off_by_one(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] += (1, -1, 2)[more % 3]


def _longer(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape.insert(at, (1, 0, -1, 2, 1, 0, -1, -4)[more % 8])


def _shorter(src: Lengths, shape: list[int], at: int, more: int) -> None:
    del shape[at]


def _huge(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] = _HUGE[more % len(_HUGE)]


def _wraps_length(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] += 2 ** (32, 16, 8, 33)[more % 4]


def _wraps_volume(src: Lengths, shape: list[int], at: int, more: int) -> None:
    """Make shape of lengths whose product is right only if it wraps at 32 or 64 bits."""
    modulus = 2 ** (32, 64)[more % 2]
    root = 1 << (modulus.bit_length() // 2)
    for odd in (3, 5, 7, 13, 419)[at % 5 :]:
        rest = pow(odd, -1, modulus) * math.prod(src) % modulus
        if math.prod(src) and rest < 2**63:
            shape[:] = [odd, rest]
            return
    shape[:] = [root, root]


CHANGES: tuple[Callable[[Lengths, list[int], int, int], None], ...] = (
    _infer, _zero, _copies, _off_by_one, _negative, _longer, _two_negatives, _shorter,
    _huge, _wraps_length, _wraps_volume,
)  # fmt: skip


def plain(draw: Draw, src: Lengths | None = None) -> Plain:
    """Draw a call: dims, other dims of the same volume, and a few changes."""
    if src is None:
        src = dims(draw)
    shape = list(same_volume(draw, src))
    for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3)))):
        change, at, more = draw(_CHANGE), draw(_AT), draw(_MORE)
        if shape or change in (_longer, _copies):
            change(src, shape, at % max(len(shape), 1), more)
    return Plain(src, tuple(shape), draw(st.booleans()))


_CHANGE = st.sampled_from(CHANGES)
_MORE = st.integers(0, 63)


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────

_LAYOUT = st.sampled_from((*["dense"] * 5, *LAYOUTS))
_SELDOM = st.integers(0, 7).map(lambda number: number == 7)


def step(draw: Draw, type_: str, call: Plain, links: Sequence[Plain] = ()) -> Step:
    """Draw how a call lies in memory: layout, permission to overwrite, bit patterns."""
    layout: Layout = draw(_LAYOUT)
    bits = None
    if type_ in EDGES and 0 < math.prod(call.src) <= 64 and layout != "broadcast" and draw(st.booleans()):
        words, digits, at = EDGES[type_], 2 * WIDTH[type_], draw(st.integers(0, 23))
        bits = " ".join(f"{words[(at + k) % len(words)]:0{digits}x}" for k in range(math.prod(call.src)))
    shapes = (call.shape, *(link.shape for link in links))
    zeros = (call.special_zero, *(link.special_zero for link in links))
    return Step(type_, call.src, shapes, zeros, _EXPECT, layout, draw(_SELDOM), bits)


def _case_of(steps: Sequence[Step], **more: Any) -> Case:
    return Case("found", "found.yaml", "same-volume", tuple(steps), _PLACE, **more)


def _one(draw: Draw, type_: str) -> Case:
    return _case_of([step(draw, type_, plain(draw))])


def _sequence(draw: Draw, type_: str) -> Case:
    """Draw calls on one program: some are repeated, some keep the src or the shape of an earlier one."""
    steps = [step(draw, type_, plain(draw))]
    for _ in range(draw(st.integers(1, 3))):
        before = steps[draw(_AT) % len(steps)]
        call = Plain(before.src, before.shapes[0], before.special_zero[0])
        kind = draw(st.sampled_from(("again", "other shape", "other src", "other dims", "other sign", "reversed")))
        if kind == "other shape":
            call = plain(draw, before.src)._replace(special_zero=call.special_zero)
        elif kind == "other src":
            call = plain(draw)._replace(special_zero=call.special_zero)
        elif kind == "other dims":
            call = call._replace(src=same_volume(draw, call.src))
        elif kind == "reversed":
            call = call._replace(src=call.src[::-1])
        elif kind == "other sign":  # Python's hash of -1 is that of -2
            call = call._replace(shape=tuple({-1: -2, -2: -1}.get(entry, entry) for entry in call.shape))
        again = step(draw, type_, call)
        steps.append(again)
    return _case_of(steps)


def _long(draw: Draw, type_: str) -> Case:
    """Draw enough calls on one program to fill a cache or a ring of buffers; then repeat the last and the first."""
    length, shapes, count = draw(_LENGTH), [], draw(st.sampled_from((10, 18)))
    for factor in range(1, length + 1):
        if length % factor == 0:
            shapes += [(factor, length // factor), (1, factor, length // factor)]
    calls = [Plain((length,), shapes[number % len(shapes)], False) for number in range(count)]
    if draw(st.booleans()):
        calls = [calls[0]] * count
    return _case_of([Step(type_, call.src, (call.shape,), (False,), _EXPECT) for call in (*calls, calls[-1], calls[0])])


_LENGTH = st.sampled_from((24, 36, 60))
"""Lengths with many factors."""


def _chain(draw: Draw, type_: str) -> Case:
    """Draw a chain of calls; half of the chains have no change, or hardly one in twenty would be legal."""
    unchanged, count = draw(st.booleans()), draw(st.sampled_from((1, 2, 1, 2, 3, 4)))
    src = dims(draw)
    calls = [Plain(src, same_volume(draw, src), False) if unchanged else plain(draw, src) for _ in range(count + 1)]
    return _case_of([step(draw, type_, calls[0], calls[1:])])


def _with_declared_dst(draw: Draw, type_: str) -> Case:
    """Draw a call whose dst is declared: unknown, all of it, a part, or wrongly."""
    call = plain(draw)
    likely = [abs(length) for length in same_volume(draw, call.src)] if draw(_SELDOM) else list(_guess(call))
    declared: Any = [None if draw(_SELDOM) else length for length in likely]
    if declared and draw(st.booleans()):
        at = draw(_AT) % len(declared)
        declared[at] = draw(st.sampled_from((None, 1, 2, 0, 7)))
    steps = [step(draw, type_, call)]
    return _case_of(steps, declared="unknown" if draw(_SELDOM) else tuple(declared))


def _guess(call: Plain) -> Lengths:
    """Guess dst from the entries of shape."""
    known = [
        call.src[at] if length == 0 and call.special_zero and at < len(call.src) else length
        for at, length in enumerate(call.shape)
    ]
    rest = math.prod(tuple(length for length in known if length > 0))
    return tuple(math.prod(call.src) // max(rest, 1) if length < 0 else length for length in known)


_FORMS: tuple[dict[str, Any], ...] = (
    {"attributes": {"special_zero": None}},
    {"attributes": {"shape": None}},
    {"attributes": {"special_zero": Operand("s64", (), (1,))}},
    {"attributes": {"special_zero": Operand("s64", (), (0,))}},
    {"attributes": {"special_zero": Operand("u8", (), (1,))}},
    {"attributes": {"axis": Operand("s64", (), (0,))}},
    {"inputs": {"src": 0}},
    {"inputs": {"shape": 0}},
    {"inputs": {"extra": 1}},
    {"outputs": {"dst": 0}},
    {"outputs": {"extra": 1}},
    {"dst_type": "f32"},
    {"dst_type": "f16"},
    {"dst_type": "bf16"},
    {"shape_type": "f32"},
    {"shape_type": "s64"},
    {"shape_type": "s8"},
    {"shape_rank": 2},
    {"shape_rank": 3},
    {"shape_rank": 0},
)


def _with_other_form(draw: Draw, type_: str) -> Case:
    """Draw a node that does not follow its signature: alone, the last of a chain, or with the right dst declared."""
    form, among = draw(st.sampled_from(_FORMS)), draw(st.sampled_from(("alone", "alone", "chain", "declared")))
    call = plain(draw)
    if form.get("shape_rank") == 0:
        call = call._replace(shape=(math.prod(call.src),))
    if form.get("dst_type") == type_:
        form = {}
    if among == "chain":
        call = call._replace(shape=same_volume(draw, call.src), special_zero=False)
        return _case_of([step(draw, type_, call, [call._replace(shape=same_volume(draw, call.src))])], **form)
    if among == "declared":
        form = {**form, "declared": _guess(call)}
    return _case_of([step(draw, type_, call)], **form)


_KINDS = (
    *[_one] * 5,
    _sequence,
    _sequence,
    _chain,
    _chain,
    _with_declared_dst,
    _with_other_form,
    _with_other_form,
    _long,
)


@st.composite
def cases(draw: Any, types: Sequence[str]) -> Case:
    """Draw a case, which does not say what its calls mean."""
    kind: Callable[[Draw, str], Case] = draw(st.sampled_from(_KINDS))
    return kind(draw, draw(st.sampled_from(list(types))))
