"""Failures on a page: the order in which a reader wants them, the clause in words, and the commands."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.main import main
from conformance.model import BLAMES
from conformance.report import report_page
from conformance.report.failure_section import FailureGroup, collect_failures
from conformance.report.finished_run import FinishedRun

from ..runs import Wrong, few, finished

CASES = """about: A few, the last first.
cases:
  - {id: below, rule: lower-bound, src: "T[6]", shape: [-6], special_zero: false, expect: reject}
  - id: in-a-chain
    rule: same-volume
    src: T[2, 3]
    shape: [3, 2]
    special_zero: false
    chain: [{shape: [2, 3], special_zero: false}]
    expect: T[2, 3]
  - {id: large, rule: same-volume, src: "T[20, 30]", shape: [30, 20], special_zero: false, expect: "T[30, 20]"}
  - {id: small, rule: same-volume, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
"""


BUNDLED: dict[str, Any] = {"name": "wrong", "version": "1", "adapter": "numpy-raw", "detail": {}, "digest": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    folder = tmp_path_factory.mktemp("run")
    return finished(few(folder, CASES), Wrong(), folder / "out", backend=BUNDLED)


@pytest.fixture(scope="module")
def groups(run: FinishedRun) -> list[FailureGroup]:
    return list(collect_failures(run, {}))


def test_what_breaks_the_text_comes_first(groups: list[FailureGroup]) -> None:
    order = [list(BLAMES).index(group.blame) for group in groups if group.blame]
    assert order == sorted(order)
    assert groups[0].blame == "breaks the text"
    assert len(set(order)) > 1


def test_single_calls_come_before_chains_and_small_ones_before_large_ones(groups: list[FailureGroup]) -> None:
    cases = [entry.case.id for entry in groups[0].full]
    assert cases == [case for case in ("small", "large", "in-a-chain") if case in cases]
    assert cases[:2] == ["small", "large"]


def test_the_tests_of_all_groups_are_those_that_fail(run: FinishedRun, groups: list[FailureGroup]) -> None:
    assert sum(group.rows for group in groups) == sum(bool(result.failing) for result in run.rows)


def test_a_card_quotes_the_words_that_the_rules_point_at(run: FinishedRun, groups: list[FailureGroup]) -> None:
    card = groups[0].full[0]
    assert card.broken.clauses
    for clause in card.broken.clauses:
        pointers = {(each.document, each.line, each.words) for each in card.broken.rule.stated}
        assert (clause.document.id, clause.line, clause.words) in pointers
        assert f"“{clause.words}”" in unescape(report_page.render(run))


def test_a_card_has_the_command_without_the_suite_and_it_works(
    run: FinishedRun, groups: list[FailureGroup], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "few.yaml").write_text(CASES, encoding="utf-8")
    words = shlex.split(groups[0].full[0].commands["without the suite"])
    assert words[-2:] == [">", "repeat.py"]
    assert main([*words[1:-2], "--cases", str(cases)]) == 0
    compile(capsys.readouterr().out, "repeat.py", "exec")


def test_each_card_has_an_address_of_its_own(run: FinishedRun) -> None:
    html = report_page.render(run)
    anchors = re.findall(r'<details class="entry" id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors)) > 2
    assert all(f'href="#{anchor}"' in html for anchor in anchors)
