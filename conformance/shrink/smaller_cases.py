"""Shrink a case by one thing at a time: a step, a dimension, a factor, a layout, a bit pattern."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from ..meaning.domain import Lengths
from ..model import Case, Step
from ..model.cases import list_given_keys
from ..plan.memory import reach_of, strides_of

T = TypeVar("T")
MAX_PLACES = 1 << 20
"""Without its 0, an empty src may not fit into memory."""


def shrink(case: Case, test: Callable[[Case], T | None], value: T) -> T:
    """Go from case to smaller case while `test` returns a value, and return that of the smallest.

    `value` is what `test` returns for the first case.
    """
    tried = {repr(case)}
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_cases(case):
            if repr(candidate) in tried or _count_places(candidate) > max(_count_places(case), MAX_PLACES):
                continue
            tried.add(repr(candidate))
            result = test(candidate)
            if result is not None:
                case, value, smaller = candidate, result, True
                break
    return value


def _count_places(case: Case) -> int:
    """Return the length, in elements, of the memory that the largest src of a case spans."""
    reaches = (reach_of(step.src, strides_of(step.src, step.layout, 1)) for step in case.steps if 0 not in step.src)
    return 1 + max(map(sum, reaches), default=0)


def smaller_cases(case: Case) -> Iterator[Case]:
    """Yield every case that is smaller by one thing, the greatest steps first."""
    steps = case.steps
    for at in range(len(steps) if len(steps) > 1 else 0):
        yield replace(case, steps=_without(steps, at))
    given = {key.name: key.default for key, _ in list_given_keys(case)}
    for name, default in (given | ({"attributes": {}} if case.attributes else {})).items():
        yield replace(case, **{name: default})
    if case.declared is not None:
        yield replace(case, declared=None, dst_strides=None)
    if isinstance(case.declared, tuple) and case.dst_strides is None:
        for at, length in enumerate(case.declared):
            if length is not None:
                yield replace(case, declared=_with(case.declared, at, None))
    for at, step in enumerate(steps):
        for smaller in _list_smaller_steps(step):
            if smaller.shares_nothing:
                continue
            if len(steps) > 1 and len(smaller.shapes) != len(step.shapes):  # the steps share a graph
                continue
            if "special_zero" in case.attributes and smaller.special_zero[-1] != step.special_zero[-1]:
                continue  # the call means what the attribute says
            yield replace(case, steps=_with(steps, at, smaller))
    if len(steps) > 1:
        yield from _change_all_steps(case)


def _list_smaller_steps(step: Step) -> Iterator[Step]:
    if len(step.shapes) > 1:
        for at in range(len(step.shapes)):
            yield _without_node(step, at)
        if not step.shared_src and min(step.shapes[0], default=0) > 0:  # the second node takes a src of these lengths
            yield replace(_without_node(step, 0), src=step.shapes[0])
    for key, _ in list_given_keys(step):
        yield replace(step, **{key.name: key.default})
    for src, shape in _list_smaller_calls(step.src, step.shapes[0]):
        words = step.bits.split() if step.bits is not None else []
        count = math.prod(src)
        if step.bits is None or 0 < count <= len(words):
            bits = " ".join(words[:count]) if words else None
            yield replace(step, src=src, shapes=(shape, *step.shapes[1:]), bits=bits)
    for at, shape in enumerate(step.shapes[1:], 1):
        for smaller in _list_smaller_lengths(shape):
            yield replace(step, shapes=_with(step.shapes, at, smaller))
    for at, flag in enumerate(step.special_zero):
        if flag:
            yield replace(step, special_zero=_with(step.special_zero, at, False))


def _without_node(step: Step, at: int) -> Step:
    """Return a step without one node of its chain. A node that is left alone shares nothing."""
    left = replace(step, shapes=_without(step.shapes, at), special_zero=_without(step.special_zero, at))
    is_alone = len(left.shapes) == 1
    return replace(left, shared_src=False, shared_shape=False, constant_nodes="none") if is_alone else left


def _list_smaller_calls(src: Lengths, shape: Lengths) -> Iterator[tuple[Lengths, Lengths]]:
    """Yield a smaller src, a smaller shape, or both, so that equal volumes stay equal."""
    for i in range(len(src)):
        for j in range(len(shape)):
            yield _without(src, i), _without(shape, j)
    for smaller in _list_smaller_lengths(src):
        yield smaller, shape
    for smaller in _list_smaller_lengths(shape):
        yield src, smaller
    yield from ((merged, shape) for merged in _merge_neighbours(src))
    yield from ((src, merged) for merged in _merge_neighbours(shape))
    for smaller in _list_smaller_lengths(src):
        fewer = math.prod(src) - math.prod(smaller)
        for at, length in enumerate(shape):
            if length > fewer > 0:  # a length that is too long by a fixed number stays so
                yield smaller, _with(shape, at, length - fewer)
    for i, a in enumerate(src):
        for j, b in enumerate(shape):
            for factor in (a, 2, 3, 5, 7, 11, 13):
                if a > 1 and factor > 1 and a % factor == 0 and b % factor == 0 and b != 0:
                    yield _with(src, i, a // factor), _with(shape, j, b // factor)
            if a == b:
                yield from ((_with(src, i, less), _with(shape, j, less)) for less in _list_smaller_numbers(a))


def _list_smaller_lengths(lengths: Lengths) -> Iterator[Lengths]:
    for at in range(len(lengths)):
        yield _without(lengths, at)
    for at, length in enumerate(lengths):
        for less in _list_smaller_numbers(length):
            yield _with(lengths, at, less)


def _merge_neighbours(lengths: Lengths) -> Iterator[Lengths]:
    """Yield lengths of the same product with one length less."""
    for at, (one, other) in enumerate(itertools.pairwise(lengths)):
        if one > 0 and other > 0 and one * other < 1 << 63:
            yield (*lengths[:at], one * other, *lengths[at + 2 :])


def _list_smaller_numbers(number: int) -> Iterator[int]:
    """Yield numbers nearer to 1; for negative ones, nearer to -1. The steps halve, so that few lead to a limit."""
    size = abs(number)
    if size > 1:
        steps = (size - (size >> shift) for shift in range(1, size.bit_length()))
        least = 1 if number > 0 or size == 2 else 2
        smaller = dict.fromkeys((least, min(2, size - 1), size // 2, *steps))
        yield from (less if number > 0 else -less for less in smaller)


def _without(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return items[:at] + items[at + 1 :]


def _with(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _change_all_steps(case: Case) -> Iterator[Case]:
    """Yield cases with one change to all steps: a key that is dropped, or another call if all make the same."""
    first = case.steps[0]
    for key, _ in list_given_keys(first):
        yield replace(case, steps=tuple(replace(step, **{key.name: key.default}) for step in case.steps))
    for other in case.steps[1:]:
        if (other.src, other.shapes) != (first.src, first.shapes):
            return
    for at in range(len(first.shapes) if len(first.shapes) > 1 else 0):
        yield replace(case, steps=tuple(_without_node(step, at) for step in case.steps))
    for src, shape in _list_smaller_calls(first.src, first.shapes[0]):
        yield replace(
            case, steps=tuple(replace(s, src=src, shapes=(shape, *s.shapes[1:]), bits=None) for s in case.steps)
        )
