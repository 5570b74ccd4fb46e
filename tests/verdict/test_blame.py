"""A failure is held against the right sentence: the text, a call that the text forbids, or only our ruling."""

from functools import partial

import pytest

from conformance.run.row import run
from conformance.selfcheck.mutants import broken_backends
from conformance.verdict.blame import Blamer

from ..builders import bundled_plan
from .one_fault_backends import FAULTS


def test_a_crash_on_an_illegal_call_breaks_the_same_ruling_alone() -> None:
    """A run of one row meets few needs, and none of them forbids to end the process."""
    (row,) = (row for row in bundled_plan().rows if row.id == "two-infers[StaticReshape-f32]")
    (result,) = run([row], FAULTS["crashes on two -1"]())
    blamer = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: result})
    blamed = [blamer.blame(row, result, document) for document in row.documents]
    assert {each and each.premise.rule for each in blamed} == {"refuse-illegal-calls"}


@pytest.mark.parametrize(
    "diagnosis",
    [
        "wrong elements", "memory around src read", "infinity lost", "bytes of each element reversed",
        "elements in the wrong places", "elements in the wrong places, others lost",
    ],
)  # fmt: skip
def test_wrong_elements_of_any_kind_break_the_content(diagnosis: str) -> None:
    (row,) = (row for row in bundled_plan().rows if row.id == "in-place-regroups[StaticReshape-f32]")
    (result,) = run([row], broken_backends()["column-major"]())
    wrong = result._replace(diagnosis=diagnosis, outcomes=(result.outcome._replace(faults=()),))
    wrong = wrong._replace(verdicts=dict.fromkeys(row.documents, "fail"))
    blamer = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong})
    assert {each and each.premise.rule for each in map(partial(blamer.blame, row, wrong), row.documents)} == {
        "same-content"
    }
    assert blamer.broken_rules(row, wrong) == {"same-content"}


def test_of_several_broken_rules_the_strongest_is_blamed() -> None:
    """One sentence that forbids a call is enough, whatever our rulings say of it too."""
    (row,) = (each for each in bundled_plan().rows if each.id == "an-open-node-excuses-no-volume[StaticReshape-f32]")
    (result,) = run([row], broken_backends()["accepts-everything"]())
    wrong = result._replace(verdicts=dict.fromkeys(row.documents, "fail"))
    blamed = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong}).blame(row, wrong, "static-spec-v0.9")
    assert blamed
    assert blamed.premise == ("same-volume", "stated")
