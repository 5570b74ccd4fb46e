"""Evaluate an expression of a rule on values that are known only as ranges; what depends on the rest is None."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Range(NamedTuple):
    """All whole numbers from `low` to `high`."""

    low: float = -math.inf
    high: float = math.inf


POSITIVE = Range(1)


class Elements(NamedTuple):
    """The elements of a row: ranges or names. None: not even their number is known."""

    elements: tuple[Any, ...] | None


Value = Range | Elements | bool | str | None
"""A number, a row, true or false, a name; None is an unknown value."""


def evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """Return the value of an expression that `parse` took and that uses only `names`; None if it is not sure."""
    match node:
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() as number):
            return Range(number, number)
        case ast.Name(id=name):
            return names.get(name)
        case ast.Tuple(elts=elements):
            return Elements(tuple(evaluate(element, names) for element in elements))
        case ast.BoolOp(op=op, values=operands):
            return _join([_truth(evaluate(operand, names)) for operand in operands], isinstance(op, ast.Or))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _not(_truth(evaluate(operand, names)))
        case ast.UnaryOp(operand=operand):
            positive = _number(evaluate(operand, names))
            return Range(-positive.high, -positive.low)
        case ast.BinOp(left=left, op=op, right=right):
            return _compute(op, _number(evaluate(left, names)), _number(evaluate(right, names)))
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [evaluate(part, names) for part in (left, *others)]
            return _join([_compare(op, values[k], values[k + 1]) for k, op in enumerate(ops)], is_or=False)
        case ast.Subscript(value=row, slice=index):
            return _element(evaluate(row, names), evaluate(index, names))
        case ast.Call(func=ast.Name(id=function), args=[argument]):
            return _call(function, argument, names)
    return None


def _truth(value: Value) -> bool | None:
    if isinstance(value, Elements):
        return None if value.elements is None else bool(value.elements)
    return value if isinstance(value, bool) else None


def _number(value: Value) -> Range:
    if isinstance(value, bool):
        return Range(value, value)
    return value if isinstance(value, Range) else Range()


def _join(truths: list[bool | None], is_or: bool) -> bool | None:
    """Return the disjunction or the conjunction; it is sure if one operand decides it or all are sure."""
    if is_or in truths:
        return is_or
    return None if None in truths else not is_or


def _compute(op: ast.operator, a: Range, b: Range) -> Range:
    if isinstance(op, ast.Add):
        return Range(_plus(a.low, b.low), _plus(a.high, b.high))
    if isinstance(op, ast.Sub):
        return Range(_plus(a.low, -b.high), _plus(a.high, -b.low))
    if isinstance(op, ast.Mult):
        ends = [_times(x, y) for x in a for y in b]
        return Range(min(ends), max(ends))
    if a.low == a.high and b.low == b.high and b.low:
        value = a.low // b.low if isinstance(op, ast.FloorDiv) else a.low % b.low
        return Range(value, value)
    return Range()


def _plus(x: float, y: float) -> float:
    """Add; an infinite number and a whole one too large for a float have a sum too."""
    return next((number for number in (x, y) if number in (math.inf, -math.inf)), None) or x + y


def _times(x: float, y: float) -> float:
    """Multiply; 0 times any number of elements is 0."""
    if not x or not y:
        return 0
    if math.inf in (x, y) or -math.inf in (x, y):
        return math.inf if (x > 0) == (y > 0) else -math.inf
    return x * y


def _compare(op: ast.cmpop, a: Value, b: Value) -> bool | None:
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(b, Elements) or b.elements is None:
            return None
        among = _join([_equal(a, element) for element in b.elements], is_or=True)
        return among if isinstance(op, ast.In) else _not(among)
    if isinstance(op, ast.Eq | ast.NotEq):
        same = _equal(a, b)
        return same if isinstance(op, ast.Eq) else _not(same)
    x, y = _number(a), _number(b)
    if isinstance(op, ast.Gt | ast.GtE):
        x, y = y, x
    if isinstance(op, ast.Lt | ast.Gt):
        return True if x.high < y.low else False if x.low >= y.high else None
    return True if x.high <= y.low else False if x.low > y.high else None


def _equal(a: Value, b: Value) -> bool | None:
    if a is None or b is None:
        return None
    if isinstance(a, Elements) and isinstance(b, Elements):
        if a.elements is None or b.elements is None:
            return None
        if len(a.elements) != len(b.elements):
            return False
        return _join([_equal(x, y) for x, y in zip(a.elements, b.elements, strict=True)], is_or=False)
    if isinstance(a, Range) or isinstance(b, Range):
        x, y = _number(a), _number(b)
        if x.high < y.low or y.high < x.low:
            return False
        return True if x.low == x.high == y.low == y.high else None
    return a == b


def _element(row: Value, index: Value) -> Value:
    if isinstance(row, Elements) and row.elements is not None and isinstance(index, Range) and index.low == index.high:
        k = int(index.low)
        return row.elements[k] if k < len(row.elements) else Range()
    return Range()


def _call(function: str, argument: ast.expr, names: Mapping[str, Value]) -> Value:
    """Return the value of a function of a row, or of a loop over one."""
    if isinstance(argument, ast.GeneratorExp):
        elements = _loop(argument, names)
    else:
        row = evaluate(argument, names)
        elements = None if not isinstance(row, Elements) or row.elements is None else [(True, e) for e in row.elements]
    if function == "len":
        return Range(0) if elements is None else Range(len(elements), len(elements))
    if function in ("all", "any"):
        if elements is None:
            return None
        is_or = function == "any"
        if is_or:  # any: an element counts if it is taken and true; all: unless it is taken and not true
            return _join([_join([taken, _truth(value)], is_or=False) for taken, value in elements], is_or)
        return _join([_join([_not(taken), _truth(value)], is_or=True) for taken, value in elements], is_or)
    if elements is None:
        return Range(0) if function == "product" and ast.unparse(argument) == "src" else Range()
    operation, neutral = (ast.Mult(), 1) if function == "product" else (ast.Add(), 0)
    total = Range(neutral, neutral)
    for taken, element in elements:
        number = Range(0, 1) if element is None else _number(element)  # an unknown truth; numbers are never None
        if taken is None:
            number = Range(min(number.low, neutral), max(number.high, neutral))
        if taken is not False:
            total = _compute(operation, total, number)
    return total


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _loop(loop: ast.GeneratorExp, names: Mapping[str, Value]) -> list[tuple[bool | None, Value]] | None:
    """Return whether each element of a loop is taken, and its value; None if the number of turns is not known."""
    (over,) = loop.generators
    call = over.iter if isinstance(over.iter, ast.Call) else None
    base = call.args[0] if call else over.iter
    while isinstance(base, ast.Call):  # range(len(row))
        base = base.args[0]
    row = evaluate(base, names)
    if not isinstance(row, Elements) or row.elements is None:
        return None
    targets = over.target.elts if isinstance(over.target, ast.Tuple) else [over.target]
    named = [target.id for target in targets if isinstance(target, ast.Name)]
    turns: list[tuple[bool | None, Value]] = []
    for k, element in enumerate(row.elements):
        index = Range(k, k)
        function = call.func.id if call and isinstance(call.func, ast.Name) else ""
        bound = (index, element) if function == "enumerate" else (index,) if function == "range" else (element,)
        scope = {**names, **dict(zip(named, bound, strict=True))}
        turns.append((_join([_truth(evaluate(test, scope)) for test in over.ifs], False), evaluate(loop.elt, scope)))
    return turns
