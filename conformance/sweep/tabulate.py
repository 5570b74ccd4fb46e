"""The meaning of every call of a block at once: the contracts' own expressions on NumPy columns.

No rule is written a second time here. A tuple such as `shape` becomes one column for each of its entries, and a loop
over it is unrolled. Src, shape and special_zero have an axis each, so that a value that depends on one of them is
computed once for each value of it, and not once a call.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..meaning.compiled_rules import CompiledRule, CompiledRules
from ..meaning.contract import is_within
from ..model import Array

LEGAL, ILLEGAL, UNSPECIFIED = 0, 1, 2
KINDS = ("legal", "illegal", "unspecified")
FREE = -1
"""An entry of dst that no rule fixes."""
Value = Any
"""A Python number or bool if all calls share it, otherwise an array that broadcasts over the calls."""


class Table(NamedTuple):
    """The meanings of a block; every array has the axes special_zero, src, shape."""

    kinds: Array
    dst: tuple[Array, ...]
    """Entry by entry; of calls that are not illegal."""


def lengths(first: int, count: int, rank: int, lowest: int, highest: int) -> Array:
    """List tuples number `first` to `first + count` of all tuples of `rank` numbers; the result has a row an entry."""
    base = highest - lowest + 1
    numbers = np.arange(first, first + count, dtype=np.int64)
    columns = [numbers // base ** (rank - 1 - at) % base + lowest for at in range(rank)]
    return np.stack(columns) if columns else np.empty((0, count), np.int64)


def tabulate(rules: CompiledRules, src: Array, shape: Array) -> Table:
    """Compute the meaning of each src (a column) with each shape (a column) and either flag under these rules."""
    size = (2, src.shape[1], shape.shape[1])
    scope: dict[str, Value] = {
        "src": [column[None, :, None] for column in src],
        "shape": [column[None, None, :] for column in shape],
        "special_zero": np.array([False, True])[:, None, None],
        "rank": len(src),
        "_volume": np.prod(src, axis=0)[None, :, None],
    }
    illegal = np.zeros(size, bool)
    for rule in _about_calls(rules.requires):
        illegal |= np.logical_not(_evaluate(rule.text, scope))
    dst, known, free, unknown = _entries(rules.gives, scope, illegal)
    many = _solve(rules.volumes, scope, dst, known, free, unknown, illegal)
    _bound(rules, scope, dst, many, illegal)
    silent = many
    for rule in _about_calls(rules.silences):
        silent = silent | _evaluate(rule.text, scope)
    kinds = np.where(illegal, ILLEGAL, np.where(silent, UNSPECIFIED, LEGAL)).astype(np.uint8)
    return Table(kinds, tuple(np.broadcast_to(entry, size) for entry in dst))


def _about_calls(rules: Iterable[CompiledRule]) -> Iterable[CompiledRule]:
    return (rule for rule in rules if not rule.of_form)


def _entries(
    rules: Sequence[CompiledRule], scope: Mapping[str, Value], illegal: Array
) -> tuple[list[Array], Array, Array, Array]:
    """Return the entries of dst, the product of those that a rule fixes, and how many are FREE.

    The last array is true where no rule gives an entry a meaning.
    """
    dst, known, free = [], np.ones((1, 1, 1), np.int64), np.zeros((1, 1, 1), np.int64)
    unknown = np.zeros((1, 1, 1), bool)
    for i, d in enumerate(scope["shape"]):
        entry = {**scope, "i": i, "d": d}
        length = np.full((1, 1, 1), FREE)
        meant: Value = False
        for rule in rules:
            holds = _evaluate(rule.where, entry)
            meant = meant | holds
            given = _evaluate(rule.text, entry)
            if given is None or holds is False:
                continue
            illegal |= holds & ((np.asarray(given) < 0) | ((length != FREE) & (length != given)))
            length = np.where(holds, given, length)
        dst.append(length)
        known = known * np.where(length == FREE, 1, length)
        free = free + (length == FREE)
        unknown = unknown | ((length == FREE) & np.logical_not(meant))
    return dst, known, free, unknown


def _solve(
    rules: Sequence[CompiledRule], scope: Mapping[str, Value], dst: list[Array], known: Array, free: Array,
    unknown: Array, illegal: Array,
) -> Array:  # fmt: skip
    """Fix free entries of dst by the volume, and return where more than one dst is left, or no rule means one."""
    if not rules:
        return (free > 0) | unknown
    target, *others = (_evaluate(rule.text, scope) for rule in rules)
    for other in others:
        illegal |= np.asarray(other != target)
    quotient, rest = np.divmod(target, np.maximum(known, 1))
    stuck = (known == 0) | (free == 0)
    illegal |= np.where(stuck, known != target, (rest != 0) | (quotient < 0))
    fixed = ~stuck & ~unknown & ((free == 1) | (quotient == 1))
    for at, entry in enumerate(dst):
        dst[at] = np.where(fixed & (entry == FREE), quotient, entry)
    many: Array = (free > 0) & ~fixed
    return many


def _bound(rules: CompiledRules, scope: Mapping[str, Value], dst: Sequence[Array], many: Array, illegal: Array) -> None:
    """Make a call illegal if each dst has a length above the largest one, and look at calls with several dst singly."""
    for rule in rules.bounds:
        most = _evaluate(rule.text, scope)
        for entry in dst:
            illegal |= entry > most
        targets = np.broadcast_to(_evaluate(rules.volumes[0].text, scope) if rules.volumes else 0, illegal.shape)
        limits = np.broadcast_to(most, illegal.shape)
        entries = [np.broadcast_to(entry, illegal.shape) for entry in dst]
        for at in map(tuple, np.argwhere(np.broadcast_to(many, illegal.shape) & ~illegal)):
            lengths_of_call = [None if entry[at] == FREE else int(entry[at]) for entry in entries]
            illegal[at] = not is_within(lengths_of_call, int(limits[at]), int(targets[at]) if rules.volumes else None)


# ── expressions ───────────────────────────────────────────────────────────────────────────────────


@lru_cache(1024)
def _tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _evaluate(text: str, scope: Mapping[str, Value]) -> Value:
    return _value(_tree(text), scope)


_ARITHMETIC = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
}
_ORDER = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}


def _value(node: ast.expr, scope: Mapping[str, Value]) -> Value:
    """The value of an expression; conditions that all calls share are decided first, as they guard what follows."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return scope[name]
        case ast.Tuple(elts=elements):
            return [_value(element, scope) for element in elements]
        case ast.BoolOp(op=op, values=operands):
            return _logic(operands, scope, isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _not(_value(operand, scope))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, scope)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_value(left, scope), _value(right, scope))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_value(side, scope) for side in (left, *comparators)]
            pairs = zip(ops, sides, sides[1:], strict=False)
            return _every([_compare(op, a, b) for op, a, b in pairs])
        case ast.Subscript(value=row, slice=index):
            return _value(row, scope)[_value(index, scope)]
        case ast.IfExp(test=test, body=body, orelse=orelse):  # the guard of src[i], the same for all calls
            return _value(body if _value(test, scope) else orelse, scope)
        case ast.Call(func=ast.Name(id=function), args=[argument]):
            return _call_function(function, argument, scope)
    raise NotImplementedError(ast.unparse(node))


def _logic(operands: Sequence[ast.expr], scope: Mapping[str, Value], is_and: bool) -> Value:
    result: Value = is_and
    for operand in operands:
        value = _value(operand, scope)
        if isinstance(value, bool | np.bool_) and bool(value) is not is_and:
            return not is_and
        result = value if result is is_and else (result & value if is_and else result | value)
    return result


def _not(value: Value) -> Value:
    if isinstance(value, list):
        return not value
    return not value if isinstance(value, bool) else np.logical_not(value)


def _every(conditions: Iterable[Value]) -> Value:
    result: Value = True
    for condition in conditions:
        if condition is False:
            return False
        result = condition if result is True else result & condition
    return result


def _compare(op: ast.cmpop, a: Value, b: Value) -> Value:
    match op:
        case ast.In():
            return _not(_every(_not(_as_bool(element == a)) for element in b))
        case ast.NotIn():
            return _every(_not(_as_bool(element == a)) for element in b)
        case ast.Eq():
            return _equal(a, b)
        case ast.NotEq():
            return _not(_equal(a, b))
    return _as_bool(_ORDER[type(op)](a, b))


def _equal(a: Value, b: Value) -> Value:
    if isinstance(a, list):
        return len(a) == len(b) and _every(_as_bool(x == y) for x, y in zip(a, b, strict=True))
    return _as_bool(a == b)


def _as_bool(condition: Value) -> Value:
    """Return a condition that all calls share as a bool of Python."""
    return bool(condition) if isinstance(condition, np.bool_) else condition


def _call_function(function: str, argument: ast.expr, scope: Mapping[str, Value]) -> Value:
    if function == "len":
        return len(_value(argument, scope))
    values = (
        _loop(argument, scope)
        if isinstance(argument, ast.GeneratorExp)
        else [(True, x) for x in _value(argument, scope)]
    )
    if function == "all":
        return _every(_not(_every([holds, _not(value)])) for holds, value in values)
    if function == "any":
        return _not(_every(_not(_every([holds, value])) for holds, value in values))
    neutral = int(function == "product")
    numbers = [value * 1 if holds is True else np.where(holds, value, neutral) for holds, value in values]
    return math.prod(numbers) if function == "product" else sum(numbers)


def _loop(node: ast.GeneratorExp, scope: Mapping[str, Value]) -> list[tuple[Value, Value]]:
    """List the turns of a loop: if a turn counts, and its value; turns that count for no call are left out."""
    (loop,) = node.generators
    turns: list[tuple[Value, Value]] = []
    for bound in _bindings(loop, scope):
        inner = {**scope, **bound}
        holds = _logic(loop.ifs, inner, True) if loop.ifs else True
        if holds is not False:
            turns.append((holds, _value(node.elt, inner)))
    return turns


def _bindings(loop: ast.comprehension, scope: Mapping[str, Value]) -> list[dict[str, Value]]:
    names = [name.id for name in (loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target])]  # type: ignore[attr-defined]
    match loop.iter:
        case ast.Call(func=ast.Name(id="enumerate"), args=[row]):
            return [dict(zip(names, pair, strict=True)) for pair in enumerate(_value(row, scope))]
        case ast.Call(func=ast.Name(id="range"), args=[count]):
            return [{names[0]: index} for index in range(_value(count, scope))]
        case row:
            return [{names[0]: element} for element in _value(row, scope)]
