"""The table of cells, through `conformance check` and `conformance list cells`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conformance.draw.rows import Drawer, Drawn
from conformance.load.cases import load_suite
from conformance.load.cells import DIMENSIONS, load_cells
from conformance.load.folders import cases_folder, spec_folder
from conformance.load.schema import schema_of
from conformance.model import Claims
from conformance.plan.rows import Plan, plan_of
from conformance.selfcheck.cells import problems_with_cells, table_of

from ..builders import Cli, copy_bundled_spec, write_suite

ARRANGEMENTS = DIMENSIONS["arrangement"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of the specification that a test may change."""
    return copy_bundled_spec(tmp_path)


def one_case(folder: Path, **keys: Any) -> Path:
    """A suite with one case: a legal call, in which some keys are replaced; None removes a key."""
    case = {
        "id": "only", "rule": "literal-lengths", "src": "T[2, 3]", "shape": [6], "special_zero": False,
        "expect": "T[6]", **keys,
    }  # fmt: skip
    content = {"about": "One.", "cases": [{key: value for key, value in case.items() if value is not None}]}
    return write_suite(folder, json.dumps(content))


def filled_cells(cli: Cli, suite: Path, rule: str | None = None) -> set[tuple[str, ...]]:
    """The cells with a case: rule, rank, shape, elements, arrangement."""
    words = ["list", "cells", "--suite", suite, "--json", *([rule] if rule else [])]
    return {
        (*(each[name] for name in ("rule", "rank", "shape", "elements")), arrangement)
        for each in cli(*words).expect(0).data["cells"]
        for arrangement in ARRANGEMENTS
        if each[arrangement]
    }


# ── check ─────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_a_cell_without_its_only_case_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    shutil.copytree(cases_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    path, removed = folder / "table-legal.yaml", "an-inferred-length-of-a-vector-of-many-elements"
    before, _, rest = path.read_text(encoding="utf-8").partition(f"  - id: {removed}\n")
    path.write_text(before + rest[rest.index("  - id: ") :], encoding="utf-8")
    suite = load_suite(tmp_path)
    about = load_cells(spec_folder(), suite.spec)
    assert about is not None
    table = table_of(plan_of(suite), about)
    assert [problem.what for problem in problems_with_cells(table, suite.spec, about)] == [
        "rule 'infer-keeps-count': no case exercises it at rank 1, static shape, many elements, alone; rank 1, late "
        "shape, many elements, alone; write one, or give the reason in spec/cells.yaml"
    ]
    assert len(table.empty) == 2


def test_check_reports_an_exemption_of_a_cell_that_a_case_fills(cli: Cli, spec: Path, tmp_path: Path) -> None:
    text = "  - {rules: [literal-lengths], cells: {rank: ['2-4'], elements: [few]}, because: Nothing.}\n"
    path = spec / "cells.yaml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    line = len(path.read_text(encoding="utf-8").splitlines())
    said = "only exercises 'literal-lengths' at rank 2-4, static shape, few elements, alone; exempt fewer cells"
    cli("check", "--suite", one_case(tmp_path)).expect(1, out=f"cells.yaml:{line}: {said}")
    many = one_case(tmp_path, src="T[2, 3000]", shape=[6000], expect="T[6000]")
    assert "exempt fewer" not in cli("check", "--suite", many).expect(1).out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("product(src) > 0", "product(src) > len", "len"),
        ("[same-content, src-is-kept]", "[same-contents]", "same-content"),
        ("elements: [few]", "elements: [some]", "few"),
    ],
)
def test_check_names_the_line_of_a_mistake_in_cells(
    cli: Cli, spec: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = spec / "cells.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if old in text)
    path.write_text("\n".join(lines).replace(old, new), encoding="utf-8")
    folders = ("--suite", one_case(tmp_path))
    cli("check", *folders).expect(1, lines=0, out=[f"cells.yaml:{line}: ", said])
    cli("list", "cells", *folders).expect(2, err="cells.yaml")


def test_a_specification_without_cells_has_no_table(cli: Cli, spec: Path, tmp_path: Path) -> None:
    (spec / "cells.yaml").unlink()
    data = cli("check", "--suite", one_case(tmp_path), "--json").expect(1).data
    assert data["summary"]["cells"] is None
    assert not [each for each in data["problems"] if "exercises" in each["what"]]
    assert cli("list", "cells", "--suite", tmp_path, "--json").expect(0).data["cells"] == []


# ── the cells of a case ───────────────────────────────────────────────────────────────────────────

OF_COUNT = {"src": "T[count]", "shape": ["count"], "expect": "T[count]"}


@pytest.mark.parametrize(
    ("keys", "cells"),
    [
        ({}, {("2-4", "few", "single")}),
        ({"src": "T[6]"}, {("1", "few", "single")}),
        ({"shape": [1, 1, 1, 1, 6], "expect": "T[1, 1, 1, 1, 6]"}, {("5-8", "few", "single")}),
        ({"src": "T[2, 1, 1, 1, 1, 1, 1, 1, 3]"}, {("9-12", "few", "single")}),
        ({"src": f"T[{', '.join('1' * 13)}]", "shape": [1], "expect": "T[1]"}, set()),
        ({"src": "T[4095]", "shape": [4095], "expect": "T[4095]"}, {("1", "few", "single")}),
        ({"src": "T[4096]", "shape": [4096], "expect": "T[4096]"}, {("1", "many", "single")}),
        ({"chain": [{"shape": [6], "special_zero": False}]}, {("2-4", "few", "chain")}),
        ({"declared": [6]}, {("2-4", "few", "declared")}),
        ({"steps": [{"expect": "T[6]"}, {"expect": "T[6]"}], "expect": None}, {("2-4", "few", "sequence")}),
        (
            {"chain": [{"shape": [6], "special_zero": False}], "declared": [6]},
            {("2-4", "few", "chain"), ("2-4", "few", "declared")},
        ),
        (
            {**OF_COUNT, "each": {"count": [6, 5000]}},
            {("1", "few", "sequence"), ("1", "many", "sequence")},
        ),
        (
            {**OF_COUNT, "each": {"count": [[6], [2, 3]]}},
            {("1", "few", "single"), ("2-4", "few", "single")},
        ),
    ],
)  # fmt: skip
def test_the_cells_that_a_case_fills(
    cli: Cli, tmp_path: Path, keys: dict[str, Any], cells: set[tuple[str, ...]]
) -> None:
    found = filled_cells(cli, one_case(tmp_path, **keys), "literal-lengths")
    assert {(rank, elements, arrangement) for _, rank, _, elements, arrangement in found} == cells
    assert {shape for _, _, shape, _, _ in found} == ({"static", "late"} if cells else set())


def test_a_case_without_rows_of_late_shape_fills_no_late_cell(cli: Cli, tmp_path: Path) -> None:
    found = filled_cells(
        cli, one_case(tmp_path, src="f32[2, 3]", expect="f32[6]", rows="one-per-type"), "literal-lengths"
    )
    assert {shape for _, _, shape, _, _ in found} == {"static"}


def test_constant_and_runtime_shapes_fill_different_cells(cli: Cli, tmp_path: Path) -> None:
    found = filled_cells(cli, one_case(tmp_path), "constant-and-runtime")
    assert {shape for _, _, shape, _, _ in found} == {"static", "late"}


@pytest.mark.parametrize(
    ("keys", "exercised", "others"),
    [
        ({}, {"literal-lengths", "same-content", "row-major-order", "types-offered"}, {"zero-copies", "nodes-compose"}),
        ({"src": "T[6]", "shape": [6, 1], "expect": "T[6, 1]"}, {"same-content", "rank-from-one"}, {"row-major-order"}),
        ({"shape": [0, -1], "special_zero": True, "expect": "T[2, 3]"}, {"zero-copies", "infer-keeps-count"}, set()),
        ({"shape": [5], "expect": "reject"}, {"same-volume", "refuse-illegal-calls"}, {"same-content"}),
        ({"shape": [-2, -1, -1], "expect": "reject"}, {"refuse-illegal-calls"}, {"one-infer", "lower-bound"}),
        ({"rule": "one-infer", "shape": [-2, -1, -1], "expect": "reject"}, set(), {"one-infer"}),
        ({"rule": "content-is-bits"}, {"content-is-bits"}, set()),
        ({"rule": "content-is-bits", "src": "T[]", "shape": [], "expect": "unspecified"}, set(), {"content-is-bits"}),
        ({"src": "T[0]", "shape": [0], "expect": "T[0]"}, {"zero-literal", "same-type"}, {"same-content"}),
        ({"layout": "transposed"}, {"layout-is-no-content"}, {"each-call-alone"}),
    ],
)  # fmt: skip
def test_a_call_exercises_the_rules_that_it_may_break(
    cli: Cli, tmp_path: Path, keys: dict[str, Any], exercised: set[str], others: set[str]
) -> None:
    found = {rule for rule, *_ in filled_cells(cli, one_case(tmp_path, **keys))}
    assert exercised <= found
    assert not others & found


# ── what the table rests on ───────────────────────────────────────────────────────────────────────
def test_no_drawn_call_fills_an_exempt_cell() -> None:
    suite = load_suite()
    about = load_cells(spec_folder(), suite.spec)
    assert about
    rows = Drawer(suite.spec, Claims(tuple(suite.spec.operations))).rows(Drawn(0, 500))
    table = table_of(Plan(suite, tuple(rows)), about)
    assert sum(1 for cases in table.cases.values() if cases) > 500
    places = {entry.place for entry in about.exempt}
    assert not [each for each in problems_with_cells(table, suite.spec, about) if each.place in places]


def test_the_schema_has_the_classes_of_each_dimension() -> None:
    properties = schema_of("cells")["properties"]["exempt"]["items"]["properties"]["cells"]["properties"]
    assert {name: tuple(each["items"]["enum"]) for name, each in properties.items()} == DIMENSIONS


def test_list_cells_shows_counts_and_where_no_call_can_be(cli: Cli, tmp_path: Path) -> None:
    out = cli("list", "cells", "nodes-compose", "--suite", one_case(tmp_path)).expect(0).out
    header, *rows = [line.split() for line in out.splitlines() if line]
    assert header == ["rule", "rank", "shape", "elements", *ARRANGEMENTS]
    assert rows[0] == ["nodes-compose", "1", "static", "few", "-", "0", "0", "0"]
    assert "16 rows" in out
