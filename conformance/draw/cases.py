"""Draw cases at random: a call under any conditions, a node in another form, a long sequence.

A drawn case does not say what its calls mean; the contracts do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..model import Case, Operand, Place, Step
from .calls import (
    DrawnCall,
    SeededDraws,
    distribute,
    draw_any_call,
    draw_legal_call,
    draw_plain_call,
    draw_same_volume,
    draw_small_dims,
    draw_step,
    guess_answer,
    sometimes,
    spoil,
    step_of,
)
from .combinations import case_of
from .factors import Factors


def _case_of(steps: Sequence[Step], **more: Any) -> Case:
    return Case("drawn", "drawn.yaml", "same-volume", tuple(steps), Place("drawn rows"), **more)


# ── several calls on one program ──────────────────────────────────────────────────────────────────


def _draw_like(draw: SeededDraws, call: DrawnCall) -> DrawnCall:
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


def draw_long_sequence(draw: SeededDraws, types: Sequence[str], length: int) -> Case:
    """Draw hundreds of mixed calls: few or many shapes, of few or many volumes, new ones and earlier ones.

    A case has calls of fixed ranks, which one program can take at run time, or of any.
    """
    is_longest = length > 500
    new, kept = _new_call(draw, is_longest), 400 if is_longest else draw.choice((2, 5, 12, 40, 400, 400))
    types = types if sometimes(draw, 1, 2) else [draw.choice(types)]
    plainly, calls = sometimes(draw, 1, 3), [new()]
    steps: list[Step] = []
    while len(steps) < length:
        if sometimes(draw, 1, 10 if len(calls) >= kept else 2):
            calls.append(new())
        latest, first = draw.choice((calls[-4:], calls[-kept:], calls[-kept:], calls)), calls[:6]
        call = draw.choice(first if sometimes(draw, 1, 12) else latest)
        if sometimes(draw, 1, 100):
            many = draw.number(5_000, 30_000)
            src, shape = (distribute(draw, many, len(lengths) or 1) for lengths in (call.src, call.shape))
            call = call._replace(src=src, shape=shape)
        if 0 in call.src and 0 in call.shape:  # it has an answer under either reading, and another one
            call = call._replace(special_zero=sometimes(draw, 1, 2))
        if plainly:
            steps.append(step_of(draw.choice(types), [call]))
        else:
            steps.append(draw_step(draw, draw.choice(types), call))
    return _case_of(steps)


def _new_call(draw: SeededDraws, of_every_rank: bool) -> Callable[[], DrawnCall]:
    """Return a function that draws the calls of a long sequence."""
    ranks = draw.number(1, 5), draw.number(1, 5)
    flag, volume = sometimes(draw, 1, 2), draw.choice((24, 60, 120, 360, 720, 2520))
    source = distribute(draw, volume, ranks[0])

    def draw_one_volume() -> DrawnCall:
        return DrawnCall(distribute(draw, volume, ranks[0]), distribute(draw, volume, ranks[1]), flag)

    def draw_one_src() -> DrawnCall:
        return DrawnCall(source, draw_same_volume(draw, source, (1, 2, 3, 4, 5, 6)), flag)

    def draw_fixed_ranks() -> DrawnCall:
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

    def draw_any() -> DrawnCall:
        if sometimes(draw, 2, 3):
            call = draw_legal_call(draw, draw_small_dims(draw))
            return spoil(draw, call) if sometimes(draw, 1, 8) else call
        call = draw_any_call(draw)
        return call if math.prod(call.src) <= 500 else draw_legal_call(draw, distribute(draw, draw.number(1, 300), 3))

    pairs = itertools.cycle(itertools.product(range(1, 13), range(1, 13)))

    def draw_next_ranks() -> DrawnCall:
        if sometimes(draw, 1, 2):
            return draw_any()
        src_rank, dst_rank = next(pairs)
        src = draw_small_dims(draw, (src_rank,))
        shape = list(distribute(draw, math.prod(src), dst_rank))
        if sometimes(draw, 1, 3):
            shape[draw.number(0, dst_rank - 1)] = -1
        return DrawnCall(src, tuple(shape), sometimes(draw, 1, 2))

    if of_every_rank:
        return draw_next_ranks
    return draw.choice((draw_one_volume, draw_fixed_ranks, draw_fixed_ranks, draw_one_src, draw_any, draw_any))


# ── forms, and any case ───────────────────────────────────────────────────────────────────────────

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
    *({"dst_type": type_} for type_ in ("f32", "f16", "bf16", "s32")),
    *({"shape_type": type_} for type_ in ("f32", "s64", "s32", "s8", "u8", "s16", "u64")),
    {"shape_rank": 2},
    {"shape_rank": 2, "shape_column": True},
    {"shape_rank": 3},
    {"shape_rank": 0},
)  # fmt: skip


def draw_other_form(draw: SeededDraws, types: Sequence[str]) -> Case:
    """Draw a node that does not follow its signature: alone, the last of a chain, or with the right dst declared."""
    form, type_ = draw.choice(FORMS), draw.choice(types)
    among = draw.choice(("alone", "alone", "chain", "declared", "sequence"))
    call = draw_any_call(draw)
    attribute: Operand | None = form.get("attributes", {}).get("special_zero")
    if attribute is not None:
        call = call._replace(special_zero=bool((attribute.values or ())[0]))
    flag = call.special_zero
    if form.get("shape_rank") == 0:  # it has one entry, and the shape of another node or call may have more
        call = call._replace(shape=(math.prod(call.src),))
        among = "declared" if among == "declared" else "alone"
    if form.get("dst_type") == type_:  # dst has this type anyway
        form = {}
    if among == "declared":
        form = {**form, "declared": guess_answer(call)}
    if among == "chain":
        before, last = (call._replace(shape=draw_same_volume(draw, call.src), special_zero=False) for _ in range(2))
        steps = [draw_step(draw, type_, before, [last])]
    else:
        steps = [draw_step(draw, type_, call)]
    if among == "sequence":
        steps.append(draw_step(draw, type_, _draw_like(draw, call)))
    if attribute is not None:  # a call means what the attribute says
        steps = [replace(step, special_zero=(*step.special_zero[:-1], flag)) for step in steps]
    return _case_of(steps, **form)


def draw_case(draw: SeededDraws, types: Sequence[str], factors: Factors) -> Case:
    """Draw a call of any kind, with a value of each factor that fits; or a node that does not follow its signature."""
    if sometimes(draw, 1, 8):
        return draw_other_form(draw, types)
    call = draw_any_call(draw)
    chosen = {name: draw.choice(factors.values[name]) for name in factors.chosen}
    chosen = {name: value if sometimes(draw, 1, 3) else factors.values[name][0] for name, value in chosen.items()}
    case = case_of(call, factors.fitting(call, {**chosen, "type": draw.choice(types)}), draw.number(0, 999))
    if isinstance(case.declared, tuple) and case.declared and case.dst_strides is None and sometimes(draw, 1, 2):
        at = draw.number(0, len(case.declared) - 1)
        wrong = (case.declared[at] or 0) + draw.choice((1, 2, 256))
        return replace(case, declared=(*case.declared[:at], wrong, *case.declared[at + 1 :]))
    return case
