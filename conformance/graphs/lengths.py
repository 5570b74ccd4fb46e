"""Lengths as expressions of symbols: `64*n`, or `Mul(Integer(64), Symbol('s77'))` as PyTorch exports it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from ..system.text import quote
from .nodes import ImpossibleInput, write_product

MAX_CHARACTERS = 2000


def _divide_exactly(number: int, by: int) -> int:
    """Return the quotient; ValueError if there is a remainder."""
    if number % by:
        raise ValueError("not followed")
    return number // by


_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "Add": operator.add, "Mul": operator.mul, "FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv,
    "Mod": operator.mod, "PythonMod": operator.mod, "Max": max, "Min": min,
}  # fmt: skip
_SIGNS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Div: _divide_exactly,
}  # fmt: skip


Product = tuple[int, tuple[str, ...]]
"""A number, and the symbols without values that it is multiplied by."""


def evaluate(text: str, symbols: Mapping[str, int]) -> int | str | None:
    """Return the value of an expression; a symbol or a product with one that has no value, as `64*s77`; or None."""
    try:
        product = _evaluate(_parse(text), symbols)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        return None
    if product is None:
        return None
    number, names = product
    return write_product(number, names) if names or 0 <= number < 1 << 63 else None


@lru_cache(4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text if len(text) <= MAX_CHARACTERS else "", mode="eval").body


def list_names(length: int | str | None) -> set[str]:
    """Return the names that --input may give a length: for `3*n` also n."""
    return {length, *re.findall(r"[^\W\d]\w*", length)} if isinstance(length, str) else set()


def bind_length(length: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    """Return a length as far as its symbols have values. A text that is no product, such as `n + 1`, is one symbol."""
    if not isinstance(length, str):
        return length
    value = evaluate(length, symbols)
    if value is None and re.fullmatch(r"\w+([*/]\w+)+", length):  # `n/2`, which need not be half of a whole n
        length = f"({length})"
    return value if isinstance(value, int) else symbols.get(length, length if value is None else value)


def bind_symbol(symbols: dict[str, int], symbol: str, length: int, place: str) -> None:
    """Give a symbol its length; ImpossibleInput if it, or a product with it, has another one."""
    symbols.setdefault(symbol, length)
    for text, given in (*symbols.items(), (symbol, length)):
        if (other := bind_length(text, symbols)) != given:
            raise ImpossibleInput(f"--input gives {quote(text)} two lengths: {other} before, and {given} in {place}")


def _evaluate(node: ast.expr, symbols: Mapping[str, int]) -> Product | None:
    match node:
        case ast.Constant(value=int() as number):
            return number, ()
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
            return (symbols[name], ()) if name in symbols else (1, (name,))
        case ast.Call(func=ast.Name(id="Integer"), args=[number]):
            return _evaluate(number, symbols)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _apply(operator.sub, [ast.Constant(0), operand], symbols)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return _apply(_SIGNS[type(op)], [left, right], symbols)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments) if name in _FUNCTIONS:
            return _apply(_FUNCTIONS[name], arguments, symbols)
    return None


def _apply(function: Callable[[int, int], int], nodes: list[ast.expr], symbols: Mapping[str, int]) -> Product | None:
    result, *others = (_evaluate(node, symbols) for node in nodes)
    for other in others:
        if result is None or other is None or max(abs(result[0]), abs(other[0])) >= 1 << 63:
            return None
        names = (*result[1], *other[1])
        if names and function is not operator.mul:
            return None
        result = function(result[0], other[0]), names
    return result
