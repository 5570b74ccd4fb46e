"""Programs that run at the same time: each in its own thread, each judged by itself."""

import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.isolate.protocol.remote import start_program, start_worker
from conformance.model import Adapter
from conformance.plan.rows import Row
from conformance.run.concurrent import run_in_threads
from conformance.run.row import run_rows
from conformance.verdict.blame import Blamer

from ..builders import bundled_plan, bundled_rows, spec

MISBEHAVING = Path(__file__).parents[1] / "misbehaving.py"
ADAPTER = '''
import os, sys, threading, time
from conformance.adapters.reference import Reference

MEET = threading.Barrier(2)

class Waits(Reference):
    """A run ends only if another one has begun."""
    def copy_elements(self, src, dst, may_overwrite):
        MEET.wait(10)
        return super().copy_elements(src, dst, may_overwrite)

class Dies(Reference):
    def copy_elements(self, src, dst, may_overwrite):
        os.abort()

class Hides(Reference):
    """Nothing can be imported any more."""
    def __init__(self):
        sys.path[:] = []

class Spoils(Reference):
    """Two of three programs write into the answer of the last one after that was returned."""
    programs, answers, meet = 0, [], threading.Barrier(3)
    def compile(self, graph):
        program = super().compile(graph)
        run, is_last = program.run, self.programs == 2
        program.run = lambda *given: self.spoil(run(*given), is_last)
        self.programs += 1
        return program
    def spoil(self, answer, is_last):
        if is_last:
            self.answers.append(answer.copy())
        self.meet.wait(10)
        if is_last:
            return self.answers[0]
        time.sleep(0.2)
        self.answers[0].view("u1").fill(7)
        return answer

class Writes(Reference):
    """Writes into src."""
    def copy_elements(self, src, dst, may_overwrite):
        src.memory[src.offset] ^= 1
        return super().copy_elements(src, dst, may_overwrite)
'''
COPIED = "copied-lengths-at-the-same-time-as-literal-ones"


def row(case: str, way: str = "StaticReshape-f32") -> Row:
    return bundled_rows()[f"{case}[{way}]"]


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    (tmp_path / "adapters.py").write_text(ADAPTER, encoding="utf-8")
    return tmp_path / "adapters.py"


@pytest.mark.parametrize("isolated", [False, True])
def test_two_programs_run_at_the_same_time(adapters: Path, isolated: bool) -> None:
    backend = f"{adapters}:Waits"
    adapter = start_worker(backend) if isolated else load_adapter(backend)
    (result,) = run_rows([row("programs-run-at-the-same-time")], adapter)
    assert set(result.verdicts.values()) == {"pass"}
    assert len(row("programs-run-at-the-same-time").steps) > 2


@pytest.fixture(scope="module", params=["in this process", "in a worker"])
def reference(request: pytest.FixtureRequest) -> Adapter:
    return start_worker("reference") if request.param == "in a worker" else load_adapter("reference")


@pytest.mark.parametrize("way", ["StaticReshape-bf16", "Reshape-1-f32-s32-runtime", "Reshape-1-f32-s64-constant"])
def test_the_reference_is_right_on_every_row(reference: Adapter, way: str) -> None:
    rows = [row for row in bundled_plan().rows if row.case.concurrent > 1 and f"[{way}]" in row.id]
    assert rows
    for result in run_rows(rows, reference):
        assert set(result.verdicts.values()) == {"pass"}, result


def test_a_rejection_beside_an_answer(reference: Adapter) -> None:
    (result,) = run_rows([row("a-call-at-the-same-time-as-a-forbidden-one")], reference)
    assert [outcome.kind for outcome in result.outcomes] == ["tensor", "rejected"]


@pytest.mark.parametrize("isolated", [False, True])
def test_what_threads_share_is_found_and_held_against_no_text(isolated: bool) -> None:
    backend = "conformance.adapters.planted:OneBufferForAllThreads"
    adapter = start_worker(backend) if isolated else load_adapter(backend)
    shared = row(COPIED)
    (result,) = run_rows([shared], adapter)
    assert set(result.verdicts.values()) == {"fail"}
    blamed = Blamer(spec().rules).blame(shared, result, "static-oneapi")
    assert blamed is not None
    assert (blamed.blame, blamed.premise.rule) == ("breaks only our ruling", "each-call-alone")


def test_threads_that_are_not_claimed_call_nothing() -> None:
    adapter = load_adapter("conformance.adapters.planted:OneBufferForAllThreads")
    claims = adapter.claims._replace(not_claimed=("threads:one-program",))
    (generated,) = run_rows([row("programs-run-at-the-same-time")], adapter, claims._replace(not_claimed=("threads",)))
    assert [outcome.kind for outcome in generated.outcomes] == ["unsupported"]
    shared, others = run_rows([row("one-program-run-by-four-threads"), row(COPIED)], adapter, claims)
    assert set(shared.verdicts.values()) == {"not claimed"}
    assert {outcome.kind for outcome in shared.outcomes} == {"unsupported"}
    assert set(others.verdicts.values()) == {"fail"}


def test_all_crash_if_one_ends_the_process(adapters: Path) -> None:
    remote = start_worker(f"{adapters}:Dies")
    died, after = run_rows([row(COPIED), row("a-call-at-the-same-time-as-a-forbidden-one")], remote)
    assert {outcome.kind for outcome in died.outcomes} == {"crash"}
    assert [outcome.kind for outcome in after.outcomes] == ["crash", "rejected"]


def test_a_worker_imports_nothing_after_the_backend(adapters: Path) -> None:
    (result,) = run_rows([row("programs-run-at-the-same-time")], start_worker(f"{adapters}:Hides"))
    assert set(result.verdicts.values()) == {"pass"}


def test_a_src_that_is_changed_meanwhile_is_seen(adapters: Path) -> None:
    (result,) = run_rows([row(COPIED)], start_worker(f"{adapters}:Writes"))
    assert result.diagnosis == "src changed"


@pytest.mark.parametrize("isolated", [False, True])
def test_an_answer_that_another_thread_overwrites_is_seen(adapters: Path, isolated: bool) -> None:
    backend = f"{adapters}:Spoils"
    (result,) = run_rows([row(COPIED)], start_worker(backend) if isolated else load_adapter(backend))
    assert set(result.verdicts.values()) == {"fail"}


@pytest.mark.parametrize(
    ("facet", "case"), [("shared-src", "two-nodes-take-one-src"), ("threads", "programs-run-at-the-same-time")]
)
def test_a_program_is_sent_nothing_that_it_does_not_offer(facet: str, case: str) -> None:
    """Such as a fork, if it does not read `takes_src`."""
    remote = start_program(f"{sys.executable} {MISBEHAVING}")
    assert remote.claims.excludes(facet)
    (result,) = run_rows([row(case)], remote)
    assert set(result.verdicts.values()) == {"not claimed"}
    assert result.outcome.kind == "unsupported"


def test_no_thread_waits_for_one_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    def start_two(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start_two)
    called: list[int] = []
    with pytest.raises(RuntimeError, match="start new thread"):
        run_in_threads([partial(called.append, number) for number in range(3)])
    for thread in started:
        thread.join(10)
    assert called == []
    assert [thread for thread in started if thread.is_alive()] == []
