"""Backends beside one another: where they part, where one alone fails, and what they do where documents are silent."""

import json
import re
from pathlib import Path

import pytest

from conformance.model import Outcome, Result
from conformance.plan.rows import Plan
from conformance.report.judged_run import JudgedRun
from conformance.report.table_sections import collect_rules
from conformance.site.compare_page import differs, does_one_fail, name_runs

from ..builders import OnlyStatic, Right, Wrong, compare, finish_run

Runs = list[JudgedRun]


@pytest.fixture
def runs(plan: Plan, tmp_path: Path) -> Runs:
    """A run of a right backend and one of a wrong one."""
    return [finish_run(plan, Right(), tmp_path / "right"), finish_run(plan, Wrong(), tmp_path / "wrong")]


def render(runs: Runs) -> str:
    """All pages in one text."""
    return "".join(compare(runs).values())


def lines(page: str, name: str) -> dict[str, str]:
    """The lines of a section by the text of their heading."""
    section = page[page.index(f'<h2 id="{name}">') :]
    section = section[: section.index("</section>")]
    found = {}
    for row in re.findall(r"(?s)<tr.*?(?=<tr|</table>)|<div data-s.*?</div>", section):
        heading = re.search(r'<(?:th scope="?row"?|dt)[^>]*>(?:<a [^>]*>)?(?:<bdi>)?([\w-]+)', row)
        if heading:
            found[heading.group(1)] = row
    return found


def test_every_rule_that_has_cases_and_every_case_has_a_line(runs: Runs, plan: Plan) -> None:
    page = render(runs)
    broken = {blamed.premise.rule for each in runs[1].conclusion.blames.values() for blamed in each.values()}
    listed = broken | {case.rule for case in plan.suite.cases.values()}
    assert set(lines(page, "rules")) == listed
    assert f"No test is about or breaks {', '.join(sorted({*plan.suite.spec.rules} - listed))}." in page
    assert set(lines(page, "cases")) == set(plan.suite.cases)
    assert set(lines(page, "verdicts")) == {"right", "wrong"}
    assert all(f'aria-label="{document}: ' in page for document in plan.suite.spec.documents)


def test_a_case_in_which_one_alone_fails_is_marked_so(runs: Runs) -> None:
    """Cases in which verdicts differ come first."""
    found = lines(render(runs), "cases")
    assert 'data-s="disagreements one-fails"' in found["turns"]
    assert 'data-s=""' in found["flattens"]
    assert "✓ pass" in found["turns"]
    assert "≠ wrong answer" in found["turns"]
    kinds = ["disagreements" in line for line in found.values()]
    assert kinds == sorted(kinds, reverse=True)
    assert len(set(kinds)) == 2


def test_of_single_calls_those_that_end_a_process_come_first(runs: Runs, plan: Plan, tmp_path: Path) -> None:
    def crash_flattens(results: list[Result]) -> list[Result]:
        crashed = Outcome("crash", message="SIGSEGV")
        return [
            Result(each.row, dict.fromkeys(each.verdicts, "fail"), (crashed,)) if "flattens" in each.row else each
            for each in results
        ]

    wrong, crashing = runs[1], finish_run(plan, Right(), tmp_path / "crashing", crash_flattens)
    assert list(lines(render([wrong, wrong, crashing]), "cases"))[:2] == ["flattens", "turns"]


def test_backends_that_do_the_same_do_not_disagree(runs: Runs, plan: Plan, tmp_path: Path) -> None:
    right, wrong = runs
    both = [right, finish_run(plan, Right(), tmp_path / "again")]
    assert not any(differs([run.rows_by_case[case] for run in both]) for case in plan.suite.cases)
    assert not any(does_one_fail([run.rows_by_case[case] for run in both]) for case in plan.suite.cases)
    assert name_runs(both) == ["right 1 (1)", "right 1 (2)"]
    assert not does_one_fail([wrong.rows_by_case["turns"], wrong.rows_by_case["turns"]]), "two fail"


def test_what_most_did_is_told_last_and_by_number(runs: Runs) -> None:
    right, wrong = runs
    found = lines(render([right, right, wrong, right, right]), "cases")
    assert words(found["turns"]).endswith("≠ wrong answer T[6]: wrong 1 ✓ pass T[3, 2]: the other 4")
    assert words(found["flattens"]).endswith("✓ pass T[6]: all 5")


def test_a_line_has_the_group_of_each_backend(runs: Runs) -> None:
    page = compare(runs)["compare.html"]
    found = lines(page, "cases")
    cells = json.loads(page.rpartition('id="cells">')[2].split("</script>")[0])

    def cells_of(case: str) -> list[str]:
        (number,) = re.findall(r"data-c=(\d+)", found[case])
        return list(cells[int(number)])

    assert cells_of("turns") == ["0;1", "1,0"], "the group that fails is first"
    assert cells_of("flattens") == ["0", "0,0"]


def test_a_failing_backend_leads_to_its_report(runs: Runs) -> None:
    line = lines(render(runs), "rules")["dst-has-shape-rank"]
    assert re.findall(r'href="([^"]*)"', line) == ["spec/differences.html#rule-dst-has-shape-rank", "1/report.html"]


def words(markup: str) -> str:
    """The text that a person reads."""
    return " ".join(re.sub(r"<[^>]*>", "", re.sub(r"<(?:li|dd|br)", r" \g<0>", markup)).split())


def test_what_was_not_run_or_not_claimed_is_no_disagreement(runs: Runs, plan: Plan, tmp_path: Path) -> None:
    right, wrong = runs
    part = finish_run(plan, Right(), tmp_path / "part", lambda results: [quiet(each) for each in results])
    assert not any(differs([right.rows_by_case[case], part.rows_by_case[case]]) for case in plan.suite.cases)
    assert differs([right.rows_by_case["turns"], wrong.rows_by_case["turns"], part.rows_by_case["turns"]])
    assert "○ not claimed" in words(lines(render([right, part]), "cases")["turns"])


def test_the_head_counts_what_each_backend_claims(runs: Runs, plan: Plan, tmp_path: Path) -> None:
    part = finish_run(plan, OnlyStatic(), tmp_path / "static")
    fewest, most = part.conclusion.tests, runs[0].conclusion.tests
    assert f"{fewest} to {most} tests each" in words(render([*runs, part]))
    assert f" {most} tests each" in words(render(runs))


def quiet(result: Result) -> Result:
    """A result as if the backend left all of it out."""
    return Result(result.row, dict.fromkeys(result.verdicts, "not claimed"), (Outcome("unsupported"),))


def test_a_rule_names_the_backends_that_fail_it_worst_first(runs: Runs) -> None:
    right, wrong = runs
    page = render([right] * 4 + [wrong])
    found = lines(page, "rules")
    (broken,) = (each.broken for each in collect_rules(wrong) if each.rule.id == "dst-has-shape-rank")
    assert words(found["dst-has-shape-rank"]).endswith(f"≠ wrong answer: wrong 1 {len(broken)} □ not run: the other 4")
    assert "□ not run: no test about the rule ran, if there is one, and no other breaks it." in words(page)
    assert words(found["same-volume"]).endswith("✓ pass: all 5"), "the tests about it that fail break another rule"


def test_what_documents_leave_open_is_shown_for_each_backend(runs: Runs) -> None:
    page = render(runs)
    line = lines(page, "observed")["copies-past-rank"]
    assert "rejected at run" in line
    assert "zero-past-rank" in line
    assert "3/18 means 3 of 18 rows." in page, "a row is a test in each document"
    assert 'data-s="disagreements' in line


def test_each_page_names_its_suite_and_loads_nothing_of_others(runs: Runs, plan: Plan) -> None:
    for page in compare(runs).values():
        assert plan.suite.digest[:12] in page
        assert "default-src 'none'" in page
        assert not re.search(r'\b(?:src|href)="(?:https?:)?//', page)
        assert " on" + "click" not in page
