"""Failures on a page: their order, the clause in words, the elements that differ, and the commands."""

import re
import shlex
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.cli.main import main
from conformance.cli.run_summary import data_of, show
from conformance.model import BLAMES, Array, KnownFault, Outcome, Result
from conformance.model.verdicts import SEVERITIES, describe_severity
from conformance.pytest_plugin.failure_sections import write_failures
from conformance.report import junit, markdown, report_page
from conformance.report.failure_section import IN_FULL, FailureGroup, collect_failures
from conformance.report.judged_run import FailureCounts, JudgedRun
from conformance.report.values import ShownElements, format_number, show_elements
from conformance.verdict.blame import Blamed, Premise
from conformance.verdict.cause import Cause
from conformance.verdict.failure_kinds import group_by_kind, group_failures

from ..builders import FOUR_CASES, Right, Wrong, finish_run, plan_as_bundled, write_suite
from .page import Page

CASES = """about: A few, the last first.
cases:
  - {id: below, rule: lower-bound, src: "T[6]", shape: [-6], special_zero: false, expect: reject}
  - id: in-a-chain
    title: the dims go & come back
    rule: same-volume
    src: T[2, 3]
    shape: [3, 2]
    special_zero: false
    chain: [{shape: [2, 3], special_zero: false}]
    expect: T[2, 3]
  - {id: large, rule: same-volume, src: "T[20, 30]", shape: [30, 20], special_zero: false, expect: "T[30, 20]"}
  - {id: small, rule: same-volume, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
"""


BUNDLED: dict[str, Any] = {"name": "wrong", "version": "1", "adapter": "numpy", "detail": {}, "digest": None}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    folder = tmp_path_factory.mktemp("run")
    return finish_run(plan_as_bundled(folder, CASES), Wrong(), folder / "out", backend=BUNDLED)


@pytest.fixture(scope="module")
def groups(run: JudgedRun) -> list[FailureGroup]:
    return list(collect_failures(run, {}, IN_FULL))


def test_failures_that_are_no_tests_say_what_is_counted() -> None:
    assert str(FailureCounts(1, 8)) == "1 test and 8 failures that count for no document"


def test_the_worst_comes_first_then_what_breaks_the_text(run: JudgedRun, groups: list[FailureGroup]) -> None:
    """In a group small single calls come before large ones, and these before chains."""
    kinds = [group.kind for group in groups if group.kind.severity and group.kind.blame]
    order = [(SEVERITIES.index(kind.severity), list(BLAMES).index(kind.blame)) for kind in kinds]  # type: ignore[arg-type]
    assert order == sorted(order)
    assert (kinds[0].severity, kinds[0].blame) == ("wrong answer", "breaks the text")
    assert len(set(order)) > 1
    cases = [entry.case.id for entry in groups[0].full]
    assert cases == [case for case in ("small", "large", "in-a-chain") if case in cases]
    assert cases[:2] == ["small", "large"]
    assert sum(group.failures.tests for group in groups) == sum(len(result.failing) for result in run.rows)
    assert not any(group.failures.outside for group in groups)


def test_a_cause_says_all_that_its_tests_do_and_break(run: JudgedRun) -> None:
    """The worst test of a cause does not speak for all of them."""
    cause = Cause(KnownFault("it", "Does much", "Avoid it.", (), (), None), False)
    conclusion = replace(run.conclusion, causes=dict.fromkeys(run.conclusion.blames, cause))
    blamed = [each for documents in conclusion.blames.values() for each in documents.values()]
    (kind,) = group_failures(run.plan, run.evidence, conclusion).kinds
    does, breaks = (part.split(", ") for part in kind.common.blame.split("; "))
    severities = Counter(each.severity for each in blamed)
    assert does == [f"{n} {describe_severity(each, n)}" for each in SEVERITIES if (n := severities[each])]
    blames = Counter(each.blame for each in blamed)
    assert breaks == [f"{each} in {n}" for each in BLAMES if (n := blames[each])]
    assert min(len(does), len(breaks)) > 1
    assert sum(blames.values()) == kind.tests
    (on_page,) = replace(run, conclusion=conclusion).failures
    assert on_page == kind.common


def test_a_failure_does_and_breaks_something_in_one_document(run: JudgedRun) -> None:
    """Here the worst that a row does breaks our ruling; in another document it does less, and breaks its words."""
    row = next(each for each in run.failing if len(each.failing) > 1)
    rejects = Blamed("breaks the text", Premise("lower-bound", "stated"), "rejects a legal call")
    errs = Blamed("breaks only our ruling", Premise("same-volume", "our ruling"), "wrong answer")
    of_documents = dict(zip(row.failing, (rejects, errs), strict=False))
    changed = replace(run, conclusion=replace(run.conclusion, blames={row.row.id: of_documents}))
    kind = group_failures(changed.plan, changed.evidence, changed.conclusion).kinds[0]
    assert (kind.common.severity, kind.common.blame, kind.rule) == (errs.severity, errs.blame, "same-volume")
    entry = next(iter(collect_failures(changed, {}, IN_FULL))).full[0]
    assert [each.rule.id for each in entry.decisive] == ["same-volume"]


FLAKY = Outcome("crash", message="signal 11 (flaky: not alone in a fresh process; it was the first call)")


def test_a_row_that_fails_alone_comes_before_one_that_does_not(run: JudgedRun) -> None:
    (row, result), (other, _), *_ = group_failures(run.plan, run.evidence, run.conclusion).kinds[0].members
    conclusion = replace(run.conclusion, blames=dict.fromkeys((row.id, other.id), run.conclusion.blames[row.id]))
    by_steps = result._replace(right_alone="step")  # it was called again
    for after, first in (
        (result._replace(outcomes=(FLAKY,)), result), (result._replace(right_alone="row"), result), (result, by_steps),
    ):  # fmt: skip
        ((_, order),) = group_by_kind([(row, after), (other, first)], conclusion)
        assert [each[0] for each in order] == [other, row]


def test_the_command_says_that_a_failure_takes_the_calls_before(tmp_path: Path) -> None:
    def crash(results: list[Result]) -> list[Result]:
        return [each._replace(outcomes=(FLAKY,)) if each.is_failure else each for each in results]

    run = finish_run(plan_as_bundled(tmp_path, CASES), Wrong(), tmp_path / "out", crash, backend=BUNDLED)
    entry = next(entry for group in collect_failures(run, {}, IN_FULL) for entry in group.full)
    ((what, command),) = entry.commands.items()
    assert what == "in the suite, with the calls before it"
    assert entry.case.id not in command


def test_no_command_is_shown_for_a_row_that_may_go_right_alone(
    run: JudgedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tuple(each._replace(outcomes=(FLAKY,)) if each.is_failure else each for each in run.evidence.results)
    run, written = replace(run, evidence=replace(run.evidence, results=results)), list[str]()
    show(run, tmp_path, every_row=True)
    assert " -k " not in capsys.readouterr().out
    assert {each["repeat"] for each in data_of(run, None)["failures"]} == {None}
    failures = group_failures(run.plan, run.evidence, run.conclusion)
    write_failures(failures, True, lambda row: f"pytest {row.id}", lambda line, **_: written.append(line))
    assert written
    assert not any("pytest " in line for line in written)


def test_a_page_shows_the_beginning_of_a_long_case(tmp_path: Path) -> None:
    def lengthen(results: list[Result]) -> list[Result]:
        return [each._replace(smallest_case="# it\n" * 1000) if each.is_failure else each for each in results]

    run = finish_run(plan_as_bundled(tmp_path, CASES), Wrong(), tmp_path / "out", lengthen)
    (entry, *_) = next(collect_failures(run, {}, IN_FULL)).full
    assert (entry.text or "").endswith("# it\n# and 976 more lines; --verbose shows them")


def test_a_drawn_row_and_a_long_shape_come_later(run: JudgedRun) -> None:
    """A case has a name, and `explain` knows it."""
    (row, result), *_ = group_failures(run.plan, run.evidence, run.conclusion).kinds[0].members
    (step,) = row.case.steps
    long = replace(row.case, steps=(replace(step, src=(1,), shapes=((1,) * 65,)),))
    for after in (row._replace(id=f"drawn-0-1[{row.id.partition('[')[2]}"), row._replace(id="long[it]", case=long)):
        conclusion = replace(run.conclusion, blames=dict.fromkeys((row.id, after.id), run.conclusion.blames[row.id]))
        ((_, order),) = group_by_kind([(after, result), (row, result)], conclusion)
        assert [each.id for each, _ in order] == [row.id, after.id]


def test_no_two_kinds_of_failures_read_the_same(run: JudgedRun) -> None:
    """The documents that forbid a call give the rule different authorities, which no heading shows."""
    kinds = group_failures(run.plan, run.evidence, run.conclusion).kinds
    headings = [(kind.title, kind.about.rpartition(" · ")[0]) for kind in kinds]
    assert len(set(headings)) == len(headings) > 1


def test_only_commands_and_paths_are_wider_than_the_terminal(
    run: JudgedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.system.terminal.MAX_COLUMNS", 60)
    show(run, tmp_path, every_row=False)
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > 60]
    assert [line for line in wide if not line.strip().startswith(("conformance ", "results: "))] == []


@pytest.mark.parametrize(
    ("every_row", "steps", "more"), [(False, 22, "# and 78 more lines; --verbose shows them"), (True, 100, "")]
)
def test_a_long_drawn_case_is_cut_on_the_terminal(
    run: JudgedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], every_row: bool, steps: int, more: str
) -> None:
    case = "\n".join(["- id: long", "  steps:", *["    - {}"] * 100, ""])
    results = tuple(result._replace(smallest_case=case) for result in run.evidence.results)
    show(replace(run, evidence=replace(run.evidence, results=results)), tmp_path, every_row)
    first = capsys.readouterr().out.partition("- id: long\n")[2].partition("- id: long\n")[0]
    assert first.count("    - {}") == steps
    assert more in first


def test_a_title_stands_where_a_case_is_shown(run: JudgedRun, groups: list[FailureGroup]) -> None:
    card = next(entry for entry in groups[0].full if entry.case.id == "in-a-chain")
    assert card.title.endswith(": the dims go & come back")
    assert re.search("in-a-chain <span class=sub>the dims go &amp; come back</span>", report_page.render(run))
    assert f"\n{'':11}the dims go &amp; come back\n" in junit.render(run)


def test_a_card_quotes_the_words_that_the_rules_point_at(run: JudgedRun, groups: list[FailureGroup]) -> None:
    card = groups[0].full[0]
    (broken,) = card.decisive
    assert [clause.document.id for clause in broken.clauses] == [*run.plan.suite.spec.documents]
    for clause in broken.clauses:
        stated = [each for each in broken.rule.stated if each.document == clause.document.id]
        assert {*clause.words} == {each.words for each in stated}
        assert all(str(each.line) in clause.lines for each in stated)
        assert f"“{clause.words[0]}”" in unescape(report_page.render(run))
        assert f"{clause.document.edition}</a> ({clause.document.id}), {clause.lines}" in report_page.render(run)


def test_a_card_has_the_command_without_the_suite_and_it_works(
    run: JudgedRun, groups: list[FailureGroup], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second = (card.commands["without the suite"] for card in groups[0].full[:2])
    assert first == f"python3 repeat.py {groups[0].full[0].anchor}", "the script is in the page"
    words = shlex.split(second)
    assert words[-2:] == [">", "repeat.py"]
    assert main([*words[1:-2], "--suite", str(write_suite(tmp_path, CASES))]) == 0
    compile(capsys.readouterr().out, "repeat.py", "exec")


EMPTIES = '{id: one, rule: zero-empties, src: "T[2, 3]", shape: [0, 3], special_zero: false, expect: reject}'


def test_what_an_illegal_call_breaks_is_said_for_each_document(tmp_path: Path) -> None:
    """One document has no rule that a literal 0 needs an empty src; the volume decides there."""
    plan = plan_as_bundled(tmp_path, f"about: One.\ncases:\n  - {EMPTIES}\n")
    (group,) = collect_failures(finish_run(plan, Wrong(), tmp_path / "out"), {}, IN_FULL)
    (line,) = (line for line in group.full[0].lines if len(line.answer.wants) > 1)
    wants = {documents: want for want, documents in line.answer.wants}
    assert wants[("static-oneapi",)] == "a rejection: breaks same-volume"
    assert wants[("static-spec-v0.9", "static-graph-v0.9")] == "a rejection: breaks zero-empties"
    assert not line.answer.note, "it would name the rules of one document"


def test_the_script_of_a_page_installs_the_versions_that_were_tested(run: JudgedRun) -> None:
    """Without its local part, which no index has."""
    tested = {"tract-0.22.4 (9 files)": "", "onnx-1.23.2+cpu (1,183 files)": "", "numpy-2.4.6 (1,021 files)": ""}
    header = {**run.evidence.header, "backend": {**BUNDLED, "adapter": "tract"}}
    evidence = replace(run.evidence, header=header, footer={**run.evidence.footer, "subject": tested})
    assert "pip install tract==0.22.4 onnx==1.23.2 numpy &amp;&amp; " in report_page.render(
        replace(run, evidence=evidence)
    )


def test_each_card_has_an_address_of_its_own(run: JudgedRun) -> None:
    html = report_page.render(run)
    anchors = re.findall(r'<details class=entry id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors)) > 2
    assert all(f'href="#{anchor}"' in html for anchor in anchors)


def test_the_kinds_that_the_head_leaves_out_are_one_click_away(run: JudgedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_page, "MAX_KINDS_LISTED", 1)
    assert '<a href="#wrong-2">and ' in report_page.render(run)


CALL = '{{id: one, rule: same-content, src: "T{0}", shape: {1}, special_zero: false, expect: "T{1}"}}'
SMALL_CASE, LARGE_CASE = CALL.format("[2, 3]", "[3, 2]"), CALL.format("[10, 20]", "[20, 10]")


class Changes(Right):
    """Sets two elements of every answer to zero."""

    name = "changes"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        answer = src.reshape(shape).copy()
        answer.reshape(-1)[[1, 4]] = 0
        return answer


def run_of(case: str, folder: Path) -> JudgedRun:
    return finish_run(plan_as_bundled(folder, f"about: One.\ncases:\n  - {case}\n"), Changes(), folder / "out")


def test_a_failure_in_an_unlisted_type_breaks_no_ruling_and_is_not_counted(tmp_path: Path) -> None:
    run = run_of(SMALL_CASE.replace("same-content", "types-listed").replace('"T[', '"f64['), tmp_path)
    page = report_page.render(run)
    assert "types-listed (silent): What the operation does with elements" in Page(page).text
    assert "<dt>Severity and blame</dt><dd>in none of the counts" in page


def values_of(run: JudgedRun) -> ShownElements:
    values = show_elements(next(result for result in run.rows if result.row.type == "bf16"))
    assert values is not None
    return values


def test_a_grid_marks_the_elements_that_differ(tmp_path: Path) -> None:
    run = run_of(SMALL_CASE, tmp_path)
    values = values_of(run)
    src = np.frombuffer(next(r for r in run.rows if r.row.type == "bf16").row.steps[0].src.elements[:], "<u2")
    assert [[int(each.bits, 16) for each in line] for line in values.grid] == src.reshape(3, 2).tolist()
    marked = {each.place: each.got for line in values.grid for each in line if each.got}
    assert marked == {"[0, 1]": ("0000", "0"), "[2, 0]": ("0000", "0")}
    assert (values.differing, values.total, values.marked) == (2, 6, 2)
    assert "f32: 2 of 6 elements differ" in " ".join(Page(report_page.render(run)).text.split())


def test_of_a_large_tensor_the_differences_are_listed(tmp_path: Path) -> None:
    values = values_of(run_of(LARGE_CASE, tmp_path))
    assert not values.grid
    assert [each.place for each in values.differences] == ["[0, 1]", "[0, 4]"]
    assert all(each.got == ("0000", "0") for each in values.differences)


def test_an_answer_that_is_right_has_no_grid(tmp_path: Path) -> None:
    run = finish_run(plan_as_bundled(tmp_path), Right(), tmp_path / "out")
    assert [show_elements(result) for result in run.rows] == [None] * len(run.rows)


@pytest.mark.parametrize(
    ("type_", "bits", "number"),
    [
        ("f32", 0x3FC00000, "1.5"), ("bf16", 0x8000, "-0"), ("bf16", 0x0001, "9.18355e-41 subnormal"),
        ("f16", 0x7C00, "inf"), ("f16", 0x7E00, "NaN quiet"), ("f32", 0x7F800001, "NaN signalling"),
        ("f32", 0xFF800000, "-inf"), ("s8", 0xFF, "-1"), ("u8", 0xFF, "255"), ("f64", 1, "4.94066e-324 subnormal"),
    ],
)  # fmt: skip
def test_bits_are_decoded(type_: str, bits: int, number: str) -> None:
    assert format_number(type_, bits) == number


REVERSED = FOUR_CASES.replace("{id: turns, ", "{id: turns, layout: reversed, ")


class RejectsStridesInOtherWords(Right):
    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        raise ValueError("no" if src.flags.c_contiguous else "no strides")


def test_kinds_with_one_title_differ_in_the_summary(tmp_path: Path) -> None:
    """Without a known cause, rejected legal calls that the text decides are apart from those of our rulings."""
    run = finish_run(plan_as_bundled(tmp_path / "suite", REVERSED), RejectsStridesInOtherWords(), tmp_path)
    summary = markdown.render(replace(run, conclusion=replace(run.conclusion, causes={})))
    titles = ["rejects a legal call (breaks the text)", "rejects a legal call (breaks only our ruling)"]
    for start, end in (("- ", ", "), ("## ✗ ", ": ")):
        assert re.findall(rf"^{start}(rejects a legal call.*){end}\d+ tests", summary, re.MULTILINE) == titles
    to_fix = report_page.render(run).partition("What to fix")[2].partition("</ul>")[0]
    title = r"rejected a legal call</bdi></a>, such as [a-z-]+: "
    assert re.findall(rf"{title}.*?<span class=sub>· (breaks [\w ]+)</span>", to_fix) == [
        "breaks the text", "breaks only our ruling",
    ]  # fmt: skip


def test_summary_and_junit_name_the_lines_that_a_failure_breaks(run: JudgedRun) -> None:
    for text in (markdown.render(run), junit.render(run)):
        broken = {tuple(each) for each in re.findall(r"breaks the text \(([a-z-]+): lines? ([0-9]+)", text)}
        lines = {
            (rule.id, str(pointer.line))
            for rule in run.plan.suite.spec.rules.values()
            for document in run.plan.suite.spec.documents
            for pointer in rule.pointers_in(document)
        }
        assert broken
        assert broken <= lines
