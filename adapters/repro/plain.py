"""Values of a case in scripts: each is written as a literal of Python.

The loader lets no text of a case take the place of a number or a name. A literal is plain ASCII, so that no character
can act on a terminal or on the order of reading.
"""

from __future__ import annotations

import sys
from math import isfinite

from conformance.model import Node, Unsupported
from conformance.model.types import WIDTH
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

VALUES = "form:attribute-values"
"""The facet of a value that a script cannot say."""
_FLOATS = ("f16", "bf16", "f32", "f64")


def spell(value: object) -> str:
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
        return f"{{{', '.join(f'{spell(key)}: {spell(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(spell, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(spell, value))}{',' if len(value) == 1 else ''})"
    raise Unsupported(VALUES)


def check_steps(row: Row) -> tuple[RowStep, ...]:
    """Return the steps of a row; Unsupported if a script cannot make their calls."""
    _check(row.case.concurrent == 1, "threads")
    _check(row.case.times == 1 and not row.case.pause_ms, "many calls or a pause")
    for step in row.steps:
        for node in step.graph.nodes:
            _check_node(node)
        _check(step.shape_step == 1, "shape-strides")
        _check(not step.shape_offset, "the place of shape in its memory")
    return row.steps


def _check(fits: bool, facet: str) -> None:
    if not fits:
        raise Unsupported(facet)


def _check_node(node: Node) -> None:
    for operand in (node.shape, node.special_zero, *(operand for _, operand in node.attributes)):
        if operand is not None:
            _check(operand.type in (*WIDTH, "string"), "form:attribute-types")
            _check(all(_fits(operand.type, value) for value in operand.values or ()), VALUES)
    _check(node.result is None or node.result.type in WIDTH, "type")
    _check(not node.takes_src, "shared-src")
    _check(not node.shares_shape, "shared-shape")


def _fits(type_: str, value: object) -> bool:
    if type_ == "string":
        half = isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value)  # of a surrogate pair
        return isinstance(value, int) or (isinstance(value, str) and not half)
    if isinstance(value, float):
        return type_ in _FLOATS and abs(value) <= sys.float_info.max
    return isinstance(value, int) and (type_ not in _FLOATS or abs(value) <= sys.float_info.max)
