"""The rows of a plan: their meanings in chains and with declarations, and their facets."""

import math
import re
from bisect import bisect
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import FACETS, MEMBERS
from conformance.adapter.claims import MAX_CASE_RANK
from conformance.load.spec import load_spec
from conformance.meaning.chains import meaning_of
from conformance.meaning.contract import Contract, contracts
from conformance.model import CallForm, Meaning, Operand, covers
from conformance.plan.facets import has_constant_nodes
from conformance.plan.rows import Row
from conformance.run.diagnose import diagnose_dims

from ..builders import ROOT, bundled_plan, plan_of_cases

F64 = CallForm("f64", "f64", "s64")


@pytest.fixture(scope="module")
def contract() -> Contract:
    return contracts(load_spec())["static-graph-v0.9"]


def chain(
    contract: Contract, src: tuple[int, ...], *links: tuple[tuple[int, ...], bool], form: CallForm | None = None
) -> Meaning:
    return meaning_of(contract, src, tuple(shape for shape, _ in links), tuple(zero for _, zero in links), form)


@pytest.mark.parametrize(
    ("src", "links", "due", "rule"),
    [
        ((2, 3), [((3, 2), False), ((6,), False)], ("legal", (6,)), None),
        ((2, 3), [((2, 3, 0), True), ((-1, -1), False)], ("illegal", None), "one-infer"),
        ((2, 3), [((2, 3, 0), True), ((7, -2), False)], ("illegal", None), "lower-bound"),
        ((2, 3), [((2, 3, 0), True), ((5,), False)], ("illegal", None), "same-volume"),
        ((2, 3), [((2, 3, 0), True), ((6,), False)], ("unspecified", (6,)), "zero-past-rank"),
        ((0, 3), [((0, -1), True), ((1,), False)], ("illegal", None), "same-volume"),
        ((0, 3), [((0, -1), True), ((0,), False)], ("unspecified", (0,)), "infer-undetermined"),
        ((0, 3), [((0, -1), True), ((0, 0), True)], ("unspecified", None), "infer-undetermined"),
        ((0, 3), [((0, -1), True), ((0, 0, -1, -1), True)], ("illegal", None), "one-infer"),
        ((0, 3), [((0, -1), True), ((5, 0), True)], ("unspecified", None), "infer-undetermined"),
    ],
)
def test_an_unspecified_node_excuses_no_later_one(
    contract: Contract, src: tuple[int, ...], links: list[tuple[tuple[int, ...], bool]], due: Any, rule: str | None
) -> None:
    meaning = chain(contract, src, *links)
    assert (meaning.kind, meaning.dst) == due
    assert rule is None or rule in meaning.rules


def test_an_unlisted_type_leaves_dst_of_a_chain_known(contract: Contract) -> None:
    meaning = chain(contract, (2, 3), ((3, 2), False), ((6, 1), False), form=F64)
    assert meaning == Meaning("unspecified", (6, 1), ("types-listed",))
    assert chain(contract, (2, 3), ((6,), False), ((5,), False), form=F64).kind == "illegal"


def test_an_unspecified_call_with_declared_dims(contract: Contract) -> None:
    form = CallForm("f32", "f32", "s64", declared=(0, 4))
    meaning = contract.meaning((0, 3), (0, -1), True, form)
    assert meaning == Meaning("unspecified", (0, 4), ("infer-undetermined",))
    assert diagnose_dims((0, 4), meaning, (0, 3)) is None
    assert diagnose_dims((0, 7), meaning, (0, 3)) is not None


def test_a_copied_length_counts_as_huge(contract: Contract) -> None:
    assert contract.meaning((0, 65536), (0, 0, 65536), True).rules == ("huge-on-empty",)
    assert contract.meaning((0, 65536), (0, 0, 32767), True).kind == "legal"


def test_a_row_needs_the_types_of_all_its_steps() -> None:
    """Otherwise a backend without one of them is called with it, and fails."""
    rows = [row for row in bundled_plan().rows if row.case.id == "programs-of-two-types-at-the-same-time"]
    assert [row.id for row in rows if not row.facets >= {"type:f32", "type:bf16"}] == []
    assert rows


def test_a_step_keeps_a_type_of_its_own_in_rows_of_every_type(tmp_path: Path) -> None:
    case = """about: One.
cases:
  - {id: of-two-types, rule: same-content, src: "T[6]", shape: [6, 1], special_zero: false,
     steps: [{expect: "T[6, 1]"}, {src: "f32[6]", expect: "f32[6, 1]"}]}
"""
    rows = [row for row in plan_of_cases(tmp_path, case).rows if row.operation == "StaticReshape"]
    types = [tuple(step.src_spec.type for step in row.steps) for row in rows]
    assert types == [("f32", "f32"), ("bf16", "f32"), ("f16", "f32")]
    assert types == [tuple(step.graph.src.type for step in row.steps) for row in rows]


def test_rows_that_need_an_unknown_rank() -> None:
    rows = bundled_plan().rows
    needing = {row.id for row in rows if "runtime-shape:changing-rank" in row.facets}
    assert "the-shape-changes[Reshape-1-f32-s64-runtime]" not in needing
    assert "ranks-of-src-alternate[Reshape-1-f32-s64-runtime]" in needing
    assert not any("StaticReshape" in row or "constant" in row for row in needing)


def test_a_known_shape_of_an_unknown_src_is_a_facet() -> None:
    """Also beside a shape that arrives, in a graph for several sources."""
    rows = [row for row in bundled_plan().rows if row.case.known != "all" or has_constant_nodes(row.case)]
    graphs = {row: row.steps[0].graph for row in rows}
    unknown = [row for row in rows if None in (graphs[row].src.dims or (None,))]
    needing = [row.id for row in unknown if any(node.shape and node.shape.values for node in graphs[row].nodes)]
    assert [row.id for row in rows if "unknown-src" in row.facets] == needing


@pytest.mark.parametrize(
    ("src", "ids"),
    [
        ("T", {"turns[StaticReshape-f32]", "turns[DynamicReshape-1-bf16-s32]", "turns[Reshape-1-f16-s64-runtime]"}),
        ("f16", {"turns[Reshape-1-f16-s64-runtime]"}),
    ],
)
def test_a_case_with_one_row_per_type(tmp_path: Path, src: str, ids: set[str]) -> None:
    """The types take the operations in turn."""
    case = f"""about: One.
cases:
  - {{id: turns, rule: same-content, src: "{src}[6]", shape: [6, 1], special_zero: false, expect: "{src}[6, 1]",
     rows: one-per-type}}
"""
    assert {row.id for row in plan_of_cases(tmp_path, case).rows} == ids


ROWS = """about: What rows need, and what they say beforehand.
cases:
  - {id: plain, rule: same-volume, src: "f32[2, 3]", shape: [6], special_zero: false, expect: "f32[6]"}
  - {id: longer, rule: same-volume, src: "f32[2, 3]", special_zero: false, steps: [{shape: [6], expect: "f32[6]"},
     {src: "f32[2, 4]", shape: [8], expect: "f32[8]"}]}
  - {id: folds, rule: same-volume, src: "f32[2, 3]", special_zero: false, steps: [{shape: [6], expect: "f32[6]"},
     {shape: [3, 2], expect: "f32[3, 2]"}]}
  - {id: lies-askew, rule: same-volume, src: "f32[2, 3]", shape: [6], special_zero: false, expect: "f32[6]",
     layout: transposed, in_place: true}
  - {id: two-nodes, rule: same-volume, src: "f32[2, 3]", shape: [6], special_zero: false, expect: "f32[3, 2]",
     chain: [{shape: [3, 2], special_zero: false}]}
  - {id: thirteen, rule: rank-limit, src: "f32[2]", shape: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2], special_zero: false,
     expect: unspecified}
  - {id: known, rule: declared-output, src: "f32[2, 3]", shape: [6], special_zero: false, expect: "f32[6]",
     declared: [6]}
  - {id: typed, rule: same-type, src: "f32[2, 3]", shape: [6], special_zero: false, expect: reject, dst_type: f16}
  - {id: more-in, rule: operands-as-listed, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     inputs: {extra: 1}}
  - {id: none-out, rule: output-required, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     outputs: {dst: missing}}
  - {id: no-operand, rule: shape-given, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     inputs: {shape: missing}}
  - {id: no-attribute, rule: attributes-required, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     attributes: {shape: missing}}
  - {id: mistyped, rule: shape-is-integer, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     attributes: {shape: {type: "f32[]", values: [2]}, axis: {type: s64, values: 0}}}
  - {id: far, rule: same-volume, src: "f32[2]", shape: [4294967298], special_zero: false, expect: reject}
  - {id: scalar-shape, rule: shape-has-one-dimension, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     shape_rank: 0}
  - {id: scalar-as-attribute, rule: shape-has-one-dimension, src: "f32[2]", shape: [2], special_zero: false,
     expect: reject, attributes: {shape: {type: s64, values: 2}}}
  - {id: float-shape, rule: shape-is-integer, src: "f32[2]", shape: [2], special_zero: false, expect: reject,
     shape_type: f32}
  - {id: list-of-a-flag, rule: special-zero-is-boolean, src: "f32[2]", shape: [2], special_zero: true, expect: reject,
     attributes: {special_zero: {type: "bool[]", values: [true]}}}
"""
_ONES = ", ".join("1" * 13)
LIMITS = f"""about: Each tensor of a call counts.
cases:
  - {{id: src, rule: rank-limit, src: "f32[{_ONES}]", shape: [1], special_zero: false, expect: unspecified}}
  - {{id: dst, rule: rank-limit, src: "f32[1]", shape: [{_ONES}], special_zero: false, expect: unspecified}}
  - {{id: declared, rule: declared-output, src: "f32[1]", shape: [1], special_zero: false, expect: reject,
     declared: [{_ONES}]}}
  - {{id: between-nodes, rule: rank-limit, src: "f32[1]", shape: [{_ONES}], special_zero: false, expect: unspecified,
     chain: [{{shape: [1], special_zero: false}}]}}
  - {{id: second-step, rule: rank-limit, src: "f32[1]", special_zero: false, steps: [{{shape: [1], expect: "f32[1]"}},
     {{src: "f32[{_ONES}]", shape: [1], expect: unspecified}}]}}
  - {{id: short, rule: zero-literal, src: "f32[0, 2147483647]", shape: [-2147483648], special_zero: false,
     expect: reject}}
  - {{id: length-of-src, rule: zero-literal, src: "f32[0, 2147483648]", shape: [0], special_zero: false,
     expect: "f32[0]"}}
  - {{id: entry-of-shape, rule: lower-bound, src: "f32[0]", shape: [-2147483649], special_zero: false, expect: reject}}
  - {{id: length-declared, rule: declared-output, src: "f32[1]", shape: [1], special_zero: false, expect: reject,
     declared: [9007199254740991]}}
  - {{id: past-53-bits, rule: zero-literal, src: "f32[0]", special_zero: false, steps: [
     {{shape: [0], expect: "f32[0]"}}, {{shape: [0, 9007199254740992], expect: "f32[0, 9007199254740992]"}}]}}
"""  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    return {row.id: row for row in plan_of_cases(tmp_path_factory.mktemp("rows"), ROWS, LIMITS).rows}


@pytest.mark.parametrize(
    ("case", "facets"),
    [
        ("plain", "rank:2"), ("longer", "rank:2"), ("folds", "rank:2"),
        ("lies-askew", "rank:2 layout:transposed in-place"),
        ("two-nodes", "rank:2 chain"), ("thirteen", "rank:13"), ("known", "rank:2 declared"),
        ("typed", "rank:2 form:types type:f16"), ("more-in", "rank:1 form:inputs"),
        ("none-out", "rank:1 form:outputs"), ("no-attribute", "rank:1 form:attributes"),
    ],
)  # fmt: skip
def test_the_facets_of_a_row(rows: dict[str, Row], case: str, facets: str) -> None:
    own = {"type:f32", *facets.split()}
    assert rows[f"{case}[StaticReshape-f32]"].facets == own
    if case != "no-attribute":
        assert rows[f"{case}[DynamicReshape-1-f32-s32]"].facets >= {*own, "shape-type:s32"}
        assert rows[f"{case}[Reshape-1-f32-s64-constant]"].facets == {*own, "shape-type:s64"}
        assert rows[f"{case}[Reshape-1-f32-s64-runtime]"].facets >= {*own, "shape-type:s64", "runtime-shape"}


@pytest.mark.parametrize(
    ("case", "limits"),
    [
        ("src", {"rank:13"}), ("dst", {"rank:13"}), ("declared", {"rank:13"}), ("between-nodes", {"rank:13"}),
        ("second-step", {"rank:13"}), ("short", {"rank:2"}), ("length-of-src", {"rank:2", "length:2^31"}),
        ("entry-of-shape", {"rank:1", "length:2^31"}), ("length-declared", {"rank:1", "length:2^31"}),
        ("past-53-bits", {"rank:2", "length:2^53"}),
    ],
)  # fmt: skip
def test_facets_of_rank_and_length(rows: dict[str, Row], case: str, limits: set[str]) -> None:
    facets = rows[f"{case}[StaticReshape-f32]"].facets
    assert {facet for facet in facets if facet.startswith(("rank:", "length:"))} == limits


def test_claims_and_rows_have_the_same_facets() -> None:
    """Except the type s8, which no bundled document lists; one of your own may."""
    of_rows = {facet for row in bundled_plan().rows for facet in row.facets}
    assert {name for name in FACETS if not any(covers(name, facet) for facet in of_rows)} == {"type:s8"}
    assert {facet for facet in of_rows if facet not in FACETS} == set()
    assert f"rank:{MAX_CASE_RANK}" in of_rows


@pytest.mark.parametrize(
    ("row", "facets"),
    [
        ("scalar-shape[StaticReshape-f32]", "form:shape form:shape-rank"),
        ("scalar-as-attribute[StaticReshape-f32]", "form:attributes form:shape-rank"),
        ("float-shape[StaticReshape-f32-f32]", "form:shape"),
        ("list-of-a-flag[StaticReshape-f32]", "form:attributes form:attribute-types"),
    ],
)
def test_facets_of_an_unusual_form(rows: dict[str, Row], row: str, facets: str) -> None:
    assert {facet for facet in rows[row].facets if not facet.startswith("rank:")} == {"type:f32", *facets.split()}


def test_the_rows_of_a_case(rows: dict[str, Row]) -> None:
    def of(case: str) -> set[str]:
        return {id_.removeprefix(case)[1:-1] for id_ in rows if id_.startswith(f"{case}[")}

    assert of("plain") == {
        "StaticReshape-f32", "DynamicReshape-1-f32-s32", "Reshape-1-f32-s32-constant", "Reshape-1-f32-s64-constant",
        "Reshape-1-f32-s32-runtime", "Reshape-1-f32-s64-runtime",
    }  # fmt: skip
    assert of("far") == {way for way in of("plain") if "s32" not in way}, "no s32 is so large"
    assert of("no-attribute") == {"StaticReshape-f32"}
    lacking = {"DynamicReshape-1-f32-s32", "Reshape-1-f32-s32-constant"}
    assert of("no-operand") == lacking, "a shape that is not there has no type and is given in no way"


def test_a_graph_fits_every_call_of_its_program(rows: dict[str, Row]) -> None:
    def graphs_of(row: str) -> list[tuple[object, object, object]]:
        graphs = [task.graph for task in rows[row].steps]
        return [(g.src.dims, g.nodes[0].shape and g.nodes[0].shape.dims, g.src.strides) for g in graphs]

    assert graphs_of("longer[StaticReshape-f32]") == [((2, 3), (1,), None), ((2, 4), (1,), None)]
    assert graphs_of("longer[Reshape-1-f32-s64-constant]") == [((2, 3), (1,), None), ((2, 4), (1,), None)]
    assert graphs_of("longer[Reshape-1-f32-s64-runtime]") == [((2, None), (1,), None)] * 2
    assert graphs_of("folds[Reshape-1-f32-s64-runtime]") == [((2, 3), (None,), None)] * 2
    assert graphs_of("lies-askew[StaticReshape-f32]") == [((2, 3), (1,), (4, 8))]
    assert graphs_of("no-attribute[StaticReshape-f32]") == [((2,), None, None)]
    assert len({task.graph for task in rows["folds[Reshape-1-f32-s64-runtime]"].steps}) == 1


def test_a_written_attribute_replaces_the_ordinary_one(rows: dict[str, Row]) -> None:
    (node,) = rows["mistyped[StaticReshape-f32]"].steps[0].graph.nodes
    assert node.shape == Operand("f32", (1,), (2,))
    assert node.attributes == (("axis", Operand("s64", (), (0,))),)


def test_only_runtime_shapes_arrive_with_a_call(rows: dict[str, Row]) -> None:
    def arriving(row: str) -> list[tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]]:
        return [task.shapes for task in rows[row].steps]

    assert arriving("two-nodes[StaticReshape-f32]") == [()]
    assert arriving("two-nodes[Reshape-1-f32-s64-constant]") == [()]
    assert arriving("two-nodes[Reshape-1-f32-s64-runtime]") == [(("s64", (1,), (6,)), ("s64", (2,), (3, 2)))]
    assert [arriving(row) for row in rows if row.startswith("no-operand")] == [[()], [()]]


def test_a_row_is_frozen_and_equals_only_itself(rows: dict[str, Row]) -> None:
    row = rows["plain[StaticReshape-f32]"]
    for name in ("type", "steps"):
        with pytest.raises(AttributeError):
            setattr(row, name, "f16")
    assert row == row  # noqa: PLR0124 - equality is what this tests
    assert row != Row(*row)
    assert len({row, Row(*row)}) == 2


def test_the_readme_of_adapters_lists_each_facet() -> None:
    """By its family and its member; the ranks are a span."""
    text = (ROOT / "adapters" / "README.md").read_text(encoding="utf-8")
    families, members = {name for name in FACETS if ":" not in name}, MEMBERS.items()
    named = {member for family, some in members if not family.endswith(("type", "rank")) for member in some}
    assert {name for name in families | named if not re.search(rf"`(\S+:)?{re.escape(name)}[:`]", text)} == set()
    assert f"N from 1 to {MAX_CASE_RANK}" in text


SIZES = (0, 1, 2, 16, 256, 4096, 1 << 16, 1 << 20, 1 << 21, 1 << 24)
"""The least number of elements of each class."""


def test_each_type_meets_every_size_in_each_operation() -> None:
    """A backend may claim one type and one operation only, and still meets legal calls of every size."""
    met = {
        (row.operation, row.type, bisect(SIZES, math.prod(step.src)))
        for row in bundled_plan().rows
        if not row.case.large
        for step in row.case.steps
        if any(expected.kind == "legal" for expected in step.expect.values())
    }
    spec = load_spec()
    ways = product(spec.operations, spec.types, range(1, len(SIZES) + 1))
    assert [way for way in ways if way not in met] == []
