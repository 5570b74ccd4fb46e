"""The steps of a case with `each` are one row, which names the step that fails."""

from math import prod
from typing import Any

import pytest

from conformance.model import Crashed, Result, Tensor
from conformance.plan.rows import Plan, Row
from conformance.run.row import run_row
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
