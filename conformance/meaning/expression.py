"""The language of contracts: a small typed part of Python that cannot fail, use much memory or loop for ever.

An expression is checked once, when the rules are loaded: names must be defined, operands have the kind that their
operator takes, loops run over a defined row, and subscripts be in range. What passes raises nothing for any call.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..model import CallForm

FUNCTIONS = ("product", "sum", "len", "range", "enumerate", "all", "any", "agrees")
CALL_NAMES = frozenset({"src", "shape", "special_zero"})
ENTRY_NAMES = frozenset({"d", "i"})
FORM_NAMES = frozenset(CallForm._fields) | {"types", "shape_types"}

_MAX_NUMBER = 2**63
_MAX_LENGTH = 400
_MAX_DEPTH = 25
NUMBER, _INDEX, _TRUTH, _TEXT = "a number", "an index", "true or false", "text"
_LENGTHS, _TEXTS, _NOTHING, _DECLARED = "a row of numbers", "a row of names", "an empty row", "a declaration"
_KINDS = {
    "src": _LENGTHS, "shape": _LENGTHS, "dst": _LENGTHS, "special_zero": _TRUTH, "d": NUMBER, "i": _INDEX,
    "src_type": _TEXT, "dst_type": _TEXT, "shape_type": _TEXT, "special_zero_type": _TEXT, "shape_rank": NUMBER,
    "special_zero_is_exact": _TRUTH, "dst_overlaps": _TRUTH,
    "missing_attributes": _TEXTS, "missing_operands": _TEXTS, "extra_attributes": _TEXTS, "extra_operands": _TEXTS,
    "types": _TEXTS, "shape_types": _TEXTS, "declared": _DECLARED,
}  # fmt: skip
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_Subscript = tuple[str, "str | int"]
"""A row and the index at which it is read."""


class Invalid(Exception):
    """An expression is not in the language of contracts; the message says why."""


class _Scope(NamedTuple):
    """The names that a part of an expression may use, with their kinds."""

    kinds: Mapping[str, str]
    in_range: frozenset[_Subscript]
    """The subscripts that can be read here."""
    in_loop: bool = False
    condition: ast.expr | None = None
    """The smallest condition around the part, which a test may precede; None in a number."""


def parse(text: str, names: frozenset[str], wants: str = _TRUTH, in_range: Iterable[_Subscript] = ()) -> ast.expr:
    """Return the tree of an expression; Invalid if it uses more than `names`, FUNCTIONS and loops over those names."""
    if len(text) > _MAX_LENGTH:
        raise Invalid(f"the expression is {len(text)} characters long, at most {_MAX_LENGTH} are read; split the rule")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # `1or 2` is deprecated spelling
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning) as error:
        what = f"not an expression: {text!r} ({getattr(error, 'msg', error)})"
        raise Invalid(f"{what}; compare by ==, join by and, or") from None
    _check_depth(tree)
    scope = _Scope({name: _KINDS[name] for name in names}, frozenset(in_range))
    kind = _check(tree, scope._replace(condition=tree if wants == _TRUTH else None))
    if kind != wants and not (wants == NUMBER and kind == _INDEX):
        raise Invalid(f"{text!r} is {kind}, where {wants} is wanted")
    return tree


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise Invalid(f"nested more than {_MAX_DEPTH} levels deep; split the rule")


def _check(node: ast.expr, scope: _Scope) -> str:
    """Return the kind of value that an expression has; Invalid if it is not in the language."""
    match node:
        case ast.Constant():
            return _check_constant(node)
        case ast.Name(id=name):
            return _check_name(name, scope)
        case ast.Tuple(elts=elements):
            return _check_row(node, [_check(element, scope) for element in elements])
        case ast.BoolOp(op=op, values=operands):
            return _check_logic(operands, scope, isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _wants(operand, scope, _TRUTH, _LENGTHS, _TEXTS)
            return _TRUTH
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _wants(operand, scope, NUMBER, _INDEX)
            return NUMBER
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return _check_arithmetic(node, scope)
        case ast.Compare():
            return _check_comparison(node, scope)
        case ast.Subscript():
            return _check_subscript(node, scope)
        case ast.Call():
            return _check_call(node, scope)
        case ast.GeneratorExp():
            raise Invalid(f"a loop outside of a function in {_quote(node)}; write it in sum, product, all or any")
    raise Invalid(f"{_quote(node)} is not allowed in a contract; use {_suggest(node)}")


def _check_constant(node: ast.Constant) -> str:
    value = node.value
    if isinstance(value, bool):
        return _TRUTH
    if isinstance(value, int):
        if value > _MAX_NUMBER:
            raise Invalid(f"the constant {_quote(node)} is larger than 2^63; lengths are not")
        return NUMBER
    if isinstance(value, str):
        return _TEXT
    raise Invalid(f"the constant {_quote(node)} is not a whole number, true, false or a name in quotes")


def _check_name(name: str, scope: _Scope) -> str:
    if name not in scope.kinds:
        known = ", ".join(sorted(scope.kinds))
        raise Invalid(f"unknown name {name!r}; the names here are {known} and the functions {', '.join(FUNCTIONS)}")
    return scope.kinds[name]


def _check_row(node: ast.expr, kinds: list[str]) -> str:
    if not kinds:
        return _NOTHING
    if set(kinds) <= {NUMBER, _INDEX}:
        return _LENGTHS
    if set(kinds) == {_TEXT}:
        return _TEXTS
    raise Invalid(f"{_quote(node)} is neither a row of numbers nor one of names")


def _wants(node: ast.expr, scope: _Scope, *kinds: str) -> str:
    kind = _check(node, scope)
    if kind not in kinds:
        raise Invalid(f"{_quote(node)} is {kind}, where {' or '.join(dict.fromkeys(kinds))} is wanted")
    return kind


def _check_logic(operands: list[ast.expr], scope: _Scope, is_and: bool) -> str:
    for operand in operands:
        _wants(operand, scope._replace(condition=operand), _TRUTH)
        if is_and:  # a test on the left holds on the right
            scope = scope._replace(in_range=scope.in_range | _safe_after(operand))
    return _TRUTH


def _safe_after(node: ast.expr) -> frozenset[_Subscript]:
    """Return the subscripts that are in range where a condition such as `i < len(src)` holds."""
    match node:
        case ast.BoolOp(op=ast.And(), values=operands):
            return frozenset[_Subscript]().union(*map(_safe_after, operands))
        case ast.Compare(left=index, ops=[ast.Lt()], comparators=[length]):
            pass
        case ast.Compare(left=length, ops=[ast.Gt()], comparators=[index]):
            pass
        case _:
            return frozenset()
    match length, index:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=row)]), (
            ast.Name(id=name) | ast.Constant(value=int(name))
        ):
            return frozenset({(row, name)})
    return frozenset()


def _check_arithmetic(node: ast.BinOp, scope: _Scope) -> str:
    for side in (node.left, node.right):
        _wants(side, scope, NUMBER, _INDEX)
    if isinstance(node.op, ast.FloorDiv | ast.Mod) and not (isinstance(node.right, ast.Constant) and node.right.value):
        raise Invalid(f"{_quote(node)} may divide by 0; divide by a constant above 0, or compare products")
    return NUMBER


def _check_comparison(node: ast.Compare, scope: _Scope) -> str:
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        a, b = (NUMBER if kind == _INDEX else kind for kind in (_check(left, scope), _check(right, scope)))
        if isinstance(op, _ORDER):
            fits = a == b == NUMBER
        elif isinstance(op, ast.In | ast.NotIn):
            fits = (a, b) in ((NUMBER, _LENGTHS), (_TEXT, _TEXTS))
        elif isinstance(op, ast.Eq | ast.NotEq):
            fits = (a == b and a != _DECLARED) or {a, b} in ({_LENGTHS, _NOTHING}, {_TEXTS, _NOTHING})
        else:
            raise Invalid(f"{_quote(node)} is not allowed in a contract; compare with == and !=")
        if not fits:
            raise Invalid(f"{_quote(node)} compares {a} with {b}")
        left = right
    return _TRUTH


def _check_subscript(node: ast.Subscript, scope: _Scope) -> str:
    match node.value, node.slice:
        case ast.Name(id=row), ast.Name(id=index) if scope.kinds.get(index) == _INDEX:
            safe = (row, index) in scope.in_range
        case ast.Name(id=row), ast.Constant(value=int(index)) if type(index) is int:
            safe = any(of == row and isinstance(n, int) and n >= index for of, n in scope.in_range)
        case _:
            raise Invalid(f"{_quote(node)} is not a plain subscript such as src[i]")
    kind = _wants(node.value, scope, _LENGTHS, _TEXTS)
    if not safe:
        test, hint = f"{index} < len({row})", "only shape[i] and entries of src can be read here"
        if scope.condition:
            hint = f"write `({test} and {ast.unparse(scope.condition)})`, which is false where that entry is missing"
        elif scope.in_loop:
            hint = f"write `if {test}` at the end of the loop"
        raise Invalid(f"{_quote(node)} may read past the end; {hint}")
    return NUMBER if kind == _LENGTHS else _TEXT


def _check_call(node: ast.Call, scope: _Scope) -> str:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        raise Invalid(f"call of {_quote(node.func)}; the functions are {', '.join(FUNCTIONS)}")
    function = node.func.id
    if node.keywords or len(node.args) != (2 if function == "agrees" else 1):
        count = "two plain arguments" if function == "agrees" else "one plain argument"
        raise Invalid(f"{_quote(node)}: {function} takes {count}")
    if function in ("range", "enumerate"):
        raise Invalid(f"{_quote(node)} outside of a loop; write `for i in range(len(shape))`")
    if function == "agrees":
        for argument in node.args:
            _wants(argument, scope, _LENGTHS, _DECLARED)
        return _TRUTH
    (argument,) = node.args
    if function == "len":
        _wants(argument, scope, _LENGTHS, _TEXTS)
        return NUMBER
    kind = _check_loop(argument, scope) if isinstance(argument, ast.GeneratorExp) else _check_element(argument, scope)
    if function in ("all", "any"):
        if kind != _TRUTH:
            raise Invalid(f"{_quote(node)} asks whether {kind} holds; write a comparison")
        return _TRUTH
    if kind not in (NUMBER, _INDEX, _TRUTH):
        raise Invalid(f"{_quote(node)} computes with {kind}")
    return NUMBER


def _check_element(node: ast.expr, scope: _Scope) -> str:
    return NUMBER if _wants(node, scope, _LENGTHS, _TEXTS) == _LENGTHS else _TEXT


def _check_loop(node: ast.GeneratorExp, scope: _Scope) -> str:
    """Return the kind of value that a loop yields; Invalid if the loop is nested or runs over anything but a row."""
    if scope.in_loop or len(node.generators) != 1:
        raise Invalid(f"a loop inside a loop in {_quote(node)}; a contract is linear in the rank")
    (loop,) = node.generators
    if loop.is_async:
        raise Invalid("async is not allowed in a contract")
    bound, in_range = _bind_names(loop, scope)
    inner = _Scope({**scope.kinds, **bound}, scope.in_range | in_range, in_loop=True)
    for condition in loop.ifs:
        _wants(condition, inner._replace(condition=condition), _TRUTH)
        inner = inner._replace(in_range=inner.in_range | _safe_after(condition))
    return _check(node.elt, inner._replace(condition=node.elt if isinstance(node.elt, ast.Compare) else None))


def _bind_names(loop: ast.comprehension, scope: _Scope) -> tuple[dict[str, str], frozenset[_Subscript]]:
    """Return the names that a loop binds, with their kinds, and the subscripts that are in range inside."""
    indices = 0
    match loop.iter:
        case ast.Name(id=row):
            elements = 1
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=row)], keywords=[]):
            indices = elements = 1
        case ast.Call(
            func=ast.Name(id="range"),
            args=[ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=row)], keywords=[])],
            keywords=[],
        ):
            indices, elements = 1, 0
        case _:
            over = _quote(loop.iter)
            raise Invalid(f"a loop over {over}; loops run over src, shape, enumerate(shape) or range(len(shape))")
    element = _check_element(ast.Name(row, ast.Load()), scope)
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    wanted = indices + elements
    if len(names) != len(targets) or len(set(names)) != wanted or len(names) != wanted:
        count = "two plain names" if wanted == 2 else "one plain name"
        raise Invalid(f"the loop over {_quote(loop.iter)} binds {count}")
    for name in names:
        if name in scope.kinds or name in _KINDS.keys() - ENTRY_NAMES or name in FUNCTIONS or name.startswith("_"):
            raise Invalid(f"the loop over {_quote(loop.iter)} hides the name {name!r}; choose another")
    bound = dict(zip(names, [_INDEX] * indices + [element] * elements, strict=True))
    return bound, frozenset({(row, names[0])} if indices else ())


def _quote(node: ast.AST) -> str:
    try:
        return repr(ast.unparse(node))
    except ValueError:
        return type(node).__name__


def _suggest(node: ast.AST) -> str:
    match node:
        case ast.BinOp(op=ast.Pow()):
            return "* a few times"
        case ast.Attribute():
            return "the names that a contract is given"
    return "comparisons, and/or/not, + - * // %, and loops over src or shape"
