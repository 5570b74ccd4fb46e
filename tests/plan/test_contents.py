"""Default elements run through all numbers of a type, and differ at once in sign, exponent and fraction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import finfo

from conformance.model import LAYOUTS, Layout
from conformance.model.types import WIDTH, dtype_of
from conformance.plan.contents import EDGES, SPREAD, DefaultElements, Scramble, make_default_words, scramble_of
from conformance.plan.memory import TensorSpec, patterns

FLOATS = ("f32", "bf16", "f16", "f64")
EXPONENT = {"f32": (23, 255), "bf16": (7, 255), "f16": (10, 31), "f64": (52, 2047)}
"""Bits below the exponent, and the exponent of infinity."""


def exponents(type_: str, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    below, most = EXPONENT[type_]
    return np.asarray(words >> np.array(below, words.dtype) & np.array(most, words.dtype))


def signs(type_: str, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(words >> np.array(8 * WIDTH[type_] - 1, words.dtype))


def word(scramble: Scramble, number: int) -> int:
    """One element, in plain integers."""
    turn, place = divmod(number % scramble.size, scramble.places)
    at = place * scramble.jump % scramble.places << scramble.fine
    noise = place * SPREAD % (1 << 64) >> 64 - scramble.fine ^ turn * SPREAD % (1 << scramble.fine)
    return scramble.low + at + (scramble.gap if at >= scramble.positive else 0) ^ noise


@pytest.mark.parametrize("type_", ["bf16", "f16", "s8", "u8", "s16", "u16"])
def test_a_narrow_type_has_each_number_once(type_: str) -> None:
    words = make_default_words(type_, 11, scramble_of(type_).size)
    assert len(set(words.tolist())) == words.size
    if type_ in FLOATS:
        values = words.view(dtype_of(type_)).astype(np.float64)
        limits = finfo(dtype_of(type_))  # type: ignore[no-untyped-call]
        assert np.isfinite(values).all()
        assert {abs(values).min(), abs(values).max()} == {float(limits.smallest_normal), float(limits.max)}
        assert words.size == 2 * (EXPONENT[type_][1] - 1) << EXPONENT[type_][0]
    else:
        assert words.size == 1 << 8 * WIDTH[type_]


@pytest.mark.parametrize("type_", ["f32", "f64", "s32", "u64"])
def test_two_million_elements_of_a_wide_type_differ(type_: str) -> None:
    words = make_default_words(type_, 77, 1 << 21)
    assert (np.diff(np.sort(words)) != 0).all()  # np.unique would take seconds
    if type_ in FLOATS:
        found = np.bincount(exponents(type_, words).astype(np.int64))
        assert np.flatnonzero(found).tolist() == list(range(1, EXPONENT[type_][1]))
        assert 0.49 < signs(type_, words).mean() < 0.51


@pytest.mark.parametrize("type_", FLOATS)
def test_eight_neighbours_vary_in_sign_and_exponent(type_: str) -> None:
    words = make_default_words(type_, 0, 5000)
    below, _ = EXPONENT[type_]
    for start in range(words.size - 8):
        eight = words[start : start + 8]
        assert set(signs(type_, eight[:4]).tolist()) == {0, 1}
        assert len(set(exponents(type_, eight).tolist())) >= 7
        assert len(set((eight & np.array((1 << below) - 1, words.dtype)).tolist())) >= 7


@pytest.mark.parametrize("type_", [*FLOATS, "s8", "s32", "u64", "bool"])
def test_elements_one_by_one_equal_those_at_once(type_: str) -> None:
    scramble = scramble_of(type_)
    for start in (0, 5, scramble.places - 3, 7 * scramble.places - 5, scramble.size - 4):
        assert make_default_words(type_, start, 20).tolist() == [word(scramble, start + k) for k in range(20)]


def test_booleans_are_booleans() -> None:
    assert patterns(TensorSpec("bool", (5,), start=1)).tolist() == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("type_", ["f32", "bf16"])
def test_a_start_is_a_place_in_one_long_row(type_: str) -> None:
    row = patterns(TensorSpec(type_, (300_000,)))
    made = DefaultElements(type_, 0, 300_000)
    for part in (slice(None), slice(3, 9), slice(0, 0), slice(262_100, 262_150), slice(590_001, 1 << 22)):
        assert made[part] == row.tobytes()[part]
    assert patterns(TensorSpec(type_, (1000,), start=140_000)).tolist() == row[140_000:141_000].tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_elements_in_one_place_are_equal(layout: Layout) -> None:
    words = patterns(TensorSpec("f32", (3, 4, 5), layout)).reshape(3, 4, 5)
    different = {
        "broadcast": 20, "broadcast-middle": 15, "broadcast-last": 12, "overlapping": 1 + 2 + 15 + 4,
        "broadcast-two": 4, "broadcast-first-two": 5, "broadcast+reversed": 20, "transposed+broadcast": 20,
        "permuted+broadcast-last": 12, "broadcast-all": 1, "windows": 1 + 4 + 15 + 4,
    }.get(layout, 60)  # fmt: skip
    assert np.unique(words).size == different
    if layout == "overlapping":
        assert (words[1:, :, :-1] == words[:-1, :, 1:]).all()


def test_edges_have_every_special_number() -> None:
    for type_, (below, most) in EXPONENT.items():
        edges = EDGES[type_]
        sign, quiet = 1 << 8 * WIDTH[type_] - 1, 1 << below - 1
        kinds = set()
        for word in edges:
            exponent, fraction = word >> below & most, word & (1 << below) - 1
            special = {0: "subnormal" if fraction else "zero", most: "nan" if fraction else "infinity"}
            kind = special.get(exponent, "number")
            kinds.add(("quiet " * bool(fraction & quiet) + kind if kind == "nan" else kind, bool(word & sign)))
        names = ("zero", "subnormal", "number", "infinity", "nan", "quiet nan")
        assert kinds == {(kind, negative) for kind in names for negative in (False, True)}
