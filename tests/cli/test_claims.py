"""A call that is not claimed counts nowhere, and is named in every place."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.certificate.statement import statement_of
from conformance.draw.rows import Drawn, RowDrawer
from conformance.evidence.results import read
from conformance.model import NOT_RUN, Claims, Graph, Program, Rejected, Spec, Tensor, Unsupported
from conformance.report.judged_run import conclude_run
from conformance.run.row import run_rows

from .. import miniatures
from ..builders import Command, mini
from ..verdict.test_waive import waivers
from .run_output import sentences


# ── element types ─────────────────────────────────────────────────────────────────────────────────
def test_a_type_not_claimed_is_in_no_sentence_count_or_statement(command: Command) -> None:
    said = command.run(mini("LeavesOutHalf"), "--json").expect(0)
    for sentence in sentences(said).values():
        assert re.search(r"^conforms to \S+ for f32 .*; not claimed: type:bf16, type:f16;", sentence)
    for standing in said.data["standings"]:
        if standing["type"] != "f32":
            assert (standing["standing"], standing["counts"], standing["not_counted"]) == ("not claimed", {}, {})
            assert not standing["tests"] + sum(standing["blames"].values())
    assert said.data["verdicts"]["fail"] == 0
    assert said.data["failures"] == []
    tests = _statement(command)
    assert {name.partition("/")[2] for name in tests["passedTests"]} == {"f32"}
    assert tests["warnedTests"] == tests["failedTests"] == []


def test_no_report_counts_a_type_that_is_not_claimed(reporting: Command) -> None:
    reporting.run(mini("LeavesOutHalf")).expect(0)
    page, summary, badge = (
        (reporting.out / name).read_text(encoding="utf-8") for name in ("report.html", "summary.md", "badge.svg")
    )
    assert "<b>Not claimed:</b> element type bf16, element type f16." in page
    assert "| static-oneapi | f16 | ○ not claimed | 0 | 0 |  | 0 |" in summary
    assert ": conforms to all of the 5 documents" in badge
    suites = ElementTree.parse(reporting.out / "junit.xml").getroot()
    assert (suites.get("failures"), suites.get("errors")) == ("0", "0")
    skipped = {case.get("name") or "" for case in suites.iter("testcase") if case.find("skipped") is not None}
    assert "stays[StaticReshape-f16]" in skipped
    assert not any("f32" in name.partition("[")[2].split("-")[-1] for name in skipped)


def _statement(command: Command) -> Any:
    run = conclude_run(command.plan, read(command.out / "results.jsonl"))
    return statement_of(run, run.plan.suite.digest, "0" * 64, 1, None)["predicate"]


def test_a_crash_in_a_type_that_is_not_claimed_fails_the_run(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.LeavesOutHalf, "instead", "crash")
    said = command.run(mini("LeavesOutHalf"), "--json").expect(1)
    assert re.fullmatch(r"\d+ rows in f16, which is not claimed, crash, hang or damage memory", said.data["why"])
    assert not any("crash" in note for note in said.data["notes"]), "it is said once"
    assert all(sentence.startswith("conforms to") for sentence in sentences(said).values())
    assert {each["diagnosis"] for each in said.data["failures"]} == {"crash where nothing is claimed"}
    assert _statement(command)["result"] == "FAILED"


def test_a_crash_in_a_type_not_claimed_is_a_note(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.LeavesOutHalf, "instead", "crash")
    monkeypatch.setattr(miniatures.LeavesOutHalf, "claims", Claims(miniatures.ALL, ("type:f16",)))
    said = command.run(mini("LeavesOutHalf"), "--json").expect(1)
    assert said.data["why"].endswith("tests fail: all of them give a wrong answer")
    assert len([note for note in said.data["notes"] if "in f16, which is not claimed, crash" in note]) == 1
    assert "does not conform to static-oneapi for bf16 (" in sentences(said)["static-oneapi"]


def test_a_waived_crash_in_a_type_that_is_not_claimed_is_said(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.LeavesOutHalf, "instead", "crash")
    monkeypatch.setattr("conformance.certificate.statement.name_missed_rows", lambda evidence, suite: None)
    path = waivers(command.folder, {"case": None, "row": "*f16*"})
    said = command.run(mini("LeavesOutHalf"), "--waivers", path, "--json").expect(0)
    assert re.search(r"; waived: \d+ rows in f16, which is not claimed, crash", said.data["why"])
    assert not any("waived" in note for note in said.data["notes"]), "it is said once"
    assert _statement(command)["result"] == "WARNED"


def test_a_report_says_once_that_a_crash_fails_everywhere(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.LeavesOutHalf, "instead", "crash")
    reporting.run(mini("LeavesOutHalf")).expect(1)
    page = (reporting.out / "report.html").read_text(encoding="utf-8")
    assert "✗ fails outside its claims</span></h1>" in page
    assert page.count("A crash, a hang or damaged memory fails there too") == 1
    assert "ot tested" not in page
    assert ">fails outside its claims</text>" in (reporting.out / "badge.svg").read_text(encoding="utf-8")


# ── operations ────────────────────────────────────────────────────────────────────────────────────
def test_an_operation_that_is_not_claimed_is_noted(reporting: Command) -> None:
    said = reporting.run(mini("ClaimsOne"), "--json").expect(0)
    assert "not claimed, and so not called: DynamicReshape-1 and Reshape-1" in said.data["notes"]
    assert set(sentences(said)) == {"static-oneapi", "static-graph-v0.9", "static-spec-v0.9"}
    assert {s["operation"] for s in said.data["standings"]} == {"StaticReshape"}
    text = (reporting.out / "summary.md").read_text(encoding="utf-8")
    assert "Reshape-1 is not claimed, and so not called" in text
    assert "not in the target of this run" not in text


# ── limits ────────────────────────────────────────────────────────────────────────────────────────
class FewDims(miniatures.Bent):
    """Takes two dims at most."""

    claims = Claims(miniatures.ALL, ("rank:3",))

    def compile(self, graph: Graph) -> Program:
        declared = [graph.src.dims, *(node.result.dims for node in graph.nodes if node.result)]
        self.refuse_more(dims for dims in declared if dims)
        self.refuse_more(node.shape.values for node in graph.nodes if node.shape and node.shape.values)
        return super().compile(graph)

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        self.refuse_more([src.dims, *(shape.array().tolist() for shape in shapes)])
        return answer

    def refuse_more(self, tensors: Any) -> None:
        for dims in tensors:
            if len(dims) > 2:
                raise Unsupported(f"rank:{len(dims)}")


def test_a_limit_of_rank_leaves_out_every_call_past_it(reporting: Command) -> None:
    said = reporting.run(f"{__name__}:FewDims", "--json").expect(0)
    results = read(reporting.out / "results.jsonl").results
    not_claimed = [result.row for result in results if "not claimed" in result.verdicts.values()]
    assert not_claimed
    assert all(row.startswith("copies[") for row in not_claimed)
    assert all("; not claimed: rank:3; " in sentence for sentence in sentences(said).values())
    page = (reporting.out / "report.html").read_text(encoding="utf-8")
    assert "<b>Not claimed:</b> more than 2 dimensions. <b>Not run:</b>" in page


def test_no_call_past_a_limit_is_drawn(spec: Spec) -> None:
    rows = list(RowDrawer(spec, FewDims.claims).rows(Drawn(0, 50)))
    assert len(rows) > 10
    verdicts = {verdict for result in run_rows(rows, FewDims()) for verdict in result.verdicts.values()}
    assert verdicts <= {"pass", "observed"}


def test_a_facet_is_shown_by_a_row_that_passes(command: Command) -> None:
    backend, of_static = f"{__name__}:FewDims", ("--operation", "StaticReshape")
    command.run(backend, "--require", "rank:2", "--require", "runtime-shape", "--require", "type:f16").expect(0)
    assert command.run(backend, "--require", "rank:3").expect(4).last.endswith("asked for and not shown: rank:3")
    for demand in ("runtime-shape", "shape-type:s64"):  # which no call of StaticReshape needs
        said = command.run(backend, *of_static, "--require", demand).expect(4)
        assert said.last.endswith(f"asked for and not shown: {demand}")
    again = command("verify", command.out, "--suite", command.folder, "--require", "runtime-shape")
    again.expect(1, out="asked for and not shown: shape-type:s64, runtime-shape")


# ── --maxfail ─────────────────────────────────────────────────────────────────────────────────────
class InfersBesideZero(miniatures.Instead):
    """Answers a call with a 0 beside a -1, which static-oneapi leaves unspecified and others forbid."""

    def instead(self, src: Tensor | None) -> Any:
        if src is None:
            return lambda src, shapes, over: self.instead(src)
        if src.dims == (0, 3):
            return src.array().copy()
        raise Rejected("run", "no")


@pytest.mark.parametrize(
    ("backend", "words", "code"),
    [
        (f"{__name__}:InfersBesideZero", ("--document", "static-oneapi"), 0),
        (f"{__name__}:InfersBesideZero", (), 1),
        (mini("LeavesOutHalf"), (), 1),
    ],
)
def test_maxfail_and_progress_count_failures_in_the_target(
    command: Command, monkeypatch: pytest.MonkeyPatch, backend: str, words: tuple[str, ...], code: int
) -> None:
    """A crash in a type that is not claimed is none."""
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    monkeypatch.setattr(miniatures.LeavesOutHalf, "instead", "crash")
    said = command.run(backend, *words, "--maxfail", "1").expect(code)
    stops = code == 1 and backend != mini("LeavesOutHalf")
    assert ("1 failed" in said.err) == stops
    assert ("note: no row was called after 1 failed" in said.out) == stops
    last = read(command.out / "results.jsonl").results[-1]
    assert (set(last.verdicts.values()) == {NOT_RUN}) == bool(stops or words)
