"""Hypothesis strategies for calls that nobody wrote down: legal, illegal and unspecified ones, as cases.

A call begins with dims whose prime factors are dealt out anew, and is twisted a little: a -1, a 0, a sign, a
length that wraps. What it means is for the contracts to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from ..model import LAYOUTS, Case, Expected, Layout, Operand, Place, Step
from ..model.types import WIDTH
from ..plan.memory import EDGES

Lengths = tuple[int, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]
_EXPECT = {"*": Expected("unspecified")}
_PLACE = Place("found.yaml", 1)
_PLENTY = 70_000
"""No more elements than that."""


class Plain(NamedTuple):
    """A call before it is put into a case."""

    src: Lengths
    shape: Lengths
    special_zero: bool


# ── dims ──────────────────────────────────────────────────────────────────────────────────────────

_DIM = st.sampled_from(
    (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 0, 1, 2, 3, 7, 8, 9, 11, 13, 255, 256, 257, 32767, 32768, 65535, 65536, 65537)
)
"""Small ones often: what they show is shown by fewer elements."""
_RANK = st.sampled_from((1, 2, 3, 2, 3, 0, 4, 5, 6, 9, 12, 13))
_AT = st.integers(0, 13)
_HUGE = (*(2**power + more for power in (15, 16, 31, 32, 33, 62) for more in (0, 1, -1)), 2**63 - 1)


def factors(number: int) -> list[int]:
    """Its prime factors, the smallest first."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


def dims(draw: Draw) -> Lengths:
    """The dims of a src: small, or long in one dimension, or many and short."""
    found: list[int] = []
    rank = draw(_RANK)
    for _ in range(rank):
        length = draw(_DIM)
        fits = length * math.prod(found) <= (_PLENTY if rank <= 5 else 64)
        found.append(length if fits else 1)
    return tuple(found)


def dealt(draw: Draw, src: Lengths) -> Lengths:
    """As many elements in other dims: the prime factors of the volume, dealt out anew."""
    count, deal = draw(_RANK), draw(st.integers(0, 1 << 24))
    if math.prod(src) == 0:
        return tuple((0, 1, 2, 3)[deal >> 2 * at & 3] for at in range(min(count, 4)))
    found = [1] * count
    for factor in factors(math.prod(src)) if count else ():
        deal, at = divmod(deal, count)
        found[at] *= factor
    return tuple(found)


# ── twists: each does one thing to an entry of shape, chosen by two numbers ───────────────────────


def _infer(src: Lengths, shape: list[int], at: int, more: int) -> None:
    shape[at] = -1


def _zero(src: Lengths, shape: list[int], at: int, more: int) -> None:
    if at < len(src) and more % 2:
        shape[:] = [*src[: at + 1], *shape[at + 1 :]]  # so that the copy is more likely to be a good one
    shape[at] = 0


def _copies(src: Lengths, shape: list[int], at: int, more: int) -> None:
    """The dims of src, some of them as zeros, the last ones perhaps joined."""
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
    """Lengths whose product is right in 32 or 64 bits only."""
    modulus = 2 ** (32, 64)[more % 2]
    root = 1 << (modulus.bit_length() // 2)
    for odd in (3, 5, 7, 13, 419)[at % 5 :]:
        rest = pow(odd, -1, modulus) * math.prod(src) % modulus
        if math.prod(src) and rest < 2**63:
            shape[:] = [odd, rest]
            return
    shape[:] = [root, root]


TWISTS: tuple[Callable[[Lengths, list[int], int, int], None], ...] = (
    _infer, _zero, _copies, _off_by_one, _negative, _longer, _two_negatives, _shorter,
    _huge, _wraps_length, _wraps_volume,
)  # fmt: skip


def plain(draw: Draw, src: Lengths | None = None) -> Plain:
    """A call: dims, other dims of the same volume, and a few twists."""
    if src is None:
        src = dims(draw)
    shape = list(dealt(draw, src))
    for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3)))):
        twist, at, more = draw(_TWIST), draw(_AT), draw(_MORE)
        if shape or twist in (_longer, _copies):
            twist(src, shape, at % max(len(shape), 1), more)
    return Plain(src, tuple(shape), draw(st.booleans()))


_TWIST = st.sampled_from(TWISTS)
_MORE = st.integers(0, 63)


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────

_LAYOUT = st.sampled_from((*["dense"] * 5, *LAYOUTS))
_SELDOM = st.integers(0, 7).map(lambda number: number == 7)


def step(draw: Draw, type_: str, call: Plain, links: Sequence[Plain] = ()) -> Step:
    """A call in memory: layout, leave to overwrite, bit patterns."""
    layout: Layout = draw(_LAYOUT)
    bits = None
    if type_ in EDGES and 0 < math.prod(call.src) <= 64 and layout != "broadcast" and draw(st.booleans()):
        words, digits, at = EDGES[type_], 2 * WIDTH[type_], draw(st.integers(0, 23))
        bits = " ".join(f"{words[(at + k) % len(words)]:0{digits}x}" for k in range(math.prod(call.src)))
    shapes = (call.shape, *(link.shape for link in links))
    zeros = (call.special_zero, *(link.special_zero for link in links))
    return Step(type_, call.src, shapes, zeros, _EXPECT, bits, layout, draw(_SELDOM))


def _of(steps: Sequence[Step], **more: Any) -> Case:
    return Case("found", "found.yaml", "same-volume", tuple(steps), _PLACE, **more)


def _one(draw: Draw, type_: str) -> Case:
    return _of([step(draw, type_, plain(draw))])


def _sequence(draw: Draw, type_: str) -> Case:
    """Calls on one program: some come again, some keep the src or the shape of the one before."""
    steps = [step(draw, type_, plain(draw))]
    for _ in range(draw(st.integers(1, 3))):
        before = steps[draw(_AT) % len(steps)]
        call = Plain(before.src, before.shapes[0], before.special_zero[0])
        kind = draw(st.sampled_from(("again", "other shape", "other src", "flat", "other sign", "turned")))
        if kind == "other shape":
            call = plain(draw, before.src)._replace(special_zero=call.special_zero)
        elif kind == "other src":
            call = plain(draw)._replace(special_zero=call.special_zero)
        elif kind == "flat":
            call = call._replace(src=dealt(draw, call.src))
        elif kind == "turned":
            call = call._replace(src=call.src[::-1])
        elif kind == "other sign":  # Python's hash of -1 is that of -2
            call = call._replace(shape=tuple({-1: -2, -2: -1}.get(entry, entry) for entry in call.shape))
        again = step(draw, type_, call)
        steps.append(again)
    return _of(steps)


def _long(draw: Draw, type_: str) -> Case:
    """As many calls on one program as fill a cache or a ring of buffers; then the last and the first of them again."""
    length, shapes, count = draw(_LENGTH), [], draw(st.sampled_from((10, 18)))
    for factor in range(1, length + 1):
        if length % factor == 0:
            shapes += [(factor, length // factor), (1, factor, length // factor)]
    calls = [Plain((length,), shapes[number % len(shapes)], False) for number in range(count)]
    if draw(st.booleans()):
        calls = [calls[0]] * count
    return _of([Step(type_, call.src, (call.shape,), (False,), _EXPECT) for call in (*calls, calls[-1], calls[0])])


_LENGTH = st.sampled_from((24, 36, 60))
"""Of many factors."""


def _chain(draw: Draw, type_: str) -> Case:
    """Calls one after another; half of the chains have no twist, or hardly one in twenty would be legal."""
    calm, count = draw(st.booleans()), draw(st.sampled_from((1, 2, 1, 2, 3, 4)))
    src = dims(draw)
    calls = [Plain(src, dealt(draw, src), False) if calm else plain(draw, src) for _ in range(count + 1)]
    return _of([step(draw, type_, calls[0], calls[1:])])


def _declared(draw: Draw, type_: str) -> Case:
    """Something is said of dst beforehand: nothing of use, all, a part, or what is not so."""
    call = plain(draw)
    likely = [abs(length) for length in dealt(draw, call.src)] if draw(_SELDOM) else list(_guess(call))
    declared: Any = [None if draw(_SELDOM) else length for length in likely]
    if declared and draw(st.booleans()):
        at = draw(_AT) % len(declared)
        declared[at] = draw(st.sampled_from((None, 1, 2, 0, 7)))
    steps = [step(draw, type_, call)]
    return _of(steps, declared="unknown" if draw(_SELDOM) else tuple(declared))


def _guess(call: Plain) -> Lengths:
    """What dst is, as far as it needs no more than a glance."""
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


def _formed(draw: Draw, type_: str) -> Case:
    """A node that is not written as its signature says: alone, the last of a chain, or with what is right declared."""
    form, among = draw(st.sampled_from(_FORMS)), draw(st.sampled_from(("alone", "alone", "chain", "declared")))
    call = plain(draw)
    if form.get("shape_rank") == 0:
        call = call._replace(shape=(math.prod(call.src),))
    if form.get("dst_type") == type_:
        form = {}
    if among == "chain":
        call = call._replace(shape=dealt(draw, call.src), special_zero=False)
        return _of([step(draw, type_, call, [call._replace(shape=dealt(draw, call.src))])], **form)
    if among == "declared":
        form = {**form, "declared": _guess(call)}
    return _of([step(draw, type_, call)], **form)


_KINDS = (*[_one] * 5, _sequence, _sequence, _chain, _chain, _declared, _formed, _formed, _long)


@st.composite
def cases(draw: Any, types: Sequence[str]) -> Case:
    """A case that says of no call what it means; the contracts do."""
    kind: Callable[[Draw, str], Case] = draw(st.sampled_from(_KINDS))
    return kind(draw, draw(st.sampled_from(list(types))))
