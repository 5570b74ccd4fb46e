"""A failure is held against the right sentence: the text, a call that the text forbids, or only our ruling."""

from typing import Any

import pytest

from conformance.draw.rows import RowDrawer
from conformance.model import BLAMES, FAIL, PASS, Claims, Outcome, OutcomeKind, Result
from conformance.plan.rows import Row
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import planted_backends
from conformance.verdict.blame import Blamed, Blamer
from conformance.verdict.needs import FLAG
from conformance.verdict.sentences import describe_rejections

from ..builders import bundled_plan, bundled_rows
from .one_fault_backends import FAULTS

TEXT, FORBIDDEN, RULING = BLAMES
REJECTED, REJECTS = Outcome("rejected", stage="run", message="no"), "rejected a legal call"


def row_of(name: str) -> Row:
    return bundled_rows()[name]


def failed(row: Row, outcome: Outcome, diagnosis: str, **more: Any) -> Result:
    """Let the first step of a row fail in every document."""
    outcomes = (outcome,) * len(row.case.steps)
    return Result(row.id, dict.fromkeys(row.documents, FAIL), outcomes, 0, diagnosis, **more)


def blames(row: Row, result: Result, *beside: tuple[Row, Result]) -> set[Blamed | None]:
    """Blame a failure in each of its documents. Rows beside it are of the same run."""
    rows = {each.id: each for each, _ in (*beside, (row, result))}
    results = {each.row: each for _, each in beside} | {row.id: result}
    blamer = Blamer(bundled_plan().suite.spec.rules, rows.values(), results)
    return {blamer.blame(row, result, document) for document in result.verdicts}


def rules(row: Row, result: Result, *beside: tuple[Row, Result]) -> set[str | None]:
    return {each and each.premise.rule for each in blames(row, result, *beside)}


def forbidden_or_ruled(row: Row, result: Result, *beside: tuple[Row, Result]) -> set[tuple[str, str] | None]:
    return {each and (each.blame, each.premise.rule) for each in blames(row, result, *beside)}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a-literal-shape-with-no-length-known[StaticReshape-f32]", "each-call-alone"),
        ("the-same-type-is-declared[StaticReshape-bf16]", "declared-output"),
    ],
)
def test_a_rejection_on_a_premise_of_ours(name: str, rule: str) -> None:
    """No document speaks of lengths that a graph leaves open, or of a declared dst."""
    others = bundled_plan().rows[::40]
    passed = ((row, Result(row.id, dict.fromkeys(row.documents, PASS), (Outcome("tensor"),))) for row in others)
    row = row_of(name)
    assert forbidden_or_ruled(row, failed(row, REJECTED, REJECTS), *passed) == {(RULING, rule)}


@pytest.mark.parametrize(
    ("name", "backend", "due"),
    [
        # A run of one row meets few needs, and none of them forbids to end the process.
        ("two-infers", FAULTS["crashes on two -1"], {(RULING, "reject-illegal-calls")}),
        # In a fork a zero copies from src itself.
        ("the-last-of-two-nodes-on-one-src-is-illegal", planted_backends()["accepts-everything"],
         {(FORBIDDEN, "same-volume")}),
    ],
)  # fmt: skip
def test_an_illegal_call_that_is_not_rejected(name: str, backend: type[Any], due: set[tuple[str, str]]) -> None:
    row = row_of(f"{name}[StaticReshape-f32]")
    (result,) = run_rows([row], backend())
    assert forbidden_or_ruled(row, result) == due


def test_of_several_broken_rules_the_strongest_is_blamed() -> None:
    """One sentence that forbids a call is enough, whatever our rulings say of it too."""
    row = row_of("an-open-node-excuses-no-volume[StaticReshape-f32]")
    (result,) = run_rows([row], planted_backends()["accepts-everything"]())
    blamed = blames(row, result._replace(verdicts={"static-spec-v0.9": FAIL}))
    assert {each and each.premise for each in blamed} == {("same-volume", "stated")}


@pytest.mark.parametrize(
    "diagnosis",
    [
        "wrong elements", "memory around src read", "infinity lost", "bytes of each element reversed",
        "elements in the wrong places", "elements in the wrong places, others lost",
    ],
)  # fmt: skip
def test_wrong_elements_of_any_kind_break_the_content(diagnosis: str) -> None:
    row = row_of("in-place-regroups[StaticReshape-f32]")
    (result,) = run_rows([row], planted_backends()["column-major"]())
    wrong = failed(row, result.outcome._replace(side_effects=()), diagnosis)
    assert rules(row, wrong) == {"same-content"}
    assert Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong}).find_broken_rules(row, wrong) == {
        "same-content"
    }


def right_answer(row: Row) -> Outcome:
    """An answer with the type and dims that are due to the first step."""
    return Outcome("tensor", row.type, tuple(length or 0 for length in row.steps[0].meanings[0].meaning.dst or ()))


def rejected(name: str) -> tuple[Row, Result]:
    return (row := row_of(name)), failed(row, REJECTED, REJECTS)


def answered(name: str) -> tuple[Row, Result]:
    row = row_of(name)
    return row, Result(row.id, dict.fromkeys(row.documents, PASS), (right_answer(row),))


def moved(name: str) -> tuple[Row, Result]:
    row = row_of(f"{name}[StaticReshape-f32]")
    return row, failed(row, right_answer(row), "same elements in another order")


@pytest.mark.parametrize(
    ("name", "ruling"),
    [
        ("padded-src-of-one-element", "layout-is-no-content"),
        ("one-element-there-and-back", "nodes-compose"),
        ("copied-lengths-at-the-same-time-as-literal-ones", "each-call-alone"),
    ],
)
def test_what_a_dense_single_call_lacks_is_not_needed(name: str, ruling: str) -> None:
    row, plain = (row_of(f"{each}[DynamicReshape-1-f32-s32]") for each in (name, "same-dims-keep-the-order"))
    for diagnosis, due in (("elements lost", (TEXT, "same-content")), ("wrong elements", (RULING, ruling))):
        wrong, beside = (failed(each, right_answer(each), diagnosis) for each in (row, plain))
        assert forbidden_or_ruled(row, wrong) == {(RULING, ruling)}
        assert forbidden_or_ruled(row, wrong, (plain, beside)) == {due}


@pytest.mark.parametrize(
    ("name", "beside", "due"),
    [
        ("channels-last-src-regroups", answered("same-dims-keep-the-order[StaticReshape-f32]"), "layout-is-no-content"),
        ("channels-last-src-regroups", moved("same-dims-keep-the-order"), "row-major-order"),
        (
            "channels-last-src-through-a-chain",
            answered("same-dims-keep-the-order[StaticReshape-f32]"),
            "layout-is-no-content",
        ),
        (
            "channels-last-src-through-a-chain",
            answered("channels-last-src-regroups[StaticReshape-f32]"),
            "nodes-compose",
        ),
        ("channels-last-src-through-a-chain", moved("channels-last-src-regroups"), "layout-is-no-content"),
        (
            "one-program-run-by-four-threads-on-strided-sources",
            moved("channels-last-src-regroups"),
            "layout-is-no-content",
        ),
    ],
)
def test_what_is_around_a_call_breaks_the_order(name: str, beside: Any, due: str) -> None:
    assert rules(*moved(name), beside) == {due}


@pytest.mark.parametrize(
    ("name", "ruling"),
    [
        ("shape-entries-with-gaps", "layout-is-no-content"),
        ("transposed-src-regroups", "layout-is-no-content"),
        ("in-place-regroups", "src-is-kept"),
        ("src-stays-there-and-back", "nodes-compose"),
    ],
)
def test_what_a_dense_single_call_lacks_is_not_rejected(name: str, ruling: str) -> None:
    """Only if the dense call has no need that this one lacks: a library may say "not supported" of anything."""
    wrong, dense, zero = (
        rejected(f"{each}[DynamicReshape-1-f32-s32]") for each in (name, "swaps-two-lengths", "known-worked-example")
    )
    assert forbidden_or_ruled(*wrong, dense) == {(TEXT, "literal-lengths")}
    assert forbidden_or_ruled(*wrong) == forbidden_or_ruled(*wrong, zero) == {(RULING, ruling)}


@pytest.mark.parametrize(
    ("beside", "rule"), [("there-and-back", "nodes-compose"), ("rank-one-to-twelve", "rank-from-one")]
)
def test_what_is_around_each_rejected_call_tells_all(beside: str, rule: str) -> None:
    """High ranks are rejected more often than chains, but in chains only."""
    names = ("src-stays-there-and-back", "infer-in-both-nodes", "rank-one-as-it-was", "through-five-nodes")
    met = [answered(f"{name}[StaticReshape-f32]") for name in names]
    (row, result), other = (rejected(f"{name}[StaticReshape-f32]") for name in ("through-rank-twelve", beside))
    assert rules(row, result, other, *met) == {rule}


def test_unknown_lengths_tell_all_unless_a_known_src_fails_so() -> None:
    """Empty tensors are rejected more often than unknown lengths."""
    met = [answered(f"{name}[StaticReshape-f32]") for name in ("infer-with-no-length-known", "empty-copies-both-zeros")]
    (row, result), known = (
        rejected(f"{name}[StaticReshape-f32]")
        for name in ("an-empty-src-with-no-length-known", "empty-copies-its-zero")
    )
    other = known[1]._replace(outcomes=(REJECTED._replace(message="of another kind"),))
    assert rules(row, result, (known[0], other), *met) == {"each-call-alone"}
    assert rules(row, result, known, *met) == {"empty-is-a-tensor"}


def test_each_of_several_types_is_compared_with_its_own() -> None:
    row = row_of("programs-of-two-types-at-the-same-time[StaticReshape-f32]")
    plain = row_of("same-dims-keep-the-order[StaticReshape-bf16]")
    wrong, beside = (failed(each, Outcome("tensor", "f16", (3, 64)), "wrong type") for each in (row, plain))
    assert forbidden_or_ruled(row, wrong._replace(step=1), (plain, beside)) == {(TEXT, "same-type")}


def test_a_rejection_that_changes_src_is_blamed_at_its_own_step() -> None:
    row = row_of("minus-two-where-minus-one-was-is-rejected[DynamicReshape-1-f32-s32]")
    illegal = next(at for at in range(len(row.case.steps)) if row.meanings(at)[0].meaning.kind == "illegal")
    single = row_of("minus-two-on-one-element[DynamicReshape-1-f32-s32]")
    changed, beside = (
        failed(each, REJECTED._replace(side_effects=("src changed",)), "src changed") for each in (row, single)
    )
    assert rules(row, changed._replace(step=illegal), (single, beside)) == {"src-is-kept"}


def test_a_rejection_that_changes_shape_needs_no_other_threads() -> None:
    row, single = (
        row_of(f"{name}[DynamicReshape-1-f32-s32]")
        for name in ("copied-lengths-at-the-same-time-as-literal-ones", "infer-in-front")
    )
    changed, beside = (
        failed(each, outcome._replace(side_effects=("shape changed",)), "shape changed")
        for each, outcome in ((row, REJECTED), (single, right_answer(single)))
    )
    assert rules(row, changed, (single, beside)) == {"src-is-kept"}


DIMS = "wrong dims"


@pytest.mark.parametrize(
    ("name", "step", "outcome", "diagnosis", "due"),
    [
        # No document says how entries lie in memory; they decide the lengths, and not the type.
        ("shape-entries-with-gaps[DynamicReshape-1-f32-s32]", 0, Outcome("tensor", "f32", (6, 1)), DIMS,
         (RULING, "layout-is-no-content")),
        ("shape-entries-with-gaps[DynamicReshape-1-f32-s32]", 0, Outcome("tensor", "f16", (3, 2)), "wrong type",
         (TEXT, "same-type")),
        # The answer to an earlier call breaks no text, and one that no earlier call explains takes none.
        ("leave-to-overwrite-ends-with-its-call[DynamicReshape-1-f32-s32]", 1, None, "stale: an earlier answer",
         (RULING, "each-call-alone")),
        ("one-shape-under-other-flags[DynamicReshape-1-f32-s32]", 1, Outcome("tensor", "f32", (3, 0, 7)), DIMS,
         (RULING, "nodes-compose")),
        ("minus-three-between-other-lengths-of-src[DynamicReshape-1-f32-s32]", 1, Outcome("tensor", "f32", (6, 5)),
         "answered an illegal call", (FORBIDDEN, "lower-bound")),
        # Lengths that a graph leaves open for its other steps excuse no first step.
        ("counts-in-reverse[DynamicReshape-1-bf16-s32]", 0, None, "strides ignored", (RULING, "layout-is-no-content")),
        # A run that answers nothing shows no more of a type than of any other property of its calls.
        ("swaps-two-lengths[StaticReshape-f16]", 0, REJECTED, REJECTS, (TEXT, "literal-lengths")),
        # A call without a meaning is blamed on the silence.
        ("zero-past-the-rank-of-empty-src[StaticReshape-f32]", 0, Outcome("tensor", "f32", (1,)), DIMS,
         (RULING, "zero-past-rank")),
    ],
)  # fmt: skip
def test_a_failure_with_none_beside_it(
    name: str, step: int, outcome: Outcome | None, diagnosis: str, due: tuple[str, str]
) -> None:
    """The answer is right in type and dims if no outcome is given."""
    row = row_of(name)
    assert forbidden_or_ruled(row, failed(row, outcome or right_answer(row), diagnosis)._replace(step=step)) == {due}


def test_wrong_dims_of_a_chain_alone_are_wrong_by_a_ruling() -> None:
    """A graph may be wired wrongly where every single call is right."""
    row, single = (row_of(f"{name}[StaticReshape-f32]") for name in ("infer-in-both-nodes", "same-dims-keep-the-order"))
    wrong, beside = (failed(each, Outcome("tensor", "f32", (3, 8)), "wrong dims") for each in (row, single))
    assert forbidden_or_ruled(row, wrong) == {(RULING, "nodes-compose")}
    assert forbidden_or_ruled(row, wrong, (single, beside)) == {(TEXT, "literal-lengths")}


IN_THREADS = "one-program-run-by-four-threads-on-equal-volumes"
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
WRONG = Outcome("tensor", "f32", (4, 6))


@pytest.mark.parametrize(
    ("outcome", "diagnosis", "case", "alone", "rule"),
    [
        (WRONG, "wrong elements", SMALLER, None, "same-content"),
        (WRONG, "wrong elements", NEEDS_LAYOUT, None, "layout-is-no-content"),
        (WRONG, "wrong elements", NEEDS_STEPS, None, "each-call-alone"),
        (WRONG, "wrong elements", SMALLER, "row", "each-call-alone"),
        (REJECTED, REJECTS, SMALLER, None, "literal-lengths"),
        (REJECTED, REJECTS, NEEDS_LAYOUT, None, "layout-is-no-content"),
    ],
)
def test_what_the_smallest_case_lacks_excuses_no_failure(
    outcome: Outcome, diagnosis: str, case: str, alone: str | None, rule: str
) -> None:
    """A drawn row has a layout by chance; only if its smallest case has one, too, is it needed to fail."""
    row = row_of("transposed-src-regroups[StaticReshape-f32]")._replace(id="drawn-0-7[StaticReshape-f32]")
    wrong = failed(row, outcome, diagnosis, smallest_case=case, right_alone=alone)
    wrong = wrong._replace(verdicts={"static-spec-v0.9": FAIL})
    assert rules(row, wrong) == {rule}


def test_a_smallest_case_of_a_huge_length_is_no_traceback() -> None:
    row = row_of("swaps-two-lengths[StaticReshape-f32]")._replace(id="drawn-0-7[StaticReshape-f32]")
    case = SMALLER.replace("[2, 3]", f"[{'1' * 5000}]")
    assert rules(row, failed(row, REJECTED, REJECTS, smallest_case=case)) == {"literal-lengths"}


@pytest.mark.parametrize(("calls", "rule"), [(1, "literal-lengths"), (4, "each-call-alone")])
def test_a_rejection_after_equal_calls_takes_them(calls: int, rule: str) -> None:
    often, single = map(
        row_of, ("more-calls-than-16-bits-count[StaticReshape-f32]", "swaps-two-lengths[StaticReshape-f32]")
    )
    wrong = failed(often, REJECTED._replace(call_number=calls), REJECTS)
    assert rules(often, wrong, (single, failed(single, REJECTED._replace(call_number=1), REJECTS))) == {rule}


@pytest.mark.parametrize(
    ("alone", "right_alone", "rule"),
    [
        ("tensor", None, "lower-bound"), ("rejected", None, "each-call-alone"), ("tensor", "row", "each-call-alone"),
    ],
)  # fmt: skip
def test_what_a_single_call_does_too_takes_no_earlier_call(
    alone: OutcomeKind, right_alone: str | None, rule: str
) -> None:
    """-2 taken for -1 where -1 was called before: a library may do so without any call before it."""
    later = row_of("minus-two-where-minus-one-was-is-rejected[DynamicReshape-1-f32-s32]")
    single, answers = row_of("minus-two-on-one-element[StaticReshape-f32]"), "answered an illegal call"
    result = failed(single, Outcome("tensor", "f32", (4,)), answers, right_alone=right_alone)
    if alone == "rejected":
        result = Result(single.id, dict.fromkeys(single.documents, PASS), (REJECTED,))
    wrong = failed(later, Outcome("tensor", "f32", (2, 3)), answers)._replace(step=1)
    assert rules(later, wrong, (single, result)) == {rule}


@pytest.mark.parametrize("name", ["minus-two-on-one-element[StaticReshape-f32]", None])
def test_an_illegal_call_that_is_taken_alone_needs_no_other_threads(name: str | None) -> None:
    """A backend that does not look for -2 takes it in a call that breaks another rule, too."""
    spec = bundled_plan().suite.spec
    row = RowDrawer(spec, Claims(tuple(spec.operations))).row(0, 5941)
    assert row is not None
    assert {*row.meanings(0)[0].meaning.rules} == {"lower-bound", "rank-zero"}
    answer, case = (Outcome("tensor", "bf16", (1,)), "answered an illegal call"), f"{SMALLER}    concurrent: 4\n"
    beside = [(single := row_of(name), failed(single, *answer))] if name else []
    assert rules(row, failed(row, *answer, smallest_case=case), *beside) == {
        "lower-bound" if name else "each-call-alone"
    }


def test_an_unspecified_call_explains_no_stale_dims() -> None:
    row, unlisted = map(
        row_of,
        ("the-shape-changes[DynamicReshape-1-f32-s32]", "shape-of-s64-with-zero-and-infer[DynamicReshape-1-f32-s64]"),
    )
    stale = failed(row, right_answer(row), "wrong dims")._replace(step=1)
    assert rules(row, stale, (unlisted, failed(unlisted, Outcome("tensor", "f32", (3, 36)), "wrong dims"))) == {
        "each-call-alone"
    }


@pytest.mark.parametrize(
    ("name", "dims", "due"),
    [
        ("a-vector-is-copied-beside-an-infer", (6, 6), (TEXT, "infer-keeps-count")),
        ("swaps-two-lengths", (3, 3), (RULING, "each-call-alone")),
    ],
)
def test_a_wrong_length_of_a_single_call_needs_no_threads(name: str, dims: Any, due: Any) -> None:
    row, single = (row_of(f"{each}[DynamicReshape-1-f32-s32]") for each in (IN_THREADS, name))
    wrong = failed(row, Outcome("tensor", "f32", (64, 384, 8)), "wrong dims")
    assert forbidden_or_ruled(row, wrong, (single, failed(single, Outcome("tensor", "f32", dims), "wrong dims"))) == {
        due
    }


@pytest.mark.parametrize("effects", [(), ("src changed",)])
def test_open_lengths_excuse_no_change_of_memory(effects: tuple[str, ...]) -> None:
    row = row_of("a-literal-shape-with-no-length-known[StaticReshape-f32]")
    outcome = Outcome("tensor", "f32", (1,), side_effects=effects)
    assert ("each-call-alone" in rules(row, failed(row, outcome, *effects or ("wrong dims",)))) == (not effects)


def test_open_lengths_excuse_a_smallest_case_of_one_call() -> None:
    row = row_of("everything-changes[StaticReshape-f32]")._replace(id="drawn-0-7[StaticReshape-f32]")
    open_lengths = SMALLER.replace("    expect", "    known: none\n    expect")
    assert rules(row, failed(row, Outcome("tensor", "f32", (3,)), "wrong dims", smallest_case=open_lengths)) == {
        "each-call-alone"
    }


def test_a_long_call_is_blamed_by_what_its_smallest_case_needs_too() -> None:
    """It has a length past 16 bits by chance: the zero is what both have."""
    row = row_of("a-copied-length-past-16-bits[StaticReshape-f32]")._replace(id="drawn-0-7[StaticReshape-f32]")
    smallest = SMALLER.replace("[2, 3]", "[1, 1]").replace("[0, 3]", "[0, -1]")
    for case, rule in ((smallest, "zero-copies"), (None, "corresponding-is-the-same-index")):
        assert rules(row, failed(row, REJECTED, REJECTS, smallest_case=case)) == {rule}
    chain = row_of("through-five-nodes[StaticReshape-f32]")._replace(id="drawn-0-7[StaticReshape-f32]")
    rule = "infer-keeps-count"  # the last node of the chain has lengths only
    assert rules(chain, failed(chain, REJECTED, REJECTS, smallest_case=smallest)) == {rule}


def test_a_later_node_needs_the_same_index_too() -> None:
    row = row_of("zero-in-the-middle-copies-from-the-tensor-between[StaticReshape-f32]")
    row = row._replace(id="drawn-0-7[StaticReshape-f32]")
    smallest = SMALLER.replace("[2, 3]", "[2, 1]").replace("[0, 3]", "[0]")
    assert rules(row, failed(row, REJECTED, REJECTS, smallest_case=smallest)) == {"corresponding-is-the-same-index"}


@pytest.mark.parametrize(
    ("name", "dims", "due"),
    [
        ("minus-two-in-front-is-no-infer", (2, 3), (RULING, "lower-bound")),
        ("minus-two-in-front-is-no-infer", (4, 6), (FORBIDDEN, "same-volume")),
        # Counted from the right, as in broadcasting, a zero in front of src copies a 1. This excuses no -2.
        ("copied-zero-makes-infer-not-divide", (1, 2, 6), (RULING, "corresponding-is-the-same-index")),
        ("minus-two-beside-a-copied-zero-and-infer", (1, 2, 4), (RULING, "lower-bound")),
        # Whether a declaration forbids a call is a ruling; that dst has the dims that shape gives it is not.
        ("declared-rank-counts-a-leading-one", (12,), (RULING, "declared-output")),
        ("declared-rank-counts-a-leading-one", (1, 12), (FORBIDDEN, "dst-has-shape-rank")),
    ],
)
def test_an_illegal_call_with_an_answer_is_blamed_by_both(name: str, dims: tuple[int, ...], due: Any) -> None:
    row = next(row for row in bundled_plan().rows if row.id.startswith(name) and "StaticReshape-f32" in row.id)
    result = failed(row, Outcome("tensor", "f32", dims), "answered an illegal call")
    assert forbidden_or_ruled(row, result._replace(verdicts={"static-oneapi": FAIL})) == {due}


def test_a_need_of_one_call_explains_less_than_one_of_many() -> None:
    """A run of few rows has one src that is broadcast, and many calls in f16."""
    names = ("infer-in-front", "infer-is-the-only-entry", "edge-patterns-of-every-type-from-a-broadcast-src")
    *others, (row, result) = (rejected(f"{name}[StaticReshape-f16]") for name in names)
    assert rules(row, result, *others, answered("swaps-two-lengths[StaticReshape-f32]")) == {"types-offered"}


def test_a_need_of_more_calls_explains_one_of_some_of_them() -> None:
    """Each call in place that is rejected is in f16, and another call in f16 is rejected, too."""
    names = ("in-place-regroups", "in-place-flattens", "in-place-beside-a-copied-dimension")
    *others, (row, result) = (rejected(f"{name}[StaticReshape-f16]") for name in names)
    others += [answered("swaps-two-lengths[StaticReshape-f32]")]
    assert rules(row, result, *others) == {"src-is-kept"}
    assert rules(row, result, *others, rejected("swaps-two-lengths[StaticReshape-f16]")) == {"types-offered"}
    both = [
        rejected(f"{name}[StaticReshape-{type_}]")
        for name in (*names, "swaps-two-lengths")
        for type_ in ("f16", "bf16")
    ]
    assert rules(row, result, *both, others[-1]) == {"types-offered"}, "each of two types is rejected"


def test_a_rejection_in_two_types_is_of_no_type() -> None:
    """Each call in f16 that is rejected has a -1, and so has one in f32."""
    names = ("infer-in-front", "infer-in-the-middle-of-twelve", "infer-is-the-only-entry")
    *others, (row, result) = (rejected(f"{name}[StaticReshape-f16]") for name in names)
    others.append(answered("swaps-two-lengths[StaticReshape-f32]"))
    assert rules(row, result, *others) == {"types-offered"}
    assert rules(row, result, *others, rejected("infer-in-front[StaticReshape-f32]")) == {"infer-keeps-count"}


def test_twenty_calls_without_an_answer_show_no_offer() -> None:
    runtime = [each for each in bundled_plan().rows[::20] if each.operation == "DynamicReshape-1"]
    legal = [each for each in runtime if each.meanings(0)[0].meaning.kind == "legal" and len(each.case.steps) == 1]
    row, *others = legal[:21]
    beside = [(each, failed(each, REJECTED, REJECTS)) for each in others]
    assert rules(row, failed(row, REJECTED, REJECTS), *beside) == {"types-offered"}
    assert rules(row, failed(row, REJECTED, REJECTS), *beside[:5]) != {"types-offered"}


def test_calls_with_zeros_tell_nothing_of_the_flag() -> None:
    row, result = rejected("known-worked-example[StaticReshape-f32]")
    assert FLAG not in rules(row, result, answered("swaps-two-lengths[StaticReshape-f32]"))


@pytest.mark.parametrize(
    ("beside", "due"),
    [
        ("known-copy-and-a-one-at-the-end", (TEXT, "zero-copies")),
        ("copies-the-first-length", (RULING, "corresponding-is-the-same-index")),
    ],
)
def test_a_literal_zero_copies_no_other_length(beside: str, due: tuple[str, str]) -> None:
    row, other = row_of("great-length-of-src-is-copied[StaticReshape-f32]"), answered(f"{beside}[StaticReshape-f32]")
    wrong = failed(row, Outcome("tensor", "f32", (0, 0)), "wrong dims")
    assert forbidden_or_ruled(row, wrong, other) == {due}


def test_a_rejection_that_changes_src_is_no_rejected_legal_call() -> None:
    row = row_of("minus-two-on-one-element[DynamicReshape-1-f32-s32]")
    for faults, said in (((), "every legal call is rejected, with: no"), (("src changed",), "")):
        results = [failed(row, REJECTED._replace(side_effects=faults), REJECTS)] * 10
        assert describe_rejections(results, {row.id}, ()) == said


def test_a_row_with_an_answer_is_not_rejected_altogether() -> None:
    row = row_of("lengths-whose-digits-run-together[DynamicReshape-1-f32-s32]")
    result = failed(row, REJECTED, REJECTS)._replace(step=1)
    results = [result._replace(outcomes=(Outcome("tensor"), *result.outcomes[1:]))] * 10
    assert not describe_rejections(results, {row.id}, ())
