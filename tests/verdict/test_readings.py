"""A backend that follows another reading of a finding does not break the text of the documents there."""

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import pytest

from conformance.model import Result
from conformance.plan.rows import Row
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import planted_backends, takes_long
from conformance.verdict.blame import Blamer

from ..builders import bundled_plan
from .one_fault_backends import FAULTS

BACKENDS: Mapping[str, type[Any]] = {**planted_backends(), **FAULTS}
OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "shape-is-required-with-a-default": ("missing-shape-flattens",),
    **dict.fromkeys(("could-be-is-a-bound", "lower-bound-is-missing"), ("any-negative-infers",)),
    "greatest-length-is-unsaid": ("rejects lengths above 65535",),
    "shape-rank-is-unsaid": ("any-tensor-is-a-shape",),
    "shape-may-be-constant-or-not": ("shape-only-beforehand", "reshape-takes-constants-only"),
    "not-supported-is-a-prohibition": ("first-infer-wins",),
    "no-more-than-one-has-no-verb-of-duty": ("first-infer-wins",),
    "infer-on-an-empty-source": ("rejects -1 on an empty src",),
    "infer-has-no-zero-case": ("rejects -1 on an empty src",),
    **dict.fromkeys(
        ("copied-zero-beside-infer", "prohibition-covers-every-zero-pair"), ("rejects -1 on an empty src",)
    ),
    "zero-with-infer-is-forbidden-in-two": ("rejects -1 on an empty src",),
    "should-not-is-a-prohibition": ("zero-meets-infer",),
    "empty-source-is-stated-as-a-fact": ("zero-empties-anything",),
    "may-a-source-be-empty": ("rejects empty tensors without a literal 0",),
    "corresponding-is-not-defined": ("zeros-taken-in-turn",),  # counted from the right, one document excludes
    "element-order-is-unsaid": ("column-major",),
    "same-content-has-no-measure": ("quiets-nan", "zero-without-sign"),
    "strided-sources-are-unsaid": ("strides-ignored",),
    "in-place-is-or-can-be": ("leave-to-overwrite-for-ever",),
    "source-after-the-call-is-unsaid": ("src-is-scratch",),
    "rank-may-arrive-with-the-run": ("rejects the second rank of a program",),
    "earlier-calls-are-unsaid": (
        "shape-frozen-at-the-first-call", "eight-buffers-in-turn", "one-buffer-for-all-threads",
    ),
    "graphs-are-unsaid": ("chains-fused", "chains-copy-from-the-first", "a-fork-is-a-chain"),
    "rank-zero-is-unsaid": ("scalar-has-no-elements",),
    "an-empty-shape-is-unsaid": ("empty-shape-is-flat",),
    "multidimensional-excludes-rank-one": ("vectors-rejected",),
    "the-type-of-the-output-is-unsaid": ("bf16-answered-as-f32",),
    "mixed-types-are-unsaid": ("casts-to-the-declared-type",),
    "types-are-not-listed": ("rejects bf16",),
    "output-is-required-in-one": ("missing-dst-does-not-matter",),
    "extra-operands-are-unsaid": ("extra-inputs-ignored", "extra-outputs-ignored"),
    "illegal-calls-have-no-answer": ("accepts-everything",),
    "declared-outputs-are-unsaid": ("declaration-believed", "declaration-not-read"),
    "strides-of-dst-are-unsaid": ("rejects declared strides",),
    "shape-tensor-in-memory-is-unsaid": ("entries-of-shape-side-by-side", "shapes-begin-at-multiples-of-64-bytes"),
}  # fmt: skip
"""Backends that follow another reading of a finding."""
OF_TYPES = ("quiets-nan", "bf16-answered-as-f32", "casts-to-the-declared-type", "rejects bf16")
"""Those that do something else with bf16."""
OF_SEQUENCES = (
    *OTHERWISE["rank-may-arrive-with-the-run"], *OTHERWISE["earlier-calls-are-unsaid"],
    "leave-to-overwrite-for-ever", "src-is-scratch",
)  # fmt: skip
"""Those for which earlier calls matter. The others are not tried on long sequences."""
NO_BACKEND = {
    "shape-row-is-pasted-in": "a shape that is a string or a word says nothing about lengths",
    "zero-past-the-rank": "every reading is left open",
    "content-is-unsaid": "a backend that answers no content follows no reading of the other documents",
    "greatest-rank-is-unsaid": "a bound of twelve is what the ruling demands",
    "shape-types-differ": "every reading is left open",
    "unlisted-types-are-unsaid": "every reading is left open",
    "integer-flags-are-unsaid": "every reading is left open",
    "extra-attributes-are-unsaid": "every reading is left open",
}


@cache
def rows(operation: str) -> tuple[Row, ...]:
    """Rows of more elements add time and no other kind of call."""
    return tuple(
        row for row in bundled_plan().rows
        if row.operation == operation and not row.case.large and row.type in ("f32", "bf16")
        and (row.type == "f32" or not row.case.generated)
        and max(prod(step.src) for step in row.case.steps) <= 1 << 17
    )  # fmt: skip


def broken_texts(finding: str, backend: str, every_type: bool) -> set[str]:
    """Run a backend on the operations of a finding's documents, and return the rules with text that it breaks there."""
    spec = bundled_plan().suite.spec
    documents = {pointer.document for pointer in spec.findings[finding].at}
    return {
        rule
        for operation in {spec.documents[document].operation for document in documents}
        for document, rule in _broken_texts(operation, backend, every_type)
        if document in documents
    }


@cache
def _broken_texts(operation: str, backend: str, every_type: bool) -> set[tuple[str, str]]:
    """Run a backend on an operation, and return each document with text that it breaks, and the rule."""
    tried = [
        row for row in rows(operation)
        if (every_type or row.first is None) and (backend in OF_SEQUENCES or not takes_long(row))
    ]  # fmt: skip
    results: dict[str, Result] = {result.row: result for result in run_rows(tried, BACKENDS[backend]())}
    blamer = Blamer(bundled_plan().suite.spec.rules, tried, results)
    found = ((document, blamer.blame(row, results[row.id], document)) for row in tried for document in row.documents)
    return {(document, each.premise.rule) for document, each in found if each and each.blame == "breaks the text"}


def test_every_finding_with_weight_has_a_backend() -> None:
    changing = {
        name for name, finding in bundled_plan().suite.spec.findings.items() if finding.weight == "changes a verdict"
    }
    assert {*OTHERWISE, *NO_BACKEND} == changing
    assert not OTHERWISE.keys() & NO_BACKEND.keys()


PAIRS = [(name, each) for name, them in OTHERWISE.items() for each in them]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("finding", "backend"),
    [each if k % 10 == 0 else pytest.param(*each, marks=pytest.mark.exhaustive) for k, each in enumerate(PAIRS)],
)
@pytest.mark.parametrize("every_type", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_another_reading_does_not_break_the_text(finding: str, backend: str, every_type: bool) -> None:
    """A call of any type is tried with its first type, and with bf16 too if the finding may be about types.

    CI tries every tenth backend.
    """
    assert not broken_texts(finding, backend, every_type or backend in OF_TYPES)
