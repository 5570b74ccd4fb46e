"""One unit and one denominator: all reports of a run count the same tests, each a row judged in a document."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance import report
from conformance.certificate.statement import EXTENSION, statement_of
from conformance.cli.run_summary import data_of, show
from conformance.evidence.drawn import plan_of_suite
from conformance.evidence.folder import find_published_results
from conformance.evidence.results import Evidence, pack, read
from conformance.model.verdicts import COLOURS, Label
from conformance.plan.rows import Plan, parse_drawn_id
from conformance.report.diff import compare_runs
from conformance.report.judged_run import conclude_run
from conformance.report.table_sections import collect_rules
from conformance.site.landing import collect_libraries

from ..builders import REPORTS, Command, bundled_plan, mini, read_published
from ..miniatures import LeavesOut
from ..verdict.test_waive import waivers
from .shown_numbers import (
    COUNTED,
    ShownNumbers,
    count_by_hand,
    failing,
    read_badge,
    read_first_failures,
    read_json,
    read_page,
    read_summary,
    read_terminal,
)

FOLDERS = [
    pytest.param(folder, id=folder.name, marks=[pytest.mark.exhaustive] * bool(number))
    for number, folder in enumerate(sorted(filter(find_published_results, REPORTS.glob("*/"))))
]
"""CI tries the first, which has failures in drawn rows too; RUNS has the other kinds of runs."""


def assert_same(shown: ShownNumbers, expected: Mapping[str, Counter[str]], where: str) -> None:
    """Assert that each number is that of its document, or that of all."""
    whole: Counter[str] = sum(expected.values(), Counter())
    for place, tests in shown.tests.items():
        assert tests == expected.get(place, whole).total(), (where, place)
    for place, number in shown.failing.items():
        assert number == failing(expected.get(place, whole)), (where, place)
    for place, verdicts in shown.verdicts.items():
        due = expected.get(place.removeprefix("bar of "), whole)
        if place.startswith("bar of "):
            due = sum((Counter({COLOURS[verdict]: due[verdict]}) for verdict in due), Counter())
        assert verdicts == due, (where, place)


def check_all(plan: Plan, evidence: Evidence, terminal: str, texts: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Compare what all reports show with what is counted by hand; return the latter."""
    bare = conclude_run(plan, evidence)
    run, conclusion = bare.with_drawn, bare.conclusion
    expected = count_by_hand(run.plan, evidence)
    whole: Counter[str] = sum(expected.values(), Counter())
    assert set(whole) <= set(COUNTED)
    assert conclusion.counts == whole
    shown = read_page(texts["report.html"])
    assert set(expected) == {place for place in shown.tests if place in plan.suite.spec.documents}
    assert_same(shown, expected, "page")
    assert_same(read_summary(texts["summary.md"]), expected, "summary.md")
    assert_same(read_badge(texts["badge.svg"]), expected, "badge")
    assert_same(read_terminal(terminal), expected, "terminal")
    data = data_of(bare, None)
    assert_same(read_json(data), expected, "--json")
    if failing(whole):
        first = data["failures"][0]["row"]
        for place, row in read_first_failures(texts["report.html"], texts["summary.md"], terminal).items():
            assert row == (first.partition("[")[0] if row.startswith("drawn-") else first), place

    rules = list(collect_rules(run))
    assert sum((Counter(rule.counts) for rule in rules), Counter()) == whole
    assert sum(len(rule.broken) for rule in rules) == whole.get("fail", 0)
    for document, counts in expected.items():
        of_rules = (
            dict(each) for rule in rules for each, names in rule.failing.items()
            if document in {name.partition(" ")[0] for name in names}
        )  # fmt: skip
        assert sum(map(failing, of_rules)) == failing(counts)

    (library,) = collect_libraries([bare], ["it"], [""], {})
    (line,) = library.lines
    for each in line.documents:
        assert each.counts == expected.get(each.document.id, {})
        assert (each.failed, each.tests) == (failing(each.counts), sum(each.counts.values()))
    return expected


def assert_drawn_rows_are_no_cases(plan: Plan, evidence: Evidence, html: str) -> None:
    assert f"The suite has {len(plan_of_suite(plan, evidence).suite.cases):,} case" in html
    failed = [each.row for each in evidence.results if {*each.verdicts.values()} & {"fail", "error"}]
    drawn = {row.partition("[")[0] for row in failed if parse_drawn_id(row)}
    cases = {row.partition("[")[0] for row in failed} - drawn
    assert not re.search(r"drawn-\d+-\d+(?:</a>)? in \S+:\d", html), "no line has it"
    assert not re.search(r": drawn \d+ \d+", html), "it has a number, not words"
    titles = re.findall(r'<h3 id="wrong-\d+">(.*?)</h3>', html)
    for noun, names in (("case", cases), ("drawn row", drawn)):
        told = [int(number) for title in titles for number in re.findall(rf"(\d+) {noun}s?\b", title)]
        assert all(number <= len(names) for number in told)
        assert sum(told) >= len(names)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_published_evidence_has_the_same_numbers_everywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, bundled = find_published_results(folder), bundled_plan()
    assert path is not None
    evidence = read_published(path)
    run = conclude_run(bundled, evidence)
    texts = report.render_reports(run, ("report.html", "summary.md", "badge.svg"), packed=path.read_bytes())
    show(run, folder, every_row=False)
    check_all(bundled, evidence, capsys.readouterr().out, texts)
    assert_drawn_rows_are_no_cases(bundled, evidence, texts["report.html"])


RUNS: Mapping[str, tuple[str, tuple[Any, ...], Label]] = {
    "all right": ("reference", (), "conforms"),
    "wrong": (mini("Flushes"), (), "wrong answer"),
    "errors": (mini("Errs"), (), "adapter errs"),
    "wrong where nothing is claimed": (mini("LeavesOut"), (), "wrong answer"),
    "a type left out": (mini("LeavesOutOneType"), (), "conforms, limited"),
    "one document": (mini("Accepts"), ("--document", "static-graph-v0.9"), "accepts an illegal call"),
    "one type": (mini("Accepts"), ("--type", "bf16"), "accepts an illegal call"),
    "waived": (mini("Flushes"), ("--waivers", waivers), "conforms, limited"),
    "stopped early": (mini("Accepts"), ("--maxfail", "3"), "accepts an illegal call"),
    "drawn rows": ("planted:eight-buffers-in-turn", ("--drawn-rows", "60"), "wrong answer"),
    "crashes": (mini("Crashes"), (), "ends the process"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_same_label_and_numbers_everywhere(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setattr(LeavesOut, "instead", "wrong")
    backend, words, label = RUNS[name]
    said = command.run(backend, *(waivers(tmp_path, {}) if word is waivers else word for word in words))
    plan, evidence = command.plan, read(command.out / "results.jsonl")
    run = conclude_run(plan, evidence)
    conclusion, texts = run.conclusion, report.render_reports(run)
    shown = {
        "terminal": said.out.partition("\n")[0].rpartition(": ")[2],
        "page": re.findall(r"<h1>.*<span class=\"tag \w+\">\S ([^<]+)</span></h1>", texts["report.html"])[0],
        "summary.md": texts["summary.md"].partition("\n")[0].rpartition(": ")[2],
        "junit": ElementTree.fromstring(texts["junit.xml"]).get("name", "").rpartition(": ")[2],
    }
    assert shown == dict.fromkeys(shown, label)
    assert ("does not conform" in "".join([said.out, *texts.values()])) == (
        not label.startswith(("conforms", "adapter"))
    )
    expected = check_all(plan, evidence, said.out, texts)
    assert_drawn_rows_are_no_cases(plan, evidence, texts["report.html"])
    for was, now in compare_runs(evidence, evidence, plan).documents:
        assert now.counts == was.counts == expected.get(was.document.id, {})
    statement = statement_of(run, plan.suite.digest, evidence.sha256, 1, None)
    assert statement["predicate"][EXTENSION]["summary"][0] == conclusion.why
    whole: Counter[str] = sum(expected.values(), Counter())
    if failed := failing(whole):
        assert conclusion.why.startswith(f"{failed} of {whole.total()} tests {'meet' if name == 'errors' else 'fail'}")
        done = sum((Counter(each.severities) for each in conclusion.standings), Counter[str]())
        assert done.total() == failed - whole["error"]


def test_a_published_page_has_the_numbers_of_the_run(command: Command) -> None:
    command.run(mini("Flushes"))
    plan, evidence = command.plan, read(command.out / "results.jsonl")
    packed = pack((command.out / "results.jsonl").read_bytes())
    page = report.render_reports(conclude_run(plan, evidence), ("report.html",), packed=packed)
    assert_same(read_page(page["report.html"]), count_by_hand(plan, evidence), "published page")
