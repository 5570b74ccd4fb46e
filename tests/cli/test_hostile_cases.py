"""A case that tries to become code in a script, made without the loader."""

import math

import pytest

from conformance.adapters import repro
from conformance.adapters.repro.script import join_parts
from conformance.model import Operand, Unsupported

from ..builders import some_slow
from .hostile import IN_PYTHON, NODES, TEXTS, WRITERS, row_of, script_of, shape, text, values

NUMBERS = (0, -1, 255, 256, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 63, 10**39, 10**400, True)
FLOATS = (0.0, -0.0, 0.5, 5e-324, 1e38, -1e39, 1e308, math.inf, -math.inf, math.nan)
every_node = pytest.mark.parametrize(
    "backend", [each if each in WRITERS else pytest.param(each, marks=pytest.mark.slow) for each in NODES]
)


@pytest.mark.slow
@every_node
@pytest.mark.parametrize("place", ["axis", "shape", "special_zero"])
def test_a_text_stays_a_literal_of_that_very_text(backend: str, place: str) -> None:
    try:
        plain = script_of(backend, row_of({place: text("plain")}))
    except Unsupported:
        with pytest.raises(Unsupported):
            script_of(backend, row_of({place: text(IN_PYTHON)}))
        return
    due = shape(plain)
    for each in TEXTS:
        program = script_of(backend, row_of({place: text(each)}))
        assert program.isascii()
        assert shape(program) == due, each
        assert each.encode() in values(program), each


@every_node
@pytest.mark.parametrize("type_", some_slow(("s64", "s32", "bool", "f32", "string"), ("s64", "f32")))
def test_a_number_is_that_number_or_not_written_at_all(backend: str, type_: str) -> None:
    programs: list[str] = []
    for value in (*NUMBERS, *FLOATS):
        operand = Operand(type_, (), (value,))
        try:
            programs.append(script_of(backend, row_of({"axis": operand})))
        except Unsupported as unsupported:
            assert unsupported.facet  # noqa: PT017 - a script is as good
    if type_ in ("s64", "string") or not backend.startswith("onednn"):
        assert programs
    assert len({str(shape(each)) for each in programs}) <= 1


@every_node
@pytest.mark.parametrize("type_", ["s64", "bool", "f32", "string"])
def test_an_attribute_without_a_value_is_in_the_script_or_not(backend: str, type_: str) -> None:
    try:
        program = script_of(backend, row_of({"axis": Operand(type_, (0,), ())}))
    except Unsupported:
        assert not backend.startswith("onednn"), "an empty list is something that oneDNN can be told"
    else:
        assert shape(program)


@every_node
def test_half_of_a_surrogate_pair_is_no_text(backend: str) -> None:
    with pytest.raises(Unsupported):
        script_of(backend, row_of({"axis": text("\udc80")}))


@pytest.mark.parametrize("backend", ["torch", "torch-raw", "jax", "jax-jit", "cupy"])
def test_a_device_stays_a_literal(backend: str) -> None:
    row = row_of({})
    plain = join_parts({"": repro.WRITERS[backend](row, f"{backend}@cuda")}, {"": [[]]})
    hostile = join_parts({"": repro.WRITERS[backend](row, f'{backend}@") + {IN_PYTHON} + ("')}, {"": [[]]})
    assert shape(hostile) == shape(plain)
