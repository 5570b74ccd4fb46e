"""The language of contracts: a small typed part of Python that can neither fail, grow nor loop without end.

An expression is checked once, when the rules are loaded: every name is given, every operand has the kind its operator
takes, every loop runs over something given, and every subscript is known to be in range. What passes can be evaluated
for any call without an exception, in time linear in the ranks.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..model import Form

FUNCTIONS = ("product", "sum", "len", "range", "enumerate", "all", "any", "agrees")
CALL_NAMES = frozenset({"src", "shape", "special_zero"})
ENTRY_NAMES = frozenset({"d", "i"})
FORM_NAMES = frozenset(Form._fields) | {"types", "shape_types"}

_LARGEST = 2**63
_LONGEST = 400
_DEEPEST = 25
_NUMBER, _INDEX, _TRUTH, _TEXT = "a number", "an index", "true or false", "text"
_LENGTHS, _TEXTS, _NOTHING, _DECLARED = "a row of numbers", "a row of names", "an empty row", "a declaration"
_KINDS = {
    "src": _LENGTHS, "shape": _LENGTHS, "dst": _LENGTHS, "special_zero": _TRUTH, "d": _NUMBER, "i": _INDEX,
    "src_type": _TEXT, "dst_type": _TEXT, "shape_type": _TEXT, "special_zero_type": _TEXT, "shape_rank": _NUMBER,
    "missing_attributes": _TEXTS, "missing_operands": _TEXTS, "extra_attributes": _TEXTS, "extra_operands": _TEXTS,
    "types": _TEXTS, "shape_types": _TEXTS, "declared": _DECLARED,
}  # fmt: skip
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_Subscript = tuple[str, "str | int"]
"""A row and the index at which it is read."""


class Refused(Exception):
    """Why an expression is not in the language of contracts."""


class _Scope(NamedTuple):
    """What is known at one spot of an expression."""

    kinds: Mapping[str, str]
    in_range: frozenset[_Subscript]
    """The subscripts that can be read here."""
    in_loop: bool = False


def parse(text: str, names: frozenset[str], wants: str = _TRUTH, in_range: Iterable[_Subscript] = ()) -> ast.expr:
    """The tree of an expression that uses nothing but `names`, the listed functions and loops over what it is given."""
    if len(text) > _LONGEST:
        raise Refused(f"the expression is {len(text)} characters long, at most {_LONGEST} are read; split the rule")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # `1or 2` is deprecated spelling
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning) as error:
        raise Refused(f"not an expression: {text!r} ({getattr(error, 'msg', error)})") from None
    _check_depth(tree)
    kind = _kind(tree, _Scope({name: _KINDS[name] for name in names}, frozenset(in_range)))
    if kind != wants and not (wants == _NUMBER and kind == _INDEX):
        raise Refused(f"{text!r} is {kind}, where {wants} is wanted")
    return tree


def parse_number(text: str, names: frozenset[str], in_range: Iterable[_Subscript] = ()) -> ast.expr:
    """Like `parse`, of an expression whose value is a number."""
    return parse(text, names, _NUMBER, in_range)


def _check_depth(tree: ast.expr) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise Refused(f"nested more than {_DEEPEST} levels deep; split the rule")


def _kind(node: ast.expr, scope: _Scope) -> str:
    """The kind of value an expression has, or Refused."""
    match node:
        case ast.Constant():
            return _constant(node)
        case ast.Name(id=name):
            return _name(name, scope)
        case ast.Tuple(elts=elements):
            return _row(node, [_kind(element, scope) for element in elements])
        case ast.BoolOp(op=op, values=operands):
            return _logic(operands, scope, isinstance(op, ast.And))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _wants(operand, scope, _TRUTH, _LENGTHS, _TEXTS)
            return _TRUTH
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _wants(operand, scope, _NUMBER, _INDEX)
            return _NUMBER
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()):
            return _arithmetic(node, scope)
        case ast.Compare():
            return _comparison(node, scope)
        case ast.Subscript():
            return _subscript(node, scope)
        case ast.Call():
            return _call(node, scope)
        case ast.GeneratorExp():
            raise Refused(f"a loop outside of a function in {_written(node)}; write it in sum, product, all or any")
    raise Refused(f"{_written(node)} is not allowed in a contract; use {_hint(node)}")


def _constant(node: ast.Constant) -> str:
    value = node.value
    if isinstance(value, bool):
        return _TRUTH
    if isinstance(value, int):
        if value > _LARGEST:
            raise Refused(f"the constant {_written(node)} is larger than 2^63; lengths are not")
        return _NUMBER
    if isinstance(value, str):
        return _TEXT
    raise Refused(f"the constant {_written(node)} is not a whole number, true, false or a name in quotes")


def _name(name: str, scope: _Scope) -> str:
    if name not in scope.kinds:
        known = ", ".join(sorted(scope.kinds))
        raise Refused(f"unknown name {name!r}; the names here are {known} and the functions {', '.join(FUNCTIONS)}")
    return scope.kinds[name]


def _row(node: ast.expr, kinds: list[str]) -> str:
    if not kinds:
        return _NOTHING
    if set(kinds) <= {_NUMBER, _INDEX}:
        return _LENGTHS
    if set(kinds) == {_TEXT}:
        return _TEXTS
    raise Refused(f"{_written(node)} is neither a row of numbers nor one of names")


def _wants(node: ast.expr, scope: _Scope, *kinds: str) -> str:
    kind = _kind(node, scope)
    if kind not in kinds:
        raise Refused(f"{_written(node)} is {kind}, where {' or '.join(dict.fromkeys(kinds))} is wanted")
    return kind


def _logic(operands: list[ast.expr], scope: _Scope, is_and: bool) -> str:
    for operand in operands:
        _wants(operand, scope, _TRUTH)
        if is_and:  # what was tested on the left holds on the right
            scope = scope._replace(in_range=scope.in_range | _tested(operand))
    return _TRUTH


def _tested(node: ast.expr) -> frozenset[_Subscript]:
    """The subscripts that a condition such as `i < len(src)` makes safe."""
    match node:
        case ast.Compare(left=index, ops=[ast.Lt()], comparators=[length]):
            pass
        case ast.Compare(left=length, ops=[ast.Gt()], comparators=[index]):
            pass
        case ast.BoolOp(op=ast.And(), values=operands):
            return frozenset[_Subscript]().union(*map(_tested, operands))
        case _:
            return frozenset()
    match length, index:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=row)]), ast.Name(id=name):
            return frozenset({(row, name)})
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=row)]), ast.Constant(value=int(number)):
            return frozenset({(row, number)})
    return frozenset()


def _arithmetic(node: ast.BinOp, scope: _Scope) -> str:
    for side in (node.left, node.right):
        _wants(side, scope, _NUMBER, _INDEX)
    if isinstance(node.op, ast.FloorDiv | ast.Mod) and not (isinstance(node.right, ast.Constant) and node.right.value):
        raise Refused(f"{_written(node)} may divide by 0; divide by a constant above 0, or compare products")
    return _NUMBER


def _comparison(node: ast.Compare, scope: _Scope) -> str:
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        a, b = (_NUMBER if kind == _INDEX else kind for kind in (_kind(left, scope), _kind(right, scope)))
        if isinstance(op, _ORDER):
            fits = a == b == _NUMBER
        elif isinstance(op, ast.In | ast.NotIn):
            fits = (a, b) in ((_NUMBER, _LENGTHS), (_TEXT, _TEXTS))
        elif isinstance(op, ast.Eq | ast.NotEq):
            fits = (a == b and a != _DECLARED) or {a, b} in ({_LENGTHS, _NOTHING}, {_TEXTS, _NOTHING})
        else:
            raise Refused(f"{_written(node)} is not allowed in a contract; compare with == and !=")
        if not fits:
            raise Refused(f"{_written(node)} compares {a} with {b}")
        left = right
    return _TRUTH


def _subscript(node: ast.Subscript, scope: _Scope) -> str:
    match node.value, node.slice:
        case ast.Name(id=row), ast.Name(id=index) if scope.kinds.get(index) == _INDEX:
            safe = (row, index) in scope.in_range
        case ast.Name(id=row), ast.Constant(value=int(index)) if type(index) is int:
            safe = any(of == row and isinstance(n, int) and n >= index for of, n in scope.in_range)
        case _:
            raise Refused(f"{_written(node)} is not a plain subscript such as src[i]")
    kind = _wants(node.value, scope, _LENGTHS, _TEXTS)
    if not safe:
        raise Refused(f"{_written(node)} may read past the end; write `{index} < len({row}) and` in front of it")
    return _NUMBER if kind == _LENGTHS else _TEXT


def _call(node: ast.Call, scope: _Scope) -> str:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        raise Refused(f"call of {_written(node.func)}; the functions are {', '.join(FUNCTIONS)}")
    function = node.func.id
    if node.keywords or len(node.args) != (2 if function == "agrees" else 1):
        count = "two plain arguments" if function == "agrees" else "one plain argument"
        raise Refused(f"{_written(node)}: {function} takes {count}")
    if function in ("range", "enumerate"):
        raise Refused(f"{_written(node)} outside of a loop; write `for i in range(len(shape))`")
    if function == "agrees":
        for argument in node.args:
            _wants(argument, scope, _LENGTHS, _DECLARED)
        return _TRUTH
    (argument,) = node.args
    if function == "len":
        _wants(argument, scope, _LENGTHS, _TEXTS)
        return _NUMBER
    kind = _loop(argument, scope) if isinstance(argument, ast.GeneratorExp) else _element(argument, scope)
    if function in ("all", "any"):
        if kind != _TRUTH:
            raise Refused(f"{_written(node)} asks whether {kind} holds; write a comparison")
        return _TRUTH
    if kind not in (_NUMBER, _INDEX, _TRUTH):
        raise Refused(f"{_written(node)} computes with {kind}")
    return _NUMBER


def _element(node: ast.expr, scope: _Scope) -> str:
    return _NUMBER if _wants(node, scope, _LENGTHS, _TEXTS) == _LENGTHS else _TEXT


def _loop(node: ast.GeneratorExp, scope: _Scope) -> str:
    """The kind of value a loop yields, having checked that it runs over something given and no longer than that."""
    if scope.in_loop or len(node.generators) != 1:
        raise Refused(f"a loop inside a loop in {_written(node)}; a contract is linear in the rank")
    (loop,) = node.generators
    if loop.is_async:
        raise Refused("async is not allowed in a contract")
    bound, in_range = _bound(loop, scope)
    inner = _Scope({**scope.kinds, **bound}, scope.in_range | in_range, in_loop=True)
    for condition in loop.ifs:
        _wants(condition, inner, _TRUTH)
        inner = inner._replace(in_range=inner.in_range | _tested(condition))
    return _kind(node.elt, inner)


def _bound(loop: ast.comprehension, scope: _Scope) -> tuple[dict[str, str], frozenset[_Subscript]]:
    """The names a loop binds, with their kinds, and the subscripts that are in range inside."""
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
            over = _written(loop.iter)
            raise Refused(f"a loop over {over}; loops run over src, shape, enumerate(shape) or range(len(shape))")
    element = _element(ast.Name(row, ast.Load()), scope)
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    wanted = indices + elements
    if len(names) != len(targets) or len(set(names)) != wanted or len(names) != wanted:
        count = "two plain names" if wanted == 2 else "one plain name"
        raise Refused(f"the loop over {_written(loop.iter)} binds {count}")
    for name in names:
        if name in scope.kinds or name in _KINDS.keys() - ENTRY_NAMES or name in FUNCTIONS or name.startswith("_"):
            raise Refused(f"the loop over {_written(loop.iter)} hides the name {name!r}; choose another")
    bound = dict(zip(names, [_INDEX] * indices + [element] * elements, strict=True))
    return bound, frozenset({(row, names[0])} if indices else ())


def _written(node: ast.AST) -> str:
    try:
        return repr(ast.unparse(node))
    except ValueError:
        return type(node).__name__


def _hint(node: ast.AST) -> str:
    match node:
        case ast.BinOp(op=ast.Pow()):
            return "* a few times"
        case ast.Attribute():
            return "the names that a contract is given"
    return "comparisons, and/or/not, + - * // %, and loops over src or shape"
