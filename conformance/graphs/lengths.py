"""Lengths as expressions of symbols: `64*n`, or `Mul(Integer(64), Symbol('s77'))` as PyTorch exports it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache

from ..system.text import quote
from .nodes import UnreadableModel, write_product

MAX_CHARACTERS = 2000
_FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "Add": operator.add, "Mul": operator.mul, "FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv,
    "Mod": operator.mod, "PythonMod": operator.mod, "Max": max, "Min": min,
}  # fmt: skip
_SIGNS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip


def evaluate(text: str, symbols: Mapping[str, int]) -> int | str | None:
    """Return the value of an expression; a symbol or a product with one that has no value, as `64*s77`; or None."""
    try:
        tree = _parse(text)
        value = _value(tree, symbols)
        return _product(tree, symbols) if value is None else value if 0 <= value < 1 << 63 else None
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        return None


@lru_cache(4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text if len(text) <= MAX_CHARACTERS else "", mode="eval").body


def bind_length(length: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    """Return a length as far as its symbols have values. A text that is no product, such as `n + 1`, is one symbol."""
    if not isinstance(length, str):
        return length
    value = evaluate(length, symbols)
    return value if isinstance(value, int) else symbols.get(length, length if value is None else value)


def bind_symbol(symbols: dict[str, int], symbol: str, length: int, place: str) -> None:
    """Give a symbol its length; UnreadableModel if it, or a product with it, has another one."""
    symbols.setdefault(symbol, length)
    for text, given in (*symbols.items(), (symbol, length)):
        if (other := bind_length(text, symbols)) != given:
            raise UnreadableModel(f"--input gives {quote(text)} two lengths: {other}, and {given} in {place}")


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name) | ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
            return symbols.get(name)
        case ast.Call(func=ast.Name(id="Integer"), args=[number]):
            return _value(number, symbols)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _apply(operator.sub, [ast.Constant(0), operand], symbols)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return _apply(_SIGNS[type(op)], [left, right], symbols)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments) if name in _FUNCTIONS:
            return _apply(_FUNCTIONS[name], arguments, symbols)
    return None


def _apply(function: Callable[[int, int], int], nodes: list[ast.expr], symbols: Mapping[str, int]) -> int | None:
    values = [_value(node, symbols) for node in nodes]
    result = values[0]
    for value in values[1:]:
        if result is None or value is None or max(abs(result), abs(value)) >= 1 << 63:
            return None
        result = function(result, value)
    return result


def _product(node: ast.expr, symbols: Mapping[str, int]) -> int | str | None:
    """Write a product of numbers and of symbols without values; None for any other expression."""
    number, names = 1, []
    for factor in _factors(node):
        value = _value(factor, symbols)
        match factor:
            case _ if value is not None:
                number *= value
            case ast.Name(id=name) | ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
                names.append(name)
            case _:
                return None
    return write_product(number, names)


def _factors(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(left), *_factors(right)]
        case ast.Call(func=ast.Name(id="Mul"), args=parts):
            return [factor for part in parts for factor in _factors(part)]
    return [node]
