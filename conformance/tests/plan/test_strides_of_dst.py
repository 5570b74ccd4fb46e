"""Strides declared of dst reach the graph in bytes, the reference follows them, and those that overlap are open."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.load.cases import load_suite
from conformance.model import Tensor
from conformance.plan.rows import Row, plan_of

from ..small import Cli

ROWS = {row.id: row for row in plan_of(load_suite()).rows if row.case.dst_strides}
CASE = """extends: bundled
about: "One case."
cases:
  - id: mine
    rule: layout-is-no-content
    src: T[2, 3]
    shape: [3, 2]
    special_zero: false
    declared: {declared}
    dst_strides: "{strides}"
    expect: T[3, 2]
"""


def row(case: str, type_: str = "f32") -> Row:
    return ROWS[f"{case}[StaticReshape-{type_}]"]


@pytest.mark.parametrize(("type_", "width"), [("f32", 4), ("bf16", 2)])
def test_a_graph_has_the_strides_of_dst_in_bytes(type_: str, width: int) -> None:
    (step,) = row("dst-columns-lie-together", type_).steps
    declared = step.graph.nodes[-1].result
    assert declared is not None
    assert declared.strides == (width, 3 * width)


def test_the_reference_answers_at_the_strides_that_are_declared() -> None:
    (step,) = row("dst-rows-have-a-gap").steps
    answer = load_adapter("numpy").compile(step.graph).run(step.src.tensor, (), False)
    assert isinstance(answer, Tensor)
    assert answer.strides == (36, 4)
    assert answer.array().tobytes() == step.src.elements


def test_strides_that_keep_the_elements_apart_are_legal_and_others_open() -> None:
    kinds = {
        each.case.id: {judged.meaning.kind for judged in each.steps[0].meanings}
        for each in ROWS.values() if each.case.rule in ("layout-is-no-content", "strides-of-dst-overlap")
    }  # fmt: skip
    overlapping = {"rows-of-dst-in-one-place", "all-of-dst-in-one-place", "rows-of-dst-overlap-by-one"}
    assert {case for case, kind in kinds.items() if kind == {"unspecified"}} == overlapping | {"equal-strides-of-dst"}
    assert all(kind in ({"legal"}, {"unspecified"}) for kind in kinds.values())


@pytest.mark.parametrize(("declared", "strides"), [("[3, null]", "1 3"), ("[3, 2]", "1"), ("unknown", "1 3")])
def test_strides_without_a_length_for_each_are_a_problem(declared: str, strides: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.yaml").write_text(CASE.format(declared=declared, strides=strides), encoding="utf-8")
    said = cli("check", "--cases", tmp_path, "--lock").expect(1)
    assert f"mine: dst_strides '{strides}' needs `declared` with as many lengths, and no null" in said.text
