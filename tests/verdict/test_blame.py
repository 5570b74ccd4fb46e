"""A failure is held against the right sentence: the text, a call that the text forbids, or only our ruling."""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import pytest

from conformance.model import BLAMES, FAIL, PASS, Blame, Outcome, Result
from conformance.plan.rows import Row
from conformance.run.row import run
from conformance.verdict.blame import Blamer

from ..builders import DOCUMENTS, bundled_plan, some_exhaustive
from .one_fault_backends import FAULTS, FREEDOMS

TEXT, FORBIDDEN, RULING = BLAMES
BLAMED: Mapping[str, Mapping[str, Blame]] = {
    "moves in column-major order": dict.fromkeys(DOCUMENTS, RULING),
    "quiets NaNs": dict.fromkeys(DOCUMENTS, RULING),
    "rejects bf16": {**dict.fromkeys(DOCUMENTS, TEXT), "reshape-spec-v0.7": RULING},
    "rejects s32 shapes": {"reshape-spec-v0.7": RULING, "dynamic-spec-v0.9": TEXT},
    "answers two -1": dict.fromkeys(DOCUMENTS, FORBIDDEN),
    "reads an integer special_zero": {},
    "rejects src of rank 1": dict.fromkeys(DOCUMENTS, RULING),
    "flushes subnormals": {**dict.fromkeys(DOCUMENTS, TEXT), "static-oneapi": RULING},
    "copies from the right": dict.fromkeys(DOCUMENTS, RULING),
    "reverses dims": dict.fromkeys(DOCUMENTS, TEXT),
}
"""The heaviest blame of a backend in each document; a document that is not named is not broken."""


def count_blames(backend: str, share: int) -> dict[str, Counter[Blame]]:
    """Run a backend on a share of the rows of each rule, and count its failures by document and blame.

    Only if the share is all, call a case of many steps for both types.
    """
    plan, groups = bundled_plan(), dict[object, list[Row]]()
    for row in plan.rows:
        repeated = row.case.generated and row.first is not None and share > 1
        if not row.case.large and row.type in ("f32", "bf16") and not repeated:
            key = row.case.rule, row.operation, row.shape_type, row.type, row.case.steps[0].bits is None
            groups.setdefault(key, []).append(row)
    rows = [row for group in groups.values() for row in group[::share]]
    results: dict[str, Result] = {result.row: result for result in run(rows, {**FAULTS, **FREEDOMS}[backend]())}
    blamer = Blamer(plan.suite.spec.rules, rows, results)
    counts: dict[str, Counter[Blame]] = {}
    for row in rows:
        for document in row.documents:
            if blamed := blamer.blame(row, results[row.id], document):
                counts.setdefault(document, Counter())[blamed.blame] += 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(
    "share", [7, pytest.param(1, id="every row", marks=[pytest.mark.slow, pytest.mark.exhaustive])]
)
@pytest.mark.parametrize("backend", some_exhaustive(BLAMED))
def test_a_fault_is_held_against_the_sentence_it_breaks(backend: str, share: int) -> None:
    """Some calls rest on more premises than the fault, such as a src of one dimension; those are a ruling's.

    A slow test runs all rows of few elements, and asks for the rule too.
    """
    counts = count_blames(backend, share)
    heaviest = {document: min(blames, key=list(BLAMES).index) for document, blames in counts.items()}
    assert heaviest == BLAMED[backend]


@pytest.mark.parametrize(
    ("name", "calls", "rule"),
    [
        ("a-literal-shape-with-no-length-known[StaticReshape-f32]", 1, "each-call-alone"),
        ("the-same-type-is-declared[StaticReshape-bf16]", 1, "declared-output"),
        ("hundreds-of-equal-batches-and-another[DynamicReshape-1-f32-s32]", 200, "each-call-alone"),
    ],
)
def test_a_rejection_on_a_premise_of_ours(name: str, calls: int, rule: str) -> None:
    """No document speaks of lengths that a graph leaves open, of a declared dst, or of calls before."""
    rows = bundled_plan().rows[::40]
    results = {row.id: Result(row.id, dict.fromkeys(row.documents, PASS), (Outcome("tensor"),)) for row in rows}
    (row,) = (row for row in bundled_plan().rows if row.id == name)
    outcomes = tuple(Outcome("rejected", stage="run", calls=calls) for _ in row.case.steps)
    result = Result(name, dict.fromkeys(row.documents, FAIL), outcomes, 0, "refused a legal call")
    blamer = Blamer(bundled_plan().suite.spec.rules, [*rows, row], {**results, name: result})
    for document in row.documents:
        blamed = blamer.blame(row, result, document)
        assert blamed is not None
        assert (blamed.blame, blamed.premise.rule) == (RULING, rule)


def test_a_shape_with_gaps_is_read_by_a_ruling() -> None:
    """Wrong dims break the rule of an entry, and no document says how the entries lie in memory."""
    (row,) = (row for row in bundled_plan().rows if row.id == "shape-entries-with-gaps[DynamicReshape-1-f32-s32]")
    (document,) = row.documents
    result = Result(row.id, {document: FAIL}, (Outcome("tensor", "f32", (6, 1)),), 0, "wrong dims")
    blamed = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: result}).blame(row, result, document)
    assert blamed is not None
    assert (blamed.blame, blamed.premise.rule) == (RULING, "layout-is-no-content")


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
    (result,) = run([row], FAULTS["moves in column-major order"]())
    wrong = result._replace(diagnosis=diagnosis, outcomes=(result.outcome._replace(faults=()),))
    wrong = wrong._replace(verdicts=dict.fromkeys(row.documents, "fail"))
    blamer = Blamer(bundled_plan().suite.spec.rules, [row], {row.id: wrong})
    assert {each and each.premise.rule for each in map(partial(blamer.blame, row, wrong), row.documents)} == {
        "same-content"
    }
    assert blamer.broken_rules(row, wrong) == {"same-content"}
