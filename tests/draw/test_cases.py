"""Drawn cases: they have all kinds of calls, and each can be written and read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.draw.calls import SeededDraws
from conformance.draw.cases import draw_case, draw_other_form
from conformance.draw.factors import Factors
from conformance.load.cases import with_cases
from conformance.meaning.contract import contracts
from conformance.model import Case
from conformance.plan.rows import Row, rows_of
from conformance.shrink.write_case import write_case_text

from ..builders import spec

NOT_DRAWN = {
    "huge-on-empty",
    "strides-of-dst-overlap",
    "types-listed",
    "shape-types-listed",
    "types-demanded-of-reshape",
}
"""Rules that 2000 cases do not reach, or that are about types that no document lists."""


def draw_cases(number: int) -> list[Case]:
    factors = Factors(spec())
    return [draw_case(SeededDraws(f"cases {each}"), ["f32", "bf16", "f16"], factors) for each in range(number)]


@pytest.mark.slow
def test_drawn_cases_have_all_kinds_of_calls() -> None:
    """Legal, illegal and unspecified ones, of every facet, with lengths around the powers of two that matter."""
    kinds, facets, rules, lengths = Counter[str](), Counter[str](), Counter[str](), set[int]()
    compiled = contracts(spec())
    for case in draw_cases(2000):
        for step in case.steps:
            lengths |= {*step.src, *(abs(entry) for shape in step.shapes for entry in shape)}
        rows = list(rows_of([case], spec(), compiled))
        facets.update(facet.partition(":")[0] for row in rows for facet in row.facets)
        for row in {row.operation: row for row in rows}.values():  # the other ways to call it mean the same
            for task in row.steps:
                meanings = [judged.meaning for judged in task.meanings]
                kinds.update("open" if each.kind == "legal" and each.rules else each.kind for each in meanings)
                rules.update(rule for judged in task.meanings for rule in judged.meaning.rules)
    total = sum(kinds.values())
    kinds["open"] += kinds["unspecified"]  # calls that may be rejected without a verdict against the backend
    assert all(kinds[kind] > total / 30 for kind in ("legal", "illegal", "open")), kinds
    wanted = {"type", "shape-type", "runtime-shape", "layout", "in-place", "chain", "declared", "form", "rank"}
    assert wanted <= set(facets)
    for power in (15, 16, 31, 32, 62):
        assert {2**power - 1, 2**power, 2**power + 1} & lengths, f"2^{power}"
    assert 2**63 - 1 in lengths
    with_contract = {rule.id for rule in spec().rules.values() if rule.requires or rule.ensures or rule.when}
    assert {rule for rule in with_contract if spec().rules[rule].documents} - set(rules) - NOT_DRAWN == set()


def test_a_special_zero_of_another_form_says_what_the_call_does() -> None:
    drawn = [draw_other_form(SeededDraws(f"forms {each}"), ["f32"]) for each in range(1000)]
    given = [(case, operand) for case in drawn if (operand := case.attributes.get("special_zero")) is not None]
    assert {len(case.steps) for case, _ in given} == {1, 2}
    assert {len(case.steps[0].shapes) for case, _ in given} == {1, 2}
    for case, operand in given:
        assert {step.special_zero[-1] for step in case.steps} == {bool((operand.values or ())[0])}


def test_a_shape_without_dims_has_one_entry() -> None:
    drawn = [draw_other_form(SeededDraws(f"forms {each}"), ["f32"]) for each in range(1000)]
    shapes = [shape for case in drawn if case.shape_rank == 0 for step in case.steps for shape in step.shapes]
    assert {len(shape) for shape in shapes} == {1}


def test_every_drawn_case_can_be_written_and_read(tmp_path: Path) -> None:
    """A case that is read again means the same calls."""
    compiled = contracts(spec())
    (tmp_path / "cases").mkdir()
    written: list[tuple[str, Row]] = []
    for number, case in enumerate(draw_cases(250)):
        row = next(iter(rows_of([case], spec(), compiled)), None)
        if row is not None:
            written.append((write_case_text(row, "same-volume", f"n{number}"), row))
    text = "about: Drawn.\ncases:\n" + "".join(text for text, _ in written)
    (tmp_path / "cases" / "drawn.yaml").write_text(text, encoding="utf-8")
    read = with_cases(spec(), tmp_path)
    assert len(read.cases) == len(written)
    for (_, row), case in zip(written, read.cases.values(), strict=True):
        again = next(iter(rows_of([case], spec(), compiled)))
        assert [task.graph for task in again.steps] == [task.graph for task in row.steps]
        assert [task.shapes for task in again.steps] == [task.shapes for task in row.steps]
        assert [t.src_spec._replace(start=0) for t in again.steps] == [t.src_spec._replace(start=0) for t in row.steps]
