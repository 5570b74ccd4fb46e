"""Known faults beside evidence: what failed has to meet one, and what meets one without failing is counted."""

import shutil
from pathlib import Path

import pytest

from conformance.evidence.results import InvalidEvidence
from conformance.load.cases import load_suite
from conformance.load.faults import load_faults
from conformance.model import Expression, KnownFault, Place
from conformance.plan.rows import Plan, plan_of
from tools.faults import explain, explain_evidence, main

from ..builders import REPORTS, Command, published, spoil

BACKEND = "planted:zero-flag-ignored"
RULES = ("same-volume", "one-infer", "lower-bound", "zero-meets-infer", "zero-empties")


def fault(when: str, backend: str = BACKEND, version: str = "1") -> KnownFault:
    place = Place("faults.yaml", 7)
    return KnownFault("it", "It fails", "Avoid it.", ((backend, (version,)),), ("crash",), Expression(when, place))


@pytest.fixture
def evidence(command: Command) -> Path:
    """The evidence of a planted backend that takes a 0 as a length even where it should copy."""
    command.run(BACKEND, "--type", "f32")
    return command.out / "results.jsonl"


@pytest.fixture
def plan(command: Command) -> Plan:
    return command.plan


def test_only_single_legal_calls_have_to_be_explained(evidence: Path, plan: Plan) -> None:
    found = explain_evidence(evidence, plan, [])
    rows = [row for row, _ in found.unexplained]
    assert rows == ["copies[StaticReshape-f32]", "infers-beside-zero[StaticReshape-f32]"]
    assert found.failing == 2  # and not `there-and-back`, a chain, which fails too


def test_a_fault_explains_failures_and_is_charged_with_passes(evidence: Path, plan: Plan) -> None:
    exact = explain_evidence(evidence, plan, [fault("special_zero and 0 in shape")])
    assert (exact.unexplained, exact.flagged, exact.idle) == ((), 0, ())
    coarse = explain_evidence(evidence, plan, [fault("0 in shape")])
    assert (coarse.unexplained, coarse.flagged) == ((), 1)  # `empties`
    assert coarse.passing == exact.passing > 5


def test_a_fault_that_explains_nothing_is_idle(evidence: Path, plan: Plan) -> None:
    idle, other, later = fault("len(src) > 9"), fault("0 in shape", "ncnn"), fault("0 in shape", version="2")
    found = explain_evidence(evidence, plan, [idle, other, later])
    assert (found.idle, len(found.unexplained)) == ((idle,), 2)
    narrow, wide = fault("special_zero and 0 in shape")._replace(id="narrow"), fault("0 in shape or len(src) > 9")
    assert explain_evidence(evidence, plan, [wide, narrow]).idle == (wide, narrow), "each covers the other"
    assert explain_evidence(evidence, plan, [wide, idle]).idle == (idle,)


def test_a_fault_of_illegal_calls_is_charged_with_passes(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.faults._MAX_PASSING_PER_FAILING", 2)
    backend = "planted:volume-unchecked"
    command.run(backend, "--type", "f32")
    wide = fault("len(src) > 0", backend)._replace(shows=("answered an illegal call",), rules=RULES)
    narrow = wide._replace(rules=("same-volume",))
    found = explain_evidence(command.out / "results.jsonl", command.plan, [wide, narrow])
    assert [each for each, _, _ in found.coarse] == [wide]


PLAIN = """about: A call of another case, with other elements.
cases:
  - {id: plain, rule: same-content, src: "f32[2, 4]", shape: [8], special_zero: false, expect: "f32[8]"}
"""


def test_a_call_that_fails_with_some_elements_does_not_pass(command: Command) -> None:
    (command.cases / "plain.yaml").write_text(PLAIN, encoding="utf-8")
    command.run("planted:quiets-nan", "--type", "f32")
    plan = command.plan
    found = explain_evidence(command.out / "results.jsonl", plan, [fault("src == (2, 4)", "planted:quiets-nan")])
    assert (found.failing, found.unexplained) == (1, ())
    assert found.flagged == 1  # `eight`, by [4, 2]; `plain` is the call that fails in `patterns`


def test_evidence_of_another_suite_is_refused(evidence: Path) -> None:
    with pytest.raises(InvalidEvidence, match="other rules or cases; run again"):
        explain_evidence(evidence, plan_of(load_suite()), [])


def test_the_call_that_no_fault_explains_is_named(
    evidence: Path, command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (str(evidence.parent.parent), "--suite", str(command.folder))
    monkeypatch.setattr("tools.faults.load_faults", lambda: [fault("len(src) == 1"), fault("0 in src")])
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "copies[StaticReshape-f32] fails on src f32[5, 2], shape [0, 2, 1], special_zero true" in said
    assert "faults.yaml:7: fault 'it' is listed for 1, but explains no failing row of " in said
    without_when = fault("0 in shape")._replace(when=None, facets=("declared",))
    monkeypatch.setattr("tools.faults.load_faults", lambda: [without_when])
    assert main(words) == 1
    assert "adapters/faults.yaml: fault 'it' is listed for 1, but explains no failing row" in capsys.readouterr().out
    monkeypatch.setattr("tools.faults.load_faults", lambda: [fault("0 in shape")])
    assert main(words) == 0
    counts = "2 of 2 failing calls explained, 1 of "
    assert capsys.readouterr().out.startswith(f"planted:zero-flag-ignored 1: {counts}")


def test_evidence_that_cannot_be_compared_is_named(
    evidence: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (str(evidence.parent), "--suite", str(command.folder))
    spoil(evidence, "results-5", "results-1", 1)
    assert main(words) == 0
    assert "not compared: " in capsys.readouterr().out
    shutil.rmtree(evidence.parent)
    assert main(words) == 2
    assert "holds no results.jsonl; name the folder of a run" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.exhaustive  # all published evidence changes together with adapters/faults.yaml
@pytest.mark.skipif(not REPORTS.is_dir(), reason="published evidence is only in a clone")
def test_published_evidence_shows_each_fault_of_its_version() -> None:
    plan, faults = plan_of(load_suite()), load_faults()
    for folder, evidence in published():
        found = explain(evidence, plan, faults, folder)
        assert not found.unexplained, (folder, found.unexplained[:5])
        assert not found.idle, (folder, found.idle)
        assert not found.coarse, (folder, found.coarse)
