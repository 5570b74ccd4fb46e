"""A case with `each` is written out into a step for every combination of values, and its mistakes have a place."""

from pathlib import Path

import pytest

from conformance.load.cases import load_cases
from conformance.model import Case, Malformed
from tests.builders import bundled_plan, spec

HEAD = "about: calls\ncases:\n  - id: calls\n    rule: same-content\n"
CALL = HEAD + "    src: {src}\n    shape: {shape}\n    special_zero: true\n    expect: {expect}\n    each: {each}\n"


def case_of(tmp_path: Path, src: str, shape: str, expect: str, each: str, more: str = "") -> Case:
    (tmp_path / "calls.yaml").write_text(CALL.format(src=src, shape=shape, expect=expect, each=each) + more)
    return load_cases(tmp_path, spec())["calls"]


def problems_of(tmp_path: Path, src: str, shape: str, expect: str, each: str, more: str = "") -> list[str]:
    with pytest.raises(Malformed) as wrong:
        case_of(tmp_path, src, shape, expect, each, more)
    return [str(problem) for problem in wrong.value.problems]


def test_a_range_has_both_its_ends(tmp_path: Path) -> None:
    case = case_of(tmp_path, "T[2, count]", "[count, 2]", "T[count, 2]", "{count: [1 to 3, 7]}")
    assert [step.src for step in case.steps] == [(2, 1), (2, 2), (2, 3), (2, 7)]
    assert (case.steps[3].shapes[0], case.steps[3].expect["*"].dims) == ((7, 2), (7, 2))
    assert case.generated


def test_the_last_name_changes_fastest_and_lists_are_spliced(tmp_path: Path) -> None:
    each = "{before: [[6], [2, 3]], layout: [dense, padded], ones: [[], [1, 1]]}"
    case = case_of(tmp_path, "T[before]", "[before, ones]", "T[before, ones]", each)
    assert [(step.src, step.layout, step.shapes[0]) for step in case.steps] == [
        ((6,), "dense", (6,)), ((6,), "dense", (6, 1, 1)), ((6,), "padded", (6,)), ((6,), "padded", (6, 1, 1)),
        ((2, 3), "dense", (2, 3)), ((2, 3), "dense", (2, 3, 1, 1)),
        ((2, 3), "padded", (2, 3)), ((2, 3), "padded", (2, 3, 1, 1)),
    ]  # fmt: skip


LIKE = "{before: [[2, 3, 4]], after: [[2, 4, 3], [2, 3, 1, 4]], asked: {put: 0, in: after, like: before}}"


@pytest.mark.parametrize(
    ("src", "each", "shapes"),
    [
        ("T[24]", "{after: [[2, 3, 4]], asked: {put: -1, in: after}}", [(-1, 3, 4), (2, -1, 4), (2, 3, -1)]),
        ("T[before]", LIKE, [(0, 4, 3), (0, 3, 1, 4), (2, 0, 1, 4)]),
        ("T[before]", LIKE.replace("like: before", "like: before, all: true"), [(0, 4, 3), (0, 0, 1, 4)]),
    ],
    ids=["in turn", "where the other has the same length", "together"],
)
def test_an_entry_is_put_into_places(tmp_path: Path, src: str, each: str, shapes: list[tuple[int, ...]]) -> None:
    case = case_of(tmp_path, src, "[asked]", "T[after]", each)
    assert [step.shapes[0] for step in case.steps] == shapes


def test_a_chain_takes_names_too(tmp_path: Path) -> None:
    chain = "    chain:\n      - {shape: [1, count], special_zero: false}\n"
    case = case_of(tmp_path, "T[count]", "[count, 1]", "T[1, count]", "{count: [5]}", chain)
    assert case.steps[0].shapes == ((5, 1), (1, 5))


@pytest.mark.parametrize(
    ("call", "line", "words"),
    [
        (("T[sum]", "[sum]", "T[sum]", "{count: [5]}"), 9, "'sum' is no name of lengths; each has count"),
        (("T[count]", "[5]", "T[count]", "{count: 1 to 5000}"), 9, "each makes more than 4,096 steps"),
        (("T[count]", "[count]", "T[count]", "{count: 5 to 4}"), 9, "the range 5 to 4 ends before it begins"),
        (("T[count]", "[count]", "T[count]", "{count: [5], more: [6]}"), 9, "no length is 'more', which would"),
        (("T[count]", "[count]", "T[count]", "{count: [3, 5 to 4]}"), 9, "the range 5 to 4 ends before it begins"),
        (("T[5]", "[asked]", "T[5]", "{none: [[]], asked: {put: -1, in: none}}"), 9, "each makes no step"),
        (("T[count]", "[count]", "T[count]", "{count: five}"), 9, "a range such as 1 to 1100"),
        (("T[count]", "[count]", "T[count]", "{count: [2], layout: [flat]}"), 9, "unknown value 'flat'"),
        (("T[before]", "[5]", "T[5]", "{before: [[-1]]}"), 5, "is no tensor"),
        (("T[5]", "[5]", "T[5]", "{asked: {put: 2, in: after}}"), 9, "asked"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, call: tuple[str, ...], line: int, words: str) -> None:
    (problem,) = problems_of(tmp_path, *call)
    assert f"calls.yaml:{line}: " in problem
    assert words in problem


def test_a_wrong_step_is_named_by_its_values(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "T[count]", "[count]", "T[count]", "{count: [5, 300000000]}")
    assert "(with count 300000000)" in problem


def test_a_name_without_each_and_steps_beside_it_are_mistakes(tmp_path: Path) -> None:
    text = CALL.format(src="T[count]", shape="[5]", expect="T[5]", each="").replace("    each: \n", "")
    (tmp_path / "calls.yaml").write_text(text)
    with pytest.raises(Malformed, match=r"calls.yaml:5: src has the name 'count', which is in no `each`"):
        load_cases(tmp_path, spec())
    steps = "    steps:\n      - {special_zero: false}\n"
    assert any(
        "either `each` or `steps`" in p
        for p in problems_of(tmp_path, "T[5]", "[5]", "T[5]", "{count: [5]}", more=steps)
    )


def test_fewer_rows_are_one_per_type_or_per_operation() -> None:
    rows = [row for row in bundled_plan().rows if row.case.rows]
    by_type = [row for row in rows if row.case.id == "every-count-to-eleven-hundred"]
    assert [(row.operation, row.type) for row in by_type] == [
        ("StaticReshape", "f32"), ("DynamicReshape-1", "bf16"), ("Reshape-1", "f16"),
    ]  # fmt: skip
    by_operation = [row for row in rows if row.case.id == "small-tensors-of-every-pair-of-ranks"]
    assert {(row.operation, row.shape_passed_as, row.shape_type) for row in by_operation} == {
        ("StaticReshape", "attribute", "s64"), ("DynamicReshape-1", "runtime", "s32"), ("Reshape-1", "runtime", "s64"),
    }  # fmt: skip
    assert len(by_operation) == 9
    assert not any("changing-rank" in facet for row in rows for facet in row.facets)
