"""Rows that an audit calls again."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.certificate.check import count_called
from conformance.evidence.results import Evidence, InvalidEvidence, Target
from conformance.isolate.process.launch import ProcessLimits
from conformance.load.cases import load_suite
from conformance.plan.rows import Plan, parse_drawn_id
from conformance.plan.rows import plan_of_cases as cases_of_bundled
from conformance.run import row
from conformance.run.ended_process import DEFAULT_HANGS, HangPolicy
from conformance.runner.repeat import repeat
from conformance.runner.run_suite import RunRequest, run_suite
from conformance.verdict.rejudge import read_and_judge

from ..builders import FOUR_CASES, Command, mini, plan_of_cases
from ..isolate.remote_backends import write_acting
from ..verdict.test_waive import waivers
from .test_drawn import RING

OFTEN = """about: A call that is made again and again.
cases:
  - id: often
    rule: same-content
    src: f32[6]
    shape: [2, 3]
    special_zero: false
    times: 60000
    expect: f32[2, 3]
"""


@pytest.mark.slow
def test_a_row_may_be_called_more_often_than_before(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number of calls that fit into the time is no part of an answer."""
    monkeypatch.setattr(row, "REPEAT_SECONDS", 0.02)
    (command.cases / "often.yaml").write_text(OFTEN, encoding="utf-8")
    backend = "planted:zero-flag-ignored"
    command.run(backend, "--type", "f32", "-k", "often")
    evidence = read_and_judge(command.out / "results.jsonl", command.plan)
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    monkeypatch.setattr("conformance.system.progress.SLOW_SECONDS", 0)
    again = repeat(evidence, command.plan, backend, 100)
    assert f"conformance: calling again 0 of {again.rows}, often" in capsys.readouterr().err
    assert again.rows > 0
    assert again.differences == ()


@pytest.mark.slow
def test_rows_that_hang_are_all_called_again(tmp_path: Path) -> None:
    """A run leaves some out. `certify` calls all, and among the rows that are drawn others may follow each other."""
    plan = plan_of_cases(tmp_path, FOUR_CASES.partition("  - {id: turns")[0])
    hangs = "graph.nodes[0].operation == 'Reshape-1' and graph.src.type in ('f32', 'bf16')"
    backend = write_acting(tmp_path, f"time.sleep(1.2 if {hangs} else 0)")
    limits, policy = ProcessLimits(seconds=0.4), HangPolicy(max_hangs=0)
    request = RunRequest(backend, plan, Target(), isolation="worker", limits=limits, hangs=policy)
    evidence = run_suite(request, lambda header: tmp_path / "out")
    assert sum(result.outcome.kind == "timeout" for result in evidence.results) > DEFAULT_HANGS.max_hangs
    assert repeat(evidence, plan, backend, 100).differences == ()


@pytest.mark.slow
def test_rows_are_called_again_in_the_order_of_the_run(tmp_path: Path) -> None:
    """A backend with state, such as one that keeps what an earlier call compiled, then gives the same answers."""
    plan = cases_of_bundled(load_suite(), ["cropped-src-through-a-chain", "offset-src-through-a-chain"])
    backend = write_acting(tmp_path, "calls.append(1); len(calls) == 10 and os._exit(3)", "calls = []")
    evidence = run_suite(RunRequest(backend, plan, Target(), isolation="worker"), lambda header: tmp_path / "out")
    assert sum(result.is_failure for result in evidence.results) > 0
    assert repeat(evidence, plan, backend, 1000).differences == ()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Evidence]:
    """The few cases, and evidence of them and of sixty drawn rows; some fail."""
    folder = tmp_path_factory.mktemp("drawn")
    plan = plan_of_cases(folder)
    return plan, run_suite(RunRequest(RING, plan, Target(), drawn_rows=60), lambda name: folder / "out")


@pytest.mark.slow
def test_drawn_rows_are_called_again_also_if_none_is_held(drawn: tuple[Plan, Evidence]) -> None:
    plan, evidence = drawn
    again = repeat(evidence, plan, RING, 10_000)
    held = [result for result in evidence.results if parse_drawn_id(result.row)]
    assert held
    assert again.rows == count_called(evidence) == len(evidence.results) - len(held) + evidence.drawn.called
    assert again.differences == ()
    footer = {**evidence.footer, "drawn": {**evidence.footer["drawn"], "failed": 0}}
    forged = replace(evidence, results=tuple(each for each in evidence.results if each not in held), footer=footer)
    different = repeat(forged, plan, RING, 10_000).differences
    assert len(different) >= len(held)
    assert all("the evidence says that no drawn row fails so" in each for each in different)


@pytest.mark.slow
def test_drawn_rows_that_are_waived_are_no_difference(command: Command, tmp_path: Path) -> None:
    """Their failures are of one kind for each set of documents, and the evidence holds one of each."""
    path = waivers(tmp_path, {"case": None, "breaks": "same-content"})
    command.run(mini("Flushes"), "--drawn-rows", "100", "--waivers", path).expect(0)
    evidence = read_and_judge(command.out / "results.jsonl", command.plan)
    assert evidence.drawn.waived > 1
    assert repeat(evidence, command.plan, mini("Flushes"), 10_000).differences == ()


@pytest.mark.slow
def test_evidence_cannot_leave_out_drawn_rows(drawn: tuple[Plan, Evidence], monkeypatch: pytest.MonkeyPatch) -> None:
    plan, evidence = drawn
    monkeypatch.setattr("conformance.draw.rows.count_drawn_rows", lambda *_: 60)
    footer = {**evidence.footer, "drawn": {"called": 20, "failed": 0, "not_called": 40}}
    results = tuple(each for each in evidence.results if not parse_drawn_id(each.row))
    with pytest.raises(InvalidEvidence, match="says that all drawn rows were called, and drawn-0-"):
        repeat(replace(evidence, results=results, footer=footer), plan, RING, 10_000)
