"""Compiles the rules' expressions and says what a call means: legal with its answer, illegal, or unspecified.

The rules that bind in a document become one Python function. Nothing is searched: every `ensures` is an equation on
the volume, solved by one division, or a comparison with what was declared.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from ..model import Expression, Form, Malformed, Meaning, Problem, Rule, Spec
from .expression import CALL_NAMES, ENTRY_NAMES, FORM_NAMES, Refused, parse, parse_number

product = math.prod
_ANY_INDEX = 2**64


def agrees(dst: Sequence[int | None], declared: Sequence[int | None] | None) -> bool:
    """Whether what is known of dst and what was declared of it can both be true."""
    if declared is None:
        return True
    return len(dst) == len(declared) and all(
        a is None or b is None or a == b for a, b in zip(dst, declared, strict=True)
    )


def narrowed(dst: Sequence[int | None], declared: Sequence[int | None], target: int | None) -> list[int | None]:
    """What is known of dst once the lengths that were declared are known too; the volume may settle the last."""
    known = [there if length is None else length for length, there in zip(dst, declared, strict=True)]
    volume = product(length for length in known if length is not None)
    free = known.count(None)
    if free == 0 or target is None or volume == 0:
        return known
    quotient = target // volume
    return [quotient if length is None else length for length in known] if free == 1 or quotient == 1 else known


def solvable(dst: Sequence[int | None], declared: Sequence[int | None], target: int) -> bool:
    """Whether the free entries of dst, some of them declared, can be chosen so that the volume is right."""
    lengths = [b if a is None else a for a, b in zip(dst, declared, strict=True)]
    known = math.prod(length for length in lengths if length is not None)
    if any(length is not None and length < 0 for length in lengths):
        return False
    if known == 0 or None not in lengths:
        return known == target
    return target % known == 0


# ── compiling a document's rules ──────────────────────────────────────────────────────────────────


class Clause(NamedTuple):
    """One checked rule, as source text ready to be put into the function."""

    rule: str
    text: str
    of_form: bool
    """Whether it asks about the form of the call, which plain calls need not evaluate."""
    where: str = ""
    copies: str | None = None
    """The index of src whose length it copies."""


class Clauses(NamedTuple):
    """The rules of one document by what they do."""

    requires: tuple[Clause, ...]
    gives: tuple[Clause, ...]
    volumes: tuple[Clause, ...]
    agreements: tuple[Clause, ...]
    silences: tuple[Clause, ...]


def clauses(rules: Iterable[Rule]) -> Clauses:
    """The clauses of some rules; Malformed, with every problem, where one is not in the language."""
    found: dict[str, list[Clause]] = {"requires": [], "gives": [], "volumes": [], "agreements": [], "silences": []}
    problems = []
    for rule in rules:
        try:
            for kind, clause in _rule_clauses(rule):
                found[kind].append(clause)
        except _Misplaced as misplaced:  # noqa: PERF203 - every problem is wanted, not the first
            problems.append(Problem(misplaced.expression.place, f"rule {rule.id!r}: {misplaced}"))
    if problems:
        raise Malformed(tuple(problems))
    return Clauses(**{kind: tuple(each) for kind, each in found.items()})


class _Misplaced(Exception):
    """A refused expression, and where it stands."""

    def __init__(self, expression: Expression, why: Refused) -> None:
        super().__init__(str(why))
        self.expression = expression


Compiled = TypeVar("Compiled")


def _checked(expression: Expression, compiled: Callable[[str], Compiled]) -> Compiled:
    try:
        return compiled(expression.text)
    except Refused as refused:
        raise _Misplaced(expression, refused) from None


def _rule_clauses(rule: Rule) -> Iterable[tuple[str, Clause]]:
    if rule.requires:
        yield "requires", Clause(rule.id, *_checked(rule.requires, _condition))
    if rule.when:
        yield "silences", Clause(rule.id, *_checked(rule.when, _condition))
    if rule.gives and rule.where:
        where = _checked(rule.where, _where)
        text, copies = _checked(rule.gives, _gives)
        yield "gives", Clause(rule.id, text, False, where, copies)
    if rule.ensures:
        text, of_form = _checked(rule.ensures, _ensures)
        yield "agreements" if of_form else "volumes", Clause(rule.id, text, of_form)


@lru_cache(1024)
def _condition(text: str) -> tuple[str, bool]:
    tree = parse(text, CALL_NAMES | FORM_NAMES)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return _lowered(tree), bool(used & FORM_NAMES)


@lru_cache(1024)
def _where(text: str) -> str:
    return _lowered(parse(text, CALL_NAMES | ENTRY_NAMES, in_range=[("shape", "i")]))


@lru_cache(1024)
def _gives(text: str) -> tuple[str, str | None]:
    read: list[tuple[str, str | int]] = [("shape", "i"), ("src", "i"), ("src", _ANY_INDEX)]
    tree = parse_number(text, CALL_NAMES | ENTRY_NAMES, in_range=read)
    guards = {
        f"{ast.unparse(node.slice)} < rank"
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "src" and _of_entry(node.slice)
    }
    length = f"({_lowered(tree)}) if {' and '.join(sorted(guards))} else None" if guards else _lowered(tree)
    if isinstance(tree, ast.Subscript) and ast.unparse(tree.value) == "src":
        return length, ast.unparse(tree.slice)
    return length, None


def _of_entry(index: ast.expr) -> bool:
    """Whether an index is not that of a loop, which stays in range by itself."""
    return isinstance(index, ast.Constant) or (isinstance(index, ast.Name) and index.id == "i")


@lru_cache(1024)
def _ensures(text: str) -> tuple[str, bool]:
    tree = parse(text, CALL_NAMES | {"dst", "declared"})
    match tree:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="product"), args=[ast.Name(id="dst")]), ops=[ast.Eq()], comparators=[volume]
        ) if not {"dst", "declared"} & {node.id for node in ast.walk(volume) if isinstance(node, ast.Name)}:
            return _lowered(volume), False
        case ast.Call(func=ast.Name(id="agrees"), args=[ast.Name(id="dst"), ast.Name(id="declared")]):
            return ast.unparse(tree), True
    what = "has no closed form; write product(dst) == (something without dst), or agrees(dst, declared)"
    raise Refused(f"`ensures: {text}` {what}")


class _Lowering(ast.NodeTransformer):
    """Takes the volume of src from where it was computed once; no rule can bind a name that begins with _."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node) == "product(src)":
            return ast.Name("_volume", ast.Load())
        return self.generic_visit(node)


def _lowered(tree: ast.expr) -> str:
    return ast.unparse(_Lowering().visit(tree))


class Entry(NamedTuple):
    """An entry of shape, and the rule that gives its length; no rule gives the length of an inferred entry."""

    rule: str | None
    length: int | None
    source: int | None
    """The index of src that the length is copied from; it may be past the rank of src."""


class Contract:
    """What calls mean in one document: the rules that bind there, compiled."""

    def __init__(self, rules: Iterable[Rule], types: tuple[str, ...] = (), shape_types: tuple[str, ...] = ()) -> None:
        compiled = clauses(rules)
        self.source = _source(compiled)
        self.of_answer = frozenset(clause.rule for clause in (*compiled.gives, *compiled.volumes, *compiled.agreements))
        """The rules that look at single lengths of src or at dst, and not at the call alone."""
        names: dict[str, object] = {
            "product": product, "agrees": agrees, "solvable": solvable, "narrowed": narrowed, "Meaning": Meaning,
            "types": types, "shape_types": shape_types,
        }  # fmt: skip
        exec(compile(self.source, "<contract>", "exec"), names)
        self.meaning: Callable[..., Meaning] = names["meaning"]  # type: ignore[assignment]
        """(src, shape, special_zero, form=None) → Meaning."""
        self._gives, self._names = compiled.gives, names

    @cached_property
    def entries(self) -> Callable[..., tuple[Entry, ...]]:
        """(src, shape, special_zero) → an Entry for each entry of shape."""
        exec(compile(_entries_source(self._gives), "<contract>", "exec"), names := {**self._names, "Entry": Entry})
        return names["entries"]  # type: ignore[return-value]


def contracts(spec: Spec, without: str | None = None) -> dict[str, Contract]:
    """The contract of every document, perhaps as if one rule had never been written.

    The rules that are implied by the others go with it: what only repeats a rule must not hide that it is gone.
    """
    known: dict[tuple[object, ...], Contract] = {}
    result = {}
    rules = [rule for rule in spec.rules.values() if without is None or not (rule.implied or rule.id == without)]
    clauses(rules)  # first of all, so that the problems of every document are said at once
    for document in spec.documents.values():
        operation = spec.operations[document.operation]
        binding = [rule for rule in rules if document.id in rule.documents]
        key = (tuple(rule.id for rule in binding), operation.types, operation.shape_types)
        if key not in known:
            known[key] = Contract(binding, operation.types, operation.shape_types)
        result[document.id] = known[key]
    return result


# ── the function a contract becomes ───────────────────────────────────────────────────────────────


def _source(rules: Clauses) -> str:
    lines = ["def meaning(src, shape, special_zero, form=None):", "    rank = len(src)", "    _volume = product(src)"]
    lines += _indent(_collect("broken", rules.requires, "if not ({text}):"))
    lines += ["    if broken:", "        return Meaning('illegal', None, broken)"]
    lines += _indent(_entries(rules.gives))
    lines += _indent(_solve(rules.volumes))
    lines += _indent(_agree(rules))
    lines += _indent(_collect("silent", rules.silences, "if {text}:"))
    lines += ["    if silent or many:", "        return Meaning('unspecified', tuple(dst), silent)"]
    lines += ["    return Meaning('legal', tuple(dst), ())"]
    return "\n".join(lines) + "\n"


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _collect(name: str, rules: Sequence[Clause], test: str) -> list[str]:
    """Lines that gather in `name` the rules whose test holds; those about the form only where there is one."""

    def lines(clause: Clause) -> list[str]:
        return [test.format(text=clause.text), f"    {name} += ({clause.rule!r},)"]

    result = [f"{name} = ()"]
    for clause in rules:
        if not clause.of_form:
            result += lines(clause)
    of_form = [clause for clause in rules if clause.of_form]
    if of_form:
        result += ["if form is not None:", f"    ({', '.join(Form._fields)}) = form"]
        for clause in of_form:
            result += _indent(lines(clause))
    return result


def _entries(rules: Sequence[Clause]) -> list[str]:
    """Lines that fix or free each entry of dst; two rules that fix one entry differently leave no dst at all."""
    lines = ["dst = []", "known = 1", "free = 0", "for i, d in enumerate(shape):", "    length = None"]
    for number, rule in enumerate(rules):
        lines.append(f"    if {rule.where}:")
        if number == 0:
            lines.append(f"        length = {rule.text}")
        else:
            lines += [f"        given = {rule.text}", "        if length is None:", "            length = given"]
            lines += ["        elif given is not None and given != length:"]
            lines += [f"            return Meaning('illegal', None, ({rule.rule!r},))"]
        lines += ["        if length is not None and length < 0:"]
        lines += [f"            return Meaning('illegal', None, ({rule.rule!r},))"]
    lines += ["    dst.append(length)", "    if length is None:", "        free += 1"]
    return [*lines, "    else:", "        known *= length"]


def _entries_source(rules: Sequence[Clause]) -> str:
    """A function that names, for each entry, the first rule that fixes or frees it."""
    lines = ["rank = len(src)", "_volume = product(src)", "entries = []", "for i, d in enumerate(shape):"]
    lines.append("    entry = Entry(None, None, None)")
    for number, rule in enumerate(rules):
        lines.append(f"    {'elif' if number else 'if'} {rule.where}:")
        lines.append(f"        entry = Entry({rule.rule!r}, {rule.text}, {rule.copies})")
    lines += ["    entries.append(entry)", "return tuple(entries)"]
    return "\n".join(["def entries(src, shape, special_zero):", *_indent(lines)]) + "\n"


def _solve(rules: Sequence[Clause]) -> list[str]:
    """Lines that solve product(dst) == target for the free entries: one division, no search."""
    if not rules:
        return ["many = free > 0"]
    lines = [f"target = {rules[0].text}"]
    for rule in rules[1:]:
        lines += [f"if ({rule.text}) != target:"]
        lines += [f"    return Meaning('illegal', None, ({rule.rule!r},))"]
    broken = tuple(rule.rule for rule in rules)
    return [
        *lines,
        "many = False",
        "if known == 0 or free == 0:",
        "    if known != target:",
        f"        return Meaning('illegal', None, {broken!r})",
        "    many = free > 0",
        "else:",
        "    quotient, rest = divmod(target, known)",
        "    if rest or quotient < 0:",
        f"        return Meaning('illegal', None, {broken!r})",
        "    if free == 1 or quotient == 1:",
        "        dst = [quotient if length is None else length for length in dst]",
        "    else:",
        "        many = True",
    ]


def _agree(rules: Clauses) -> list[str]:
    """Lines that refuse a declaration no dst can meet, also where more than one dst is possible."""
    if not rules.agreements:
        return []
    broken = tuple(rule.rule for rule in rules.agreements)
    possible = "agrees(dst, declared)" + (" and (not many or solvable(dst, declared, target))" if rules.volumes else "")
    return [
        "if form is not None and form.declared is not None:",
        "    declared = form.declared",
        f"    if not ({possible}):",
        f"        return Meaning('illegal', None, {broken!r})",
        f"    dst = narrowed(dst, declared, {'target' if rules.volumes else 'None'})",
    ]
