"""Nodes that share src or a shape: a backend learns of it, and each node means what it means alone."""

from pathlib import Path

import pytest

from conformance.adapter import FunctionAdapter, load_adapter
from conformance.meaning.chains import meaning_of
from conformance.meaning.contract import contracts
from conformance.model import Array
from conformance.run.row import run_rows

from ..builders import Cli, bundled_rows, spec, write_suite

ROWS = bundled_rows()
STATIC = contracts(spec())["static-oneapi"]
CASE = """
  - id: mine-{number}
    rule: nodes-compose
    src: T[17, 19]
    shape: [19, 17]
    special_zero: false
    {more}
    expect: T[19, 17]
"""
"""A case with lengths that no bundled case has, so that it is compared with none of them."""
NEEDS_LENGTHS = "needs `declared` with as many lengths, and no null"


def test_later_nodes_of_a_fork_take_src() -> None:
    (step,) = ROWS["three-nodes-take-one-src[StaticReshape-f32]"].steps
    assert [node.takes_src for node in step.graph.nodes] == [False, True, True]


@pytest.mark.parametrize("given", ["constant", "runtime"])
def test_a_shared_shape_reaches_each_node(given: str) -> None:
    (step,) = ROWS[f"two-nodes-take-one-shape[Reshape-1-f32-s64-{given}]"].steps
    assert [node.shares_shape for node in step.graph.nodes] == [False, True]
    values = (8, 3) if given == "constant" else None
    assert [node.shape and node.shape.values for node in step.graph.nodes] == [values, values]
    assert len(step.shapes) == (2 if given == "runtime" else 0)


@pytest.mark.parametrize(("case", "shared"), [
    ("a-third-node-has-a-shape-of-its-own", [False, True, False]),
    ("a-shape-of-its-own-before-a-shared-one", [False, False, True]),
])  # fmt: skip
def test_a_shape_is_shared_where_it_is_that_of_the_node_before(case: str, shared: list[bool]) -> None:
    (step,) = ROWS[f"{case}[DynamicReshape-1-f32-s32]"].steps
    assert [node.shares_shape for node in step.graph.nodes] == shared


@pytest.mark.parametrize("given", ["constant", "runtime"])
def test_two_shape_types_alternate(given: str) -> None:
    (step,) = ROWS[f"two-shape-types-in-turn[Reshape-1-f32-s64-{given}]"].steps
    types = [node.shape.type for node in step.graph.nodes if node.shape]
    assert types == ["s64", "s32", "s64"]
    assert [type_ for type_, _, _ in step.shapes] == (types if given == "runtime" else [])
    row = ROWS["two-shape-types-in-turn[Reshape-1-f32-s64-runtime]"]
    assert {"shape-type:s32", "shape-type:s64"} <= row.facets
    assert {row.operation for row in ROWS.values() if row.case.mixed_shape_types} == {"Reshape-1"}


@pytest.mark.parametrize(("case", "late"), [
    ("a-constant-shape-behind-one-of-its-own", [True, False]),
    ("one-shape-of-its-own-between-constant-ones", [False, True, False]),
])  # fmt: skip
def test_a_constant_shape_stands_beside_one_that_arrives(case: str, late: list[bool]) -> None:
    """Both operands of the graph and what arrives with run: of two types, and only what is late arrives."""
    (step,) = ROWS[f"{case}[Reshape-1-f32-s32-runtime]"].steps
    shapes = [node.shape for node in step.graph.nodes if node.shape is not None]
    assert [shape.values is None for shape in shapes] == late
    assert [shape.type for shape in shapes] == ["s32" if each else "s64" for each in late]
    assert [type_ for type_, _, _ in step.shapes] == ["s32"] * late.count(True)
    assert {row.operation for row in ROWS.values() if row.case.id == case} == {"Reshape-1"}


def test_an_attribute_is_shared_by_no_nodes() -> None:
    assert {row.operation for row in ROWS.values() if row.case.steps[0].shared_shape} == {
        "DynamicReshape-1", "Reshape-1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "zeros", "due"),
    [
        (((2, 12), (0, 6)), (False, True), ("legal", (4, 6))),  # in a chain, the 0 would be 2 and the call illegal
        (((5, 5), (8, 3)), (False, False), ("illegal", None)),
        (((8, 3), (5, 5)), (False, False), ("illegal", None)),
        (((), (24,)), (False, False), ("illegal", None)),
        (((1, 24, 0), (24,)), (True, False), ("unspecified", (24,))),
    ],
)
def test_the_meaning_of_a_fork(
    shapes: tuple[tuple[int, ...], ...], zeros: tuple[bool, ...], due: tuple[str, tuple[int, ...] | None]
) -> None:
    """A fork means what its last node means, unless another node is illegal or unspecified."""
    meaning = meaning_of(STATIC, (4, 6), shapes, zeros, None, shared_src=True)
    assert (meaning.kind, meaning.dst) == due


def test_a_function_is_called_with_src_for_each_node() -> None:
    called: list[tuple[int, ...]] = []

    class Function(FunctionAdapter):
        name, version = "function", "1"

        def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
            called.append(src.shape)
            return src.reshape([src.shape[i] if n == 0 and special_zero else n for i, n in enumerate(shape)])

    (result,) = run_rows([ROWS["two-nodes-copy-from-one-src[StaticReshape-f32]"]], Function())
    assert set(result.verdicts.values()) == {"pass"}
    assert called == [(4, 6), (4, 6)]


def test_a_column_has_its_entries_along_the_first_dimension() -> None:
    (step,) = ROWS["shape-is-a-matrix-of-one-column[Reshape-1-f32-s64-constant]"].steps
    assert step.graph.nodes[0].shape is not None
    assert step.graph.nodes[0].shape.dims == (2, 1)
    (result,) = run_rows(
        [ROWS["shape-is-a-matrix-of-one-column[Reshape-1-f32-s64-runtime]"]], load_adapter("reference")
    )
    assert result.outcome.message == "shape-has-one-dimension"


LACKING = [
    ("shared_src: true", "one node shares nothing; write a `chain`"),
    ("shared_shape: true", "one node shares nothing; write a `chain`"),
    ("chain: [{shape: [17, 19], special_zero: false}]\n    shared_shape: true",
     "`shared_shape: true` needs equal shapes in two nodes that follow each other"),
    ("constant_nodes: first", "`constant_nodes` needs a `chain`, and another shape tensor in each node"),
    ("chain: [{shape: [19, 17], special_zero: false}]\n    shared_shape: true\n    constant_nodes: second",
     "`constant_nodes` needs a `chain`, and another shape tensor in each node"),
    ("chain: [{shape: [19, 17], special_zero: false}]\n    constant_nodes: first\n    rows: one-per-type",
     "with `constant_nodes` some types would have no row; leave out `rows: one-per-type`"),
    ("mixed_shape_types: true", "`mixed_shape_types` needs a `chain`, and another shape tensor in each node"),
    ("chain: [{shape: [19, 17], special_zero: false}]\n    mixed_shape_types: true\n    rows: one-per-type",
     "with `mixed_shape_types` some types would have no row; leave out `rows: one-per-type`"),
    ("chain: [{shape: [19, 17], special_zero: false}]\n    mixed_shape_types: true\n    constant_nodes: first",
     "`constant_nodes` already gives shapes of two types; leave out `mixed_shape_types`"),
    ("concurrent: 2", "`concurrent: 2` needs as many `steps`; there is 1"),
    ("concurrent: 2\n    one_shape_memory: true",
     "`one_shape_memory: true` needs steps one after another; leave out `concurrent`"),
    ("one_program: true", "`one_program: true` needs `concurrent`"),
    ("in_node: first", "`in_node: first` needs a `chain`"),
    ("shape_step: 0", "`shape_step: 0` puts all entries of shape into one place; write equal entries"),
    ("attributes: {special_zero: {type: s64, values: 1}}", "special_zero is false, and its attribute 1; write the"),
    ("shape_column: true", "`shape_column: true` needs `shape_rank: 2` or more"),
    ("declared: [19, null]\n    dst_strides: '1 19'", f"dst_strides '1 19' {NEEDS_LENGTHS}"),
    ("declared: [19, 17]\n    dst_strides: '1'", f"dst_strides '1' {NEEDS_LENGTHS}"),
    ("declared: unknown\n    dst_strides: '1 19'", f"dst_strides '1 19' {NEEDS_LENGTHS}"),
]  # fmt: skip
"""A key of a case, and the problem that it lacks something."""


@pytest.mark.slow
def test_keys_without_what_they_need(tmp_path: Path, cli: Cli) -> None:
    cases = "".join(CASE.format(number=number, more=more) for number, (more, _) in enumerate(LACKING))
    suite = write_suite(tmp_path, f'extends: bundled\nabout: "Mine."\ncases:\n{cases}')
    problems = [f"mine-{number}: {problem}" for number, (_, problem) in enumerate(LACKING)]
    cli("check", "--suite", suite, "--lock").expect(1, text=problems)
