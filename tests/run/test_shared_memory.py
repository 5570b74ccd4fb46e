"""Cases in which the shapes of all steps lie in one memory, or an equal program is deleted between two calls."""

import gc
import weakref
from typing import Any

import pytest

from conformance.isolate.backend import Isolation, use_backend
from conformance.load.cases import load_suite
from conformance.model import Graph, Program, Rejected, Tensor
from conformance.plan.rows import Row, plan_of_cases
from conformance.run.row import run_row

from .. import miniatures

PLACED = "the-shape-changes-in-place[DynamicReshape-1-f32-s32]"


def row_of(name: str) -> Row:
    return next(row for row in plan_of_cases(load_suite(), [name.partition("[")[0]]).rows if row.id == name)


class Noting(miniatures.Bent):
    """The reference, which notes the memory of each shape and its programs."""

    def __init__(self) -> None:
        self.memories: list[int] = []
        self.programs: list[weakref.ref[Any]] = []
        self.alive: list[int] = []

    def compile(self, graph: Graph) -> Program:
        program = super().compile(graph)
        self.programs.append(weakref.ref(program))
        return program

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        gc.collect()
        self.memories += [id(shape.memory) for shape in shapes]
        self.alive.append(sum(program() is not None for program in self.programs))
        return answer


def test_shapes_of_all_steps_lie_in_one_memory() -> None:
    backend = Noting()
    assert set(run_row(row_of(PLACED), backend).verdicts.values()) == {"pass"}
    assert len(backend.memories) == 3  # of the calls that are not rejected
    assert len({*backend.memories}) == 1


class WithoutBf16(Noting):
    """It rejects each graph of bf16."""

    def compile(self, graph: Graph) -> Program:
        if graph.src.type == "bf16":
            raise Rejected("compile", "no bf16")
        return super().compile(graph)


def test_who_rejects_at_compile_changes_no_shape() -> None:
    run_row(row_of(PLACED), Noting())  # leaves its last shape in the memory
    result = run_row(row_of(PLACED.replace("f32", "bf16")), WithoutBf16())
    assert [(outcome.kind, outcome.side_effects) for outcome in result.outcomes] == [("rejected", ())] * 4


def test_shapes_of_other_cases_have_their_own_memory() -> None:
    backend = Noting()
    run_row(row_of("the-shape-changes[DynamicReshape-1-f32-s32]"), backend)
    assert len({*backend.memories}) == len(backend.memories) == 3


def test_an_equal_program_is_deleted_after_its_call() -> None:
    backend = Noting()
    run_row(row_of("an-equal-program-is-deleted[StaticReshape-f32]"), backend)
    assert (len(backend.programs), backend.alive) == (2, [1, 2, 1])


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["none", "worker"])
@pytest.mark.parametrize(("backend", "row", "step"), [
    ("the-address-of-shape-is-the-key", PLACED, 1),
    ("a-deleted-program-takes-the-plan-along", "an-equal-program-is-deleted[StaticReshape-f32]", 2),
])  # fmt: skip
def test_planted_backends_fail_in_a_worker_too(backend: str, row: str, step: int, isolation: Isolation) -> None:
    """A worker gets every request again, so shapes must lie where they lay, and programs must be closed in time."""
    with use_backend(f"planted:{backend}", isolation) as adapter:
        result = run_row(row_of(row), adapter)
    assert set(result.verdicts.values()) == {"fail"}
    assert result.step == step
