"""The steps of a case with `each` are one row, which names the step that fails."""

from collections.abc import Iterator
from math import prod
from typing import Any, cast

import pytest

from conformance.model import Crashed, Outcome, OutcomeKind, Result, Tensor, Verdict
from conformance.plan.rows import Plan, Row
from conformance.run.row import call_parts, judge_row, run_row
from conformance.verdict.rejudge import find_contradictions

from .. import miniatures
from ..builders import bundled_plan, bundled_rows


class WrongFor(miniatures.Bent):
    """Loses the last element of some counts, or dies of them."""

    counts: tuple[int, ...] = ()
    dies = False

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if prod(src.dims) in self.counts:
            if self.dies:
                raise Crashed("SIGSEGV")
            answer = answer.copy()
            answer.reshape(-1)[-1:] = 0
        return answer


def row() -> Row:
    return bundled_rows()["every-count-to-eleven-hundred[StaticReshape-f32]"]


def result(one: Row, *counts: int, dies: bool = False) -> Result:
    adapter = WrongFor()
    adapter.counts, adapter.dies = counts, dies
    return run_row(one, adapter)


def test_a_row_of_many_steps_passes_with_one_outcome() -> None:
    done = result(row())
    assert set(done.verdicts.values()) == {"pass"}
    assert (len(done.outcomes), len(done.digests), done.step) == (1, 1, 0)


@pytest.mark.parametrize("dies", [False, True])
def test_the_first_step_that_fails_is_named(dies: bool) -> None:
    one = row()
    done = result(one, 1000, 1001, dies=dies)
    assert set(done.verdicts.values()) == {"fail"}
    assert one.case.steps[done.step].src == (1000,)
    assert done.outcome.kind == ("crash" if dies else "tensor")
    assert done.diagnosis


@pytest.mark.parametrize(
    ("kinds", "verdict", "judged"),
    [("unsupported tensor tensor", "not claimed", 3), ("tensor unsupported tensor", "not claimed", 3),
     ("tensor crash tensor", "fail", 2)],
)  # fmt: skip
def test_the_worst_step_decides_up_to_the_first_that_fails(kinds: str, verdict: Verdict, judged: int) -> None:
    one, looked_at = row(), list[int]()

    def parts() -> Iterator[tuple[int, list[Outcome]]]:
        for (number, outcomes), kind in zip(call_parts(one, miniatures.Bent()), kinds.split(), strict=False):
            looked_at.append(number)
            yield number, outcomes if kind == "tensor" else [Outcome(cast("OutcomeKind", kind), message="no")]

    done = judge_row(one, miniatures.Bent(), parts(), frozenset(["rank:2"]))
    assert ({*done.verdicts.values()}, len(looked_at)) == ({verdict}, judged)


def test_evidence_of_a_failing_step_contradicts_nothing() -> None:
    one = row()
    done = result(one, 37)
    back, plan = Result.from_json(done.to_json()), Plan(bundled_plan().suite, (one,))
    assert (back.step, back.outcome.dims, back.diagnosis) == (36, (1, 37), done.diagnosis)
    header = {
        "claims": {"operations": ["StaticReshape"], "not_claimed": [], "answers_special_zero": True},
        "waivers": [],
    }
    assert not list(find_contradictions(plan, {one.id: back}, header))
    lied = back._replace(verdicts=dict.fromkeys(back.verdicts, "pass"))
    assert list(find_contradictions(plan, {one.id: lied}, header))
    beyond = back._replace(step=len(one.case.steps))
    assert list(find_contradictions(plan, {one.id: beyond}, header))
