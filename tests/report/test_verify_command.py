"""Files that cannot be verified, the command, and true reports that show no conformity."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.folder import REPORTS
from conformance.evidence.results import InvalidEvidence, Target
from conformance.plan.rows import Plan
from conformance.report import embedded
from conformance.report.verify import OtherSuite, verify_report, why_not

from ..builders import Cli, Right, finish_run, report_run
from .page import AnswersZero
from .verified import FOR_TURNS, edit, find_mismatches


def test_evidence_of_another_suite_is_refused(plan: Plan, folder: Path) -> None:
    other = replace(plan, suite=replace(plan.suite, digest="another"))
    with pytest.raises(OtherSuite, match="and this one has another"):
        verify_report(folder, other)


@pytest.mark.parametrize("text", ["", "<html>", "{}", "\x00\xff"])
def test_what_is_no_report_is_refused_or_found_wanting(plan: Plan, tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(text, encoding="latin-1")
    assert verify_report(path, plan).mismatches


NO_EVIDENCE: dict[str, tuple[Callable[[str], str], str]] = {
    "another file": (
        lambda text: "import numpy\n", ":1: is no evidence of a run; name its folder, results.jsonl or report.html"),
    "a header that names no suite": (
        lambda text: text.replace('"suite":', '"suit":', 1), ":1: the header lacks suite; the file is damaged"),
    "a run that did not end": (
        lambda text: text[: text[:-1].rindex("\n") + 1],
        ": has no footer: the run did not end, after 72 rows; run again"),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_EVIDENCE)
def test_of_a_file_that_is_no_evidence_one_thing_is_said(plan: Plan, folder: Path, what: str) -> None:
    change, words = NO_EVIDENCE[what]
    edit(folder / "results.jsonl", change)
    assert find_mismatches(folder / "results.jsonl", plan) == f"results.jsonl{words}"


def test_two_elements_of_evidence_are_one_too_many(plan: Plan, folder: Path) -> None:
    twice = f"{embedded.BEGIN}{{}}</script>{embedded.BEGIN}"
    edit(folder / "report.html", lambda html: html.replace(embedded.BEGIN, twice))
    with pytest.raises(InvalidEvidence, match="2 times, not once"):
        verify_report(folder / "report.html", plan)


def test_a_folder_with_a_page_alone_is_its_page(plan: Plan, folder: Path) -> None:
    (folder / "results.jsonl").unlink()
    assert verify_report(folder, plan) == verify_report(folder / "report.html", plan)
    assert not verify_report(folder, plan).mismatches
    for name in REPORTS:
        (folder / name).unlink()
    with pytest.raises(InvalidEvidence, match=r"neither results\.jsonl nor report\.html"):
        verify_report(folder, plan)


@pytest.fixture
def verifying(plan: Plan, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Cli:
    """The command, with the plan at hand."""
    monkeypatch.setattr("conformance.cli.verify.load_plan", lambda *_: plan)
    return cli


def test_a_true_report_of_a_backend_that_does_not_conform(verifying: Cli, folder: Path) -> None:
    verifying("verify", folder).expect(0, out=["✗ the target does not conform: ", "--conforms demands conformity too"])
    for documents, code in (((), 1), (("static-graph-v0.9",), 1), (("static-1999",), 2)):
        verifying("verify", folder, "--conforms", *documents).expect(code)


def test_verify_shows_how_far_it_is(verifying: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    said = verifying("verify", folder).expect(0).err
    assert "judging again 1 of " in said
    assert "making reports 1 of 4" in said


def test_a_true_report_of_a_backend_that_conforms(verifying: Cli, plan: Plan, tmp_path: Path) -> None:
    report_run(plan, Right(), tmp_path)
    verifying("verify", tmp_path, "--conforms").expect(0)
    verifying("verify", "--conforms", tmp_path).expect(0, out="✓ the whole target conforms")
    words = "✓ the backend conforms to static-graph-v0.9 for every type that it lists"
    verifying("verify", tmp_path, "--conforms", "static-graph-v0.9").expect(0, out=words)
    edit(tmp_path / "report.html", lambda html: html.replace(" pass", " fail", 1))
    verifying("verify", tmp_path, "--conforms").expect(1)


SHOWN: dict[str, tuple[type[Right], dict[str, Any], dict[str, Any], int, tuple[str | None, ...]]] = {
    # what is special: (the backend, its header, the suite, the exit code, for what conformity is shown)
    "nothing": (Right, {}, {}, 0, (None, "static-oneapi", "static-graph-v0.9", "static-spec-v0.9")),
    "one type was asked for": (Right, {"target": Target(types=("f32",)).to_json()}, {}, 0, (None,)),
    "the suite lost cases": (Right, {}, {"whole": True, "lost": ("gone",)}, 4, ()),
    "two documents forbid what it does": (AnswersZero, {}, {}, 1, ("static-oneapi",)),
    "a waiver is stale": (Right, {"waivers": [FOR_TURNS]}, {}, 6, ()),
}


@pytest.mark.parametrize("what", SHOWN)
def test_true_evidence_shows_conformity_to_what_it_shows(plan: Plan, tmp_path: Path, what: str) -> None:
    """To the whole target, and to a document for every type that it lists."""
    backend, header, suite, code, shown = SHOWN[what]
    finish_run(plan, backend(), tmp_path, **header)
    plan = replace(plan, suite=replace(plan.suite, **suite))
    found = verify_report(tmp_path, plan)
    assert not found.mismatches
    assert found.run is not None
    assert found.run.conclusion.exit_code == code
    asked = (None, "static-oneapi", "static-graph-v0.9", "static-spec-v0.9")
    assert tuple(document for document in asked if not why_not(found, plan, document)) == shown
