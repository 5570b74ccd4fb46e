"""Cases that are one thing less than a case: a step, a dimension, a factor, a layout, a bit pattern.

Hypothesis shrinks the numbers from which a case is drawn; what is left of the case itself is lessened here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from ..model import Case, Step

Lengths = tuple[int, ...]
Found = TypeVar("Found")


def least(case: Case, still: Callable[[Case], Found | None], found: Found) -> Found:
    """What `still` finds in the least case that has it, going from case to lesser case."""
    tried = {repr(case)}
    going = True
    while going:
        going = False
        for lesser in lessened(case):
            if repr(lesser) in tried:
                continue
            tried.add(repr(lesser))
            again = still(lesser)
            if again is not None:
                case, found, going = lesser, again, True
                break
    return found


def lessened(case: Case) -> Iterator[Case]:
    """Every case that is one thing less, the greatest losses first."""
    steps = case.steps
    for at in range(len(steps) if len(steps) > 1 else 0):
        yield replace(case, steps=steps[:at] + steps[at + 1 :])
    if isinstance(case.declared, tuple):
        for at, length in enumerate(case.declared):
            if length is not None:
                yield replace(case, declared=(*case.declared[:at], None, *case.declared[at + 1 :]))
    for at, step in enumerate(steps):
        for lesser in _steps(step):
            yield replace(case, steps=(*steps[:at], lesser, *steps[at + 1 :]))
    if len(steps) > 1:
        yield from _alike(case)


def _steps(step: Step) -> Iterator[Step]:
    if len(step.shapes) > 1:
        for at in range(len(step.shapes)):
            yield replace(
                step, shapes=step.shapes[:at] + step.shapes[at + 1 :],
                special_zero=step.special_zero[:at] + step.special_zero[at + 1 :],
            )  # fmt: skip
    if step.layout != "dense":
        yield replace(step, layout="dense")
    if step.in_place:
        yield replace(step, in_place=False)
    if step.bits is not None:
        yield replace(step, bits=None)
    for src, shape in _calls(step.src, step.shapes[0]):
        words = step.bits.split() if step.bits is not None else []
        count = math.prod(src)
        if step.bits is None or 0 < count <= len(words):
            bits = " ".join(words[:count]) if words else None
            yield replace(step, src=src, shapes=(shape, *step.shapes[1:]), bits=bits)
    for at, shape in enumerate(step.shapes[1:], 1):
        for lesser in _rows(shape):
            yield replace(step, shapes=(*step.shapes[:at], lesser, *step.shapes[at + 1 :]))
    for at, flag in enumerate(step.special_zero):
        if flag:
            yield replace(step, special_zero=(*step.special_zero[:at], False, *step.special_zero[at + 1 :]))


def _calls(src: Lengths, shape: Lengths) -> Iterator[tuple[Lengths, Lengths]]:
    """Less of src, of shape, or of both at once so that what balanced still does."""
    for i in range(len(src)):
        for j in range(len(shape)):
            yield _without(src, i), _without(shape, j)
    for lesser in _rows(src):
        yield lesser, shape
    for lesser in _rows(shape):
        yield src, lesser
    for lesser in _rows(src):
        fewer = math.prod(src) - math.prod(lesser)
        for at, length in enumerate(shape):
            if length > fewer > 0:  # as where a length is right but for what was added to it
                yield lesser, _with(shape, at, length - fewer)
    for i, a in enumerate(src):
        for j, b in enumerate(shape):
            for factor in (a, 2, 3, 5, 7, 11, 13):
                if a > 1 and factor > 1 and a % factor == 0 and b % factor == 0 and b != 0:
                    yield _with(src, i, a // factor), _with(shape, j, b // factor)
            if a == b:
                yield from ((_with(src, i, less), _with(shape, j, less)) for less in _numbers(a))


def _rows(row: Lengths) -> Iterator[Lengths]:
    for at in range(len(row)):
        yield _without(row, at)
    for at, length in enumerate(row):
        for less in _numbers(length):
            yield _with(row, at, less)


def _numbers(number: int) -> Iterator[int]:
    """Numbers nearer to 1; of negative ones nearer to -1."""
    if number > 1:
        yield from dict.fromkeys((1, 2 if number > 2 else 1, number // 2, number - 1))
    elif number < -1:
        yield from dict.fromkeys((-2 if number < -2 else -1, -(-number // 2), number + 1))


def _without(row: Lengths, at: int) -> Lengths:
    return row[:at] + row[at + 1 :]


def _with(row: Lengths, at: int, number: int) -> Lengths:
    return (*row[:at], number, *row[at + 1 :])


def _alike(case: Case) -> Iterator[Case]:
    """The same change to all steps, which often have to have something in common."""
    first = case.steps[0]
    for other in case.steps[1:]:
        if (other.src, other.shapes) != (first.src, first.shapes):
            return
    for src, shape in _calls(first.src, first.shapes[0]):
        yield replace(
            case,
            steps=tuple(replace(s, src=src, shapes=(shape, *s.shapes[1:]), bits=None) for s in case.steps),
        )
