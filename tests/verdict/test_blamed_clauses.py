"""A run of a backend with one fault names the right blame and the right rule in each document.

What is due was derived from the five documents, from what spec/rules.yaml says is stated, read or decided, and from
what spec/findings.yaml says of other readings; never from the code that blames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from math import prod
from typing import Any, NamedTuple

import pytest

from conformance.adapter import resolve_claims
from conformance.evidence.results import Evidence, Target
from conformance.model import BLAMES, Claims, Result
from conformance.plan.rows import Plan
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import planted_backends, takes_long
from conformance.verdict.blame import HEAVIEST_FIRST
from conformance.verdict.conclude import Conclusion, conclude
from conformance.verdict.failure_kinds import group_failures

from ..builders import DOCUMENTS, bundled_plan, rest_exhaustive, some_exhaustive
from .one_fault_backends import FAULTS, FREEDOMS

TEXT, FORBIDDEN, RULING = BLAMES
NOTHING, ERROR = "breaks nothing", "error of the adapter"
ONEAPI, GRAPH, SPEC, DYNAMIC, OLDEST = DOCUMENTS


class AllowedBlame(NamedTuple):
    """The blames of a backend that are right in one document; rules are patterns."""

    blames: tuple[str, ...]
    rules: tuple[str, ...]

    def allows(self, said: ShownBlame) -> bool:
        return said.blame in self.blames and any(fnmatch(said.rule, rule) for rule in self.rules)


class ShownBlame(NamedTuple):
    """The blame and the rule that a run shows for a backend in one document."""

    blame: str
    rule: str


Expected = Mapping[str, AllowedBlame]
pytestmark = pytest.mark.slow


def due(blames: str | tuple[str, ...], *rules: str) -> AllowedBlame:
    return AllowedBlame((blames,) if isinstance(blames, str) else blames, rules or ("",))


def everywhere(blames: str | tuple[str, ...], *rules: str) -> dict[str, AllowedBlame]:
    return dict.fromkeys(DOCUMENTS, due(blames, *rules))


def only(documents: Iterable[str], blames: str | tuple[str, ...], *rules: str) -> dict[str, AllowedBlame]:
    return everywhere(NOTHING) | dict.fromkeys(documents, due(blames, *rules))


# The oldest document names no types. Four say "same content", and the newest says nothing of content.
TYPES = everywhere(TEXT, "types-offered") | {OLDEST: due(RULING, "types-demanded-of-reshape")}
CONTENT = everywhere(TEXT, "same-content") | {ONEAPI: due(RULING, "same-content")}
LAYOUT = everywhere(RULING, "layout-is-no-content")
EMPTY = everywhere(RULING, "empty-is-a-tensor")
UNBOUND = everywhere(RULING, "lengths-have-no-bound")
BITS = everywhere(RULING, "content-is-bits")
ORDER = everywhere(RULING, "row-major-order")
INDEX, FRONT = "corresponding-is-the-same-index", "zero-in-front-copies-the-first-length"
SAME_INDEX = everywhere(RULING, INDEX)
DECLARED_TYPE = "declared-type-is-that-of-src"
# The newest document explains a literal 0 by a "zero-dimension tensor", which may be read as rank 0.
LITERAL_ZERO = everywhere(TEXT, "zero-literal") | {ONEAPI: due((TEXT, RULING), "zero-literal", "empty-is-a-tensor")}
# An answer of another rank breaks the rule of its rank and that of the entry that is not at its place.
RANK = everywhere(TEXT, "dst-has-shape-rank", "literal-lengths")

EXPECTED: Mapping[str, Expected] = {
    # Calls that are not answered: the weakest premise decides.
    **dict.fromkeys(("half-precision-not-supported", "rejects bf16", "does not support f16", "crashes on bf16"), TYPES),
    "vectors-rejected": everywhere(RULING, "rank-from-one"),
    "rejects ranks above 4": everywhere(TEXT, "literal-lengths", "infer-keeps-count", "zero-copies", "*rank*"),
    "rejects ranks above 8": everywhere(RULING, "*rank*"),
    **dict.fromkeys(("rejects lengths above 65535", "rejects volumes above 65536"), UNBOUND),
    "empty-rejected": LITERAL_ZERO,
    **dict.fromkeys(("rejects empty tensors without a literal 0", "rejects -1 on an empty src"), EMPTY),
    "rejects a copying 0": everywhere(TEXT, "zero-copies"),
    **dict.fromkeys(("rejects a literal 0", "crashes on a literal 0"), LITERAL_ZERO),
    **dict.fromkeys(("rejects -1", "hangs on -1"), everywhere(TEXT, "infer-keeps-count")),
    **dict.fromkeys(("rejects positive entries", "rejects an entry 1"), everywhere(TEXT, "literal-lengths")),
    "rejects another rank": RANK,
    "rejects special_zero true": everywhere(TEXT, "special-zero-is-boolean"),
    "rejects unknown lengths of src": everywhere(RULING, "each-call-alone"),
    "rejects an inferred 1": everywhere(TEXT, "infer-keeps-count"),
    # "T2: s32" is in the list of types of one document; the oldest one takes a "supported integer type".
    "rejects s32 shapes": everywhere(NOTHING)
    | {
        DYNAMIC: due(TEXT, "shape-is-integer", "types-offered", "shape-given"),
        OLDEST: due(RULING, "types-demanded-of-reshape"),
    },
    "does not know StaticReshape": only((ONEAPI, GRAPH, SPEC), TEXT, "types-offered"),
    "reshape-takes-constants-only": only((OLDEST,), RULING, "constant-and-runtime"),
    **dict.fromkeys(
        ("rejects declared dims", "rejects a declared dst of unknown rank"), everywhere(RULING, "declared-output")
    ),
    **dict.fromkeys(("rejects declared strides", "rejects strided src", "does not support strided src"), LAYOUT),
    **dict.fromkeys(
        ("shapes-begin-at-multiples-of-64-bytes", "adds 1 if shape begins later"),
        only((DYNAMIC, OLDEST), RULING, "layout-is-no-content"),
    ),
    "rejects dst in place": everywhere(RULING, "src-is-kept"),
    # To say "unsupported" of an illegal call is no rejection.
    "does not support chains": everywhere(RULING, "nodes-compose", "reject-illegal-calls"),
    "rejects the second run of a program": everywhere(RULING, "each-call-alone"),
    "rejects the second rank of a program": only((DYNAMIC, OLDEST), RULING, "each-call-alone"),
    # Wrong dims: the rule of the entry that fails.
    "reverses dims": everywhere(TEXT, "literal-lengths"),
    "reverses dims of an unknown src": everywhere(RULING, "each-call-alone"),
    **dict.fromkeys(("drops dims of length 1", "puts a 1 in front", "flattens", "answers the dims of src"), RANK),
    **dict.fromkeys(("infers 1", "inferred-before-zeros-are-copied"), everywhere(TEXT, "infer-keeps-count")),
    # If an empty src is none, the call means nothing, and no answer to it breaks the text.
    "infers 1 on an empty src": everywhere((TEXT, RULING), "infer-keeps-count", "empty-is-a-tensor"),
    **dict.fromkeys(("answers 0 for a copying 0", "zero-flag-ignored"), everywhere(TEXT, "zero-copies")),
    "zero-always-copies": everywhere(TEXT, "zero-literal")
    | {ONEAPI: due((TEXT, FORBIDDEN), "zero-literal", "same-volume")},
    # One document has an example, (3, 4, 5) with (0, -1), that another reading of "corresponding" contradicts.
    "zeros-counted-from-the-right": SAME_INDEX | {SPEC: due((TEXT, RULING), INDEX, FRONT)},
    "zeros-taken-in-turn": SAME_INDEX,
    "chains-copy-from-the-first": everywhere(RULING, "nodes-compose"),
    # That a 0 past the rank is no entry is a reading of the silence; of a src of rank 0, so is that it takes part.
    "leaves out a 0 past the rank": everywhere(RULING, "zero-past-rank", "rank-zero"),
    "leaves an undetermined -1": everywhere(RULING, "no-length-below-zero"),
    # Two sentences say "shape defined by input shape"; that a program may keep a shape is a reading of their silence.
    "shape-frozen-at-the-first-call": only(
        (DYNAMIC, OLDEST),
        (TEXT, RULING),
        "literal-lengths",
        "infer-keeps-count",
        "dst-has-shape-rank",
        "each-call-alone",
    ),
    # Wrong elements.
    **dict.fromkeys(("column-major", "reverses elements"), ORDER),
    **dict.fromkeys(
        (
            "answers zeros",
            "repeats the first element",
            "loses the last element",
            "adds 1 to each element",
            "flushes-subnormals",
            "rounds-through-bf16",
        ),
        CONTENT,
    ),
    **dict.fromkeys(("quiets-nan", "zero-without-sign"), BITS),
    "answers-from-memory": everywhere(RULING, "each-call-alone"),
    "strides-ignored": LAYOUT,
    # No document says what a graph of several nodes answers, or how dst lies in memory.
    "adds 1 in chains": everywhere(RULING, "nodes-compose") | {ONEAPI: due(RULING, "same-content", "nodes-compose")},
    "adds 1 to dst with strides": LAYOUT | {ONEAPI: due(RULING, "same-content", "layout-is-no-content")},
    # The line of the input says T and the one below it T1 in one document; the oldest gives the output no type.
    "bf16-answered-as-f32": everywhere(TEXT, "same-type")
    | {DYNAMIC: due((TEXT, RULING), "same-type"), OLDEST: due(RULING, "same-type")},
    "src-is-scratch": everywhere(RULING, "src-is-kept"),
    # Illegal calls that are answered: whoever forbids the call in any words forbids it.
    "first-infer-wins": everywhere(FORBIDDEN, "one-infer"),
    # That no call ends the process is our ruling.
    **dict.fromkeys(("crashes on two -1", "crashes on another volume"), everywhere(RULING, "reject-illegal-calls")),
    "any-negative-infers": everywhere(FORBIDDEN, "lower-bound") | {ONEAPI: due(RULING, "lower-bound")},
    "answers a literal 0 beside -1": only((GRAPH, SPEC), FORBIDDEN, "zero-meets-infer"),
    # Where the pair is not forbidden, that the answer to an undetermined -1 keeps the 0 is a ruling.
    "copies a literal 0 beside -1": everywhere(RULING, "infer-undetermined")
    | dict.fromkeys((GRAPH, SPEC), due(FORBIDDEN, "zero-meets-infer")),
    "divisibility-unchecked": everywhere(FORBIDDEN, "same-volume", "infer-keeps-count"),
    **dict.fromkeys(("answers fewer elements", "answers more elements"), everywhere(FORBIDDEN, "same-volume")),
    "zero-empties-anything": everywhere(FORBIDDEN, "zero-empties", "same-volume"),
    "counts-in-32-bits": everywhere(FORBIDDEN, "same-volume"),
    "answers rank 0 of another volume": everywhere(RULING, "empty-product-is-one"),
    "missing-flag-is-false": everywhere(FORBIDDEN, "attributes-required"),
    "reads any special_zero as true": everywhere(FORBIDDEN, "special-zero-is-boolean"),
    "answers float shapes": everywhere(FORBIDDEN, "shape-is-integer") | {ONEAPI: due(RULING, "shape-is-integer")},
    "any-tensor-is-a-shape": everywhere(FORBIDDEN, "shape-has-one-dimension")
    | dict.fromkeys((ONEAPI, DYNAMIC), due(RULING, "shape-has-one-dimension")),
    "declared-type-ignored": everywhere(FORBIDDEN, DECLARED_TYPE) | {OLDEST: due(RULING, DECLARED_TYPE)},
    "missing-src-does-not-matter": everywhere(FORBIDDEN, "operands-required"),
    # The newest document speaks of the order of inputs, and the oldest of "two input tensors".
    "extra-inputs-ignored": everywhere(RULING, "operands-as-listed")
    | {OLDEST: due(FORBIDDEN, "reshape-takes-two-inputs")},
    "missing-dst-does-not-matter": everywhere(RULING, "output-required") | {ONEAPI: due(FORBIDDEN, "output-required")},
    "declaration-not-read": everywhere(RULING, "declared-output"),
}


BACKENDS: Mapping[str, type[Any]] = {**planted_backends(), **FAULTS, **FREEDOMS}
TYPES_OF: Mapping[str, tuple[str, ...]] = {
    "half-precision-not-supported": ("f32", "f16"),
    "bf16-answered-as-f32": ("bf16",),
}
"""The element types with the rows that show the fault of a planted backend; f32 alone for the others."""


def plan_for(name: str) -> Plan:
    """Choose the rows that can show the fault; those left out add time and no other kind of call."""
    types: tuple[str, ...] = getattr(BACKENDS[name], "types", TYPES_OF.get(name, ("f32",)))
    most_elements = getattr(BACKENDS[name], "most_elements", 1 << 10)
    rows = [row for row in bundled_plan().rows if row.type in types and not takes_long(row)]
    rows = [row for row in rows if (row.operation, row.shape_type) != ("Reshape-1", "s32") or "s32" in name]
    small = [row for row in rows if max(prod(step.src) for step in row.case.steps) <= most_elements]
    return Plan(bundled_plan().suite, tuple(small))


def conclude_run_of(name: str) -> tuple[Plan, Claims, tuple[Result, ...], Conclusion]:
    plan, backend = plan_for(name), BACKENDS[name]()
    claims, results = resolve_claims(backend, plan.suite.spec.operations), tuple(run_rows(plan.rows, backend))
    return plan, claims, results, conclude(plan, {result.row: result for result in results}, claims, Target())


def list_shown_blames(name: str) -> Iterator[tuple[str, ShownBlame]]:
    """List the heaviest blame that a run of each document alone shows, as its first kind with that blame has it."""
    plan, claims, results, conclusion = conclude_run_of(name)
    for document in DOCUMENTS:
        blames = {row: {document: of[document]} for row, of in conclusion.blames.items() if document in of}
        suite = {"digest": plan.suite.digest}
        header = {"claims": claims.to_json(), "target": {"documents": [document]}, "suite": suite}
        kinds = group_failures(plan, Evidence(header, results, {}), replace(conclusion, blames=blames)).kinds
        if not kinds:
            yield document, ShownBlame(NOTHING, "")
        elif blamed := [each for each in kinds if each.rule]:
            first = min(blamed, key=lambda each: [*HEAVIEST_FIRST, ""].index(each.common.blame))
            yield document, ShownBlame(first.common.blame, first.rule or "")
        else:
            yield document, ShownBlame(ERROR, kinds[0].common.diagnosis)


def list_differences(name: str, expected: Expected) -> list[tuple[str, ShownBlame, AllowedBlame]]:
    """List the documents with another blame than is due, what was said there, and what is due."""
    shown = list_shown_blames(name)
    return [(document, said, expected[document]) for document, said in shown if not expected[document].allows(said)]


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("does not know StaticReshape", {"types-offered"}),
        ("rejects special_zero true", {"special-zero-is-boolean"}),
        ("rejects unknown lengths of src", {"each-call-alone"}),
        # a 0 of a later node then copies another length: what it should copy there is a ruling, too
        (
            "drops dims of length 1",
            {"dst-has-shape-rank", "declared-output", "corresponding-is-the-same-index", "shape-types-listed"},
        ),
    ],
)
def test_all_failures_of_a_fault_break_its_sentence(name: str, rules: set[str]) -> None:
    """Programs that run at the same time are left out, because no document speaks of them."""
    *_, conclusion = conclude_run_of(name)
    blamed = {
        each.premise.rule
        for row, documents in conclusion.blames.items()
        for each in documents.values()
        if "at-the-same-time" not in row and "threads" not in row
    }
    assert blamed == rules


@pytest.mark.parametrize("name", rest_exhaustive(EXPECTED, (*list(EXPECTED)[::7], "reverses dims of an unknown src")))
def test_a_fault_breaks_the_right_sentence(name: str) -> None:
    assert list_differences(name, EXPECTED[name]) == []


@pytest.mark.parametrize("name", some_exhaustive(FREEDOMS))
def test_a_freedom_breaks_nothing(name: str) -> None:
    assert list_differences(name, everywhere(NOTHING)) == []


def test_every_fault_has_its_due() -> None:
    assert FAULTS.keys() <= EXPECTED.keys() <= BACKENDS.keys() - FREEDOMS.keys()
