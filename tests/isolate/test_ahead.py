"""Calls that are sent ahead of their turn come to the same as calls that are sent alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from conformance.isolate.backend import run_rows
from conformance.isolate.process.launch import Limits
from conformance.isolate.protocol.process import Process
from conformance.isolate.protocol.remote import Remote, RemoteProgram
from conformance.isolate.protocol.session import Session
from conformance.model import Result
from conformance.plan.rows import Plan, Row

from .calls import called
from .remote_backends import Fresh, fresh, plan, write_backend

__all__ = ["fresh", "plan"]
LIMITS, CASE = Limits(seconds=0.6), "there-and-back"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the writes to processes."""
    writes, send = Counter[str](), Process.send

    def count(self: Process, parts: Sequence[bytes], deadline: float, what: str) -> None:
        writes[what] += 1
        send(self, parts, deadline, what)

    monkeypatch.setattr(Process, "send", count)
    return writes


def run_alone_and_ahead(
    fresh: Fresh, backend: str, rows: Sequence[Row], limits: Limits = LIMITS
) -> tuple[list[Result], list[Result]]:
    """The results of rows whose calls are sent alone, and of the same rows ahead of their turn."""
    results = []
    for alone in (True, False):
        remote = fresh(backend, limits)
        remote.calls_alone = alone
        came = run_rows(rows, remote, remote.claims, "worker")
        results.append([result._replace(milliseconds=0) for result in came])
        assert_no_reply_is_left(remote)
    return results[0], results[1]


def assert_no_reply_is_left(remote: Remote) -> None:
    """Assert that the process goes on, which it does not after a reply to a call that nobody asks for any more."""
    starts = remote.generation
    called(remote, (2, 3))
    assert remote.generation == starts


@pytest.mark.parametrize("backend", ["reference", "broken:stride-zero-is-unset", "broken:strides-ignored"])
def test_every_result_is_as_if_each_call_had_been_sent_alone(plan: Plan, fresh: Fresh, backend: str) -> None:
    rows = [row for row in plan.rows if not row.case.large and not row.case.generated]
    alone, ahead = run_alone_and_ahead(fresh, backend, rows[::90], Limits())
    assert ahead == alone


def test_many_calls_are_sent_in_one_write(plan: Plan, fresh: Fresh, sent: Counter[str]) -> None:
    rows = [row for row in plan.rows if len(row.case.steps) == 1 and not row.case.large][::60]
    remote = fresh("reference", Limits())
    results = list(run_rows(rows, remote, remote.claims, "worker"))
    assert len(results) == len(rows)
    assert sent["run"] < len(rows) / 4


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
    """A right backend, but for what it does where a condition holds."""
    return write_backend(folder, ACTS.format(act=act, compiling=compiling, running=running), "Acts")


def rows_of(plan: Plan, case: str) -> list[Row]:
    return [row for row in plan.rows if row.case.id == case]


@pytest.mark.parametrize("act", ["os.abort()", pytest.param("time.sleep(9)", marks=pytest.mark.slow)])
@pytest.mark.parametrize("where", ["compiling", "running"])
def test_the_row_that_ended_the_process_is_named_and_how(
    tmp_path: Path, plan: Plan, fresh: Fresh, act: str, where: str
) -> None:
    rows = [row for row in rows_of(plan, CASE) if row.operation == "StaticReshape"]
    backend = acts(tmp_path, act, **{where: "self.graph.src.type == 'bf16'"})
    alone, ahead = run_alone_and_ahead(fresh, backend, rows)
    assert ahead == alone
    died = [result for result in ahead if result.outcome.kind in ("crash", "timeout")]
    assert [result.row for result in died] == [row.id for row in rows if row.type == "bf16"] != []
    assert all({"compiling": "compile", "running": "run"}[where] in str(result.outcome.message) for result in died)


def test_calls_are_sent_alone_once_one_ended_the_process(
    tmp_path: Path, plan: Plan, fresh: Fresh, sent: Counter[str]
) -> None:
    rows = rows_of(plan, CASE)
    bf16 = "self.graph.nodes[0].operation == 'StaticReshape' and self.graph.src.type == 'bf16'"
    remote = fresh(acts(tmp_path, "os.abort()", running=bf16), LIMITS)
    came = run_rows(rows, remote, remote.claims, "worker")
    while next(came).outcome.kind != "crash":
        pass
    before, left = sent["run"], len(list(came))
    assert not remote.ahead
    assert left > 5
    assert sent["run"] >= before + left


def test_a_call_that_writes_into_the_src_of_an_earlier_row_fails_no_row_before_it(
    tmp_path: Path, plan: Plan, fresh: Fresh
) -> None:
    backend = acts(tmp_path, "Acts.kept[:1] = b'x'", running="Acts.kept is not None and len(Acts.kept)")
    alone, ahead = run_alone_and_ahead(fresh, backend, rows_of(plan, CASE))
    assert ahead == alone


@pytest.mark.parametrize("act", ["src.memory[0] ^= 1", "src.memory[src.offset] ^= 1"])
def test_a_change_of_src_is_found_in_its_own_row(tmp_path: Path, plan: Plan, fresh: Fresh, act: str) -> None:
    backend = acts(tmp_path, act, running="src.type == 'bf16'")
    alone, ahead = run_alone_and_ahead(fresh, backend, rows_of(plan, CASE))
    assert ahead == alone
    changed = [result.row for result in ahead if result.outcome.faults]
    assert changed == [row.id for row in rows_of(plan, CASE) if row.type == "bf16"] != []


def test_a_change_that_the_worker_does_not_report_is_found_all_the_same(
    tmp_path: Path, plan: Plan, fresh: Fresh
) -> None:
    hide = """import conformance.isolate.protocol.worker as worker
            worker._content, report = None, worker.Server.report
            src.memory[0] ^= 1
            def hides(self, run, reply):
                worker.Server.report = report
                return report(self, run._replace(before=[bytes(tensor.memory) for tensor in run.tensors]), reply)
            worker.Server.report = hides"""
    backend = acts(tmp_path, hide, running="src.type == 'bf16'")
    alone, ahead = run_alone_and_ahead(fresh, backend, rows_of(plan, CASE))
    assert ahead == alone
    changed = [result.row for result in ahead if result.outcome.faults]
    assert changed == [row.id for row in rows_of(plan, CASE) if row.type == "bf16"] != []


def test_a_run_that_is_given_up_leaves_no_call_for_the_next(plan: Plan, fresh: Fresh) -> None:
    rows, remote = rows_of(plan, CASE), fresh("reference", LIMITS)
    results = list(islice(run_rows(rows, remote, remote.claims, "worker"), 3))
    again = list(run_rows(rows[::-1], remote, remote.claims, "worker"))[::-1]
    assert [result.outcome for result in results] == [result.outcome for result in again[:3]]
    assert_no_reply_is_left(remote)


def test_a_request_of_another_kind_does_not_meet_the_replies_to_calls_ahead(plan: Plan, fresh: Fresh) -> None:
    remote = fresh("reference", LIMITS)
    assert len(list(islice(run_rows(rows_of(plan, CASE), remote, remote.claims, "worker"), 3))) == 3
    assert remote.ahead
    remote.session().compile(RemoteProgram(remote, rows_of(plan, CASE)[0].steps[0].graph))


def test_only_what_the_pipe_has_room_for_is_sent_ahead(plan: Plan, fresh: Fresh, sent: Counter[str]) -> None:
    rows, remote = rows_of(plan, CASE), fresh("reference", Limits())
    remote.session().process.room = 4096
    results = list(run_rows(rows, remote, remote.claims, "worker"))
    assert {result.outcome.kind for result in results} == {"tensor"}
    assert 3 < sent["run"] < len(rows)


def test_a_program_that_knows_no_forks_is_told_of_none_ahead(
    plan: Plan, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for row in plan.rows if len(row.case.steps) == 1 and not row.case.large]
    forks = [row for row in rows if row.case.steps[0].shared_src][:4]
    rows = [*rows_of(plan, CASE), *forks]
    remote = fresh("reference", Limits())
    monkeypatch.setattr(remote.session(), "_has_forks", False)
    kinds = [result.outcome.kind for result in run_rows(rows, remote, remote.claims, "worker")]
    assert kinds == ["tensor"] * (len(rows) - len(forks)) + ["unsupported"] * len(forks)
    assert forks


def test_a_program_that_takes_no_calls_ahead_is_called_one_by_one(
    plan: Plan, fresh: Fresh, sent: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "can_send_ahead", False)
    rows, remote = rows_of(plan, CASE), fresh("reference", LIMITS)
    list(run_rows(rows, remote, remote.claims, "worker"))
    assert sent["run"] == len(rows)
