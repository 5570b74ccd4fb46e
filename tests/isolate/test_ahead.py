"""Calls that are sent ahead of their turn have the results of calls that are sent alone."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol.piped_process import PipedProcess
from conformance.isolate.protocol.remote import RemoteAdapter, RemoteProgram
from conformance.isolate.protocol.session import Session
from conformance.model import Result
from conformance.plan.rows import Plan, Row

from ..builders import mini
from .calls import call
from .remote_backends import LIMITS, Fresh, run_remote, write_backend


@pytest.fixture
def write_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of writes to processes, by request."""
    writes, send = Counter[str](), PipedProcess.send

    def count(self: PipedProcess, parts: Sequence[bytes], what: str, seconds: float | None = None) -> None:
        writes[what] += 1
        send(self, parts, what, seconds)

    monkeypatch.setattr(PipedProcess, "send", count)
    return writes


@pytest.fixture
def rows(plan: Plan) -> list[Row]:
    return [row for row in plan.rows if row.case.id == "there-and-back"]


def run_ahead(fresh: Fresh, backend: str, rows: Sequence[Row], limits: ProcessLimits = LIMITS) -> list[Result]:
    """Run rows with calls ahead of their turn, and assert that calls sent alone have the same results."""
    results = []
    for alone in (True, False):
        remote = fresh(backend, limits)
        remote.calls_alone = alone
        results.append([result._replace(milliseconds=0) for result in run_remote(remote, rows)])
        assert_no_reply_is_left(remote)
    assert results[1] == results[0]
    return results[1]


def assert_no_reply_is_left(remote: RemoteAdapter) -> None:
    """Assert that the next call needs no new process, as it would if an old reply were left."""
    starts = remote.starts
    call(remote, (2, 3))
    assert remote.starts == starts


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "planted:strides-ignored"])
def test_every_result_is_as_if_each_call_had_been_sent_alone(plan: Plan, fresh: Fresh, backend: str) -> None:
    small = [row for row in plan.rows if not row.case.large and not row.case.generated]
    run_ahead(fresh, backend, small[::90])


def test_many_calls_are_sent_in_one_write(plan: Plan, fresh: Fresh, write_counts: Counter[str]) -> None:
    rows = [row for row in plan.rows if len(row.case.steps) == 1 and not row.case.large][::60]
    assert len(list(run_remote(fresh("reference"), rows))) == len(rows)
    assert write_counts["run"] < len(rows) / 4


ACTS = """
import os, time
from conformance.adapters.reference import Reference

class Acts(Reference):
    kept = None

    def compile(self, graph):
        self.graph = graph
        if {compiling}:
            {act}
        self.program = super().compile(graph)
        return self

    def run(self, src, shapes, may_overwrite):
        if {running}:
            {act}
        Acts.kept = src.memory
        return self.program.run(src, shapes, may_overwrite)
"""


def acts(folder: Path, act: str, compiling: str = "False", running: str = "False") -> str:
    """A right backend, except for one act where a condition holds."""
    return write_backend(folder, ACTS.format(act=act, compiling=compiling, running=running), "Acts")


@pytest.mark.parametrize("act", ["os.abort()", pytest.param("time.sleep(9)", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("where", "phase"), [("compiling", "compile"), ("running", "run")])
def test_the_row_that_ended_the_process(
    tmp_path: Path, rows: list[Row], fresh: Fresh, act: str, where: str, phase: str
) -> None:
    rows = [row for row in rows if row.operation == "StaticReshape"]
    backend = acts(tmp_path, act, **{where: "self.graph.src.type == 'bf16'"})
    results = run_ahead(fresh, backend, rows, ProcessLimits(seconds=20 if act == "os.abort()" else 0.7))
    died = [result for result in results if result.outcome.kind in ("crash", "timeout")]
    assert [result.row for result in died] == [row.id for row in rows if row.type == "bf16"] != []
    assert all(phase in str(result.outcome.message) for result in died)


def test_calls_go_alone_after_one_ended_the_process(
    tmp_path: Path, rows: list[Row], fresh: Fresh, write_counts: Counter[str]
) -> None:
    bf16 = "self.graph.nodes[0].operation == 'StaticReshape' and self.graph.src.type == 'bf16'"
    remote = fresh(acts(tmp_path, "os.abort()", running=bf16))
    came = run_remote(remote, rows)
    while next(came).outcome.kind != "crash":
        pass
    before, left = write_counts["run"], len(list(came))
    assert not remote.ahead
    assert left > 5
    assert write_counts["run"] >= before + left


def test_a_write_into_src_of_an_earlier_row(tmp_path: Path, rows: list[Row], fresh: Fresh) -> None:
    run_ahead(fresh, acts(tmp_path, "Acts.kept[:1] = b'x'", running="Acts.kept is not None and len(Acts.kept)"), rows)


UNREPORTED = """import conformance.isolate.protocol.worker as worker
            worker._read_content, report = None, worker.AdapterServer.report
            src.memory[0] ^= 1
            def hides(self, run, reply):
                worker.AdapterServer.report = report
                return report(self, run._replace(before=[bytes(tensor.memory) for tensor in run.tensors]), reply)
            worker.AdapterServer.report = hides"""
CHANGES = {
    "before src": "src.memory[0] ^= 1", "in src": "src.memory[src.offset] ^= 1",
    "that the worker does not report": UNREPORTED,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_src_fails_its_own_row(tmp_path: Path, rows: list[Row], fresh: Fresh, change: str) -> None:
    results = run_ahead(fresh, acts(tmp_path, CHANGES[change], running="src.type == 'bf16'"), rows)
    changed = [result.row for result in results if result.outcome.side_effects]
    assert changed == [row.id for row in rows if row.type == "bf16"] != []


def test_a_run_that_stops_early_leaves_no_call_for_the_next(rows: list[Row], fresh: Fresh) -> None:
    remote = fresh("reference")
    results = list(islice(run_remote(remote, rows), 3))
    again = list(run_remote(remote, rows[::-1]))[::-1]
    assert [result.outcome for result in results] == [result.outcome for result in again[:3]]
    assert_no_reply_is_left(remote)


def test_no_call_is_ahead_of_the_repetitions_of_another(plan: Plan, rows: list[Row], fresh: Fresh) -> None:
    """Or the process would be ended between the first call and the others, and count from the start again."""
    (row,) = [row for row in plan.rows if row.case.id == "more-calls-than-16-bits-count"]
    often = row._replace(case=replace(row.case, times=5000))
    result = run_ahead(fresh, mini("Tires"), [rows[0], often, *rows[1:3]])[1]
    assert result.detail == "rejected at run: enough, at call 4,999"


def test_a_compilation_while_calls_are_ahead(rows: list[Row], fresh: Fresh) -> None:
    remote = fresh("reference")
    assert len(list(islice(run_remote(remote, rows), 3))) == 3
    assert remote.ahead
    remote.session().compile(RemoteProgram(remote, rows[0].steps[0].graph))


@pytest.mark.slow
def test_calls_ahead_fit_into_the_pipe(rows: list[Row], fresh: Fresh, write_counts: Counter[str]) -> None:
    remote = fresh("reference")
    remote.session().process.room = 4096
    assert {result.outcome.kind for result in run_remote(remote, rows)} == {"tensor"}
    assert 3 < write_counts["run"] < len(rows)


@pytest.mark.slow
def test_a_program_that_knows_no_forks(
    plan: Plan, rows: list[Row], fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    singles = [row for row in plan.rows if len(row.case.steps) == 1 and not row.case.large]
    forks = [row for row in singles if row.case.steps[0].shared_src][:4]
    assert forks
    remote = fresh("reference")
    monkeypatch.setattr(remote.session(), "_has_forks", False)
    kinds = [result.outcome.kind for result in run_remote(remote, [*rows, *forks])]
    assert kinds == ["tensor"] * len(rows) + ["unsupported"] * len(forks)


@pytest.mark.slow
def test_a_program_that_takes_no_calls_ahead(
    rows: list[Row], fresh: Fresh, write_counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "can_send_ahead", False)
    list(run_remote(fresh("reference"), rows))
    assert write_counts["run"] == len(rows)
