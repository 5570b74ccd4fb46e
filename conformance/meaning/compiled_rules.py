"""Check the expressions of rules, and turn them into source text for a contract's function."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

from ..model import Expression, Malformed, PlainCall, Problem, Rule
from .expression import CALL_NAMES, ENTRY_NAMES, FORM_NAMES, NUMBER, Invalid, parse

INFERRED = "inferred"
"""The value of `gives` for an entry with a length that follows from the volume."""
_ANSWER = frozenset({"dst"})
_ANY_INDEX = 2**64  # as if src had so many dims: an index past its rank is guarded below
_Text = TypeVar("_Text")


class CompiledRule(NamedTuple):
    """One checked rule, as source text for the function."""

    rule: str
    text: str
    of_form: bool
    """Whether it asks about the form of the call. Calls without a form skip it."""
    where: str = ""
    copies: str | None = None
    """The index of the dimension of src that it copies."""


class CompiledRules(NamedTuple):
    """The rules of one document by what they do."""

    requires: tuple[CompiledRule, ...]
    gives: tuple[CompiledRule, ...]
    volumes: tuple[CompiledRule, ...]
    agreements: tuple[CompiledRule, ...]
    bounds: tuple[CompiledRule, ...]
    """The largest length of dst."""
    silences: tuple[CompiledRule, ...]
    capacities: tuple[CompiledRule, ...]


def compile_rules(rules: Iterable[Rule]) -> CompiledRules:
    """Compile some rules; Malformed, with every problem, if an expression is not in the language."""
    by_kind: dict[str, list[CompiledRule]] = {kind: [] for kind in CompiledRules._fields}
    problems = []
    for rule in rules:
        try:
            for kind, compiled in _compile(rule):
                by_kind[kind].append(compiled)
        except _Misplaced as misplaced:  # noqa: PERF203 - every problem is wanted, not the first
            problems.append(Problem(misplaced.expression.place, f"rule {rule.id!r}: {misplaced}"))
    if problems:
        raise Malformed(tuple(problems))
    return CompiledRules(**{kind: tuple(compiled) for kind, compiled in by_kind.items()})


class _Misplaced(Exception):
    """An expression that is not in the language, and its place."""

    def __init__(self, expression: Expression, why: Invalid) -> None:
        super().__init__(str(why))
        self.expression = expression


def _translate(expression: Expression, translate: Callable[[str], _Text]) -> _Text:
    try:
        return translate(expression.text)
    except Invalid as error:
        raise _Misplaced(expression, error) from None


def _compile(rule: Rule) -> Iterable[tuple[str, CompiledRule]]:
    if rule.offered_calls:
        _translate(rule.offered_calls, condition)
    if rule.requires:
        yield "requires", CompiledRule(rule.id, *_translate(rule.requires, _lower_condition))
    if rule.when and rule.level == "capacity":
        yield "capacities", CompiledRule(rule.id, *_translate(rule.when, partial(_lower_condition, more=_ANSWER)))
    elif rule.when:
        yield "silences", CompiledRule(rule.id, *_translate(rule.when, _lower_condition))
    if rule.gives and rule.where:
        where = _translate(rule.where, _lower_where)
        text, copies = _translate(rule.gives, _lower_gives)
        yield "gives", CompiledRule(rule.id, text, False, where, copies)
    if rule.ensures:
        kind, text = _translate(rule.ensures, _lower_ensures)
        yield kind, CompiledRule(rule.id, text, kind == "agreements")


@lru_cache(1024)
def _lower_condition(text: str, more: frozenset[str] = FORM_NAMES) -> tuple[str, bool]:
    """Return the text of a condition on a call, and whether it asks about the form. `more`: names beside the call's."""
    tree = parse(text, CALL_NAMES | more)
    return _lower(tree), bool(_find_names(tree) & FORM_NAMES)


@lru_cache(64)
def condition(text: str) -> Callable[[tuple[int, ...], tuple[int, ...], bool], bool]:
    """Return a condition on a call as a function of src, shape and special_zero."""
    source = f"lambda src, shape, special_zero, _volume: {_lower(parse(text, CALL_NAMES))}"
    function = eval(compile(source, "<condition>", "eval"), {"product": math.prod})
    return lambda src, shape, special_zero: function(src, shape, special_zero, math.prod(src))


@lru_cache(1024)
def compile_fault_condition(text: str, legal: bool) -> Callable[[PlainCall], bool]:
    """Return a condition on a call, the type of src and, if the call is legal, its answer."""
    names = CALL_NAMES | {"src_type"} | ({"dst"} if legal else set())
    source = f"lambda src_type, src, shape, special_zero, dst, _volume: {_lower(parse(text, names))}"
    function = eval(compile(source, "<condition>", "eval"), {"product": math.prod})
    return lambda call: bool(function(*call, math.prod(call.src)))


@lru_cache(1024)
def _lower_where(text: str) -> str:
    return _lower(parse(text, CALL_NAMES | ENTRY_NAMES, in_range=[("shape", "i")]))


@lru_cache(1024)
def _lower_gives(text: str) -> tuple[str, str | None]:
    if text == INFERRED:
        return "None", None
    read: list[tuple[str, str | int]] = [("shape", "i"), ("src", "i"), ("src", _ANY_INDEX)]
    tree = parse(text, CALL_NAMES | ENTRY_NAMES, NUMBER, in_range=read)
    guards = {
        f"{ast.unparse(node.slice)} < rank"
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "src"
        # a constant or `i`; the index of a loop stays in range by itself
        and (isinstance(node.slice, ast.Constant) or (isinstance(node.slice, ast.Name) and node.slice.id == "i"))
    }
    length = f"({_lower(tree)}) if {' and '.join(sorted(guards))} else None" if guards else _lower(tree)
    if isinstance(tree, ast.Subscript) and ast.unparse(tree.value) == "src":
        return length, ast.unparse(tree.slice)
    return length, None


@lru_cache(1024)
def _lower_ensures(text: str) -> tuple[str, str]:
    """Return the kind of a condition on the answer, and the text that decides it."""
    tree = parse(text, CALL_NAMES | {"dst", "declared"})
    match tree:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="product"), args=[ast.Name(id="dst")]), ops=[ast.Eq()], comparators=[volume]
        ) if not _find_names(volume) & {"dst", "declared"}:
            return "volumes", _lower(volume)
        case ast.Call(func=ast.Name(id="agrees"), args=[ast.Name(id="dst"), ast.Name(id="declared")]):
            return "agreements", ast.unparse(tree)
        case ast.Call(
            func=ast.Name(id="all"),
            args=[
                ast.GeneratorExp(
                    elt=ast.Compare(left=ast.Name(id=length), ops=[ast.LtE()], comparators=[most]),
                    generators=[ast.comprehension(target=ast.Name(id=name), iter=ast.Name(id="dst"), ifs=[])],
                )
            ],
        ) if length == name and not _find_names(most) & {"dst", "declared", name}:
            return "bounds", _lower(most)
    raise Invalid(
        f"`ensures: {text}` has no closed form; write product(dst) == (something without dst), agrees(dst, declared), "
        "or all(n <= (something without dst) for n in dst)"
    )


def _find_names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


class _Lowering(ast.NodeTransformer):
    """Replace `product(src)` by `_volume`, which is computed once; no rule can bind a name that begins with _.

    Where dst is compared with another row, make it a tuple as that is.
    """

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides = (node.left, *node.comparators)
            node.left, *node.comparators = (
                ast.Tuple([ast.Starred(side)]) if ast.unparse(side) == "dst" else side for side in sides
            )
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node) == "product(src)":
            return ast.Name("_volume", ast.Load())
        return self.generic_visit(node)


def _lower(tree: ast.expr) -> str:
    return ast.unparse(_Lowering().visit(tree))
