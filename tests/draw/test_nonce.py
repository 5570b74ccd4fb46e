"""A plan under a nonce: other elements, calls that are in no case, and the same plan for everyone with the nonce."""

from collections import Counter
from inspect import unwrap
from itertools import islice

import pytest

from conformance.draw.nonce import draw_nonce_cases, is_of_nonce, plan_under_nonce
from conformance.load.cases import load_suite
from conformance.meaning.contract import contracts
from conformance.model import Case
from conformance.plan.rows import Plan, plan_of

NONCE, OTHER_NONCE = "ab" * 32, "cd" * 32


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(load_suite())


@pytest.fixture(scope="module")
def under(plan: Plan) -> Plan:
    """Return that plan under the nonce."""
    return plan_under_nonce(plan, NONCE)


def fresh_cases_of(plan: Plan) -> list[Case]:
    return list({row.case.id: row.case for row in plan.rows if is_of_nonce(row.id)}.values())


def call_of(case: Case) -> object:
    (step,) = case.steps
    return step.src, step.shapes[0], step.special_zero[0]


@pytest.mark.slow
def test_suite_and_nonce_decide_the_plan(under: Plan) -> None:
    again = plan_under_nonce(plan_of(load_suite()), NONCE)
    assert [(row.id, row.case) for row in under.rows] == [(row.id, row.case) for row in again.rows]


@pytest.mark.slow
def test_the_first_calls_of_a_nonce(under: Plan) -> None:
    assert [call_of(case) for case in fresh_cases_of(under)[:3]] == [
        ((5, 2, 1, 1), (1, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2), True),
        ((3, 3, 7, 3), (3, 3, 1, 0, 1, 1, -1, 1, 7, 1), True),
        ((1, 1, 1, 577), (1, 1, 577, 1, 1, 1, 1, 1), False),
    ]


@pytest.mark.slow
def test_a_nonce_changes_only_where_elements_start(plan: Plan, under: Plan) -> None:
    chosen = {row.id for row in plan.rows[::21]}
    sources = [
        {row.id: row.steps[0].src_spec for row in each.rows if row.id in chosen}
        for each in (plan, under, plan_under_nonce(plan, OTHER_NONCE))
    ]
    assert sources[0].keys() == sources[1].keys() == sources[2].keys()
    for name, source in sources[0].items():
        others = [each[name] for each in sources[1:]]
        assert {other._replace(start=0) for other in others} == {source._replace(start=0)}, "only the start differs"
        assert len({source.start, *(other.start for other in others)}) == 3


@pytest.mark.slow
def test_a_nonce_draws_a_hundred_new_calls(plan: Plan) -> None:
    written = {
        (step.src, shape, zero)
        for case in plan.suite.cases.values()
        for step in case.steps
        for shape, zero in zip(step.shapes, step.special_zero, strict=True)
    }
    drawing = unwrap(draw_nonce_cases)(plan.suite, contracts(plan.suite.spec), OTHER_NONCE)
    both = fresh_cases_of(plan_under_nonce(plan, NONCE)), islice(drawing, 100)
    drawn = [{call_of(case) for case in fresh} for fresh in both]
    assert all(len(calls) >= 100 for calls in drawn)
    starts = [case.start for case in fresh_cases_of(plan_under_nonce(plan, NONCE))]
    assert len({*starts}) == len(starts), "no two begin with the same elements"
    assert not written & (drawn[0] | drawn[1])
    assert len(drawn[0] & drawn[1]) < 10


@pytest.mark.slow
def test_the_drawn_calls_are_spread_over_the_rules(plan: Plan) -> None:
    rules: Counter[str] = Counter()
    for row in plan_under_nonce(plan, NONCE).rows:
        if is_of_nonce(row.id) and row.type == "f32":
            (step,) = row.steps
            for judged in step.meanings:
                entries = row.contracts[judged.documents[0]].entries(*call_of(row.case))  # type: ignore[misc]
                broken = judged.meaning.rules if judged.meaning.kind == "illegal" else ()
                rules.update({*broken} or {entry.rule for entry in entries if entry.rule})
    wanted = (
        "same-volume", "lower-bound", "one-infer", "zero-literal", "zero-empties", "zero-meets-infer", "zero-copies",
        "infer-keeps-count", "literal-lengths",
    )  # fmt: skip
    assert all(rules[rule] >= 12 for rule in wanted), rules


def test_the_rows_of_a_nonce_have_its_first_digits() -> None:
    assert is_of_nonce("fresh-abababab-12[StaticReshape-f32]")
    assert not is_of_nonce("fresh-start[StaticReshape-f32]"), "a case of a user"


def test_a_plan_has_one_nonce(plan: Plan) -> None:
    assert plan_under_nonce(plan, None) is plan
    assert plan_under_nonce(plan_under_nonce(plan, NONCE), NONCE) is plan_under_nonce(plan, NONCE)
    with pytest.raises(ValueError, match="one nonce"):
        plan_under_nonce(plan_under_nonce(plan, NONCE), OTHER_NONCE)
