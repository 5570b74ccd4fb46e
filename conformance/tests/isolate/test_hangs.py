"""Rows that hang alike are not all called, and a budget ends what goes on hanging."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.isolate.backend import Isolation, run_rows, use_backend
from conformance.isolate.launch import Limits
from conformance.plan.rows import Plan

from ..small import Command, command
from .remote_backends import OPEN, plan, verdicts, write_backend

__all__ = ["command", "plan"]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close what `start` started, and find that no process came to a bad end."""
    yield
    while OPEN:
        OPEN[-1].close()
        assert OPEN.pop().bad_end is None


HANGS_WHERE = """
import time
from pathlib import Path
from conformance.adapters.numpy_reference import NumpyReference

class Hangs(NumpyReference):
    def compile(self, graph):
        with Path({calls!r}).open("a") as file:
            file.write(graph.nodes[0].operation + "\\n")
        if {when}:
            time.sleep(2)  # longer than any limit here but that of the first call
        return super().compile(graph)
"""


def hangs_where(tmp_path: Path, when: str) -> tuple[str, Path]:
    """A backend that hangs where that is true of a graph, and the file in which it counts its calls."""
    calls = tmp_path / "calls"
    return write_backend(tmp_path, HANGS_WHERE.format(calls=str(calls), when=when), "Hangs"), calls


@pytest.mark.parametrize(("isolation", "most"), [("worker", 1), pytest.param("case", 2, marks=pytest.mark.slow)])
def test_rows_after_those_that_hang_alike_are_not_run(
    tmp_path: Path, plan: Plan, isolation: Isolation, most: int
) -> None:
    asked = [row for row in plan.rows if row.case.id in ("two-infers", "two-infers-around-a-length")]
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    with use_backend(backend, "worker", Limits(seconds=0.5, maxhang=most)) as remote:
        results = list(run_rows(asked, remote, remote.claims, isolation))
    kinds = {
        name: [str(result.outcome.kind) for result in results if f"[{name}" in result.row]
        for name in ("StaticReshape", "DynamicReshape-1", "Reshape-1")
    }
    assert kinds["StaticReshape"] == kinds["DynamicReshape-1"] == ["rejected"] * 6, "another operation is called"
    assert kinds["Reshape-1"] == 2 * (["timeout"] * most + ["none"] * (12 - most))
    assert calls.read_text().split().count("Reshape-1") >= 2 * (most + 1), "the first row of a case is called twice"
    assert verdicts(result for result in results if result.outcome.kind == "none") == {"not run"}


def test_a_run_says_how_many_rows_it_did_not_call_and_how_to_call_them(command: Command, tmp_path: Path) -> None:
    backend, _ = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    said = command.run(backend, "--isolation", "worker", "--timeout", "0.3", "-k", "two-infers", "--maxhang", "2")
    assert said.code == 1
    assert (
        "note: not called: 10 rows of two-infers, because 2 rows of the same case and operation hung; that saved up to "
        "1 min, and --maxhang 0 calls them"
    ) in " ".join(said.out.split())


@pytest.mark.slow
def test_without_a_limit_every_row_that_hangs_is_called(command: Command, tmp_path: Path) -> None:
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    words = ("--isolation", "worker", "--timeout", "0.3", "-k", "two-infers", "--type", "f32", "--maxhang", "0")
    assert "not called" not in command.run(backend, *words).out
    assert calls.read_text().split().count("Reshape-1") == Limits().maxhang + 1 + 1, "and the first one twice"


def test_what_hangs_now_and_then_is_called_every_time(tmp_path: Path, plan: Plan) -> None:
    asked = [row for row in plan.rows if row.case.id == "two-infers" and row.operation == "Reshape-1"][:6]
    backend, _ = hangs_where(tmp_path, "graph.src.type == 'bf16'")
    with use_backend(backend, "worker", Limits(seconds=0.5, maxhang=2)) as remote:
        results = list(run_rows(asked, remote, remote.claims, "worker"))
    assert [result.outcome.kind for result in results] == ["rejected", "timeout", "rejected"] * 2


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_loses_its_budget_to_calls_that_hang_ends_with_rows_not_run(
    command: Command, tmp_path: Path, jobs: int
) -> None:
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].shape and graph.nodes[0].shape.values != (2, 3)")
    said = command.run(
        backend, "--isolation", "worker", "--jobs", jobs, "--timeout", "0.3", "--budget", "0.5",
        "--operation", "StaticReshape",
    )  # fmt: skip
    assert said.code == 1
    assert "more than --budget 0.5; give a larger one to go on; the rows after that were not run" in said.text
    assert re.search(r"\d+ not run", said.out)
    assert 4 <= len(calls.read_text().split()) <= 24
