"""Evidence of a suite in the list of those with the same rows needs no new run."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.load.cases import SUITES_LOCK, read_lock
from conformance.load.folders import find_cases_folder
from conformance.selfcheck.check_cases import TO_LOCK, lock_problems
from conformance.selfcheck.same_rows import digest_rows, lock_suite

from ..builders import bundled_plan


@pytest.fixture
def nine_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.selfcheck.same_rows.count_drawn_rows", lambda: 9)


@pytest.mark.slow
def test_the_bundled_rows_are_those_that_are_locked() -> None:
    plan, locked = bundled_plan(), read_lock(find_cases_folder(), SUITES_LOCK)
    assert digest_rows(plan) == locked[0], "the rows changed: conformance check --lock, and all libraries again"
    assert plan.suite.digest == locked[-1]
    assert plan.suite.digests_with_same_rows == {*locked[1:]}


@pytest.mark.usefixtures("nine_drawn_rows")
def test_a_row_with_another_call_or_meaning_is_another() -> None:
    plan = bundled_plan()
    rows, case = plan.rows[:50], plan.rows[0].case
    digest = digest_rows(replace(plan, rows=rows))
    renamed = rows[0]._replace(case=replace(case, title="new words", rule="one-infer", links=("https://example.com",)))
    assert digest_rows(replace(plan, rows=(renamed, *rows[1:]))) == digest
    for changed in (replace(case, times=2), replace(case, steps=(replace(case.steps[0], shapes=((1,),)),))):
        assert digest_rows(replace(plan, rows=(rows[0]._replace(case=changed), *rows[1:]))) != digest


@pytest.mark.usefixtures("nine_drawn_rows")
def test_a_suite_joins_those_with_its_rows(tmp_path: Path) -> None:
    plan = replace(bundled_plan(), rows=bundled_plan().rows[:50])
    later = replace(plan, suite=replace(plan.suite, digest="b" * 64))
    assert [each.what.endswith(TO_LOCK) for each in lock_problems(later.suite, find_cases_folder())] == [True]
    for each in (plan, later, later):
        lock_suite(each, tmp_path)
    assert read_lock(tmp_path, SUITES_LOCK)[1:] == [plan.suite.digest, "b" * 64]
    lock_suite(replace(later, rows=plan.rows[1:]), tmp_path)
    assert read_lock(tmp_path, SUITES_LOCK)[1:] == ["b" * 64]
