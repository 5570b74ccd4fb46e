"""A failure is held against the right sentence: the text, a call that the text forbids, or only a ruling of ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from adapters import reference
from adapters.reference import Decided, Reference
from conformance.load.cases import load_suite
from conformance.model import BLAMES, Blame, Graph, Node, Program, Rejected, Result, Tensor
from conformance.plan.rows import Plan, Row, plan_of
from conformance.run.row import run
from conformance.verdict.blame import Blamer

TEXT, FORBIDDEN, RULING = BLAMES
DOCUMENTS = ("static-oneapi", "static-graph-v0.9", "static-spec-v0.9", "dynamic-spec-v0.9", "reshape-spec-v0.7")


class ColumnMajor(Reference):
    def copy_elements(self, src: Tensor, dst: tuple[int, ...], may_overwrite: bool) -> Any:
        if 0 in dst or max(len(src.dims), len(dst)) > 12:
            return super().copy_elements(src, dst, may_overwrite)
        return src.array().reshape(dst, order="F").copy()


class QuietsNans(Reference):
    def copy_elements(self, src: Tensor, dst: tuple[int, ...], may_overwrite: bool) -> Any:
        answer = super().copy_elements(src, dst, may_overwrite)
        if not isinstance(answer, np.ndarray) or src.type not in ("f32", "bf16", "f16"):
            return answer
        bits = answer.view(f"u{answer.dtype.itemsize}")
        infinity, quiet = {"f32": (0x7F800000, 1 << 22), "bf16": (0x7F80, 1 << 6), "f16": (0x7C00, 1 << 9)}[src.type]
        sign = infinity.bit_length()
        is_nan = (bits & ((1 << sign) - 1)) > infinity
        return np.where(is_nan, bits | quiet, bits).astype(bits.dtype).view(answer.dtype)


class RefusesBf16(Reference):
    def compile(self, graph: Graph) -> Program:
        if graph.src.type == "bf16":
            raise Rejected("compile", "no bf16")
        return super().compile(graph)


class RefusesS32Shapes(Reference):
    def compile(self, graph: Graph) -> Program:
        if any(node.shape is not None and node.shape.type == "s32" for node in graph.nodes):
            raise Rejected("compile", "no s32")
        return super().compile(graph)


class AnswersTwoInfers(Reference):
    """Takes every -1 but the first as 1."""

    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        if shape.count(-1) > 1:
            first = shape.index(-1)
            shape = (*shape[: first + 1], *(1 if d == -1 else d for d in shape[first + 1 :]))
        return super().answer(node, src, shape)


class TakesIntegersForTheFlag(Reference):
    @staticmethod
    def check(node: Node, src_type: str) -> None:
        flag = node.special_zero
        if flag is not None and flag.type[0] in "su" and flag.values in ((0,), (1,)):
            node = node._replace(special_zero=flag._replace(type="bool"))
        reference.check_form(node, src_type)


class RefusesRankOne(Reference):
    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        dst, rule = super().answer(node, src, shape)
        refused = rule is None and len(src) == 1
        return (None, "rank") if refused else (dst, rule)


class RefusesEmptyTensors(Reference):
    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        dst, rule = super().answer(node, src, shape)
        refused = rule is None and 0 in src
        return (None, "empty") if refused else (dst, rule)


class FlushesSubnormals(Reference):
    def copy_elements(self, src: Tensor, dst: tuple[int, ...], may_overwrite: bool) -> Any:
        answer = super().copy_elements(src, dst, may_overwrite)
        if not isinstance(answer, np.ndarray) or src.type != "f32":
            return answer
        return np.where(np.abs(answer) < np.float32(2**-126), np.copysign(np.float32(0), answer), answer)


class CopiesZeroFromTheRight(Reference):
    """Counts the dimension that a 0 copies from the right, where src and dst are of different ranks."""

    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        (special_zero,) = node.special_zero.values  # type: ignore[union-attr, misc]
        shift = len(src) - len(shape)
        if special_zero and len(shape) > 1 and shift > 0:
            moved = tuple(src[i + shift] if d == 0 else d for i, d in enumerate(shape))
            if np.prod(src) and not np.prod(src) % np.prod([d for d in moved if d != -1]):
                shape = moved
        return super().answer(node, src, shape)


class ReversesCopiedLengths(Reference):
    """Answers the lengths of dst in the reverse order."""

    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        dst, rule = super().answer(node, src, shape)
        return dst and dst[::-1], rule


TRUTH: Mapping[type[Reference], Mapping[str, Blame]] = {
    ColumnMajor: dict.fromkeys(DOCUMENTS, RULING),
    QuietsNans: dict.fromkeys(DOCUMENTS, RULING),
    RefusesBf16: {**dict.fromkeys(DOCUMENTS, TEXT), "reshape-spec-v0.7": RULING},
    RefusesS32Shapes: {"reshape-spec-v0.7": RULING, "dynamic-spec-v0.9": TEXT},
    AnswersTwoInfers: dict.fromkeys(DOCUMENTS, FORBIDDEN),
    TakesIntegersForTheFlag: {},
    RefusesRankOne: dict.fromkeys(DOCUMENTS, RULING),
    FlushesSubnormals: {**dict.fromkeys(DOCUMENTS, TEXT), "static-oneapi": RULING},
    CopiesZeroFromTheRight: dict.fromkeys(DOCUMENTS, RULING),
    ReversesCopiedLengths: dict.fromkeys(DOCUMENTS, TEXT),
}
"""One fault a backend, and whose sentence it breaks in each document; a document that is not named is not broken."""


@cache
def the_plan() -> Plan:
    return plan_of(load_suite())


def blames_of(adapter: Reference, share: int, generated: bool) -> dict[str, Counter[Blame]]:
    """Run a backend on a share of the rows of each rule, and count its failures by document and blame.

    `generated`: of a case of many steps, call the rows of both types, not only those of its first.
    """
    groups: dict[object, list[Row]] = {}
    for row in the_plan().rows:
        repeated = row.case.generated and row.first is not None and not generated
        if not row.case.large and row.type in ("f32", "bf16") and not repeated:
            key = row.case.rule, row.operation, row.shape_type, row.type, row.case.steps[0].bits is None
            groups.setdefault(key, []).append(row)
    rows = [row for group in groups.values() for row in group[::share]]
    results: dict[str, Result] = {result.row: result for result in run(rows, adapter)}
    blamer = Blamer(the_plan().suite.spec.rules, rows, results)
    counts: dict[str, Counter[Blame]] = {}
    for row in rows:
        for document in row.documents:
            blamed = blamer.blame(row, results[row.id], document)
            if blamed:
                counts.setdefault(document, Counter())[blamed.blame] += 1
    return counts


@pytest.mark.parametrize(
    ("share", "generated"),
    [
        pytest.param(7, False, id="7"),
        pytest.param(1, False, id="1", marks=pytest.mark.slow),
        pytest.param(1, True, id="every row", marks=[pytest.mark.slow, pytest.mark.exhaustive]),
    ],
)
@pytest.mark.parametrize("backend", TRUTH, ids=lambda backend: backend.__name__)
def test_a_fault_is_held_against_the_sentence_that_it_breaks(
    backend: type[Reference], share: int, generated: bool
) -> None:
    """Some calls rest on more premises than the fault, such as a src of one dimension; those are a ruling's."""
    counts = blames_of(backend(), share, generated)
    heaviest = {document: min(blames, key=list(BLAMES).index) for document, blames in counts.items()}
    assert heaviest == TRUTH[backend]
