"""Mutants of a Python source: one comparison, constant, operator, check or statement is changed at a time."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_SUFFIX = "~"
"""Appended to a text to change it."""
_UNRUN = {"annotation", "returns", "decorator_list", "type_params"}
"""Fields without effect at run time."""


class Mutant(NamedTuple):
    function: str
    """Where: a function's name, `Class.method`, or "" for the module itself."""
    line: int
    text: str
    """The line of the source."""
    change: str
    """The change: `== became !=`."""
    source: str
    """The whole source with the change."""

    @property
    def name(self) -> str:
        """The line and the change, which stay while the line does: `known != volume · != became ==`."""
        return f"{self.text} · {self.change}"

    def module(self) -> ModuleType:
        module = types.ModuleType("mutant")
        exec(self.source, module.__dict__)
        return module


def mutants(source: str, leave: frozenset[str] = frozenset()) -> Iterator[Mutant]:
    """Yield every mutant of a source; assignments to names in `leave` are not changed."""
    tree = ast.parse(source)
    lines = source.splitlines()
    counted: dict[str, int] = {}
    texts = [ast.unparse(statement) for statement in tree.body]
    for at, statement in enumerate(tree.body):
        alone = ast.Module([statement], [])  # the other statements keep their text
        for function, holder, key, node in _find_places(alone, "", leave):
            for change, other in _list_mutations(node):
                holder[key] = other
                changed = "\n".join([*texts[:at], ast.unparse(alone), *texts[at + 1 :]])
                holder[key] = node
                line = int(getattr(node, "lineno", 0))
                mutant = Mutant(function, line, lines[line - 1].strip(), change, changed)
                again = counted[mutant.name] = counted.get(mutant.name, 0) + 1
                yield mutant if again == 1 else mutant._replace(change=f"{change} ({again})")


# ── places ────────────────────────────────────────────────────────────────────────────────────────

_Place = tuple[str, Any, Any, ast.AST]
"""Function, then the list or the fields that hold a node, its index or name there, and the node."""


def _find_places(parent: ast.AST, function: str, leave: frozenset[str]) -> Iterator[_Place]:
    if isinstance(parent, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{parent.name}".strip(".")
    for field, value in ast.iter_fields(parent):
        if field in _UNRUN:
            continue
        holder, nodes = (value, [*enumerate(value)]) if isinstance(value, list) else (vars(parent), [(field, value)])
        for key, node in nodes:
            if isinstance(node, ast.AST) and not _is_left_alone(node, leave):
                yield function, holder, key, node
                yield from _find_places(node, function, leave)


def _is_left_alone(node: ast.AST, leave: frozenset[str]) -> bool:
    """Docstrings, assertions, imports and assignments to names in `leave` are not mutated."""
    if isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return True
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id in leave for target in targets)


# ── changes to one node ───────────────────────────────────────────────────────────────────────────


def _list_mutations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield each change of a node: a description and the new node."""
    match node:
        case ast.Compare():
            yield from _mutate_comparison(node)
        case ast.Constant():
            yield from ((f"{node.value!r} became {value!r}", ast.Constant(value)) for value in _list_values(node))
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATORS:
            other = OPERATORS[type(node.op)]
            fields = {name: value for name, value in ast.iter_fields(node) if name != "op"}
            yield f"{_spell(node.op)} became {_spell(other())}", type(node)(op=other(), **fields)
        case ast.BoolOp():
            yield from _mutate_boolean(node)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield f"{_spell(node.op)} dropped", node.operand
        case ast.IfExp():
            yield "always the first", node.body
            yield "always the second", node.orelse
        case ast.If():
            yield "the body dropped", ast.If(node.test, [ast.Pass()], node.orelse)
            if node.orelse:
                yield "what is else dropped", ast.If(node.test, node.body, [])
        case _:
            pass
    if isinstance(node, (ast.Raise, ast.Continue, ast.Assign, ast.AugAssign, ast.Expr)):
        yield "the statement dropped", ast.Pass()


def _mutate_comparison(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    for index, old in enumerate(node.ops):
        for new in COMPARISONS[type(old)]:
            operators = [*node.ops[:index], new(), *node.ops[index + 1 :]]
            yield (f"{_spell(old)} became {_spell(new())}", ast.Compare(node.left, operators, node.comparators))


def _mutate_boolean(node: ast.BoolOp) -> Iterator[tuple[str, ast.AST]]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield f"{_spell(node.op)} became {_spell(other)}", ast.BoolOp(other, node.values)
    for index, value in enumerate(node.values):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        kept = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield f"`{ast.unparse(value)}` dropped", kept


def _list_values(node: ast.Constant) -> tuple[Any, ...]:
    """Return constants that may replace one."""
    value = node.value
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value - 1) if value else (1,)
    return (value + _SUFFIX,) if isinstance(value, str) else ()


_WORDS: dict[str, str] = {
    "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Is": "is", "IsNot": "is not",
    "In": "in", "NotIn": "not in", "Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Mod": "%",
    "And": "and", "Or": "or", "Not": "not", "USub": "the minus",
}  # fmt: skip


def _spell(operator: ast.AST) -> str:
    return _WORDS[type(operator).__name__]
