"""Write the function of a contract in another language: the same statements, one for one.

Python and JavaScript compute with whole numbers of any size. C++ and Rust keep a product of lengths as its factors, and
compare and divide products by cancelling common factors; so no product wraps, whatever the lengths.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

from ...meaning.expression import ENTRY_NAMES

_LENGTHS = ("length", "other")
"""Names of the function that hold a length or None."""
_PRODUCTS = frozenset({"_volume", "known", "target", "quotient"})
_ROWS = ("src", "shape", "dst")
_RULES = ("broken", "silent", "beyond")
"""Names of the function that hold rules."""
_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MIRRORED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


class NoExactForm(Exception):
    """A rule asks for something that has no exact form in a language."""


@dataclass(frozen=True)
class Language:
    """The templates of a language for what languages write differently; `$row`, `$value` and so on are filled in."""

    file: str
    function: str
    """The head of the function $name, with the names that its statements set."""
    loops: Mapping[str, str]
    """`all`, `any`, `sum` and `product` of $value over the entries $d, number $i, of $row that have $keep."""
    contains: str
    size: str
    none: str
    is_none: str
    some: str
    """The length that $name holds."""
    is_filled: str
    choose: str
    """A length $value if $test holds, or else none."""
    add_rule: str
    append: str
    fill: str
    """Replace each none in dst by $value."""
    for_each: str
    give: str
    no_dst: str
    rules: str
    """A row of $rules, which are in quotes."""
    multiply: str
    divide: str
    """Set quotient and rest."""
    document: str
    """An entry of the table of documents."""
    sentence: str
    kinds: Mapping[Any, str]
    subscript: str = "$row[$index]"
    number: str = "$number"
    assign: Mapping[str, str] = field(default_factory=dict)
    """By name, what differs from `$name = $value;`."""
    length: str = "$value"
    """A length as a value of a name that holds a length or none."""
    arithmetic: str = ""
    """An operator between two lengths; empty where the result may wrap."""


def _fill(template: str, **parts: object) -> str:
    return Template(template).substitute(parts)


def rename_loops(tree: ast.AST) -> None:
    """Put an _ behind the names of loops: any but d and i may be a word of a language or a name of the function."""
    for loop in ast.walk(tree):
        if isinstance(loop, ast.GeneratorExp):
            bound = {each.id for each in ast.walk(loop.generators[0].target) if isinstance(each, ast.Name)}
            for each in ast.walk(loop):
                if isinstance(each, ast.Name) and each.id in bound - ENTRY_NAMES:
                    each.id += "_"


class CodeWriter:
    def __init__(self, language: Language) -> None:
        self.language = language
        self._products = _PRODUCTS

    def statements(self, body: Sequence[ast.stmt]) -> Iterator[str]:
        """Yield lines. Calls are well-formed, so that what asks about their form is left out."""
        for statement in body:
            match statement:
                case ast.If(test=test, body=then, orelse=otherwise):
                    if any(isinstance(node, ast.Name) and node.id == "form" for node in ast.walk(test)):
                        continue
                    asked = self.text(test)
                    yield from self._emit_block(f"if {asked if asked.startswith('(') else f'({asked})'}", then)
                    if otherwise:
                        yield from self._emit_block("else", otherwise)
                case ast.For(target=ast.Tuple(elts=[ast.Name(id=i), ast.Name(id=d)]), iter=ast.Call(args=[row])):
                    head = _fill(self.language.for_each, row=ast.unparse(row), i=i, d=d)
                    yield from self._emit_block(head, statement.body)
                case ast.Assign(value=ast.Tuple(elts=[]) | ast.List(elts=[])):
                    continue  # it is empty from the start
                case _:
                    yield self._emit_line(statement)

    def _emit_line(self, statement: ast.stmt) -> str:
        language = self.language
        match statement:
            case ast.Return(value=ast.Call(args=[ast.Constant(value=kind), dst, rules, *_])):
                is_named = isinstance(rules, ast.Name)
                named = ast.unparse(rules) if is_named else _fill(language.rules, rules=_quote(rules))
                known = language.no_dst if isinstance(dst, ast.Constant) else "dst"
                return _fill(language.give, kind=language.kinds[kind], dst=known, rules=named)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=row)), args=[value])):
                return _fill(language.append, row=row, value=self.text(value))
            case ast.AugAssign(target=ast.Name(id=name), value=ast.Tuple() as rule):
                return _fill(language.add_rule, name=name, rule=_quote(rule))
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Mult(), value=value):
                return _fill(language.multiply, name=name, value=self.emit_length(value))
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                return f"{name} += {self.text(value)};"
            case ast.Assign(targets=[ast.Tuple()], value=ast.Call(args=[left, right])):
                return _fill(language.divide, left=self.text(left), right=self.text(right))
            case ast.Assign(targets=[ast.Name(id="dst")], value=ast.ListComp(elt=ast.IfExp(body=value))):
                return _fill(language.fill, value=self.text(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                length = value.body if isinstance(value, ast.IfExp) else value
                wanted = {"target": True, **dict.fromkeys(_LENGTHS, False)}.get(name)
                if not language.arithmetic and wanted is (not self._is_product(length)):
                    raise self._refuse(length)
                is_sure = name in _LENGTHS and not isinstance(value, ast.IfExp) and not _is_unsure(value)
                written = _fill(language.length, value=self.text(value)) if is_sure else self.text(value)
                return _fill(language.assign.get(name, "$name = $value;"), name=name, value=written)
        raise NoExactForm(f"{ast.unparse(statement)} is not written in {language.file}")

    def _emit_block(self, head: str, body: Sequence[ast.stmt]) -> Iterator[str]:
        yield f"{head} {{"
        yield from (f"    {line}" for line in self.statements(body))
        yield "}"

    def text(self, node: ast.expr) -> str:
        language = self.language
        match node:
            case ast.Constant(value=bool() as value):
                return str(value).lower()
            case ast.Constant(value=None):
                return language.none
            case ast.Constant(value=int() as number) if language.arithmetic or number < 2**63:
                return _fill(language.number, number=number)
            case ast.Name(id=name) if name not in _ROWS:
                return _fill(language.is_filled, name=name) if name in _RULES else name
            case ast.BoolOp(op=op, values=operands):
                return f"({(' && ' if isinstance(op, ast.And) else ' || ').join(map(self.text, operands))})"
            case ast.UnaryOp(op=op, operand=operand) if (
                language.arithmetic or isinstance(op, ast.Not) or isinstance(operand, ast.Constant)
            ):
                written = self.text(operand)
                written = f"({written})" if written.startswith("-") else written  # -- would change a name
                return f"{'!' if isinstance(op, ast.Not) else '-'}{written}"
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = (left, *others)
                parts = [self._emit_comparison(*part) for part in zip(ops, sides, sides[1:], strict=False)]
                return f"({' && '.join(parts)})"
            case ast.BinOp(left=left, op=op, right=right) if language.arithmetic:
                sign = ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b"))).split()[1]
                return _fill(language.arithmetic, left=self.text(left), sign=sign, right=self.text(right))
            case ast.IfExp(test=test, body=body, orelse=ast.Constant(value=None)):
                return _fill(language.choose, test=self.text(test), value=self.text(body))
            case ast.Subscript(value=ast.Name(id=row), slice=index) if language.arithmetic or row != "dst":
                return _fill(language.subscript, row=row, index=self.text(index))
            case ast.Call(func=ast.Name(id=function), args=[ast.Name() | ast.GeneratorExp() as over]):
                is_length = function == "len"
                return _fill(language.size, row=ast.unparse(over)) if is_length else self._emit_loop(function, over)
        raise self._refuse(node)

    def _refuse(self, node: ast.expr) -> NoExactForm:
        text = ast.unparse(node).replace("_volume", "product(src)").replace("(*dst,)", "dst")
        text = re.sub(r"_\b", "", text)  # as the rule has it
        return NoExactForm(
            f"{text} has no form in {self.language.file} that is exact for every length of 64 bits; "
            "compare, count or multiply lengths, or take --lang python"
        )

    def _is_product(self, node: ast.expr) -> bool:
        """Ask whether an expression is a product that the language keeps as its factors."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id == "product" and not self.language.arithmetic
        return isinstance(node, ast.Name) and node.id in self._products and not self.language.arithmetic

    def emit_length(self, node: ast.expr) -> str:
        """Return an expression; of a name that holds a length or none, the length."""
        return _fill(self.language.some, name=ast.unparse(node)) if _is_unsure(node) else self.text(node)

    def _emit_comparison(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> str:
        no = "!" if isinstance(op, ast.IsNot | ast.NotIn) else ""
        if isinstance(op, ast.Is | ast.IsNot):
            return no + _fill(self.language.is_none, name=ast.unparse(left))
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple):
            return f"{no}({' || '.join(self._emit_comparison(ast.Eq(), left, each) for each in right.elts) or 'false'})"
        if self._is_product(right) and not self._is_product(left):
            op, left, right = _MIRRORED.get(type(op), type(op))(), right, left
        if self._is_product(left) and not isinstance(op, ast.Eq | ast.NotEq) and self._is_product(right):
            raise self._refuse(ast.Compare(left, [op], [right]))
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Name):
            if self._is_product(left) or (right.id == "dst" and not self.language.arithmetic):
                raise self._refuse(ast.Compare(left, [op], [right]))
            return no + _fill(self.language.contains, row=right.id, value=self.text(left))
        return f"{self.emit_length(left)} {_SIGNS[type(op)]} {self.emit_length(right)}"

    def _emit_loop(self, function: str, over: ast.Name | ast.GeneratorExp) -> str:
        if isinstance(over, ast.Name):
            names, rows = ast.Tuple([ast.Name("_k"), ast.Name("_n")]), ast.Call(ast.Name("enumerate"), [over], [])
            over = ast.GeneratorExp(ast.Name("_n"), [ast.comprehension(names, rows, [], 0)])
        element, (loop,) = over.elt, over.generators
        if function == "sum" and not self.language.arithmetic and not isinstance(element, ast.Compare | ast.BoolOp):
            raise NoExactForm(f"{self.language.file}: a sum of lengths may wrap; compare their product, or count")
        i, d = "_i", "_d"
        match loop.target, loop.iter:
            case ast.Name(id=d), ast.Name(id=row):
                pass
            case ast.Tuple(elts=[ast.Name(id=i), ast.Name(id=d)]), ast.Call(args=[ast.Name(id=row)]):
                pass
            case ast.Name(id=i), ast.Call(args=[ast.Call(args=[ast.Name(id=row)])]):
                pass
            case _:
                raise NoExactForm(f"a loop over {ast.unparse(loop.iter)} is not written in {self.language.file}")
        outer, self._products = self._products, self._products | ({d} if row == "dst" else set())
        keep = " && ".join(map(self.text, loop.ifs)) or "true"
        written = _fill(self.language.loops[function], row=row, i=i, d=d, keep=keep, value=self.text(element))
        self._products = outer
        return written


def _is_unsure(node: ast.expr) -> bool:
    """Ask whether an expression is None, or a name that holds a length or None."""
    return (isinstance(node, ast.Name) and node.id in _LENGTHS) or (
        isinstance(node, ast.Constant) and node.value is None
    )


def _quote(rules: ast.expr) -> str:
    return ", ".join(json.dumps(rule) for rule in ast.literal_eval(rules))
