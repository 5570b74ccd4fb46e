"""Two runs: what changed, in which direction, and why; a change for the worse ends with 1."""

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.adapter import FunctionAdapter
from conformance.draw.rows import Drawn, RowDrawer
from conformance.evidence.results import Evidence, Target
from conformance.load.spec import load_spec
from conformance.model import VERDICTS, Claims, Outcome, Result, Verdict
from conformance.plan.rows import Plan, Row
from conformance.report import diff_report
from conformance.report.diff import Difference, compare_runs, find_direction
from conformance.run.row import make_result_without_call
from conformance.system.terminal import plain

from ..builders import Cli, Command, OnlyStatic, Right, Wrong, finish_run
from .page import AnswersZero
from .verified import FOR_TURNS, call_only


def compare_with_right(plan: Plan, folder: Path, new: FunctionAdapter, change: Any = list, **header: Any) -> Difference:
    """A right run, then another."""
    old = finish_run(plan, Right(), folder / "old")
    return compare_runs(old.evidence, finish_run(plan, new, folder / "new", change, **header).evidence, plan)


def with_verdict(verdict: Verdict, case: str = "turns", waiver: int | None = None, **outcome: Any) -> Any:
    """Give a case another verdict; `outcome` replaces parts of its outcome."""

    def change(result: Result) -> Result:
        if not result.row.startswith(f"{case}["):
            return result
        verdicts, outcomes = dict.fromkeys(result.verdicts, verdict), (result.outcome._replace(**outcome),)
        return result._replace(verdicts=verdicts, waiver=waiver, outcomes=outcomes)

    return lambda results: [*map(change, results)]


def causes(found: Difference) -> set[tuple[str, ...]]:
    return {change.causes for change in found.changes}


CHANGED = ("turns", "zero-beside-infer")
RENDERERS: Mapping[str, Callable[[Difference], str]] = {
    "text": lambda found: plain(diff_report.format_changes(found)),
    "Markdown": diff_report.render_markdown,
    "page": diff_report.render_html,
}
ENVIRONMENT: Mapping[str, Any] = {"environment": {"python": "3.99", "numpy": "9"}}


def test_two_equal_runs_differ_in_nothing(plan: Plan, tmp_path: Path) -> None:
    found = compare_with_right(plan, tmp_path, Right())
    assert not found.changes
    assert not found.worse
    assert found.standings == ()
    tests = sum(len(row.documents) for row in plan.rows)
    assert diff_report.format_verdict(found) == f"nothing changed in {tests} tests"


def test_another_backend_is_the_cause_of_what_it_does(plan: Plan, tmp_path: Path) -> None:
    found = compare_with_right(plan, tmp_path, Wrong())
    assert found.worse
    assert causes(found) == {("backend",)}
    assert {change.case for change in found.changes if change.direction == "worse"} >= {"turns", "zero-beside-infer"}
    assert any(each.worse and each.now == "does not conform" for each in found.standings or ())
    assert ("backend", "backend · name", "right", "wrong") in [tuple(each) for each in found.header_changes]


@pytest.mark.parametrize("name", RENDERERS)
def test_what_failed_comes_first_the_worst_severity_in_front(plan: Plan, tmp_path: Path, name: str) -> None:
    crashes = with_verdict("fail", "flattens", kind="crash", type=None, dims=None)
    found = compare_with_right(plan, tmp_path, Wrong(), crashes)
    text = RENDERERS[name](found)
    assert "something got worse" in text.lower()
    failures = [*diff_report.count_failures(found, "worse")]
    assert [each.severity for each in failures][:2] == ["ends the process", "wrong answer"]
    said = [text.index(words) for words in (*(each.title for each in failures), "flattens", "turns")]
    assert said == sorted(said)
    assert sum(diff_report.count_failures(found, "worse").values()) == found.counts["worse"]


@pytest.mark.parametrize("name", RENDERERS)
def test_an_answer_fails_only_in_the_documents_that_forbid_the_call(plan: Plan, tmp_path: Path, name: str) -> None:
    """The row of an operation is judged in three; where the call is unspecified, nothing is wrong with an answer."""
    found = compare_with_right(plan, tmp_path, AnswersZero())
    assert [each.severity for each in diff_report.count_failures(found, "worse")] == ["accepts an illegal call"]
    assert found.counts["other"] > 0
    assert not diff_report.count_failures(found, "other")
    forbidden, _, unspecified = RENDERERS[name](found).rpartition("case by case" if name == "page" else " other: ")
    assert "(answered an illegal call)" in forbidden
    assert "[0, 3]" in unspecified
    assert "illegal" not in unspecified.partition("</section>")[0]


UNREPEATED = {"kind": "crash", "message": "signal 11 (flaky: not alone in a fresh process)"}
OTHER_SUITE = {"version": "9", "digest": "another", "documents": {}}
CAUSE_OF: Mapping[str, tuple[dict[str, Any], Mapping[str, Any], str]] = {
    # what changed: (how the case came out, the header, the cause)
    "nothing that is pinned": ({"dims": [1]}, {}, "another build or flaky"),
    "the environment, and a crash that did not come again": (UNREPEATED, ENVIRONMENT, "flaky"),
    "the environment": ({"dims": [1]}, ENVIRONMENT, "environment"),
    "the time limit": ({"kind": "timeout", "type": None, "dims": None}, {"limits": {"timeout": 1.0}}, "environment"),
    "the suite that judges": ({}, {"suite": OTHER_SUITE}, "suite"),
}


@pytest.mark.parametrize("what", CAUSE_OF)
def test_a_change_has_its_cause(plan: Plan, tmp_path: Path, what: str) -> None:
    outcome, header, cause = CAUSE_OF[what]
    found = compare_with_right(plan, tmp_path, Right(), with_verdict("fail", **outcome), **header)
    assert causes(found) == {(cause,)}
    assert (found.standings is None) == (cause == "suite"), "verdicts of another suite are not ours to compare"
    ruled = next(rule for rule in plan.suite.spec.rules.values() if rule.decided_for)
    rows = [row for row in plan.rows if row.case.rule == ruled.id]
    assert cause != "suite" or not rows or {"ruling"} <= {cause for each in causes(found) for cause in each}


def test_a_waiver_is_the_cause_of_what_it_sets_aside(plan: Plan, tmp_path: Path) -> None:
    old = finish_run(plan, Wrong(), tmp_path / "old")
    waived, waivers = with_verdict("waived", waiver=1), [{**FOR_TURNS, "breaks": "lower-bound"}]
    new = finish_run(plan, Wrong(), tmp_path / "new", waived, waivers=waivers)
    found = compare_runs(old.evidence, new.evidence, plan)
    assert causes(found) == {("waiver",)}
    assert {change.direction for change in found.changes} == {"set aside"}
    assert not found.counts["worse"]
    assert [each.what for each in found.header_changes] == ["waiver of turns, lower-bound"]


@pytest.mark.parametrize("claims_less", [False, True])
def test_a_crash_that_became_a_rejection_is_better(plan: Plan, tmp_path: Path, claims_less: bool) -> None:
    """The call was not claimed before either; otherwise the failure is set aside."""
    crashes = with_verdict("fail", kind="crash", type=None, dims=None)
    rejects = with_verdict("not claimed", kind="rejected", type=None, dims=None)
    old = finish_run(plan, Right(), tmp_path / "old", crashes)
    claims = {"claims": {**old.evidence.header["claims"], "not_claimed": ["type:f32"]}} if claims_less else {}
    new = finish_run(plan, Right(), tmp_path / "new", rejects, **claims)
    found = compare_runs(old.evidence, new.evidence, plan)
    assert {change.direction for change in found.changes} == {"set aside" if claims_less else "better"}


@pytest.mark.parametrize(
    ("part", "name"),
    [({"types": ("f32",)}, "-f32"), ({"documents": ("static-oneapi",)}, "[Static"), ({"select": "stays"}, "stays[")],
)
def test_what_one_run_was_not_asked_for_is_not_compared(
    plan: Plan, tmp_path: Path, part: dict[str, Any], name: str
) -> None:
    whole = finish_run(plan, Right(), tmp_path / "whole").evidence
    one = finish_run(plan, Right(), tmp_path / "part", call_only(name), target=Target(**part).to_json()).evidence
    for found in (compare_runs(whole, one, plan), compare_runs(one, whole, plan)):
        assert (found.changes, found.standings, found.worse) == ((), (), False)
        assert found.tests + found.asked_once == sum(len(row.documents) for row in plan.rows)
        for way in RENDERERS.values():
            assert f"not compared: {found.asked_once} tests that only one run was asked for" in way(found).lower()


def test_a_row_of_the_target_that_was_not_run_is_worse(plan: Plan, tmp_path: Path) -> None:
    idle = with_verdict("not run", kind="none")
    target = Target(operations=("StaticReshape",)).to_json()
    found = compare_with_right(plan, tmp_path, Right(), idle, target=target)
    assert {change.case for change in found.changes if change.direction == "worse"} == {"turns"}
    assert found.worse


def test_rows_of_only_one_run_are_neither_better_nor_worse(plan: Plan, tmp_path: Path) -> None:
    def another(results: list[Result]) -> list[Result]:
        return [*results[1:], results[0]._replace(row="new[StaticReshape-f32]", verdicts={"static-oneapi": "fail"})]

    found = compare_with_right(plan, tmp_path, Right(), another)
    text_of = {change.row: change for change in found.changes}
    assert text_of["new[StaticReshape-f32]"].now == "fail"
    assert {change.direction for change in found.changes} == {"other"}
    assert not any(change.direction == "worse" for change in found.changes)
    assert text_of[plan.rows[0].id].now == "no such row"


@pytest.mark.parametrize("way", ["worse", "other"])
def test_a_failure_with_a_worse_severity_is_worse(plan: Plan, tmp_path: Path, way: str) -> None:
    """A rejection that had become a crash was told as nothing worse."""
    ends: list[dict[str, Any]] = [{"kind": "rejected", "stage": "run"}, {"kind": "crash"}]
    old, new = (
        finish_run(plan, Right(), tmp_path / end["kind"], with_verdict("fail", type=None, dims=None, **end)).evidence
        for end in (ends if way == "worse" else ends[::-1])
    )
    found = compare_runs(old, new, plan)
    assert {change.direction for change in found.changes} == {way}
    assert found.worse == (way == "worse")


@pytest.mark.parametrize("was", VERDICTS)
@pytest.mark.parametrize("now", VERDICTS)
def test_no_way_to_a_failure_or_from_a_pass_is_better(was: Verdict, now: Verdict) -> None:
    found = find_direction(was, now)
    if now in ("fail", "error") and was not in ("fail", "error"):
        assert found == "worse"
    if was in ("pass", "observed"):
        assert found == ("other" if now in ("pass", "observed") else "worse")
    if was in ("fail", "error") and now in ("waived", "not claimed", "not run"):
        assert found == "set aside", "a failure that is no longer counted is not mended"
    if was in ("not claimed", "not run") and now == "observed":
        assert found == "other", "a call that nothing settles was not mended"
    if found == "better":
        assert now in ("pass", "observed")
    if (was, now) in {("error", "fail"), ("not claimed", "waived"), ("not run", "waived")}:
        assert found == ("other" if now == "fail" else "worse")
    assert (found == "better") <= (find_direction(now, was) in ("worse", "set aside"))


def test_what_neither_run_claims_is_no_test(plan: Plan, tmp_path: Path) -> None:
    runs = [finish_run(plan, OnlyStatic(), tmp_path / name) for name in ("old", "new")]
    assert compare_runs(runs[0].evidence, runs[1].evidence, plan).tests == runs[0].conclusion.tests
    assert runs[0].conclusion.tests < sum(len(row.documents) for row in plan.rows)


def test_a_new_claim_of_which_a_part_ran_is_not_worse(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held against whoever claimed one type more and ran the suite in part."""
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    file = tmp_path / "mine.py"
    backend = """
from conformance import Claims
from conformance.adapters.reference import Reference
class {}(Reference):
    claims = Claims(("StaticReshape",), {}, True)
"""
    file.write_text(backend.format("Old", ("type:bf16",)) + backend.format("New", ()))
    for name in ("Old", "New"):
        command.run(f"{file}:{name}", "-k", "flattens", out=tmp_path / name).expect(4)
    words = ("diff", tmp_path / "Old", tmp_path / "New", "--suite", command.folder)
    said = command(*words).expect(0, err="conformance: judging again 1 of ")
    data = command(*words, "--json", "--out", tmp_path / "diff.md").expect(0).data
    assert (data["worse"], (tmp_path / "diff.md").read_text().partition(": ")[0]) == (False, "# ✓ Reshape conformance")
    assert "static-oneapi bf16: not claimed → incomplete" in said.out
    assert "nothing got worse: " in said.out


def test_rows_no_longer_claimed_are_one_line(plan: Plan, tmp_path: Path) -> None:
    """Failures that are claimed again have a line each."""

    def unclaimed(results: list[Result]) -> list[Result]:
        for case in CHANGED:
            results = with_verdict("not claimed", case, kind="unsupported")(results)
        return results

    claims = Claims(tuple(plan.suite.spec.operations), ("declared",)).to_json()
    found = compare_with_right(plan, tmp_path / "less", Right(), unclaimed, claims=claims)
    assert causes(found) == {("claims",)}
    old = finish_run(plan, Right(), tmp_path / "old", unclaimed, claims=claims)
    failing = compare_runs(old.evidence, finish_run(plan, Wrong(), tmp_path / "new").evidence, plan)
    for text_of in RENDERERS.values():
        assert "2 cases" in text_of(found)
        assert "turns" not in text_of(found)
        assert all(case in text_of(failing) for case in CHANGED)


def test_calls_rejected_at_another_stage_are_one_line(plan: Plan, tmp_path: Path) -> None:
    def rejected_at(stage: str) -> Evidence:
        def change(results: list[Result]) -> list[Result]:
            for case in CHANGED:
                results = with_verdict("pass", case, kind="rejected", stage=stage)(results)
            return results

        return finish_run(plan, Right(), tmp_path / stage, change).evidence

    found = compare_runs(rejected_at("run"), rejected_at("compile"), plan)
    (group,) = diff_report.group_changes(found, "other")
    assert (group.case, group.answers) == ("2 cases", "rejected at run → rejected at compile")


def test_the_page_names_the_runs_and_begins_with_their_verdicts(plan: Plan, tmp_path: Path) -> None:
    found = compare_with_right(plan, tmp_path, Wrong())
    page = diff_report.render_html(found, "old/report.html", "new/report.html")
    assert "<title>right 1 → wrong 1: " in page
    names = {"old": "right", "new": "wrong"}
    old, new = (f'<a href="{run}/report.html"><bdi>{name} 1</bdi></a>' for run, name in names.items())
    assert f"<h1>{old} → {new}</h1>" in page
    order = [page.index(f'<h2 id="{name}">') for name in ("documents", "worse", "why", "legend")]
    assert order == sorted(order)
    assert [now.failed > was.failed for was, now in found.documents] == [True] * len(plan.suite.spec.documents)
    assert 'href="new/report.html#case-turns"' in page


def test_the_name_of_a_folder_leads_only_into_it(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "javascript:alert(1)"
    reporting.run("planted:zero-flag-ignored", out=reporting.folder / name)
    monkeypatch.chdir(reporting.folder)
    reporting("diff", name, name, "--out", "page.html", "--suite", reporting.folder).expect(0)
    page = (reporting.folder / "page.html").read_text(encoding="utf-8")
    assert "javascript%3Aalert%281%29/report.html" in page
    assert "javascript:" not in page


def test_a_name_cannot_act_on_whoever_reads_the_difference(plan: Plan, tmp_path: Path) -> None:
    class MarkupAsName(Wrong):
        name = "```\n</script><img src=x onerror=alert(1)>|](http://evil.example)\u202e\x1b[31m"

    found = compare_with_right(plan, tmp_path, MarkupAsName())
    text, summary, page = (render(found) for render in RENDERERS.values())
    assert "<img" not in page
    assert not any(character in page + summary + text for character in "\u202e\x1b")
    assert "evil" in summary
    assert "evil" not in re.sub(r"(?ms)^(`{4})text\n.*?\n\1$", "", summary)


@pytest.mark.slow
def test_the_command_ends_with_1_where_something_got_worse(command: Command) -> None:
    right, wrong = command.folder / "right", command.folder / "wrong"
    command.run("reference", out=right).expect(0)
    command.run("planted:rejects-everything", out=wrong).expect(1)
    few = ("--suite", command.folder)
    said = command("diff", right, wrong, *few).expect(1, out="✗ worse").out
    command.run("planted:rejects-everything", "-k", said.partition(" -k ")[2].strip().strip("'")).expect(1)
    said = command("diff", wrong, right, *few).expect(0, out=f"next: conformance verify --suite {command.folder} ").out
    assert said.count("nothing got worse") == 1
    command("diff", right, right, *few, "--json").expect(0)
    command.run("reference", "-k", "stays", out=command.folder / "part").expect(4)
    command("diff", wrong, command.folder / "part", *few).expect(0, out="only one run was asked for")
    command.run("reference", "-k", "minus-two", out=command.folder / "other").expect(4)
    command("diff", command.folder / "part", command.folder / "other", *few).expect(2, err="have no test in common")
    for name in ("changes.html", "changes.md"):
        command("diff", right, wrong, *few, "--out", command.folder / name).expect(1)
        assert (command.folder / name).stat().st_size > 1000
    command("diff", right, wrong, *few, "--out", command.folder / "changes.pdf").expect(2)
    command("diff", right, command.folder, *few).expect(2)


@pytest.mark.slow
def test_rows_after_maxfail_are_compared_in_a_shard(command: Command) -> None:
    whole, cut = command.folder / "whole", command.folder / "cut"
    for folder, more in ((whole, ()), (cut, ("--maxfail", "1"))):
        command.run("planted:rejects-everything", "--shard", "1/2", *more, out=folder)
    said = command("diff", whole, cut, "--suite", command.folder).expect(1, out="✗ worse")
    assert "why: stopped" in said.out
    assert "flaky" not in said.out


DRAWN = Drawn(0, 20)


class DrawnCalls(NamedTuple):
    """A run as it calls drawn rows: those that fail, and how many it calls."""

    failing: tuple[int, ...]
    calls: int = DRAWN.rows
    kept: int = 99
    """The number of failures that the evidence holds; the others are of kinds that it has."""
    not_claimed: tuple[str, ...] = ()


def drawn_run(plan: Plan, folder: Path, calls: DrawnCalls) -> Evidence:
    """A right run of a few cases, after which drawn rows are called."""
    claims = Claims(tuple(plan.suite.spec.operations), calls.not_claimed)
    rows = list(RowDrawer(plan.suite.spec, claims).rows(DRAWN))
    results = [make_result_without_call(rows[number], "fail") for number in calls.failing]
    outcome = (Outcome("tensor", "f32", (7,)),)
    failed = [each._replace(outcomes=outcome, diagnosis="wrong dims", detail="it was") for each in results]
    evidence = finish_run(plan, Right(), folder, drawn=DRAWN.to_json(), claims=claims.to_json()).evidence
    footer = {**evidence.footer, "drawn": {"called": calls.calls, "failed": len(failed)}}
    return replace(evidence, results=(*evidence.results, *failed[: calls.kept]), footer=footer)


@cache
def same_rule() -> tuple[int, int]:
    """The numbers of two drawn rows about the same rule."""
    spec = load_spec()
    rules: dict[str, int] = {}
    for number, row in enumerate(RowDrawer(spec, Claims(tuple(spec.operations))).rows(DRAWN)):
        if row.case.rule in rules:
            return rules[row.case.rule], number
        rules[row.case.rule] = number
    raise AssertionError


BOTH_CALLED: Mapping[str, tuple[DrawnCalls, DrawnCalls, str]] = {
    "fails in the new run only": (DrawnCalls(()), DrawnCalls((7,)), "worse"),
    "fails in the old run only": (DrawnCalls((7,)), DrawnCalls(()), "better"),
    "fails beside another one": (DrawnCalls((3,)), DrawnCalls((3, 7)), "worse"),
    "the last that both called": (DrawnCalls((), calls=8), DrawnCalls((7,)), "worse"),
}
NOT_BOTH: Mapping[str, tuple[DrawnCalls, DrawnCalls]] = {
    "the old run ended before": (DrawnCalls((), calls=7), DrawnCalls((7,))),
    "the new run ended before": (DrawnCalls((7,)), DrawnCalls((), calls=7)),
    "other claims": (DrawnCalls((), not_claimed=("layout:broadcast",)), DrawnCalls((7,))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH_CALLED)
def test_a_drawn_row_that_both_runs_called_is_compared(plan: Plan, tmp_path: Path, name: str) -> None:
    was, now, way = BOTH_CALLED[name]
    found = compare_runs(drawn_run(plan, tmp_path / "old", was), drawn_run(plan, tmp_path / "new", now), plan)
    (change,) = found.changes
    assert change.case == "drawn-0-7"
    assert (change.direction, found.worse) == (way, way == "worse")
    assert (change.was, change.now) == (("did not fail", "fail") if way == "worse" else ("fail", "did not fail"))
    assert found.counts[change.direction] == len(change.documents)
    assert found.not_compared == 0


def test_rows_after_the_last_call_are_not_drawn_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was asked for a thousand million rows ends after twelve kinds of failures."""
    runs = [drawn_run(plan, tmp_path / str(n), calls) for n, calls in enumerate((DrawnCalls(()), DrawnCalls((7,))))]
    old, new = (replace(each, header={**each.header, "drawn": {"seed": 0, "rows": 10**9}}) for each in runs)
    rows, drawn = RowDrawer.rows, 0

    def count_rows(*args: Any) -> Iterator[Row]:
        nonlocal drawn
        for row in rows(*args):
            drawn += 1
            assert drawn <= DRAWN.rows
            yield row

    monkeypatch.setattr(RowDrawer, "rows", count_rows)
    assert [change.case for change in compare_runs(old, new, plan).changes] == ["drawn-0-7"]


def test_a_run_without_drawn_rows_differs_by_that_alone(plan: Plan, tmp_path: Path) -> None:
    old = finish_run(plan, Right(), tmp_path, drawn=DRAWN.to_json()).evidence
    new = replace(old, header={name: value for name, value in old.header.items() if name != "drawn"})
    seen = [each[1:] for each in compare_runs(old, new, plan).header_changes]
    assert seen == [("drawn · seed", str(DRAWN.seed), "nothing"), ("drawn · rows", str(DRAWN.rows), "nothing")]


@pytest.mark.slow
def test_a_run_under_a_nonce_differs_by_that(plan: Plan, tmp_path: Path) -> None:
    old = finish_run(plan, Right(), tmp_path).evidence
    new = replace(old, header={**old.header, "nonce": "0" * 64})
    assert [each[:2] for each in compare_runs(old, new, plan).header_changes] == [("suite", "nonce")]


def test_a_run_of_all_is_not_said_to_be_of_none(plan: Plan, tmp_path: Path) -> None:
    target = {"target": Target(types=("f32",), require=("chain",)).to_json()}
    seen = [each[1:] for each in compare_with_right(plan, tmp_path, Right(), **target).header_changes]
    assert seen == [("target · types", "all", "f32"), ("target · require", "none", "chain")]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_BOTH)
def test_a_drawn_row_of_one_run_is_neither_better_nor_worse(plan: Plan, tmp_path: Path, name: str) -> None:
    was, now = NOT_BOTH[name]
    old, new = drawn_run(plan, tmp_path / "old", was), drawn_run(plan, tmp_path / "new", now)
    found = compare_runs(old, new, plan)
    assert (found.changes, found.worse, found.standings) == ((), False, ())
    assert found.not_compared == 1
    assert any(before.failed != after.failed for before, after in found.documents), "both pages keep their numbers"
    for way in RENDERERS.values():
        assert "not compared: 1 drawn row that failed in one run" in way(found).lower()


def test_a_drawn_row_of_another_suite_is_not_compared(plan: Plan, tmp_path: Path) -> None:
    old, new = drawn_run(plan, tmp_path / "old", DrawnCalls(())), drawn_run(plan, tmp_path / "new", DrawnCalls((7,)))
    suite = {**old.header["suite"], "digest": "another"}
    found = compare_runs(replace(old, header={**old.header, "suite": suite}), new, plan)
    assert not found.changes
    assert not found.worse


@pytest.mark.slow
def test_a_drawn_row_that_may_have_failed_unkept_is_not_compared(plan: Plan, tmp_path: Path) -> None:
    """A run keeps the first failure of each kind; a later row about the same rule may be another one."""
    first, second = same_rule()
    both = DrawnCalls((first, second), kept=1)
    new = replace(drawn_run(plan, tmp_path / "new", DrawnCalls((second,))))
    found = compare_runs(drawn_run(plan, tmp_path / "old", both), new, plan)
    assert {change.case: change.direction for change in found.changes} == {f"drawn-0-{first}": "better"}
    assert found.not_compared == 1


def test_a_full_disk_leaves_the_page_of_before(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    reporting.run("reference", "--drawn-rows", "0")
    (page := reporting.folder / "page.html").write_text("before")
    monkeypatch.setattr(os, "replace", full)
    words = (reporting.out, reporting.out, "--suite", reporting.folder, "--out", page)
    reporting("diff", *words).expect(2, err=f"{page}: No space left on device")
    assert page.read_text() == "before"


@pytest.mark.parametrize(
    ("things", "out", "why"),
    [
        (("old", "new"), "x.pdf", "--out x.pdf: the name must end in .md or .html, which says what to write"),
        (("static-oneapi", "static-graph-v0.9"), "x.md", "--out is for two runs; what differs between documents is"),
    ],
)
def test_a_file_that_cannot_be_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, things: tuple[str, str], out: str, why: str
) -> None:
    """Runs are not even read."""
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        Path(name).touch()
    cli("diff", *things, "--out", out).expect(2, err=why)
