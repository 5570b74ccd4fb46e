"""The meaning of every call of a block at once: the function of a contract, rewritten for NumPy columns.

A tuple such as `shape` becomes a list with one column an entry. Src, shape and special_zero have an axis each, so that
a value that depends on one of them is computed once for each value of it, and not once a call. Both branches of an `if`
are run; a column tells which calls are in which.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..meaning.contract import Contract, is_within
from ..model import Array

KINDS = ("legal", "illegal", "unspecified")
LEGAL = KINDS.index("legal")
FREE = int(np.iinfo(np.int64).min)
"""The value None in a column: an entry of dst that no rule fixes."""
Value = Any
"""A Python value if all calls share it, otherwise an array that broadcasts over the calls."""


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


def tabulate(contract: Contract, src: Array, shape: Array) -> Table:
    """Compute the meaning of each src (a column) with each shape (a column) and either flag under a contract."""
    size = (2, src.shape[1], shape.shape[1])
    kinds, running = np.zeros(size, np.uint8), np.ones(size, bool)
    flags = np.array([False, True])[:, None, None]
    with np.errstate(divide="ignore"):
        dst = _function(contract.source)([*src[:, None, :, None]], [*shape[:, None, None, :]], flags, kinds, running)
    return Table(kinds, tuple(np.broadcast_to(_column(entry), size) for entry in dst))


# ── the function for columns ──────────────────────────────────────────────────────────────────────


@lru_cache(16)
def _function(source: str) -> Callable[..., list[Value]]:
    """Return the function (src, shape, special_zero, _kinds, _running) → dst."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    while not any(isinstance(node, ast.Return) for node in ast.walk(function.body[-2])):
        del function.body[-2]  # the last return is of legal calls, which need no further facts
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    names = sorted({node.id for node in nodes if isinstance(node.ctx, ast.Store)})
    lines = [f"{' = '.join(names)} = form = None", *_lines(function.body, "True"), "return dst"]
    scope: dict[str, Any] = {
        "product": math.prod, "divmod": np.divmod, "all": _all, "any": _any, "_truth": _truth, "_not": _not,
        "_equal": _equal, "_choose": _choose, "_either": _either, "_is_within": _is_within, "_return": _return,
    }  # fmt: skip
    exec("\n    ".join(["def table(src, shape, special_zero, _kinds, _running):", *lines]), scope)
    return scope["table"]  # type: ignore[no-any-return]


def _lines(body: Sequence[ast.stmt], here: str) -> Iterator[str]:
    """Yield statements for the calls that are `here`. What calls do after they have returned makes no difference."""
    for statement in body:
        match statement:
            case ast.If(test=test, body=then, orelse=otherwise):
                holds = f"_if_{statement.lineno}"
                yield f"{holds} = _truth({_text(test)})"
                for branch, condition in ((then, holds), (otherwise, f"_not({holds})")):
                    if branch:
                        taken = f"_line_{branch[0].lineno}"
                        yield f"{taken} = all([{here}, {condition}])"
                        yield f"if {taken} is True or {taken} is not False and {taken}.any():"
                        yield from (f"    {line}" for line in _lines(branch, taken))
            case ast.For(target=target, iter=over, body=inner):
                yield f"for {ast.unparse(target)} in {ast.unparse(over)}:"
                yield from (f"    {line}" for line in _lines(inner, here))
            case ast.Return(value=ast.Call(args=[kind, *_])):
                yield f"_return({here}, {ast.unparse(kind)}, _kinds, _running)"
            case ast.AugAssign(target=ast.Name(id=name), value=ast.Tuple()):  # of rules: only if there are any counts
                yield f"{name} = any([{name}, {here}])"
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                yield f"{name} = _choose({here}, {_text(ast.BinOp(target, op, value))}, {name})"
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield f"{name} = _choose({here}, {_text(value)}, {name})"
            case ast.Assign(targets=[target], value=value):  # of names that nothing else sets
                yield f"{ast.unparse(target)} = {_text(value)}"
            case _:
                yield ast.unparse(statement)


def _text(node: ast.expr) -> str:
    """Return an expression for columns. An operand is asked only if none before it decides for all calls."""
    match node:
        case ast.BoolOp(op=op, values=operands):
            asked = "".join(f"lambda: {_text(operand)}, " for operand in operands)
            return f"{'all' if isinstance(op, ast.And) else 'any'}(ask() for ask in ({asked}))"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"_not({_text(operand)})"
        case ast.BinOp(left=left, op=op, right=right):
            plain = ast.BinOp(ast.Name(_text(left)), op, ast.Name(_text(right)))
            return f"({ast.unparse(plain)})"
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_text(side) for side in (left, *others)]
            pairs = [_comparison(op, *pair) for op, *pair in zip(ops, sides, sides[1:], strict=False)]
            return pairs[0] if len(pairs) == 1 else f"all([{', '.join(pairs)}])"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"_either({_text(test)}, lambda: {_text(body)}, lambda: {_text(orelse)})"
        case ast.ListComp(elt=element, generators=[loop]):
            return f"[{_text(element)} for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}]"
        case ast.Call(func=ast.Name(id=function), args=[ast.GeneratorExp(elt=element, generators=[loop])]):
            turn = _text(element)
            for test in reversed(loop.ifs):
                turn = f"_either({_text(test)}, lambda: {turn}, lambda: {_NEUTRAL[function]})"
            return f"{function}({turn} for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)})"
        case ast.Call(func=ast.Name(id="is_within"), args=arguments):
            return f"_is_within(_running, {', '.join(map(_text, arguments))})"
    return ast.unparse(node)


_NEUTRAL = {"all": "True", "any": "False", "sum": "0", "product": "1"}


def _comparison(op: ast.cmpop, a: str, b: str) -> str:
    match op:
        case ast.Is() | ast.Eq():
            return f"_equal({a}, {b})"
        case ast.IsNot() | ast.NotEq():
            return f"_not(_equal({a}, {b}))"
        case ast.In():
            return f"any(_equal({a}, each) for each in {b})"
        case ast.NotIn():
            return f"all(_not(_equal({a}, each)) for each in {b})"
    return f"({ast.unparse(ast.Compare(ast.Name(a), [op], [ast.Name(b)]))})"


# ── columns ───────────────────────────────────────────────────────────────────────────────────────


def _column(value: Value) -> Value:
    return FREE if value is None else value


def _truth(value: Value) -> Value:
    """Return a value as a condition: a bool of Python if all calls share it."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == bool else value != 0
    return bool(value)


def _not(value: Value) -> Value:
    truth = _truth(value)
    return not truth if isinstance(truth, bool) else ~truth


def _all(values: Iterable[Value]) -> Value:
    result: Value = True
    for value in values:
        truth = _truth(value)
        if truth is False:
            return False
        result = truth if result is True else result if truth is True else result & truth
    return result


def _any(values: Iterable[Value]) -> Value:
    return _not(_all(_not(value) for value in values))


def _equal(a: Value, b: Value) -> Value:
    if isinstance(a, list | tuple):
        return len(a) == len(b) and _all(_equal(*pair) for pair in zip(a, b, strict=True))
    return _column(a) == _column(b)


def _choose(where: Value, value: Value, other: Value) -> Value:
    """Return the one value where a condition holds, and the other elsewhere."""
    if isinstance(where, bool):
        return value if where else other
    if isinstance(value, list):
        return [_choose(where, *pair) for pair in zip(value, other, strict=True)]
    return np.where(where, _column(value), _column(other))


def _either(where: Value, value: Callable[[], Value], other: Callable[[], Value]) -> Value:
    """Choose, but do not ask for what no call needs."""
    truth = _truth(where)
    return _choose(truth, value(), other()) if not isinstance(truth, bool) else value() if truth else other()


def _is_within(running: Array, dst: Sequence[Value], most: Value, target: Value) -> Array:
    """Ask call by call, because the volume may have to be split."""
    result = np.ones_like(running)
    columns = [np.broadcast_to(_column(each), running.shape) for each in (*dst, most, target)]
    for at in map(tuple, np.argwhere(running)):
        *entries, limit, volume = (None if column[at] == FREE else int(column[at]) for column in columns)
        result[at] = is_within(entries, limit or 0, volume)
    return result


def _return(here: Value, kind: str, kinds: Array, running: Array) -> None:
    """Let calls that are here, and still run, mean something of this kind."""
    returning = running & here
    kinds[returning] = KINDS.index(kind)
    running &= ~returning
