"""A failure is held against the right sentence: the text, a call that the text forbids, or only our ruling."""

from functools import partial

import pytest

from conformance.model import BLAMES, FAIL, PASS, Outcome, OutcomeKind, Result
from conformance.run.row import run
from conformance.selfcheck.mutants import broken_backends
from conformance.verdict.blame import Blamer

from ..builders import bundled_plan
from .one_fault_backends import FAULTS

_, FORBIDDEN, RULING = BLAMES


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a-literal-shape-with-no-length-known[StaticReshape-f32]", "each-call-alone"),
        ("the-same-type-is-declared[StaticReshape-bf16]", "declared-output"),
    ],
)
def test_a_rejection_on_a_premise_of_ours(name: str, rule: str) -> None:
    """No document speaks of lengths that a graph leaves open, or of a declared dst."""
    rows = bundled_plan().rows[::40]
    results = {row.id: Result(row.id, dict.fromkeys(row.documents, PASS), (Outcome("tensor"),)) for row in rows}
    (row,) = (row for row in bundled_plan().rows if row.id == name)
    outcomes = tuple(Outcome("rejected", stage="run") for _ in row.case.steps)
    result = Result(name, dict.fromkeys(row.documents, FAIL), outcomes, 0, "rejected a legal call")
    blamer = Blamer(bundled_plan().suite.spec.rules, [*rows, row], {**results, name: result})
    for document in row.documents:
        blamed = blamer.blame(row, result, document)
        assert blamed is not None
        assert (blamed.blame, blamed.premise.rule) == (RULING, rule)


@pytest.mark.parametrize(
    ("outcome", "diagnosis", "rule"),
    [
        (Outcome("tensor", "f32", (6, 1)), "wrong dims", "layout-is-no-content"),
        (Outcome("tensor", "f16", (3, 2)), "wrong type", "same-type"),
    ],
)
def test_a_shape_with_gaps_is_read_by_a_ruling(outcome: Outcome, diagnosis: str, rule: str) -> None:
    """No document says how entries lie in memory; they decide the lengths, and not the type."""
    (row,) = (row for row in bundled_plan().rows if row.id == "shape-entries-with-gaps[DynamicReshape-1-f32-s32]")
    (document,) = row.documents
    result = Result(row.id, {document: FAIL}, (outcome,), 0, diagnosis)
    blamed = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: result}).blame(row, result, document)
    assert blamed is not None
    assert blamed.premise.rule == rule


def test_a_crash_on_an_illegal_call_breaks_the_same_ruling_alone() -> None:
    """A run of one row meets few needs, and none of them forbids to end the process."""
    (row,) = (row for row in bundled_plan().rows if row.id == "two-infers[StaticReshape-f32]")
    (result,) = run([row], FAULTS["crashes on two -1"]())
    blamer = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: result})
    blamed = [blamer.blame(row, result, document) for document in row.documents]
    assert {each and each.premise.rule for each in blamed} == {"reject-illegal-calls"}


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


SMALLER = """  - id: wrong-dims-zero-copies
    rule: zero-copies
    src: f32[2, 3]
    shape: [0, 3]
    special_zero: true
    expect: f32[2, 3]
"""
NEEDS_LAYOUT = SMALLER.replace("    expect", "    layout: transposed\n    expect")
NEEDS_STEPS = """  - id: wrong-elements-each-call-alone
    rule: each-call-alone
    steps:
      - {src: "f32[2]", shape: [2], special_zero: false, layout: reversed, expect: "f32[2]"}
      - {src: "f32[3]", shape: [3], special_zero: false, expect: "f32[3]"}
"""
RIGHT_ALONE = (
    "# went right alone in a fresh process: it depends on the calls before it, which the same run makes again\n"
)


WRONG, REJECTED = Outcome("tensor", "f32", (4, 6)), Outcome("rejected", stage="run", message="no")


@pytest.mark.parametrize(
    ("outcome", "diagnosis", "case", "rule"),
    [
        (WRONG, "wrong elements", SMALLER, "same-content"),
        (WRONG, "wrong elements", NEEDS_LAYOUT, "layout-is-no-content"),
        (WRONG, "wrong elements", NEEDS_STEPS, "each-call-alone"),
        (WRONG, "wrong elements", RIGHT_ALONE + SMALLER, "each-call-alone"),
        (REJECTED, "rejected a legal call", SMALLER, "literal-lengths"),
        (REJECTED, "rejected a legal call", NEEDS_LAYOUT, "layout-is-no-content"),
    ],
)
def test_what_the_smallest_case_lacks_excuses_no_failure(
    outcome: Outcome, diagnosis: str, case: str, rule: str
) -> None:
    """A drawn row has a layout by chance; only if its smallest case has one, too, is it needed to fail."""
    (row,) = (each for each in bundled_plan().rows if each.id == "transposed-src-regroups[StaticReshape-f32]")
    row = row._replace(id="drawn-0-7[StaticReshape-f32]")
    wrong = Result(row.id, dict.fromkeys(row.documents, FAIL), (outcome,), 0, diagnosis, case=case)
    blamed = Blamer(bundled_plan().suite.spec.rules).blame(row, wrong, "static-spec-v0.9")
    assert blamed
    assert blamed.premise.rule == rule


@pytest.mark.parametrize(("calls", "rule"), [(1, "literal-lengths"), (4, "each-call-alone")])
def test_a_rejection_after_equal_calls_takes_them(calls: int, rule: str) -> None:
    names = ("more-calls-than-16-bits-count[StaticReshape-f32]", "swaps-two-lengths[StaticReshape-f32]")
    often, single = (next(row for row in bundled_plan().rows if row.id == name) for name in names)
    outcome = Outcome("rejected", stage="run", message="no streams are left", calls=calls)
    wrong = Result(often.id, dict.fromkeys(often.documents, FAIL), (outcome,), 0, "rejected a legal call")
    alone = wrong._replace(row=single.id, outcomes=(outcome._replace(calls=1),))
    blamer = Blamer(bundled_plan().suite.spec.rules, [often, single], {often.id: wrong, single.id: alone})
    blamed = blamer.blame(often, wrong, often.documents[0])
    assert blamed
    assert blamed.premise.rule == rule


def test_a_zero_in_a_fork_copies_from_src_itself() -> None:
    name = "the-last-of-two-nodes-on-one-src-is-illegal[StaticReshape-f32]"
    (row,) = (each for each in bundled_plan().rows if each.id == name)
    (result,) = run([row], broken_backends()["accepts-everything"]())
    blamer = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: result})
    blamed = {blamer.blame(row, result, document) for document in row.documents}
    assert {each and (each.blame, each.premise.rule) for each in blamed} == {(FORBIDDEN, "same-volume")}


@pytest.mark.parametrize(
    ("alone", "case", "rule"),
    [
        ("tensor", None, "lower-bound"), ("rejected", None, "each-call-alone"),
        ("tensor", RIGHT_ALONE, "each-call-alone"),
    ],
)  # fmt: skip
def test_what_a_single_call_does_too_takes_no_earlier_call(alone: OutcomeKind, case: str | None, rule: str) -> None:
    """-2 taken for -1 where -1 was called before: a library may do so without any call before it."""
    names = (
        "minus-two-where-minus-one-was-is-rejected[DynamicReshape-1-f32-s32]",
        "minus-two-on-one-element[StaticReshape-f32]",
    )
    later, single = (next(row for row in bundled_plan().rows if row.id == name) for name in names)
    answer, wrong = Outcome("tensor", "f32", (2, 3)), "answered an illegal call"
    results = {
        later.id: Result(later.id, dict.fromkeys(later.documents, FAIL), (answer,) * len(later.steps), 1, wrong),
        single.id: Result(single.id, dict.fromkeys(single.documents, PASS), (Outcome("rejected", stage="run"),)),
    }
    if alone == "tensor":
        verdicts = dict.fromkeys(single.documents, FAIL)
        results[single.id] = Result(single.id, verdicts, (Outcome("tensor", "f32", (4,)),), 0, wrong, case=case)
    blamer = Blamer(bundled_plan().suite.spec.rules, [later, single], results)
    blamed = blamer.blame(later, results[later.id], later.documents[0])
    assert blamed
    assert blamed.premise.rule == rule


def test_a_rejection_in_a_run_of_few_rows_is_about_its_call() -> None:
    """A run that answers nothing shows no more of a type than of any other property of its calls."""
    (row,) = (each for each in bundled_plan().rows if each.id == "swaps-two-lengths[StaticReshape-f16]")
    outcome = Outcome("rejected", stage="run")
    wrong = Result(row.id, dict.fromkeys(row.documents, FAIL), (outcome,), 0, "rejected a legal call")
    blamed = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong}).blame(row, wrong, "static-spec-v0.9")
    assert blamed
    assert blamed.premise.rule == "literal-lengths"


def test_of_several_broken_rules_the_strongest_is_blamed() -> None:
    """One sentence that forbids a call is enough, whatever our rulings say of it too."""
    (row,) = (each for each in bundled_plan().rows if each.id == "an-open-node-excuses-no-volume[StaticReshape-f32]")
    (result,) = run([row], broken_backends()["accepts-everything"]())
    wrong = result._replace(verdicts=dict.fromkeys(row.documents, "fail"))
    blamed = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong}).blame(row, wrong, "static-spec-v0.9")
    assert blamed
    assert blamed.premise == ("same-volume", "stated")
