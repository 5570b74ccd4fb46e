"""A row with a single step gets the result that the judge gives it, also if its answer was due and not judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest

from conformance.adapter import load_adapter
from conformance.adapters.broken import BROKEN
from conformance.load.cases import load_suite
from conformance.model import Adapter, Array, Graph, Outcome, Program, Result, Tensor
from conformance.plan.memory import volume_of
from conformance.plan.rows import Row, plan_of
from conformance.run.one_step import call_one_step, judge_one_step
from conformance.run.row import call_steps


def flip(memory: Any, at: int, answer: Array) -> Array:
    memory[at] ^= 1
    return answer


def tensor(type_: str, answer: Array, dims: Any = None) -> Tensor:
    return Tensor(type_, dims or answer.shape, answer.strides, bytearray(answer.tobytes()), 0)


WAYS: dict[str, Callable[[Array, Tensor, tuple[Tensor, ...]], Any]] = {
    "as it is": lambda answer, src, shapes: answer,
    "a view of src": lambda answer, src, shapes: src.array().reshape(answer.shape),
    "a flat view of src": lambda answer, src, shapes: src.array().reshape(-1),
    "flat": lambda answer, src, shapes: answer.reshape(-1),
    "with a step": lambda answer, src, shapes: np.repeat(answer[..., None], 2, axis=-1)[..., 0],
    "a subclass": lambda answer, src, shapes: answer.view(np.recarray),
    "big-endian": lambda answer, src, shapes: answer.astype(answer.dtype.newbyteorder(">")),
    "another type of these bits": lambda answer, src, shapes: answer.view(f"V{answer.itemsize}"),
    "a tensor": lambda answer, src, shapes: tensor(src.type, answer),
    "a tensor of lengths that are no integers": lambda answer, src, shapes: tensor(
        src.type, answer, tuple(map(float, answer.shape))
    ),
    "src changed": lambda answer, src, shapes: flip(src.memory, src.offset, answer),
    "memory around src changed": lambda answer, src, shapes: flip(src.memory, 0, answer),
    "shape changed": lambda answer, src, shapes: flip(shapes[0].memory, -1, answer) if shapes else answer,
}


@cache
def rows_with_one_step() -> list[Row]:
    """Some rows of every kind, with few elements."""
    rows = [row for row in plan_of(load_suite()).rows if len(row.case.steps) == 1]
    return [row for row in rows[::61] if volume_of(row.case.steps[0].src) < 4096]


def results(adapter: Adapter, rows: Iterable[Row]) -> tuple[list[Result], int]:
    """The results of rows, and how many of their answers were not judged."""
    came = [(row, call_one_step(row, adapter)) for row in rows]
    return [judge_one_step(row, each, frozenset()) if isinstance(each, Outcome) else each for row, each in came], sum(
        isinstance(each, Result) for _, each in came
    )


def judged(adapter: Adapter, rows: Iterable[Row]) -> list[Result]:
    return [judge_one_step(row, call_steps(row, adapter)[0], frozenset()) for row in rows]


@pytest.mark.parametrize("name", ["reference", *[f"broken:{name}" for name in BROKEN][::9]])
def test_the_results_are_those_of_the_judge(name: str) -> None:
    rows = rows_with_one_step()
    assert results(load_adapter(name), rows)[0] == judged(load_adapter(name), rows)


def test_most_legal_calls_of_a_right_backend_need_no_judge() -> None:
    rows = rows_with_one_step()
    legal = [row for row in rows if all(meaning.kind == "legal" for meaning, _ in row.steps[0].meanings)]
    assert results(load_adapter("reference"), rows)[1] > 0.8 * len(legal) > 50


class Twisted:
    """The reference, whose answer is changed in one way."""

    def __init__(self, way: str) -> None:
        self.way, self.reference = way, load_adapter("reference")
        self.identity, self.claims = self.reference.identity, self.reference.claims

    def compile(self, graph: Graph) -> Program:
        return TwistedProgram(self.way, self.reference.compile(graph))


class TwistedProgram:
    def __init__(self, way: str, program: Program) -> None:
        self.way, self.program = way, program

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
        answer = self.program.run(src, shapes, may_overwrite)
        if not isinstance(answer, np.ndarray) or not answer.size:
            return answer
        return WAYS[self.way](answer, src, shapes)


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_of_another_kind_gets_the_result_of_the_judge(way: str) -> None:
    rows = rows_with_one_step()
    assert results(Twisted(way), rows)[0] == judged(Twisted(way), rows)
