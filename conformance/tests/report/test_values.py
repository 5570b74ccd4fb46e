"""The elements of a wrong answer: what was due, what came, and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance.model import Array
from conformance.report import report_page
from conformance.report.finished_run import FinishedRun
from conformance.report.values import Values, format_number, show_values

from ..runs import Right, few, finished
from .test_report import Page

SMALL = '{id: small, rule: same-content, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}'
LARGE = '{id: large, rule: same-content, src: "T[10, 20]", shape: [20, 10], special_zero: false, expect: "T[20, 10]"}'


class Changes(Right):
    """Sets two elements of every answer to zero."""

    name = "changes"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        answer = src.reshape(shape).copy()
        answer.reshape(-1)[[1, 4]] = 0
        return answer


def run_of(case: str, folder: Path) -> FinishedRun:
    return finished(few(folder, f"about: One.\ncases:\n  - {case}\n"), Changes(), folder / "out")


def values_of(run: FinishedRun) -> Values:
    values = show_values(next(result for result in run.rows if result.row.type == "bf16"))
    assert values is not None
    return values


def test_a_grid_marks_the_elements_that_differ(tmp_path: Path) -> None:
    run = run_of(SMALL, tmp_path)
    values = values_of(run)
    src = np.frombuffer(next(r for r in run.rows if r.row.type == "bf16").row.steps[0].src.elements, "<u2")
    assert [[int(each.bits, 16) for each in line] for line in values.grid] == src.reshape(3, 2).tolist()
    marked = {each.place: each.got for line in values.grid for each in line if each.got}
    assert marked == {"[0, 1]": ("0000", "0"), "[2, 0]": ("0000", "0")}
    assert (values.differing, values.total, values.marked) == (2, 6, 2)


def test_of_a_large_tensor_the_differences_are_listed(tmp_path: Path) -> None:
    values = values_of(run_of(LARGE, tmp_path))
    assert not values.grid
    assert [each.place for each in values.differences] == ["[0, 1]", "[0, 4]"]
    assert all(each.got == ("0000", "0") for each in values.differences)


def test_the_page_shows_the_elements_and_says_how_many_differ(tmp_path: Path) -> None:
    text = " ".join(Page(report_page.render(run_of(SMALL, tmp_path))).text.split())
    assert "f32: 2 of 6 elements differ" in text


def test_an_answer_that_is_right_has_no_grid(tmp_path: Path) -> None:
    run = finished(few(tmp_path), Right(), tmp_path / "out")
    assert [show_values(result) for result in run.rows] == [None] * len(run.rows)


@pytest.mark.parametrize(
    ("type_", "bits", "number"),
    [
        ("f32", 0x3FC00000, "1.5"), ("bf16", 0x8000, "-0"), ("bf16", 0x0001, "9.18355e-41 subnormal"),
        ("f16", 0x7C00, "inf"), ("f16", 0x7E00, "NaN quiet"), ("f32", 0x7F800001, "NaN signalling"),
        ("f32", 0xFF800000, "-inf"), ("s8", 0xFF, "-1"), ("u8", 0xFF, "255"), ("f64", 1, "4.94066e-324 subnormal"),
    ],
)  # fmt: skip
def test_bits_are_decoded(type_: str, bits: int, number: str) -> None:
    assert format_number(type_, bits) == number
