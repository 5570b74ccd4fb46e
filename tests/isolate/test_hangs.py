"""Hangs: rows of a case that hang alike are not all called, and a budget limits the time of all."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from adapters.reference import Reference
from conformance.isolate.backend import Isolation, note_processes, open_backend, use_backend, use_jobs
from conformance.model import Graph, Program, Result, TimedOut
from conformance.plan.rows import Plan, Row
from conformance.run.ended_process import HangCounter, HangPolicy
from conformance.run.row import run_rows
from conformance.runner.run_suite import note_after_hangs

from ..builders import Command, plan_of_cases
from ..processes import wait
from . import faulty_program
from .remote_backends import run_remote, verdicts, write_acting


class LostCalls(Reference):
    """The reference, except that some calls time out at once. It restarts like a process."""

    def __init__(self, are_lost: Callable[[Graph], bool]) -> None:
        self.are_lost, self.lost = are_lost, 0

    def compile(self, graph: Graph) -> Program:
        if self.are_lost(graph):
            self.lost += 1
            raise TimedOut("no answer")
        return super().compile(graph)

    def restart(self) -> None:
        """There is no process."""


def kinds_of(results: Iterable[Result], operation: str) -> list[str]:
    return [str(result.outcome.kind) for result in results if f"[{operation}-" in result.row]


def two_cases(plan: Plan) -> list[Row]:
    return [row for row in plan.rows if row.case.id in ("two-infers", "two-infers-around-a-length")]


@pytest.mark.parametrize("most", [1, 2, 0])
def test_max_hangs_of_a_case_and_operation(plan: Plan, most: int) -> None:
    adapter = LostCalls(lambda graph: graph.nodes[0].operation == "Reshape-1")
    results = list(run_rows(two_cases(plan), adapter, hangs=HangCounter(most)))
    called = most or 12
    assert kinds_of(results, "StaticReshape") == kinds_of(results, "DynamicReshape-1") == ["rejected"] * 6
    assert kinds_of(results, "Reshape-1") == 2 * (["timeout"] * called + ["none"] * (12 - called))
    assert adapter.lost == 2 * (called + 1), "the first row of a case is called twice"
    assert verdicts(result for result in results if result.outcome.kind == "none") <= {"not run"}


def test_occasional_hangs_do_not_count(plan: Plan) -> None:
    asked = [row for row in two_cases(plan) if row.operation == "Reshape-1"][:6]
    results = list(run_rows(asked, LostCalls(lambda graph: graph.src.type == "bf16"), hangs=HangCounter(2)))
    assert [result.outcome.kind for result in results] == ["rejected", "timeout", "rejected"] * 2


def test_the_note_on_rows_not_called() -> None:
    assert not list(note_after_hangs(Counter(), 20, 3))
    uncalled = Counter({"a-case": 10, "another": 2, "a-third": 2, "a-fourth": 1})
    assert list(note_after_hangs(uncalled, 20, 2)) == [
        "not called: 15 rows of a-case, another, a-third and 1 more, because 2 rows of the same case and operation "
        "hung; that saved up to 5 min, and --max-hangs 0 calls them"
    ]


def test_rows_after_the_hang_budget_are_not_run(tmp_path: Path) -> None:
    limits = faulty_program.LIMITS._replace(seconds=0.3)
    remote = faulty_program.remote("silent", "run", "second", limits=limits)
    asked = [row for row in plan_of_cases(tmp_path).rows if row.case.id == "eight"][:5]
    results = list(run_remote(remote, asked, policy=HangPolicy(budget_seconds=0.2)))
    assert [result.outcome.kind for result in results] == ["tensor", "timeout", "none", "none", "none"]
    assert verdicts(results[2:]) == {"not run"}
    assert "more than --hang-budget 0.2; give a larger one to go on" in note_processes(remote)[0]


def test_at_the_end_no_further_row_is_called(plan: Plan) -> None:
    """An interrupted run ends after the calls that run now, also if all of their list would hang."""
    called: list[Graph] = []

    def note_call(graph: Graph) -> bool:
        called.append(graph)
        time.sleep(0.02)
        return False

    first, rows = LostCalls(note_call), list(plan.rows[:100])
    with use_jobs(first, lambda: LostCalls(note_call), first.claims, "none", 2) as call:
        next(call([rows[:1], rows[1:]]))
    assert len(called) < 50


def hangs_where(tmp_path: Path, when: str) -> tuple[str, Path]:
    """A backend that hangs on some graphs, and the file in which it counts its calls."""
    calls = tmp_path / "calls"
    sleep = f"time.sleep(1.2 if {when} else 0)"  # longer than any limit but the first
    return write_acting(tmp_path, f"os.system(f'echo {{graph.nodes[0].operation}} >> {calls}'); {sleep}"), calls


def test_an_interrupt_ends_the_calls_that_were_begun(tmp_path: Path, plan: Plan) -> None:
    calls = tmp_path / "calls"
    backend = write_acting(tmp_path, f"os.system('echo begun >> {calls}'); time.sleep(600)")

    def rows_until_interrupted() -> Iterator[list[Row]]:
        yield from ([row] for row in two_cases(plan)[:2])
        wait(lambda: calls.is_file() and len(calls.read_text().split()) == 2)
        raise KeyboardInterrupt

    began = time.monotonic()
    with (
        use_backend(backend, "worker") as first,
        pytest.raises(KeyboardInterrupt),
        use_jobs(first, lambda: open_backend(backend, "worker"), first.claims, "worker", 2) as call,
    ):
        next(call(rows_until_interrupted()))
    assert time.monotonic() - began < 50, "less than the time limit of a call"


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["worker", "row"])
def test_a_run_notes_the_rows_it_did_not_call(command: Command, tmp_path: Path, isolation: Isolation) -> None:
    """The rows of other operations were called."""
    backend, _ = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    words = ("--isolation", isolation, "--timeout", "0.5", "-k", "flattens", "--max-hangs", "2")
    note = "not called: 10 rows of flattens, because 2 rows of the same case and operation hung; that saved up"
    said = command.run(backend, *words).expect(1, text=f"note: {note} to 1 min, and --max-hangs 0 calls them")
    assert re.search(r"--max-hangs 0\s+calls them\n\nexit 1: .*; 10 were not run\n", said.out)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_spends_its_hang_budget(command: Command, tmp_path: Path, jobs: int) -> None:
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].shape and graph.nodes[0].shape.values != (2, 3)")
    words = ("--isolation", "worker", "--jobs", jobs, "--timeout", "0.5", "--hang-budget", "0.5")
    note = "more than --hang-budget 0.5; give a larger one to go on; the rows after that were not run"
    said = command.run(backend, *words, "--operation", "StaticReshape").expect(1, text=note)
    assert re.search(r"\d+ not run", said.out)
    assert 4 <= len(calls.read_text().split()) <= 24


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["worker", "row"])
def test_each_process_may_take_long_until_it_answers(command: Command, tmp_path: Path, isolation: Isolation) -> None:
    """A crash ends the process; the next one loads again what the first call needs, and is not blamed for that."""
    crash = "graph.nodes[0].shape.values == (3, 2) and os.kill(os.getpid(), signal.SIGSEGV)"
    backend = write_acting(tmp_path, f"time.sleep(globals().pop('slow', 0)); {crash}", "slow = 0.6")
    words = ("-k", "three-by-two or eight", "--operation", "StaticReshape", "--type", "f32")
    said = command.run(backend, *words, "--timeout", "0.3", "--isolation", isolation).expect(
        1, out="(deterministic: again alone in a fresh process)"
    )
    assert "no answer within" not in said.out
    assert "flaky" not in said.out
