"""The page as a file, and the other files of a report."""

import base64
import hashlib
import re
import shlex
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance import report
from conformance.draw.rows import count_drawn_rows
from conformance.evidence.folder import REPORTS, remove_reports
from conformance.evidence.results import Evidence, Target, header_of
from conformance.load.cases import load_suite
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Call, Meaning, Outcome, Result, Verdict
from conformance.model.verdicts import LABELS
from conformance.plan.rows import Plan, plan_of
from conformance.plan.select import parse_selection
from conformance.report import badge, junit, markdown, report_page
from conformance.report.judged_run import JudgedRun
from conformance.report.picture import draw_call, draw_reading
from conformance.report.render import FOLDER
from conformance.verdict.conclude import conclude

from ..builders import Command, Wrong, bundled_plan, finish_run, plan_as_bundled
from .page import HOSTILE, AnswersZero, Page, answers, plan, run_hostile
from .verified import FOR_TURNS, call_only

__all__ = ["answers", "plan"]


def test_the_page_loads_nothing_and_runs_nothing_inline(answers: JudgedRun) -> None:
    found = Page(report_page.render(answers))
    newer = (page.page for document in answers.plan.suite.spec.documents.values() for page in document.newer)
    outside = {"results.jsonl", *newer}
    assert all(page == "results.jsonl" or page.startswith("https://") for page in outside)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "srcset", "style", "action", "data", "background", "ping"), (tag, name)
        if name == "href":
            icon = tag == "link" and value.startswith("data:image/svg+xml,")
            assert icon or (value[1:] in ids if value.startswith("#") else value in outside), value
    assert not re.search(r"url\(|@import", found.raw["style"][0])
    assert found.tags["link"] == 1
    assert found.tags["iframe"] == found.tags["base"] == 0
    assert found.tags["table"] == found.tags["caption"] > 0, "every table has a caption"
    assert found.tags["th"] == len([1 for tag, name, _ in found.attributes if (tag, name) == ("th", "scope")])


def test_the_content_policy_names_the_style_and_the_script(answers: JudgedRun) -> None:
    found = Page(report_page.render(answers))
    policy = next(value for _, name, value in found.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert len(found.raw["style"]) == 1
    assert len(found.raw["script"]) == 3
    for text in (found.raw["style"][0], found.raw["script"][2]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    styled = {f".{name}" for names in found.values("class") for name in names.split()}
    whole = (FOLDER / "style.css").read_text(encoding="utf-8")
    assert {name for name in styled if name in whole and name not in found.raw["style"][0]} == set()
    assert {".pic", ".fail", ".wide"} <= styled


@pytest.mark.slow
def test_the_details_of_a_run_are_words_and_numbers(reporting: Command) -> None:
    reporting.run("reference", "--isolation", "worker")
    details = (reporting.out / "report.html").read_text(encoding="utf-8").partition('id="environment"')[2]
    assert re.search(r"results · processes · 1 · exit<td>exit code 0", details)
    assert not re.search(r"<td>[\[{]", details)


def test_a_badge_is_inert_and_names_documents_and_verdicts(answers: JudgedRun, plan: Plan, tmp_path: Path) -> None:
    svg = badge.render_svg(answers)
    label = ElementTree.fromstring(svg).get("aria-label", "")
    assert ": does not conform to " in label
    assert "static-graph-v0.9" in label
    assert "%" not in svg
    assert 'fill="#7d4e00"' in svg, "as its label"
    assert ">accepts an illegal call</text>" in svg
    svg = badge.render_svg(run_hostile(plan, tmp_path / "markup"))
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert tags == {"svg", "title", "rect", "g", "text"}
    assert not any(character in svg for character in "\u202e\x1b\x00")


def test_the_command_repeats_the_row_that_failed(answers: JudgedRun) -> None:
    failing = next(line for line in Page(report_page.render(answers)).text.splitlines() if "conformance run '" in line)
    words = shlex.split(failing[failing.index("conformance run") :])
    assert words[2] == "my adapter.py:It"
    chosen = [row.id for row in answers.plan.rows if parse_selection(words[4], answers.plan)(row)]
    assert chosen == ["zero-beside-infer[StaticReshape-f32]"]


def test_a_waiver_is_shown_with_its_reason_and_its_rows(plan: Plan, tmp_path: Path) -> None:
    def waived(results: list[Result]) -> list[Result]:
        verdicts: dict[str, Verdict] = dict.fromkeys(results[0].verdicts, "waived")
        return [results[0]._replace(verdicts=verdicts, waiver=1), *results[1:]]

    run = finish_run(plan, AnswersZero(), tmp_path, waived, waivers=[{**FOR_TURNS, "reason": HOSTILE}])
    found = Page(report_page.render(run))
    line = next(line for line in found.text.splitlines() if line.startswith("waivers.yaml:2"))
    assert line.startswith("waivers.yaml:23flattens")
    assert "expires: 2099-01-01" in line
    assert "img" not in found.tags


def test_every_report_is_written_beside_the_results(answers: JudgedRun, tmp_path: Path) -> None:
    report.write(tmp_path, answers)
    texts = {name: (tmp_path / name).read_text(encoding="utf-8") for name in REPORTS}
    assert texts == report.render_reports(answers)
    assert (texts["report.html"], texts["junit.xml"]) == (report_page.render(answers), junit.render(answers))
    remove_reports(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def judge(plan: Plan, results: Sequence[Result]) -> JudgedRun:
    """A run of a backend that claims all but what a function of arrays cannot express, with these results."""
    claims = AnswersZero().claims
    header = header_of(plan.suite, AnswersZero().identity, claims, Target(), "reference")
    conclusion = conclude(plan, {result.row: result for result in results}, claims, Target())
    return JudgedRun(plan, Evidence(header, tuple(results), {"seconds": 1.0}), conclusion)


@pytest.mark.slow
def test_ten_thousand_rows_stay_within_the_budgets() -> None:
    plan = plan_of(load_suite())
    right, wrong, distinct = list[Result](), list[Result](), list[Result]()
    for k, row in enumerate(plan.rows):
        outcome = Outcome("tensor", row.type, (2, len(row.case.id)))
        right.append(Result(row.id, dict.fromkeys(row.documents, "pass"), (outcome,)))
        fails: dict[str, Verdict] = dict.fromkeys(row.documents, "fail")
        wrong.append(right[-1]._replace(verdicts=fails, diagnosis=f"kind {k % 50}", detail="`x" * 1500))
        detail = f"1 of 6 elements differ, want {k:08x}, got 0"
        distinct.append(wrong[-1]._replace(diagnosis=f"kind {len(row.id) % 30}", detail=detail))
    texts = []
    began = time.process_time()
    for results, writer in ((right, report_page), (wrong, markdown), (distinct, report_page)):
        texts.append(writer.render(judge(plan, results)))
    seconds = time.process_time() - began
    scale = 10_000 / len(plan.rows)
    assert len(texts[0].encode()) * scale < 3_000_000
    assert len(texts[1].encode()) < 1 << 15, "a summary shows one case of each kind"
    assert "more failures in report.html" in texts[1]
    assert len(texts[2].encode()) * scale < 3_000_000, "all rows fail, each with another detail"
    assert seconds * scale < 10, "two pages and a summary, on a slow machine"


def test_junit_is_what_ci_services_read(answers: JudgedRun, plan: Plan, tmp_path: Path) -> None:
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed: pip install xmlschema")
    schema = xmlschema.XMLSchema(str(Path(__file__).with_name("junit.xsd")))
    schema.validate(junit.render(answers))
    schema.validate(junit.render(run_hostile(plan, tmp_path / "hostile")))
    other = junit.render(answers).replace("<failure", "<failed", 1).replace("</failure>", "</failed>", 1)
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schema.validate(other)


def test_the_time_of_each_row_is_in_junit(plan: Plan, tmp_path: Path) -> None:
    def timed(results: list[Result]) -> list[Result]:
        return [result._replace(milliseconds=1000 + number) for number, result in enumerate(results)]

    answers = finish_run(plan, AnswersZero(), tmp_path, timed)
    want = {row.id: 1000 + number for number, row in enumerate(plan.rows)}
    rows = Counter[str]()
    for suite in ElementTree.fromstring(junit.render(answers)):
        times = {case.get("name", ""): float(case.get("time", "")) for case in suite}
        assert times == {name: pytest.approx(want[name] / 1000) for name in times}
        rows.update(times.keys())
        assert float(suite.get("time", "")) == pytest.approx(sum(times.values()))
    assert rows == Counter(want.keys())


def test_a_badge_of_any_label_is_narrow() -> None:
    for label, words in LABELS.items():
        svg = ElementTree.fromstring(badge.draw_badge("it", label, words.colour, "in many words" * 20))
        assert int(svg.get("width", "0")) <= 220
        assert [text.text for text in svg.findall(".//{*}text")] == ["reshape", label]


def test_a_badge_is_green_for_a_run_that_shows_everything_only(answers: JudgedRun) -> None:
    plan, evidence, conclusion = answers.plan, answers.evidence, answers.conclusion
    well = tuple(replace(s, name="conforms", counts={"pass": 3}, not_claimed=()) for s in conclusion.standings)
    shown = replace(conclusion, standings=well, sentences=tuple({s.document: "x" for s in well}), exit_code=0)
    documents = len(plan.suite.spec.documents)
    label, message = badge.summarize(JudgedRun(plan, evidence, shown))
    assert (label, message) == ("conforms", f"conforms to all of the {documents} documents; without drawn rows")
    drew_all = {"called": 0, "failed": 0, "not_called": (number := count_drawn_rows())}
    header, footer = ({**each, "drawn": value} for each, value in (
        (evidence.header, {"seed": 0, "rows": number}), (evidence.footer, drew_all)))  # fmt: skip
    whole = replace(evidence, header=header, footer=footer)
    assert badge.summarize(JudgedRun(plan, whole, shown))[1] == f"conforms to all of the {documents} documents"
    assert badge.summarize(JudgedRun(plan, evidence, replace(shown, exit_code=6)))[0] == "waiver overdue"
    lying = badge.summarize(JudgedRun(plan, evidence, replace(shown, exit_code=5)))
    assert lying == ("nothing shown", "no verdict holds")
    part = {**evidence.header, "target": {**evidence.header["target"], "select": "x"}}
    assert "part of the suite" in badge.summarize(JudgedRun(plan, replace(evidence, header=part), shown))[1]


def test_junit_has_an_error_if_no_verdict_holds(answers: JudgedRun) -> None:
    """Whoever reads only this file saw rows that pass."""
    why = "our own planted fault was not caught: AcceptsEverything; no verdict of this run is reliable"
    root = ElementTree.fromstring(
        junit.render(replace(answers, conclusion=replace(answers.conclusion, exit_code=5, why=why)))
    )
    before = ElementTree.fromstring(junit.render(answers))
    assert next(root.iter("error")).get("message") == why
    for key in ("tests", "errors"):
        assert int(root.get(key, "")) == int(before.get(key, "")) + 1


def test_rows_that_were_not_chosen_are_counted_and_not_listed(plan: Plan, tmp_path: Path) -> None:
    target = Target(select="flattens").to_json()
    run = finish_run(plan, AnswersZero(), tmp_path, call_only("flattens["), target=target)
    left = sum(not row.id.startswith("flattens[") for row in plan.rows)
    suites = list(ElementTree.fromstring(junit.render(run)))
    assert suites[-1].get("name") == "not run"
    assert [case.get("name") for case in suites[-1].iter("testcase")] == [f"{left} rows: not chosen by -k 'flattens'"]
    assert sum(int(suite.get("tests", "")) for suite in suites) == len(plan.rows) - left + 1
    found = Page(report_page.render(run))
    assert "all but -k 'flattens'" in found.text
    assert {f"case-{case}" for case in plan.suite.cases} <= set(found.values("id")), "every case has its anchor"


def test_a_document_that_was_not_asked_for_is_not_run(plan: Plan, tmp_path: Path) -> None:
    target = Target(documents=("static-oneapi",)).to_json()
    run = finish_run(plan, AnswersZero(), tmp_path, target=target)
    words = {document: word for document, (word, _) in run.verdict_by_document.items()}
    assert words.pop("static-oneapi") != "not run"
    assert set(words.values()) == {"not run"}


def test_some_failures_are_told_in_full_the_rest_in_a_line() -> None:
    suite = load_suite()
    rejected = Outcome("rejected", stage="run", message="no")
    rows = tuple(row for row in plan_of(suite).rows if row.type == "f32" and row.operation == "StaticReshape")
    plan = Plan(suite, rows)
    more: Any = ((rejected,), 0, "rejected a legal call", "no")
    results = [Result(row.id, dict.fromkeys(row.documents, "fail"), *more) for row in rows]
    html = report_page.render(judge(plan, results))
    failing = {row.case.id for row in rows}
    full = html.count("<details class=entry")
    assert full == html.count("<svg class=pic") <= 60
    assert html.count("<tbody data-block") == len(failing) - full


def test_the_picture_says_what_becomes_of_each_entry(answers: JudgedRun) -> None:
    html = report_page.render(answers)
    label = re.search(r'<svg class=pic[^>]*aria-label="([^"]*)"', html)
    assert label is not None
    assert label.group(1) == "src [0, 3]; shape [0, -1] (entry 1 is -1, inferred); want a rejection; got 0, 3"


def test_a_length_that_is_not_drawn_is_copied_from_the_others() -> None:
    """It came from the last length of src."""
    contract, call = contracts(load_spec())["static-oneapi"], Call((1,) * 8 + (5, 1, 1, 7), (1,) * 7 + (7, 0), True)
    (_, _, src), (_, _, shape), _ = draw_reading(call, contract, contract.meaning(*call)).lines
    assert [box.text for box in src[-2:]] == ["… 4 more", "7"]
    assert (shape[8].text, shape[8].above) == ("0", src[7].middle)


def test_each_of_several_nodes_that_take_src_copies_from_it() -> None:
    """The second shape copied from the boxes of the first."""
    suite, due = bundled_plan().suite, Meaning("legal", (4, 3, 2), ())
    step, contract = suite.cases["two-nodes-copy-from-one-src"].steps[0], contracts(suite.spec)["static-oneapi"]
    lines = draw_call(step, contract, due, Outcome("tensor", "f32", (4, 3, 2))).lines
    assert [name for name, *_ in lines] == ["src", "shape 1", "src", "shape 2", "dst"]
    assert lines[3][2][0].above == lines[2][2][0].middle


def test_a_failure_against_our_ruling_says_why_we_ruled_so(tmp_path: Path) -> None:
    case = '{id: below, rule: lower-bound, src: "T[6]", shape: [-6], special_zero: false, expect: reject}'
    plan = plan_as_bundled(tmp_path, f"about: One.\ncases:\n  - {case}\n")
    html = report_page.render(finish_run(plan, Wrong(), tmp_path / "out"))
    because = plan.suite.spec.rules["lower-bound"].decided_for["static-oneapi"]
    failure = html[html.index("<details class=entry") :]
    assert f"Why we ruled so: {because}" in failure[: failure.index("</details>")]
