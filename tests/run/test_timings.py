"""`--timings` says what the time of a run was spent on, and changes nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.isolate.backend import Isolation, use_backend
from conformance.model import Result
from conformance.run.row import run
from conformance.run.timings import Timings
from tests import small
from tests.small import Command, command

__all__ = ["command"]
PARTS = ["start", "compile", "run", "compare", "write"]
SLOW = """
import time
from conformance.adapters.reference import Reference, ReferenceProgram

class Slow(Reference):
    def compile(self, graph):
        time.sleep(0.1)
        program = super().compile(graph)
        plain = program.run
        program.run = lambda *tensors: (time.sleep(0.05), plain(*tensors))[1]
        return program
"""
DIES = """
import os
import time
from conformance.adapters.reference import Reference

class Dies(Reference):
    def __init__(self):
        time.sleep(0.3)

    def compile(self, graph):
        os._exit(3)
"""


def slowly(results: Iterable[Result]) -> Iterator[Result]:
    """Results that take 0.3 seconds each to compare."""
    for result in results:
        time.sleep(0.3)
        yield result


@pytest.mark.parametrize("isolation", ["none", "worker"])
def test_sleep_counts_where_the_backend_sleeps(tmp_path: Path, isolation: Isolation) -> None:
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    timings = Timings()
    (row,) = [row for row in small.plan(tmp_path).rows if row.id == "stays[StaticReshape-f32]"]
    with use_backend(f"{tmp_path / 'slow.py'}:Slow", isolation) as adapter:
        for result in timings.rows(run([row] * 3, timings.watch(adapter))):
            assert set(result.verdicts.values()) == {"pass"}
            time.sleep(0.02)
    split = timings.split
    assert list(split) == PARTS
    assert split["compile"] >= 0.3
    assert 0.15 <= split["run"] < split["compile"]
    assert split["write"] >= 0.06
    assert split["compare"] >= 0


def test_a_call_that_is_rejected_counts_too(tmp_path: Path) -> None:
    timings, adapter = Timings(), load_adapter("reference")
    rejected = [row for row in small.plan(tmp_path).rows if row.case.id == "two-infers"]
    assert all(set(r.verdicts.values()) == {"pass"} for r in timings.rows(run(rejected, timings.watch(adapter))))
    assert timings.seconds_compiling > 0
    assert timings.seconds_of_rows >= timings.seconds_compiling


def test_the_start_after_a_crash_is_no_comparison(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(DIES, encoding="utf-8")
    timings = Timings()
    (row,) = [row for row in small.plan(tmp_path).rows if row.id == "stays[StaticReshape-f32]"]
    with use_backend(f"{tmp_path / 'dies.py'}:Dies", "worker") as adapter:
        began = timings.watch(adapter).seconds_starting  # type: ignore[attr-defined] # it counts
        assert [set(r.verdicts.values()) for r in timings.rows(slowly(run([row], adapter)))] == [{"fail"}]
    assert began > 0.3
    assert timings.split["start"] > began + 0.3  # called again in a fresh process
    assert 0.3 <= timings.split["compare"] < 0.6


def test_the_rows_are_the_same_and_the_time_is_no_output(command: Command) -> None:
    plain = command.run("reference")
    rows = (command.out / "results.jsonl").read_bytes().splitlines()[1:-1]
    timed = command.run("reference", "--timings")
    assert (command.out / "results.jsonl").read_bytes().splitlines()[1:-1] == rows
    assert timed.code == plain.code == 0
    (line,) = [line for line in timed.err.splitlines() if line.startswith("time: ")]
    assert [part.split()[0] for part in line.removeprefix("time: ").split(", ")] == PARTS
    assert "time: " not in timed.out
    assert "time: " not in plain.err


def test_several_processes_are_not_measured(command: Command) -> None:
    said = command.run("reference", "--timings", "--isolation", "worker", "--jobs", "2").expect(2, lines=1)
    assert said.err.startswith("conformance: --timings measures one process after the other; drop --jobs")
