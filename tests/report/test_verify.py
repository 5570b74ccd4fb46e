"""A report follows from its evidence; whatever was changed by hand is found, and said."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.folder import REPORTS
from conformance.evidence.results import InvalidEvidence
from conformance.model import NOT_CALLED, NOT_RUN, VERDICTS, Outcome, Result, Verdict
from conformance.plan.rows import Plan, Row
from conformance.report import embedded
from conformance.report.verify import OtherSuite, verify_report
from conformance.run.ended_process import AFTER_HANGS
from conformance.run.row import make_result_without_call
from conformance.verdict.rejudge import find_contradictions

from ..builders import FOUR_CASES, Records, Right, Wrong, finish_run, plan_as_bundled, report_run, rewrite
from .page import AnswersZero
from .verified import FOR_TURNS, edit, find_mismatches


@pytest.mark.parametrize("adapter", [Right(), Wrong()], ids=["right", "wrong"])
@pytest.mark.parametrize("what", [".", "report.html", "results.jsonl"])
def test_what_was_not_touched_matches(plan: Plan, tmp_path: Path, adapter: Right, what: str) -> None:
    report_run(plan, adapter, tmp_path)
    found = verify_report(tmp_path / what, plan)
    assert not found.mismatches
    assert found.run is not None
    assert found.files[0] in ("results.jsonl", "report.html")
    assert len(found.files) == (1 + len(REPORTS) if what == "." else 1)


def test_any_one_character_of_the_evidence_in_the_page_is_found(plan: Plan, folder: Path) -> None:
    page = folder / "report.html"
    html = page.read_text(encoding="utf-8")
    begin = html.index(embedded.BEGIN) + len(embedded.BEGIN)
    end = html.index(embedded.END, begin)
    for at in range(begin, end, (end - begin) // 60):
        other = "a" if html[at] != "a" else "b"
        page.write_text(f"{html[:at]}{other}{html[at + 1 :]}", encoding="utf-8", newline="\n")
        try:
            found = verify_report(page, plan)
        except (InvalidEvidence, OtherSuite):
            continue  # it cannot be read any more, or says that it is of another suite: refused with exit code 2
        assert found.mismatches, html[at - 60 : at + 20]


def test_what_is_wrong_is_said_with_its_place(plan: Plan, folder: Path) -> None:
    edit(folder / "report.html", lambda html: html.replace("; exit code 1", "; exit code 0"))
    assert len(verify_report(folder, plan).mismatches) == 1
    text = find_mismatches(folder, plan)
    assert re.match(r"report\.html: line \d+", text)
    assert "exit code 0" in text.partition("the evidence gives")[0]
    assert "exit code 1" in text.partition("the evidence gives")[2]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("report.html", lambda html: html.replace('class="tag fail"', 'class="tag pass"', 1),
         '<span class="tag pass">≠ wrong answer'),
        ("report.html", lambda html: f"{html}\n(no line)", "says “(no line)”, the evidence gives nothing"),
        ("report.html", lambda html: f"{html}\n", "says “”, the evidence gives nothing"),
        ("report.html", lambda html: html[: html.rindex("\n", 0, -1)], "says nothing, the evidence gives “"),
        ("report.html", lambda html: html.replace("\n", "\r\n"), "\r”, the evidence gives “"),
        ("results.jsonl", lambda text: text.replace('"planted":', '"planted":{},"planted":'),
         "the footer is not written as the suite writes it; somebody edited it"),
    ],
    ids=["markup that reads the same", "a line more", "an empty line more", "a line less", "line ends", "a footer"],
)  # fmt: skip
def test_a_change_that_is_hard_to_see_is_found(
    plan: Plan, folder: Path, name: str, change: Callable[[str], str], said: str
) -> None:
    edit(folder / name, change)
    assert said in find_mismatches(folder if name == "results.jsonl" else folder / name, plan)


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "report.html"])
def test_a_changed_report_beside_the_page_is_found(plan: Plan, folder: Path, name: str) -> None:
    edit(folder / name, lambda text: text.replace("fail", "pass", 1) if "fail" in text else text.replace("1", "2", 1))
    found = verify_report(folder, plan)
    assert {each.file for each in found.mismatches} == {name}


def judge(case: str, verdict: str) -> Callable[[Records], object]:
    """Give the first row of a case another verdict."""

    def change(records: Records) -> None:
        row = next(record for record in records[1:-1] if record["row"].startswith(case))
        row["verdicts"] = dict.fromkeys(row["verdicts"], verdict)

    return change


def put_into_footer(key: str, value: object) -> Callable[[Records], object]:
    """Put something else into the footer."""
    return lambda records: records[-1].update({key: value})


FORGED: dict[str, tuple[type[Right], Callable[[Records], object], tuple[str, ...]]] = {
    "a pass called a failure": (Right, judge("flattens", "fail"), ("makes it pass",)),
    "a failure waived without a waiver": (Wrong, judge("turns", "waived"), ("waived in",)),
    "verdicts of a document that the operation does not have": (
        Wrong, lambda records: records[1]["verdicts"].update({"static-1999": "pass"}), ("has verdicts for",)),
    "an outcome that nothing comes to": (
        Wrong, lambda records: records[1]["outcomes"][0].update(kind="triumph"), ('kind in the row is "triumph"',)),
    **{f"something else for {key} in the footer": (Wrong, put_into_footer(key, value), (f"{key} in the footer is",))
       for key, value in (("verdicts", True), ("planted", True), ("notes", True), ("seconds", "long"))},
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_results_that_contradict_themselves_are_found(plan: Plan, tmp_path: Path, what: str) -> None:
    """Their digests are right, and no report is beside them."""
    backend, change, words = FORGED[what]
    finish_run(plan, backend(), tmp_path)
    rewrite(tmp_path / "results.jsonl", change)
    text = find_mismatches(tmp_path, plan)
    assert all(part in text for part in words), text


def test_a_failure_with_a_waiver_may_be_waived(plan: Plan, tmp_path: Path) -> None:
    assert not waived_by(1, "turns", plan, tmp_path / "all", [FOR_TURNS])
    some = [{**FOR_TURNS, "case": "zero-beside-*"}]  # in the documents where it fails
    assert not waived_by(1, "zero-beside", plan, tmp_path / "some", some, AnswersZero())


@pytest.mark.parametrize(
    ("number", "case", "waivers"), [(1, "turns", []), (2, "turns", [FOR_TURNS]), (1, "zero-beside-infer", [FOR_TURNS])]
)
def test_a_waiver_that_is_not_for_the_row_waives_nothing(
    plan: Plan, tmp_path: Path, number: int, case: str, waivers: list[dict[str, Any]]
) -> None:
    words = f"{case}[StaticReshape-f32]: is waived by waiver {number}, and the run has none of that number for it"
    assert words in waived_by(number, case, plan, tmp_path, waivers)


def waived_by(
    number: int, case: str, plan: Plan, folder: Path, waivers: list[dict[str, Any]], adapter: Right | None = None
) -> str:
    """Waive the failures of a case by hand, and return what is wrong with the evidence."""

    def waived(result: Result) -> Result:
        if not result.row.startswith(case) or "fail" not in result.verdicts.values():
            return result
        verdicts: dict[str, Verdict] = {d: "waived" if v == "fail" else v for d, v in result.verdicts.items()}
        return result._replace(verdicts=verdicts, waiver=number)

    report_run(plan, adapter or Wrong(), folder, lambda results: [*map(waived, results)], waivers=waivers)
    return find_mismatches(folder, plan)


def test_a_waiver_that_waives_nothing_in_its_row_is_found(plan: Plan, tmp_path: Path) -> None:
    def waive(result: Result) -> Result:
        return result._replace(waiver=1) if result.row.startswith("turns") else result

    finish_run(plan, Right(), tmp_path, lambda results: [*map(waive, results)], waivers=[FOR_TURNS])
    assert "turns[StaticReshape-f32]: has waiver 1, and nothing of it is waived" in find_mismatches(tmp_path, plan)


def test_a_row_that_a_waiver_did_not_forbid_to_call_is_found(plan: Plan, tmp_path: Path) -> None:
    def leave(result: Result) -> Result:
        verdicts: dict[str, Verdict] = dict.fromkeys(result.verdicts, "waived")
        left = Result(result.row, verdicts, NOT_CALLED, 0, "not run", waiver=1)
        return left if result.row.startswith("turns") else result

    finish_run(plan, Right(), tmp_path, lambda results: [*map(leave, results)], waivers=[FOR_TURNS])
    assert "was not called, and waiver 1 does not say `run: false`" in find_mismatches(tmp_path, plan)


REFUSED = {"kind": "rejected", "stage": "run", "message": "no"}
TURNED = {"kind": "tensor", "type": "f32", "dims": [3, 2], "holds": "src"}
OTHER_ELEMENTS = {**TURNED, "holds": "something else"}
SIX = {**TURNED, "dims": [6]}
FAILS: tuple[str, str] = ("", "fail")
IMPOSSIBLE: tuple[str, str] = ("", "")
VERDICTS_OF: list[tuple[str, list[dict[str, Any]], int, tuple[str, ...], str, str]] = [
    # a case, what came of its steps and which decided, what is left out, and what is true: with no diagnosis, with one
    ("turns", [{"kind": "none"}], 0, (), "not run", ""),
    ("turns", [TURNED], 0, (), "pass", ""),
    ("turns", [TURNED], 0, ("type:f32",), "not claimed", ""),
    ("turns", [OTHER_ELEMENTS], 0, (), *FAILS),
    ("turns", [OTHER_ELEMENTS], 0, ("type:f32",), "not claimed", ""),
    ("turns", [OTHER_ELEMENTS], 0, ("rank:2",), *FAILS),
    ("turns", [{**TURNED, "dims": [2, 3]}], 0, (), *FAILS),
    ("turns", [{"kind": "tensor", "type": "f32", "dims": [3, 2]}], 0, (), *IMPOSSIBLE),
    ("turns", [{"kind": "tensor", "type": "f32", "holds": "src"}], 0, (), *IMPOSSIBLE),
    ("turns", [{"kind": "rejected", "holds": "src"}], 0, (), *IMPOSSIBLE),
    ("turns", [{"kind": "none", "holds": "src"}], 0, (), *IMPOSSIBLE),
    ("turns", [TURNED, TURNED], 0, (), *IMPOSSIBLE),
    ("turns", [{**TURNED, "side_effects": ["src changed"]}], 0, ("type:f32",), *FAILS),
    ("turns", [REFUSED], 0, (), *FAILS),
    ("turns", [REFUSED], 0, ("type:f32",), "not claimed", ""),
    ("turns", [{**REFUSED, "side_effects": ["src changed"]}], 0, ("type:f32",), *FAILS),
    ("turns", [{"kind": "unsupported"}], 0, (), *FAILS),
    ("turns", [{"kind": "unsupported"}], 0, ("type:f32",), "not claimed", ""),
    ("turns", [{"kind": "crash"}], 0, ("type:f32",), *FAILS),
    ("turns", [{"kind": "error"}], 0, (), "", "error"),
    ("zero-beside-infer", [REFUSED], 0, (), "pass", ""),
    ("zero-beside-infer", [{**TURNED, "dims": [0, 3]}], 0, (), *FAILS),
    ("copies-past-rank", [REFUSED], 0, (), "observed", ""),
    ("copies-past-rank", [{**TURNED, "dims": [2, 3]}], 0, (), "observed", ""),
    ("copies-past-rank", [{**OTHER_ELEMENTS, "dims": [2, 3]}], 0, (), *FAILS),
    ("copies-past-rank", [TURNED], 0, (), *FAILS),
    ("six-then-seven", [SIX, REFUSED], 1, (), "pass", ""),
    ("six-then-seven", [SIX, REFUSED], 2, (), *IMPOSSIBLE),
    ("six-then-seven", [SIX, REFUSED], 0, (), *IMPOSSIBLE),
    ("six-then-seven", [SIX], 1, (), *IMPOSSIBLE),
    ("six-then-seven", [REFUSED, REFUSED], 1, (), *FAILS),
    ("six-then-seven", [REFUSED, REFUSED], 2, (), *IMPOSSIBLE),
    ("six-then-seven", [SIX, {**TURNED, "dims": [7]}], 2, (), *FAILS),
    ("six-then-seven", [SIX, {**TURNED, "dims": [7]}], 1, (), *IMPOSSIBLE),
    ("six-then-seven", [{"kind": "error"}, {"kind": "crash"}], 1, (), "", "error"),
]


def list_contradictions(plan: Plan, row: Row, results: Mapping[str, Result], header: Mapping[str, Any]) -> list[str]:
    """List what contradicts the result of one row."""
    return list(find_contradictions(Plan(plan.suite, (row,)), results, header))


@pytest.mark.parametrize(("case", "steps", "decided", "left_out", "plain", "diagnosed"), VERDICTS_OF)
def test_an_outcome_allows_no_other_verdict(
    longer: Plan, case: str, steps: list[dict[str, Any]], decided: int, left_out: tuple[str, ...], plain: str,
    diagnosed: str,
) -> None:  # fmt: skip
    """In static-graph-v0.9, where each of the cases means what it is expected to."""
    row = next(row for row in longer.rows if row.case.id == case and row.operation == "StaticReshape")
    header = {"claims": {"operations": [row.operation], "not_claimed": left_out}}
    held = {None: None, "src": row.steps[0].src.digest, "something else": "0" * 16}
    content = tuple(held[step.get("holds")] for step in steps)
    outcomes = tuple(Outcome.from_json({key: value for key, value in step.items() if key != "holds"}) for step in steps)
    deciding = decided - 1 if case == "six-then-seven" else 0

    def true(verdict: Verdict, *diagnosis: str) -> bool:
        name, text = diagnosis or (None, None)
        result = Result(row.id, dict.fromkeys(row.documents, verdict), outcomes, deciding, name, text, content)
        said = list_contradictions(longer, row, {row.id: result}, header)
        return not [each for each in said if "in static-oneapi" not in each and "in static-spec-v0.9" not in each]

    assert {verdict for verdict in VERDICTS if true(verdict)} == {v for v in VERDICTS if v in plain}
    assert {v for v in VERDICTS if true(v, "wrong", "it is wrong")} == {v for v in VERDICTS if v in diagnosed}


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    text = "  - {id: six-then-seven, rule: same-volume, src: 'T[2, 3]', special_zero: false, steps: ["
    text += "{shape: [6], expect: 'T[6]'}, {shape: [7], expect: reject}]}\n"
    return plan_as_bundled(tmp_path_factory.mktemp("steps"), FOUR_CASES + text)


def test_one_facet_that_is_not_claimed_is_enough(plan: Plan) -> None:
    row = next(row for row in plan.rows if row.operation == "DynamicReshape-1" and len(row.facets) > 1)
    result = Result(row.id, dict.fromkeys(row.documents, "not claimed"), (Outcome.from_json(REFUSED),))
    for facet in row.facets:
        header = {"claims": {"operations": [row.operation], "not_claimed": [facet]}}
        assert not list_contradictions(plan, row, {row.id: result}, header)


def test_a_failure_in_one_document_alone_has_a_diagnosis_too(plan: Plan) -> None:
    row = next(row for row in plan.rows if row.case.id == "zero-beside-infer" and "static-oneapi" in row.documents)
    verdicts: dict[str, Verdict] = dict.fromkeys(row.documents, "fail")
    verdicts["static-oneapi"] = "observed"
    result = Result(row.id, verdicts, (Outcome("tensor", row.type, (0, 3)),), digests=(row.steps[0].src.digest,))
    header = {"claims": {"operations": [row.operation]}}
    assert list_contradictions(plan, row, {row.id: result}, header) == [f"{row.id}: fails without a diagnosis"]
    assert not list_contradictions(plan, row, {row.id: result._replace(diagnosis="answered")}, header)
    assert not list_contradictions(plan, row, {}, header), "what is not there is for others to say"


def test_a_row_that_was_not_called_may_be_not_claimed(plan: Plan) -> None:
    row = plan.rows[0]
    for operations, possible in (((), {"not claimed", "not run"}), ((row.operation,), {"not run"})):
        rows = {verdict: {row.id: make_result_without_call(row, verdict)} for verdict in VERDICTS}
        header = {"claims": {"operations": operations}}
        assert {
            verdict for verdict in VERDICTS if not list_contradictions(plan, row, rows[verdict], header)
        } == possible


def test_a_row_is_left_out_after_hangs_only_if_one_hung(plan: Plan) -> None:
    first, second = (row for row in plan.rows if row.id in ("turns[StaticReshape-f32]", "turns[StaticReshape-bf16]"))
    left_out = make_result_without_call(second, NOT_RUN)._replace(outcomes=AFTER_HANGS)
    hung = Outcome("timeout", message="no answer (deterministic: again alone in a fresh process)")
    results = {
        first.id: Result(first.id, dict.fromkeys(first.documents, "fail"), (hung,), 0, "timeout", "timeout"),
        second.id: left_out,
    }
    header = {"claims": {"operations": ["StaticReshape"]}, "isolation": "worker"}
    assert not list(find_contradictions(plan, results, header))
    results[first.id] = make_result_without_call(first, NOT_RUN)
    wrong = f"{second.id}: says that rows of its case hung, and none did"
    assert list(find_contradictions(plan, results, header)) == [wrong]
