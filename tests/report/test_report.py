"""The reports tell what the evidence holds, for every row of the suite, and take no orders from a backend."""

import base64
import itertools
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.evidence.results import Target
from conformance.model import Array, Result, Verdict
from conformance.model.verdicts import LABELS
from conformance.plan.rows import Plan
from conformance.report import badge, junit, markdown, report_page
from conformance.report.embedded import extract_lines
from conformance.report.judged_run import JudgedRun

from ..builders import Right, finish_run, plan_as_bundled
from .page import AnswersZero, Page, answers, plan, run_hostile

__all__ = ["answers", "plan"]


def rows_in(html: str) -> list[str]:
    """The ids of the rows that the page lists under its cases, every combination written out."""
    found = []
    for block in html.split('id="case-')[1:]:
        case = block[: block.index('"')]
        for operation, named in re.findall(r"<b>([\w-]+)</b> ([^<]*)", block):
            for part in named.strip().split("; "):
                parts = [each.split(", ") for each in part.split(" · ")]
                found += [f"{case}[{'-'.join((operation, *names))}]" for names in itertools.product(*parts)]
    return found


def element_of(run: JudgedRun, row: str) -> ElementTree.Element:
    """The element of a row in junit.xml."""
    cases = ElementTree.fromstring(junit.render(run)).iter("testcase")
    return next(case for case in cases if case.get("name") == row)


def evidence_in(html: str) -> list[dict[str, Any]]:
    """The evidence as anyone can read it from a page."""
    lines = lzma.decompress(base64.b64decode(Page(html).raw["script"][0])).decode().splitlines()
    return [json.loads(line) for line in lines]


def verdict_of(verdicts: Iterable[Verdict]) -> str:
    """The worst by the order that junit.xml shows, worked out here."""
    there = set(verdicts)
    return next(v for v in ("error", "fail", "not run", "not claimed", "waived", "pass", "observed") if v in there)


def test_rows_come_from_the_suite_and_not_from_the_results(plan: Plan, tmp_path: Path) -> None:
    def without_some_and_with_another(results: list[Result]) -> list[Result]:
        return [*results[5:], results[0]._replace(row="invented[StaticReshape-f32]")]

    run = finish_run(plan, AnswersZero(), tmp_path, without_some_and_with_another)
    html, xml = report_page.render(run), junit.render(run)
    assert sorted(rows_in(html)) == sorted(row.id for row in plan.rows)
    assert [case.get("name") for case in ElementTree.fromstring(xml).iter("testcase")] == [row.id for row in plan.rows]


class WithoutHalf(Right):
    not_claimed = ("type:f16",)


def test_tests_of_documents_that_share_a_card_are_those_of_each(tmp_path: Path) -> None:
    html = report_page.render(finish_run(plan_as_bundled(tmp_path), WithoutHalf(), tmp_path / "out"))
    assert "sub>In each, <b class=pass>" in html
    assert "0 tests" not in Page(html).text, "a type that is not claimed has none"


class ClaimsNoOperation(Right):
    operations = ()


def test_a_backend_without_operations_is_not_claimed(plan: Plan, tmp_path: Path) -> None:
    run = finish_run(plan, ClaimsNoOperation(), tmp_path)
    assert f"<p>{LABELS['not claimed'].legend}</p>" in report_page.render(run)
    assert badge.summarize(run)[0] == run.label == "not claimed"


class AcceptsUnclaimed(AnswersZero):
    not_claimed = ("rank:2",)


def test_an_answer_to_an_illegal_unclaimed_call_fails(plan: Plan, tmp_path: Path) -> None:
    html = report_page.render(finish_run(plan, AcceptsUnclaimed(), tmp_path))
    (line,) = re.findall("<bdi>rank:2</bdi></th>.*?</tr>", html, re.DOTALL)
    assert "✗ fail" in line
    assert "so does an answer that is wrong or to an illegal call." in Page(html).text


def test_a_row_missing_in_the_evidence_shows_as_not_run(plan: Plan, tmp_path: Path) -> None:
    lost = plan.rows[0].id
    run = finish_run(plan, AnswersZero(), tmp_path, lambda results: [r for r in results if r.row != lost])
    case = element_of(run, lost)
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message", "").startswith("not run")
    line = next(line for line in report_page.render(run).split("<tr") if "not called" in line)
    assert rows_in(f'id="case-{plan.rows[0].case.id}"<tbody><tr{line}') == [lost]
    assert "□ not run" in line
    assert "pass" not in line
    assert "1 not run" in markdown.render(run)


@pytest.mark.parametrize(
    ("name", "tested", "others"),
    [
        (
            "onnxruntime",
            "onnxruntime/capi/onnxruntime_pybind11_state.so",
            ["onnxruntime/capi/libonnxruntime_shared.so"],
        ),
        ("sparse", "sparse-0.15.5 (35 files)", ["scipy/sparse/_sparsetools.so", "numpy/_core/_multiarray.so"]),
        ("tosa", "tosa_reference_model/tosa_reference_model.so", ["tosa_serializer/_tosa_serializer.so"]),
        ("mlx", "mlx/lib/libmlx.so", ["mlx/core.so", "mlx-0.32 (400 files)"]),
        ("onednn", "libdnnl.so.3", ["adapters (4 files)"]),
    ],
)
def test_the_head_names_the_file_of_the_library(answers: JudgedRun, name: str, tested: str, others: list[str]) -> None:
    """A file of a package that the library needs, or beside the one with its code, is no file to look for."""
    backend = {**answers.evidence.header["backend"], "name": name}
    evidence = replace(
        answers.evidence,
        header={**answers.evidence.header, "backend": backend},
        footer={**answers.evidence.footer, "subject": dict.fromkeys([*others, tested], "ab" * 32)},
    )
    page = report_page.render(replace(answers, evidence=evidence))
    assert f"<dt>Binary</dt><dd><bdi>{tested} abababababab and " in page


def test_the_head_says_what_its_result_means(answers: JudgedRun) -> None:
    """A hang is not the end of a process, and is called so."""
    assert answers.failed
    assert f"<p>{LABELS[answers.label].legend}</p>" in report_page.render(answers)


def test_what_was_rejected_for_its_size_is_not_called_unspecified(tmp_path: Path) -> None:
    call = 'src: "T[0]", shape: [0, 65536, 65536], special_zero: false, expect: "T[0, 65536, 65536]"'
    case = f"  - {{id: huge, rule: huge-on-empty, {call}}}\n"

    class Rejects(Right):
        def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
            raise ValueError("too large")

    run = finish_run(plan_as_bundled(tmp_path, f"about: One.\ncases:\n{case}"), Rejects(), tmp_path / "out")
    section = Page(report_page.render(run)).text.partition("Calls for which a document settles no answer")[2]
    assert section.startswith(", and legal ones that were rejected because of their size.")
    assert "Unspecified by" not in section
    assert re.search(r"Because of.*huge-on-empty", section, re.DOTALL)


def test_a_failure_in_one_document_is_shown_for_that_document(answers: JudgedRun) -> None:
    text = Page(report_page.render(answers)).text
    rule = text[text.index("with a test that fails") : text.index("Rules with tests that pass")]
    assert "static-graph-v0.9 (line 40, as we read it), static-spec-v0.9 (line 22, as we read it): ✗ 3" in rule
    assert "✗ 36\n" in rule, "3 tests fail in each; in the next cell the 6 that break it"
    assert "static-oneapi" not in rule, "it does not have the rule, and nothing failed there"
    case = element_of(answers, "zero-beside-infer[StaticReshape-f32]")
    verdicts = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert verdicts["static-spec-v0.9"] == verdicts["static-graph-v0.9"] == "fail"
    assert verdicts["static-oneapi"] == "observed"
    failure = case.find("failure")
    assert failure is not None
    assert "(static-spec-v0.9, static-graph-v0.9)" in failure.get("message", "")
    summary = markdown.render(answers)
    entry = summary[summary.index("## ✗") : summary.index("## Counts")]
    assert "static-graph-v0.9: line 40" in entry
    assert "observed (static-oneapi)" in entry
    assert "fail (static-oneapi)" not in entry


def test_hostile_text_is_inert_on_the_page(plan: Plan, tmp_path: Path) -> None:
    """The evidence in the page is the evidence."""
    run = run_hostile(plan, tmp_path)
    html, evidence = report_page.render(run), run.evidence
    data = evidence_in(html)
    assert [data[0], data[-1]] == [evidence.header, evidence.footer]
    assert extract_lines(html, Path("report.html")) == (tmp_path / "results.jsonl").read_bytes()
    found = Page(html)
    assert "img" not in found.tags
    assert found.tags["script"] == 3
    assert not any(character in html for character in "\u202e\x1b\x00\ufffe")
    assert "\\u202e" in found.text
    assert "\\x00" in found.text
    assert "<img src=x onerror=alert(1)>" in found.text, "it is shown, as text"


def test_junit_parses_and_its_counts_match(answers: JudgedRun) -> None:
    root = ElementTree.fromstring(junit.render(answers))
    expected = Counter(verdict_of(result.verdicts.values()) for result in answers.evidence.results)
    for suite in root:
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name, "")) == len(list(suite.iter(tag)))
        assert int(suite.get("tests", "")) == len(list(suite.iter("testcase")))
    assert int(root.get("tests", "")) == len(answers.evidence.results)
    assert int(root.get("failures", "")) == expected["fail"] > 0
    assert int(root.get("errors", "")) == expected["error"]
    assert len(list(root.iter("skipped"))) == expected["not claimed"] + expected["not run"] > 0


def test_a_document_that_was_not_asked_for_fails_no_row_in_junit(plan: Plan, tmp_path: Path) -> None:
    """The exit code was 0, and the CI had failures; `pytest --document` has none either."""
    target = Target(documents=("static-oneapi",)).to_json()
    run = finish_run(plan, AnswersZero(), tmp_path, target=target)
    assert not run.failed
    root = ElementTree.fromstring(junit.render(run))
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    assert next(root.iter("failure"), None) is None
    assert element_of(run, "zero-beside-infer[StaticReshape-f32]").find("skipped") is None


def test_hostile_text_is_inert_in_junit(plan: Plan, tmp_path: Path) -> None:
    xml = junit.render(run_hostile(plan, tmp_path))
    root = ElementTree.fromstring(xml)
    assert {each.tag for each in root.iter()} == {
        "testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped",
    }  # fmt: skip
    assert not any(character in xml for character in "\u202e\x1b\x00\ufffe")
    assert "<img src=x" in (next(root.iter("failure")).text or "")


def test_hostile_text_is_inert_in_markdown(plan: Plan, tmp_path: Path) -> None:
    summary = markdown.render(run_hostile(plan, tmp_path))
    assert "<img" in summary
    no_blocks = re.sub(r"(?ms)^(`+)text\n.*?\n\1$", "", summary)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", no_blocks)
    assert not re.search(r"[<\[\]@#]", re.sub(r"^#+ ", "", outside, flags=re.MULTILINE))
    assert "evil" not in outside
    assert all(line.count("|") == 8 for line in outside.splitlines() if "|" in line)
    assert not any(character in summary for character in "\u202e\x1b\x00")


@pytest.mark.parametrize("text", ["", " ", "`", "``", "a`b", "``` `` `", "`a", "a\nb"])
def test_a_code_span_holds_any_text_and_ends_where_it_should(text: str) -> None:
    span = markdown.code(text)
    fence = (re.match("`+", span) or [""])[0]
    assert span.endswith(fence)
    assert "\n" not in span
    assert fence not in re.findall("`+", span[len(fence) : -len(fence)])
