"""Draw cases: a call, a few or many on one program, a chain, a declared dst, another form.

A drawn case does not say what its calls mean; the contracts do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..meaning.domain import Lengths
from ..model import Case, Expected, Operand, Place, Step
from .calls import (
    Draw,
    DrawnCall,
    distribute,
    draw_any_call,
    draw_count,
    draw_full_dims,
    draw_legal_call,
    draw_plain_call,
    draw_same_volume,
    draw_small_dims,
    draw_step,
    guess_answer,
    sometimes,
    spoil,
)

_EXPECT = {"*": Expected("unspecified")}
_PLACE = Place("drawn.yaml", 1)
Kind = Callable[[Draw, Sequence[str]], Case]
"""Draws a case with elements of some of the types."""


def _case_of(steps: Sequence[Step], **more: Any) -> Case:
    return Case("drawn", "drawn.yaml", "same-volume", tuple(steps), _PLACE, **more)


def draw_one(draw: Draw, types: Sequence[str]) -> Case:
    return _case_of([draw_step(draw, draw.choice(types), draw_any_call(draw))])


# ── several calls on one program ──────────────────────────────────────────────────────────────────


def draw_sequence(draw: Draw, types: Sequence[str]) -> Case:
    """Draw calls on one program: some are repeated, some keep the src or the shape of an earlier one."""
    type_ = draw.choice(types)
    steps = [draw_step(draw, type_, draw_any_call(draw))]
    for _ in range(draw.number(1, 4)):
        before = draw.choice(steps)
        steps.append(
            draw_step(draw, type_, _like(draw, DrawnCall(before.src, before.shapes[0], before.special_zero[0])))
        )
    return _case_of(steps, concurrent=2 if sometimes(draw, 1, 6) else 1)


def _like(draw: Draw, call: DrawnCall) -> DrawnCall:
    """Draw a call that has something in common with another."""
    kind = draw.choice(("again", "other shape", "other src", "other dims", "other sign", "reversed", "same rank"))
    if kind == "other shape":
        return draw_plain_call(draw, call.src)._replace(special_zero=call.special_zero)
    if kind == "other src":
        return draw_plain_call(draw)._replace(special_zero=call.special_zero)
    if kind == "other dims":
        return call._replace(src=draw_same_volume(draw, call.src))
    if kind == "reversed":
        return call._replace(src=call.src[::-1])
    if kind == "other sign":  # Python's hash of -1 is that of -2
        return call._replace(shape=tuple({-1: -2, -2: -1}.get(entry, entry) for entry in call.shape))
    if kind == "same rank" and call.src and call.shape:
        src = tuple(draw.number(1, 6 if len(call.src) < 5 else 2) for _ in call.src)
        return call._replace(src=src, shape=distribute(draw, math.prod(src), len(call.shape)))
    return call


def draw_repetition(draw: Draw, types: Sequence[str]) -> Case:
    """Draw enough calls on one program to fill a cache or a ring of buffers; then repeat the last and the first."""
    type_, length = draw.choice(types), draw.choice((24, 36, 60))
    shapes: list[Lengths] = []
    for factor in range(1, length + 1):
        if length % factor == 0:
            shapes += [(factor, length // factor), (1, factor, length // factor)]
    calls = [DrawnCall((length,), shapes[number % len(shapes)], False) for number in range(draw.choice((10, 18)))]
    if sometimes(draw, 1, 2):
        calls = [calls[0]] * len(calls)
    calls += [calls[-1], calls[0]]
    return _case_of([Step(type_, call.src, (call.shape,), (False,), _EXPECT) for call in calls])


def draw_long_sequence(draw: Draw, types: Sequence[str], length: int) -> Case:
    """Draw hundreds of mixed calls: few or many shapes, of few or many volumes, new ones and earlier ones.

    A case has calls of fixed ranks, which one program can take at run time, or of any.
    """
    many = length > 500
    new, kept = _new_call(draw, many), 400 if many else draw.choice((2, 5, 12, 40, 400, 400))
    types = types if sometimes(draw, 1, 2) else [draw.choice(types)]
    plainly, calls = sometimes(draw, 1, 3), [new()]
    steps: list[Step] = []
    while len(steps) < length:
        if sometimes(draw, 1, 10 if len(calls) >= kept else 2):
            calls.append(new())
        latest, first = draw.choice((calls[-4:], calls[-kept:], calls[-kept:], calls)), calls[:6]
        call = draw.choice(first if sometimes(draw, 1, 12) else latest)
        if sometimes(draw, 1, 100):
            call = _with_many_elements(draw, call)
        if 0 in call.src and 0 in call.shape:  # it has an answer under either reading, and another one
            call = call._replace(special_zero=sometimes(draw, 1, 2))
        if plainly:
            steps.append(Step(draw.choice(types), call.src, (call.shape,), (call.special_zero,), _EXPECT))
        else:
            steps.append(draw_step(draw, draw.choice(types), call))
    return _case_of(steps)


def _with_many_elements(draw: Draw, call: DrawnCall) -> DrawnCall:
    """Return a call of the same ranks with many elements."""
    many = draw.number(5_000, 30_000)
    ranks = len(call.src) or 1, len(call.shape) or 1
    return DrawnCall(distribute(draw, many, ranks[0]), distribute(draw, many, ranks[1]), call.special_zero)


def _new_call(draw: Draw, of_every_rank: bool) -> Callable[[], DrawnCall]:
    """Return a function that draws the calls of a long sequence."""
    ranks = draw.number(1, 5), draw.number(1, 5)
    flag, volume = sometimes(draw, 1, 2), draw.choice((24, 60, 120, 360, 720, 2520))
    source = distribute(draw, volume, ranks[0])

    def of_one_volume() -> DrawnCall:
        return DrawnCall(distribute(draw, volume, ranks[0]), distribute(draw, volume, ranks[1]), flag)

    def of_one_source() -> DrawnCall:
        return DrawnCall(source, draw_same_volume(draw, source, (1, 2, 3, 4, 5, 6)), flag)

    def of_fixed_ranks() -> DrawnCall:
        src = tuple(draw.number(1, draw.choice((4, 9, 40 if ranks[0] < 4 else 5))) for _ in range(ranks[0]))
        volume = math.prod(src) // (draw.choice(src) if sometimes(draw, 1, 10) else 1)
        shape = list(distribute(draw, volume, ranks[1]))
        if sometimes(draw, 1, 3):
            shape[draw.number(0, ranks[1] - 1)] = draw.choice((-1, -1, -1, 0, 2, -2))
        if sometimes(draw, 1, 8):
            shape[draw.number(0, ranks[1] - 1)] += 1
        if sometimes(draw, 1, 12):
            zeros = tuple(0 if sometimes(draw, 2, 3) else length for length in shape[:-1])
            return DrawnCall((0, *src[1:]), (*zeros, 0), sometimes(draw, 1, 2))
        return DrawnCall(src, tuple(shape), flag)

    def of_any_kind() -> DrawnCall:
        if sometimes(draw, 2, 3):
            call = draw_legal_call(draw, draw_small_dims(draw))
            return spoil(draw, call) if sometimes(draw, 1, 8) else call
        call = draw_any_call(draw)
        return call if math.prod(call.src) <= 500 else draw_legal_call(draw, distribute(draw, draw.number(1, 300), 3))

    pairs = itertools.cycle(itertools.product(range(1, 13), range(1, 13)))

    def of_next_ranks() -> DrawnCall:
        if sometimes(draw, 1, 2):
            return of_any_kind()
        src_rank, dst_rank = next(pairs)
        src = draw_small_dims(draw, (src_rank,))
        shape = list(distribute(draw, math.prod(src), dst_rank))
        if sometimes(draw, 1, 3):
            shape[draw.number(0, dst_rank - 1)] = -1
        return DrawnCall(src, tuple(shape), sometimes(draw, 1, 2))

    if of_every_rank:
        return of_next_ranks
    return draw.choice((of_one_volume, of_fixed_ranks, of_fixed_ranks, of_one_source, of_any_kind, of_any_kind))


# ── chains, declarations, forms ───────────────────────────────────────────────────────────────────


def draw_chain(draw: Draw, types: Sequence[str]) -> Case:
    """Draw a chain of up to eight nodes. Most have only legal nodes; otherwise hardly one in twenty would be legal.

    In some, each node takes src, or all take one shape.
    """
    type_, links = draw.choice(types), draw.choice((1, 2, 1, 2, 3, 4, 5, 6, 7))
    if sometimes(draw, 1, 4):
        src = draw_full_dims(draw) if sometimes(draw, 1, 2) else tuple(draw_plain_call(draw).src)
        calls = [draw_plain_call(draw, src) for _ in range(links + 1)]
        return _case_of([draw_step(draw, type_, calls[0], calls[1:])])
    dims = src = _with_ones(draw, distribute(draw, draw.choice((1, 6, 12, 24, draw_count(draw))), draw.number(1, 4)))
    shared_src = sometimes(draw, 1, 6)
    calls = []
    for _ in range(links + 1):
        call = draw_legal_call(draw, dims) if sometimes(draw, 2, 3) else DrawnCall(dims, _with_ones(draw, dims), False)
        calls.append(call)
        dims = src if shared_src else guess_answer(call)
    if sometimes(draw, 1, 3):
        at = draw.choice((links, draw.number(0, links)))
        calls[at] = spoil(draw, calls[at])
    if shared_shape := sometimes(draw, 1, 8):
        calls = [calls[-1]._replace(src=src)] * len(calls)
    declared = _declare(draw, calls[-1]) if sometimes(draw, 1, 5) else None
    step = draw_step(draw, type_, calls[0], calls[1:])
    return _case_of([replace(step, shared_src=shared_src, shared_shape=shared_shape)], declared=declared)


def _with_ones(draw: Draw, dims: Lengths) -> Lengths:
    """Return dims with a leading or trailing 1 more or less."""
    at = draw.choice(("none", "leading", "trailing", "both"))
    lengths = tuple(length for length in dims if length != 1) if sometimes(draw, 1, 4) else dims
    return (1,) * (at in ("leading", "both")) + lengths + (1,) * (at in ("trailing", "both"))


def draw_declared_dst(draw: Draw, types: Sequence[str]) -> Case:
    """Draw calls on one program with a declared dst: unknown, all of it, a part, or wrong."""
    type_ = draw.choice(types)
    call = draw_legal_call(draw, draw_full_dims(draw)) if sometimes(draw, 2, 3) else draw_plain_call(draw)
    if 0 not in call.shape and sometimes(draw, 1, 3):
        call = call._replace(shape=_with_ones(draw, call.shape))
    declared = _declare(draw, call)
    steps = [draw_step(draw, type_, call)]
    while sometimes(draw, 1, 4):
        steps.append(draw_step(draw, type_, _like(draw, call)))
    strides = _dst_strides(draw, declared) if isinstance(declared, tuple) and sometimes(draw, 1, 3) else None
    return _case_of(steps, declared=declared, dst_strides=strides)


def _dst_strides(draw: Draw, declared: Sequence[int | None]) -> str | None:
    """Draw strides: the dimensions in any order, with gaps between them or without; a few overlap.

    Return None if no length is declared, one is unknown, or the memory would be too large.
    """
    dims = [length for length in declared if length is not None]
    if not dims or len(dims) < len(declared) or math.prod(max(length, 1) for length in dims) > 2**16:
        return None
    axes, strides, step = [*range(len(dims))], [0] * len(dims), draw.choice((1, 1, 2))
    while axes:
        axis = axes.pop(draw.number(0, len(axes) - 1))
        strides[axis] = step
        step *= max(dims[axis], 1)
        step += draw.choice((0, 0, 1, 3)) if step < 2**18 else 0
    if sometimes(draw, 1, 8):
        strides[draw.number(0, len(dims) - 1)] = draw.choice((0, 1, 2))
    return " ".join(map(str, strides))


def _declare(draw: Draw, call: DrawnCall) -> Any:
    """Draw what is declared of the dst of a call."""
    often = ("right", "partly", "wrong", "wrong", "rank")
    kind = draw.choice((*often, *often, "smaller", "swapped", "other", "unknown"))
    dims = [abs(length) for length in (draw_same_volume(draw, call.src) if kind == "other" else guess_answer(call))]
    declared: list[int | None] = [*dims]
    if kind == "unknown":
        return "unknown"
    if kind == "rank":
        ones = draw.choice(((1, 0), (0, 1), (1, 1)))
        without = dims[dims[:1] == [1] :] if sometimes(draw, 1, 2) else dims[: len(dims) - (dims[-1:] == [1])]
        return (*[1] * ones[0], *dims, *[1] * ones[1]) if without == dims or sometimes(draw, 1, 2) else tuple(without)
    if kind == "swapped":
        declared.reverse()
    at = draw.number(0, len(dims) - 1) if dims else 0
    if kind != "right" and sometimes(draw, 1, 2):
        declared = [None if sometimes(draw, 1, 2) else length for length in declared]
    if kind in ("wrong", "smaller") and dims:
        longer = (dims[at] + 1, dims[at] + 1, 2 * dims[at], dims[at] + 256, 0)
        declared[at] = max(dims[at] - 1, 1) if kind == "smaller" else draw.choice(longer)
    return tuple(declared)


FORMS: tuple[dict[str, Any], ...] = (
    {"attributes": {"special_zero": None}},
    {"attributes": {"shape": None}},
    *({"attributes": {"special_zero": Operand(type_, (), (value,))}} for type_, value in (
        ("s64", 1), ("s64", 0), ("u8", 1), ("s32", 1), ("f32", 1), ("f32", 0), ("string", "true"), ("s8", 0),
        ("u8", 2), ("u8", 255), ("s8", -1), ("s32", 2), ("s64", 2),
    )),
    {"attributes": {"special_zero": Operand("bool", (1,), (True,))}},
    {"attributes": {"axis": Operand("s64", (), (0,))}},
    {"attributes": {"allowzero": Operand("bool", (), (True,))}},
    {"attributes": {"layout": Operand("string", (), ("NCX",))}},
    {"attributes": {"scales": Operand("f32", (2,), (1, 2))}},
    {"inputs": {"src": 0}},
    {"inputs": {"shape": 0}},
    {"inputs": {"extra": 1}},
    {"inputs": {"extra": 2}},
    {"outputs": {"dst": 0}},
    {"outputs": {"extra": 1}},
    {"dst_type": "f32"},
    {"dst_type": "f16"},
    {"dst_type": "bf16"},
    {"dst_type": "s32"},
    *({"shape_type": type_} for type_ in ("f32", "s64", "s32", "s8", "u8", "s16", "u64")),
    {"shape_rank": 2},
    {"shape_rank": 2, "shape_column": True},
    {"shape_rank": 3},
    {"shape_rank": 0},
)  # fmt: skip


def draw_other_form(draw: Draw, types: Sequence[str]) -> Case:
    """Draw a node that does not follow its signature: alone, the last of a chain, or with the right dst declared."""
    form, type_ = draw.choice(FORMS), draw.choice(types)
    among = draw.choice(("alone", "alone", "chain", "declared", "sequence"))
    call = draw_any_call(draw)
    if form.get("shape_rank") == 0:
        call = call._replace(shape=(math.prod(call.src),))
    if form.get("dst_type") == type_:
        form = {}
    if among == "chain":
        call = call._replace(shape=draw_same_volume(draw, call.src), special_zero=False)
        return _case_of([draw_step(draw, type_, call, [call._replace(shape=draw_same_volume(draw, call.src))])], **form)
    if among == "declared":
        form = {**form, "declared": guess_answer(call)}
    steps = [draw_step(draw, type_, call)]
    if among == "sequence" and form.get("shape_rank") != 0:
        steps.append(draw_step(draw, type_, _like(draw, call)))
    return _case_of(steps, **form)


KINDS: tuple[Kind, ...] = (
    *[draw_one] * 6, *[draw_sequence] * 3, *[draw_chain] * 3, *[draw_declared_dst] * 4, *[draw_other_form] * 2,
    draw_repetition,
)  # fmt: skip


def draw_case(draw: Draw, types: Sequence[str]) -> Case:
    """Draw a case of any kind except the long ones."""
    return draw.choice(KINDS)(draw, types)
