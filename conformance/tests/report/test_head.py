"""The head of a report: what the run shows, who ran it, when and on what."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.certify.conclude import conclude_evidence
from conformance.certify.evidence import read
from conformance.load.cases import load_suite
from conformance.plan.rows import plan_of
from conformance.report import report_page
from conformance.report.finished_run import FinishedRun
from conformance.report.summary import describe_documents

from ..runs import Wrong, few, finished
from ..small import Command, command
from .test_report import Page

__all__ = ["command"]


def test_the_head_says_who_ran_it_when_and_on_what(command: Command) -> None:
    command.run("numpy", "--by", "A. Name, Example Ltd").expect(0)
    evidence = read(command.out / "results.jsonl")
    plan = plan_of(load_suite(None, command.cases))
    html = report_page.render(FinishedRun(plan, evidence, conclude_evidence(plan, evidence)))
    text = " ".join(Page(html).text.split())
    assert "By A. Name, Example Ltd (not signed)".replace(" ", "") in text.replace(" ", "")
    assert evidence.header["started"][:10] in text
    assert evidence.header["environment"]["processor"] in text
    assert evidence.footer["digest"][:12] in text


def test_a_name_of_several_lines_is_a_slip(command: Command) -> None:
    command.run("numpy", "--by", "A\n::error::B").expect(2, err="is not one line")


def test_the_tests_of_a_page_are_those_of_its_conclusion(tmp_path: Path) -> None:
    run = finished(few(tmp_path), Wrong(), tmp_path / "out")
    assert len(run.tests) == run.conclusion.tests > 0


CALLS = {
    "keeps the text, differs from rulings": "shape: [-6], special_zero: false, expect: reject",
    "conforms": "shape: [6], special_zero: false, expect: T[6]",
}


@pytest.mark.parametrize("state", CALLS)
def test_a_state_says_whose_sentence_is_broken_and_what_is_left_out(tmp_path: Path, state: str) -> None:
    call = CALLS[state].replace("T[6]", '"T[6]"')
    plan = few(tmp_path, f'about: One.\ncases:\n  - {{id: one, rule: lower-bound, src: "T[6]", {call}}}\n')
    states = {each.document.id: each.state for each in describe_documents(finished(plan, Wrong(), tmp_path / "out"))}
    assert states["static-2022"] == state
