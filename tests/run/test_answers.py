"""Answers of every kind that a backend may return, right and wrong."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from conformance.adapter import load_adapter
from conformance.model import Adapter, Array, Result, Tensor
from conformance.plan.memory import volume_of
from conformance.plan.rows import Row
from conformance.run.row import run_row

from ..builders import bundled_plan
from ..miniatures import Bent


class NoFunctions(np.ndarray[Any, Any]):
    __array_function__ = None  # type: ignore[assignment]


def tensor(type_: str, answer: Array, dims: Any = None) -> Tensor:
    return Tensor(type_, dims or answer.shape, answer.strides, bytearray(answer.tobytes()), 0)


def with_a_step(answer: Array) -> Array:
    """Each element twice, and every second one of them; of any rank that NumPy has."""
    strides = [2 * stride for stride in answer.copy().strides]
    return np.lib.stride_tricks.as_strided(np.repeat(answer, 2), answer.shape, strides)


WAYS: dict[str, tuple[str | None, Callable[[Array, Tensor], Any]]] = {
    "as it is": (None, lambda answer, src: answer),
    "a view of src": (None, lambda answer, src: src.array().reshape(answer.shape)),
    "a flat view of src": ("wrong dims", lambda answer, src: src.array().reshape(-1)),
    "flat": ("wrong dims", lambda answer, src: answer.reshape(-1)),
    "with a step": (None, lambda answer, src: with_a_step(answer)),
    "a subclass": (None, lambda answer, src: answer.view(np.recarray)),
    "a subclass without functions of NumPy": (None, lambda answer, src: answer.view(NoFunctions)),
    "big-endian": ("adapter error", lambda answer, src: answer.astype(answer.dtype.newbyteorder(">"))),
    "another type of these bits": ("adapter error", lambda answer, src: answer.view(f"V{answer.itemsize}")),
    "a scalar": (None, lambda answer, src: answer if answer.shape else answer[()]),
    "a tensor": (None, lambda answer, src: tensor(src.type, answer)),
    "a tensor of lengths that are no integers": (
        "adapter error", lambda answer, src: tensor(src.type, answer, tuple(map(float, answer.shape))),
    ),
}  # fmt: skip
"""The diagnosis of such an answer, and how it is made from the right one."""


@cache
def rows_with_one_step() -> tuple[Row, ...]:
    """Some rows of every kind, with few elements."""
    rows = [row for row in bundled_plan().rows if len(row.case.steps) == 1]
    return tuple(row for row in rows[::61] if volume_of(row.case.steps[0].src) < 4096)


def results(adapter: Adapter) -> list[Result]:
    return [run_row(row, adapter) for row in rows_with_one_step()]


class Twisted(Bent):
    """The reference with its answer changed in one way."""

    def __init__(self, way: str) -> None:
        self.way = way

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        has_elements = isinstance(answer, np.ndarray) and answer.size
        return WAYS[self.way][1](answer, src) if has_elements else answer


def without_sharing(result: Result) -> Result:
    return result._replace(outcomes=tuple(outcome._replace(shares_src=False) for outcome in result.outcomes))


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_of_another_kind(way: str) -> None:
    plain, twisted = results(load_adapter("reference")), results(Twisted(way))
    answered = sum(result.outcome.kind == "tensor" for result in plain)
    pairs = zip(twisted, plain, strict=True)
    other = [ours for ours, right in pairs if without_sharing(ours) != without_sharing(right)]
    assert {result.diagnosis for result in other} == ({WAYS[way][0]} if WAYS[way][0] else set())
    assert (len(other) > 0.3 * answered > 15) == bool(WAYS[way][0]), (len(other), answered)
