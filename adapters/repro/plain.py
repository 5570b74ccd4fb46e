"""Values of a case in scripts: each is checked to have its kind, and written as a literal of Python.

So no text reaches a script where a number or a name belongs. A literal is plain ASCII, so that no character can act on
a terminal or on the order of reading.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from math import isfinite

from conformance.model import LAYOUTS, Declared, Node, Operand, Unsupported
from conformance.model.types import WIDTH
from conformance.plan.memory import TensorSpec, volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

VALUES = "form:attribute-values"
"""The facet of a value that a script cannot say."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BITS = re.compile(r"[0-9a-f]+( [0-9a-f]+)*")
_FLOATS = ("f16", "bf16", "f32", "f64")


def python(value: object) -> str:
    """A Python literal of this value: a number, text, bytes, None, or a list, tuple or mapping of those."""
    if value is None or isinstance(value, bool | bytes):
        return repr(value)
    if isinstance(value, str):
        return ascii(value)
    if isinstance(value, int):
        return f"{value:d}" if value.bit_length() < 1 << 12 else f"{value:#x}"  # of long decimals Python reads none
    if isinstance(value, float) and isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{python(key)}: {python(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(python, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(python, value))}{',' if len(value) == 1 else ''})"
    raise Unsupported(VALUES)


def checked_steps(row: Row) -> tuple[RowStep, ...]:
    """Return the steps of a row; Unsupported if a value is of a kind that a case file cannot hold."""
    _check(row.case.concurrent == 1, "threads")
    _check(row.case.times == 1 and not row.case.pause_ms, "many calls or a pause")
    for step in row.steps:
        _check_source(step.source)
        _check_declaration(step.graph.src)
        for node in step.graph.nodes:
            _check_node(node)
        for type_, dims, values in step.shapes:
            _check(type_ in WIDTH, "shape-type")
            _check(_are_lengths(dims) and _are_integers(values), "form:shape")
        _check(step.shape_step == 1, "shape-strides")
    return row.steps


def _check(fits: bool, facet: str) -> None:
    if not fits:
        raise Unsupported(facet)


def _are_integers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int) for value in values)


def _are_lengths(dims: Iterable[object]) -> bool:
    return all(length is None or (isinstance(length, int) and length >= 0) for length in dims)


def _check_source(source: TensorSpec) -> None:
    _check(source.type in WIDTH, "type")
    _check(None not in source.dims and _are_lengths(source.dims), "dims")
    _check(volume_of(source.dims) >> 63 == 0, "dims")
    _check(source.layout in LAYOUTS, "layout")
    _check(isinstance(source.start, int), "bits")
    if source.bits not in (None, "all", "edges"):
        _check(_BITS.fullmatch(source.bits) is not None, "bits")
        _check(all(int(word, 16) >> 8 * WIDTH[source.type] == 0 for word in source.bits.split()), "bits")


def _check_node(node: Node) -> None:
    for operand in (node.shape, node.special_zero):
        if operand is not None:
            _check_operand(operand)
    for name, operand in node.attributes:
        _check(_NAME.fullmatch(name) is not None, "form:attributes")
        _check_operand(operand)
    if node.result is not None:
        _check_declaration(node.result)
    _check(isinstance(node.inputs, int), "form:inputs")
    _check(isinstance(node.outputs, int), "form:outputs")
    _check(not node.takes_src, "shared-src")
    _check(not node.shares_shape, "shared-shape")


def _check_declaration(declared: Declared) -> None:
    _check(declared.type in WIDTH, "type")
    _check(_are_lengths(declared.dims or ()), "declared")
    _check(_are_integers(declared.strides or ()), "layout")


def _check_operand(operand: Operand) -> None:
    _check(operand.type in (*WIDTH, "string"), "form:attribute-types")
    _check(_are_lengths(operand.dims), "form:shape")
    _check(all(_fits(operand.type, value) for value in operand.values or ()), VALUES)


def _fits(type_: str, value: object) -> bool:
    if type_ == "string":
        half = isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value)  # of a surrogate pair
        return isinstance(value, int) or (isinstance(value, str) and not half)
    if isinstance(value, float):
        return type_ in _FLOATS and abs(value) <= sys.float_info.max
    return isinstance(value, int) and (type_ not in _FLOATS or abs(value) <= sys.float_info.max)
