"""A backend in another process gives the verdicts that it gives in this one, and its failures stay there."""

from functools import partial
from pathlib import Path

import pytest

from conformance.isolate.backend import open_backend, split_rows, use_backend, use_jobs
from conformance.model import AnswerNotRead, Result
from conformance.plan.memory import TensorSpec, lay_out
from conformance.plan.rows import Plan, Row
from conformance.run.row import run_rows

from .calls import call, reshape
from .remote_backends import LIMITS, Fresh, run_in_both, start, verdicts, write_backend, write_odd

AGAIN = "again alone in a fresh process", "alone in a fresh process, like the row before"
ONCE = """
from conformance.adapters.reference import Reference


class Once(Reference):
    calls = 0

    def compile(self, graph):
        self.calls += 1
        if self.calls > 1:
            raise MemoryError
        return super().compile(graph)
"""
SOMETIMES = """
import os
from pathlib import Path
from conformance.adapters.planted.process import DiesRatherThanReject

class Sometimes(DiesRatherThanReject):
    def compile(self, graph):
        state = Path({state!r})
        calls = len(state.read_text()) if state.exists() else 0
        state.write_text("." * (calls + 1))
        return super(DiesRatherThanReject, self).compile(graph) if calls == 1 else super().compile(graph)
"""
"""Its second call is rejected, which is right. All others end the process."""
BY_ADDRESS = '''
import numpy as np
from conformance.adapter import FunctionAdapter
from conformance.model import Tensor

class View(FunctionAdapter):
    name, version = "view", "1"

    def reshape(self, src, shape, special_zero):
        return src.reshape([src.shape[i] if n == 0 else n for i, n in enumerate(shape)] if special_zero else shape)

class ViewOfTheLibrarys(View):
    """The library's own object for the very memory of src."""

    def compile(self, graph):
        return OfTensors(super().compile(graph))

class OfTensors:
    def __init__(self, program):
        self.program = program

    def run(self, src, shapes, may_overwrite):
        dst = self.program.run(src, shapes, may_overwrite)
        memory = np.frombuffer(src.memory, np.uint8).data
        return Tensor(src.type, dst.shape, dst.strides, memory, src.offset)

class ByAddress(View):
    name, known = "by-address", {}

    def reshape(self, src, shape, special_zero):
        key = src.ctypes.data, src.nbytes
        self.known.setdefault(key, src.copy())
        return super().reshape(self.known[key], shape, special_zero)
'''
"""The last one recognizes elements by their address. The others answer with views, which is legal."""


def some(plan: Plan, step: int) -> list[Row]:
    return [row for row in plan.rows if not row.case.large][::step]


@pytest.mark.slow
@pytest.mark.parametrize("step", [61, pytest.param(19, marks=pytest.mark.exhaustive)])
def test_verdicts_equal_those_in_process(plan: Plan, step: int) -> None:
    rows = some(plan, step)
    for name in ("reference", "numpy"):
        here, there = run_in_both(name, rows, start(name))
        assert [(r.row, r.verdicts, r.diagnosis) for r in here] == [(r.row, r.verdicts, r.diagnosis) for r in there]


@pytest.mark.slow
def test_several_processes_give_the_rows_in_order(plan: Plan) -> None:
    rows = some(plan, 150)
    another = partial(open_backend, "reference", "worker", LIMITS)
    with (
        use_backend("reference", "worker", LIMITS) as first,
        use_jobs(first, another, first.claims, "worker", 2) as call_lists,
    ):
        results = list(call_lists(split_rows(rows)))
    assert [result.row for result in results] == [row.id for row in rows]
    assert verdicts(results) <= {"pass", "observed"}


def test_rows_of_a_case_stay_with_one_process(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, taken = list(plan.rows[:400]), list[list[Row]]()

    def take(chunk: list[Row], *_: object) -> list[Result]:
        taken.append(chunk)
        return []

    monkeypatch.setattr("conformance.isolate.backend.run_in_isolation", take)
    another = partial(open_backend, "reference", "none", LIMITS)
    with use_backend("reference", "none") as first, use_jobs(first, another, first.claims, "none", 2) as call_lists:
        assert not list(call_lists(split_rows(rows)))
    assert sorted(row.id for chunk in taken for row in chunk) == sorted(row.id for row in rows)
    assert len(taken) > 10
    assert sum(len({row.case.id for row in chunk}) for chunk in taken) == len({row.case.id for row in rows})


@pytest.mark.slow
def test_a_program_outlives_its_process() -> None:
    remote = start("reference")
    programs = [remote.compile(reshape((2, 3), (6,))), remote.compile(reshape((2, 3), (3, 2)))]
    for end in (remote.renew, remote.restart, remote.renew, remote.close):
        for _ in range(2):
            src = lay_out(TensorSpec("f32", (2, 3))).tensor
            assert [program.run(src, (), False).dims for program in programs] == [(6,), (3, 2)]
        end()
    assert remote.starts == 4


def test_rows_of_a_case_that_die_alike(plan: Plan, fresh: Fresh) -> None:
    dying = "conformance.adapters.planted.process:DiesRatherThanReject"
    first, other = "two-infers", "two-infers-around-a-length"
    asked = [row for row in plan.rows if row.case.id in (first, other) and row.operation == "StaticReshape"][:5]
    assert [row.case.id for row in asked] == [first] * 3 + [other] * 2
    remote = fresh(dying)
    results = list(run_rows(asked, remote))
    assert remote.starts == 5 + 2, "one process a row, and one for the second try of the first of either case"
    again, alike = (f"(deterministic: {how})" for how in AGAIN)
    assert [str(result.outcome.message).endswith(again) for result in results] == [True, False, False, True, False]
    assert [str(result.outcome.message).endswith(alike) for result in results] == [False, True, True, False, True]
    assert verdicts(results) == {"fail"}


def test_a_row_that_dies_after_a_flaky_one(tmp_path: Path, plan: Plan, fresh: Fresh) -> None:
    backend = write_backend(tmp_path, SOMETIMES.format(state=str(tmp_path / "state")), "Sometimes")
    asked = [row for row in plan.rows if row.case.id == "two-infers" and row.operation == "StaticReshape"]
    results = list(run_rows(asked, fresh(backend)))
    messages = [str(result.outcome.message) for result in results]
    assert ["flaky" in message for message in messages] == [True, False, False]
    assert [message.endswith(f"(deterministic: {AGAIN[0]})") for message in messages] == [False, True, False]


def test_a_crash_that_ends_no_process_is_called_in_another(tmp_path: Path, plan: Plan, fresh: Fresh) -> None:
    backend = write_backend(tmp_path, ONCE, "Once")
    asked = [row for row in plan.rows if row.case.id == "two-infers" and row.operation == "StaticReshape"]
    messages = [str(result.outcome.message) for result in run_rows(asked, fresh(backend))]
    assert ["flaky" in message for message in messages] == [False, True, True]


def test_a_backend_that_knows_src_by_its_address(tmp_path: Path, plan: Plan, fresh: Fresh) -> None:
    asked = [row for row in plan.rows if row.case.id == "memory-is-used-again-for-other-elements"]
    for name, verdict in (("ByAddress", "fail"), ("View", "pass"), ("ViewOfTheLibrarys", "pass")):
        remote = fresh(write_backend(tmp_path, BY_ADDRESS, name))
        assert verdicts(run_rows(asked, remote)) == {verdict}


@pytest.mark.slow
def test_memory_beyond_the_limit_is_a_memory_error(tmp_path: Path) -> None:
    limit = 4 << 30
    assert limit < LIMITS.memory // 2
    remote = start(write_odd(tmp_path, f"np.empty({2 * limit} if odd else 0, np.uint8)"), LIMITS._replace(memory=limit))
    with pytest.raises(MemoryError):
        call(remote, (13,))
    assert remote.starts == 1


@pytest.mark.slow
def test_an_answer_that_is_too_large_is_of_its_thread_only(tmp_path: Path) -> None:
    backend = start(write_odd(tmp_path, "if odd: return np.zeros(1 << 25, np.float32)"))
    sources = [lay_out(TensorSpec("f32", dims)) for dims in ((12,), (13,), (14,))]
    runs = [(backend.compile(reshape(src.dims, src.dims)), src, (), False) for src in (each.tensor for each in sources)]
    (first, _), (_, second), (third, _) = backend.run_concurrently(runs)
    assert (first.dims, third.dims) == ((12,), (14,))
    assert isinstance(second, AnswerNotRead)
    assert second.dims == (1 << 25,)
