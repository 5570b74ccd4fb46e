"""Evidence of an earlier suite with no other rows than the present one needs no new run."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.load.folders import find_cases_folder
from conformance.load.locks import LOCK, SUITES_LOCK, find_earlier_suites, read_locked_rows
from conformance.model import EarlierSuite
from conformance.selfcheck.check_cases import TO_LOCK, lock_problems
from conformance.selfcheck.same_rows import digest_rows, lock_suite

from ..builders import bundled_plan


@pytest.fixture
def three_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.selfcheck.same_rows.count_drawn_rows", lambda combinations: 3)


@pytest.mark.slow
def test_the_bundled_rows_are_those_that_are_locked() -> None:
    plan, (*before, now) = bundled_plan(), read_locked_rows(find_cases_folder())
    assert digest_rows(plan) == now.digest, "the rows changed: conformance check --lock, and all libraries again"
    assert plan.suite.digest == now.suites[-1]
    for each in before:
        rows = digest_rows(plan.as_of(plan.suite.earlier[each.suites[0]]))
        assert rows == each.digest, "an earlier row changed: evidence of earlier suites counts no more"


@pytest.mark.usefixtures("three_drawn_rows")
def test_a_row_with_another_call_or_meaning_is_another() -> None:
    plan = bundled_plan()
    rows, case = plan.rows[:50], plan.rows[0].case
    digest = digest_rows(replace(plan, rows=rows))
    renamed = rows[0]._replace(case=replace(case, title="new words", rule="one-infer", links=("https://example.com",)))
    assert digest_rows(replace(plan, rows=(renamed, *rows[1:]))) == digest
    for changed in (replace(case, times=2), replace(case, steps=(replace(case.steps[0], shapes=((1,),)),))):
        assert digest_rows(replace(plan, rows=(rows[0]._replace(case=changed), *rows[1:]))) != digest


@pytest.mark.usefixtures("three_drawn_rows")
def test_a_suite_joins_those_with_its_rows(tmp_path: Path) -> None:
    plan = replace(bundled_plan(), rows=bundled_plan().rows[:50])
    later = replace(plan, suite=replace(plan.suite, digest="b" * 64))
    assert [each.what.endswith(TO_LOCK) for each in lock_problems(later.suite, find_cases_folder())] == [True]
    for each in (plan, later, later):
        lock_suite(each, tmp_path)
    assert [each.suites for each in read_locked_rows(tmp_path)] == [(plan.suite.digest, "b" * 64)]
    lock_suite(replace(later, rows=plan.rows[1:]), tmp_path)
    assert [each.suites for each in read_locked_rows(tmp_path)] == [("b" * 64,)], "a row is gone"


@pytest.mark.parametrize("cut", [0, 1, 3, 6, 8])
def test_suites_below_a_damaged_line_are_unknown(tmp_path: Path, cut: int) -> None:
    """It was a traceback."""
    words = ["rows", "a" * 64, "of", "3", "cases", "and", "2", "combinations", "b" * 64]
    (tmp_path / SUITES_LOCK).write_text(" ".join(words[:cut] + words[cut + 1 :]))
    assert find_earlier_suites(tmp_path, "b" * 64) == {}
    (tmp_path / SUITES_LOCK).write_text(" ".join(words))
    assert "b" * 64 in find_earlier_suites(tmp_path, "b" * 64)


@pytest.mark.usefixtures("three_drawn_rows")
def test_a_suite_with_more_rows_has_those_of_the_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case is added, then a combination; then the case changes, and only the first suite is left beside the last."""
    plan = bundled_plan()
    old, new = (next(row for row in plan.rows if row.case.id == case) for case in [*plan.suite.cases][:2])
    changed = new._replace(case=replace(new.case, times=2))
    suites = {"a": (old,), "b": (new, old), "c": (new, old), "d": (changed, old)}
    plans = [replace(plan, rows=rows, suite=replace(plan.suite, digest=name)) for name, rows in suites.items()]
    ids = [f"{old.case.id}\n", *[f"{old.case.id}\n{new.case.id}\n"] * 3]
    for each, names, combinations in zip(plans, ids, (3, 3, 4, 4), strict=True):
        monkeypatch.setattr("conformance.selfcheck.same_rows.count_combinations", lambda: combinations)  # noqa: B023
        (tmp_path / LOCK).write_text(names)
        lock_suite(each, tmp_path)
        if each.suite.digest == "c":
            assert find_earlier_suites(tmp_path, "c") == {
                "a": EarlierSuite(frozenset({new.case.id}), 3), "b": EarlierSuite(frozenset(), 3), "c": EarlierSuite(),
            }  # fmt: skip
    assert [*find_earlier_suites(tmp_path, "d")] == ["a", "d"]
    assert find_earlier_suites(tmp_path, "another") == {}
