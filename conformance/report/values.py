"""The elements of a wrong answer: a grid with those that differ marked, or the first differences of a large tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..model.types import WIDTH, dtype_of
from ..plan.memory import volume_of
from ..system.text import format_dims
from .row_results import RowResult

MAX_IN_GRID = 64
"""If a tensor has more elements, only those that differ are listed."""
GRID_COLUMNS = 8
MAX_ELEMENTS = 1 << 20
"""Elements of the largest tensor that is made again to show what was due."""
_FRACTION_BITS = {"f32": 23, "bf16": 7, "f16": 10, "f64": 52}


class ShownElement(NamedTuple):
    """An element in bits and as a number, and what came instead if it differs."""

    place: str
    bits: str
    number: str
    got: tuple[str, str] | None


class ShownElements(NamedTuple):
    """The elements of an answer with those that were due."""

    type: str
    differing: int
    total: int
    marked: int
    """The differing elements that the evidence names; the first ones."""
    grid: list[list[ShownElement]]
    """Every element in row-major order; empty for a large tensor."""
    differences: list[ShownElement]
    """The named differences of a large tensor."""


def show_elements(result: RowResult) -> ShownElements | None:
    """Show the elements if the answer differs only in these; None otherwise, and for a tensor of too many elements."""
    differing, dims, step = result.result.differing, result.outcome.dims, result.row.step(result.step)
    if differing is None or dims is None or min(dims, default=1) < 1 or volume_of(dims) > MAX_ELEMENTS:
        return None
    type_ = step.src_spec.type
    want = np.frombuffer(step.src.elements[:], f"<u{WIDTH[type_]}")
    step.free_memory()
    if want.size != volume_of(dims):
        return None
    got = {place: bits for place, bits in zip(differing.places, differing.got, strict=False) if place < want.size}
    places = range(want.size) if want.size <= MAX_IN_GRID else got
    elements = [_show_element(type_, dims, place, int(want[place]), got.get(place)) for place in places]
    across = dims[-1] if dims and dims[-1] <= GRID_COLUMNS else GRID_COLUMNS
    grid = [elements[at : at + across] for at in range(0, len(elements), across)] if want.size <= MAX_IN_GRID else []
    return ShownElements(type_, differing.number, want.size, len(got), grid, [] if grid else elements)


def _show_element(type_: str, dims: Sequence[int], place: int, want: int, got: str | None) -> ShownElement:
    came = None if got is None else (got, format_number(type_, int(got, 16)))
    return ShownElement(
        format_dims(_find_coordinates(dims, place)), f"{want:0{2 * WIDTH[type_]}x}", format_number(type_, want), came
    )


def _find_coordinates(dims: Sequence[int], place: int) -> list[int]:
    """Return the indexes of an element, the first dimension first; NumPy has no rank 65."""
    indexes = []
    for length in reversed(dims):
        place, index = divmod(place, length)
        indexes.append(index)
    return indexes[::-1]


def format_number(type_: str, bits: int) -> str:
    """Write bits as a number: `1.5`, `-0`, `9.2e-41 subnormal`, `NaN quiet`."""
    word = np.array([bits & (1 << 8 * WIDTH[type_]) - 1], f"<u{WIDTH[type_]}")
    if type_ not in _FRACTION_BITS:
        return str(word.view(dtype_of(type_))[0])
    with np.errstate(all="ignore"):
        value = float(word.view(dtype_of(type_))[0])
    if math.isnan(value):
        return f"NaN {'quiet' if bits >> _FRACTION_BITS[type_] - 1 & 1 else 'signalling'}"
    exponent = bits >> _FRACTION_BITS[type_] & (1 << 8 * WIDTH[type_] - 1 - _FRACTION_BITS[type_]) - 1
    return f"{value:.6g}" + (" subnormal" if value and not exponent else "")
