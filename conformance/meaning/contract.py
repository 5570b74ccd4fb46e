"""Contracts: the rules that bind in a document, compiled into one Python function from a call to its meaning.

Every `ensures` is an equation on the volume, which one division solves, a comparison with the declared dims, or a
largest length. Only a largest length needs a search, and only if several lengths are free: for small enough factors of
the volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any, NamedTuple

from ..model import CallForm, Meaning, Rule, Spec
from .compiled_rules import CompiledRule, CompiledRules, compile_rules

product = math.prod


def agrees(dst: Sequence[int | None], declared: Sequence[int | None] | None) -> bool:
    """Ask whether dims agree with declared ones; a length of None is not known, and agrees with every length."""
    if declared is None:
        return True
    return len(dst) == len(declared) and all(
        a is None or b is None or a == b for a, b in zip(dst, declared, strict=True)
    )


def settle(dst: Sequence[int | None], declared: Sequence[int | None], target: int | None) -> list[int | None] | None:
    """Return dst with declared lengths filled in; None if no dst has these and the volume.

    If one length is left, or all others are 1, the volume decides it.
    """
    if not agrees(dst, declared):
        return None
    lengths = [other if length is None else length for length, other in zip(dst, declared, strict=True)]
    if any(length is not None and length < 0 for length in lengths):
        return None
    if target is None:
        return lengths
    known, free = product(length for length in lengths if length is not None), lengths.count(None)
    if known == 0 or free == 0:
        return lengths if known == target else None
    quotient, rest = divmod(target, known)
    if rest:
        return None
    return [quotient if length is None else length for length in lengths] if free == 1 or quotient == 1 else lengths


def is_within(dst: Sequence[int | None], most: int, target: int | None) -> bool:
    """Ask whether free entries of dst can be chosen so that the volume is `target`, and no length is above `most`."""
    known = [length for length in dst if length is not None]
    free = len(dst) - len(known)
    if any(length > most for length in known) or (free and most < 0):
        return False
    volume = math.prod(known)
    return not free or target is None or volume == 0 or _can_split(target // volume, free, most)


@lru_cache(4096)
def _can_split(number: int, factors: int, most: int) -> bool:
    """Ask whether a number is the product of so many factors, none of them above `most`."""
    if number <= most:
        return True
    if factors == 1 or number > most**factors:
        return False
    smallest = -(-number // most ** (factors - 1))
    return any(
        number % factor == 0 and _can_split(number // factor, factors - 1, most)
        for factor in range(max(1, smallest), min(most, math.isqrt(number)) + 1)
    )


class ExplainedEntry(NamedTuple):
    """An entry of shape, as a rule explains it."""

    rule: str | None
    """None if no rule gives the entry a meaning."""
    length: int | None
    """None if it follows from the volume, or is copied from a dimension that src does not have."""
    copied_from: int | None
    """The index of src that the length is copied from; it may be past the rank of src."""


class Contract:
    """The compiled rules of one document: `meaning` says what a call means there."""

    def __init__(self, rules: Iterable[Rule], types: tuple[str, ...] = (), shape_types: tuple[str, ...] = ()) -> None:
        rules = list(rules)
        compiled = compile_rules(rules)
        self.source = _write_source(compiled)
        of_answer = (*compiled.gives, *compiled.volumes, *compiled.agreements, *compiled.bounds)
        self.of_answer = frozenset(each.rule for each in of_answer)
        """The rules that look at single lengths of src or at dst, and not at the call alone."""
        self.of_entries = frozenset(each.rule for each in compiled.gives)
        """The rules that `entries` may name."""
        names: dict[str, object] = {
            "product": product, "agrees": agrees, "settle": settle, "is_within": is_within,
            "Meaning": Meaning, "Entry": ExplainedEntry, "types": types, "shape_types": shape_types,
        }  # fmt: skip
        exec(_compile(self.source), names)
        self.meaning: Callable[..., Meaning] = names["meaning"]  # type: ignore[assignment]
        """(src, shape, special_zero, form=None) → Meaning."""
        self._gives, self._volumes, self._names = compiled.gives, compiled.volumes, names
        self._requires = [(rule.id, rule.requires.text) for rule in rules if rule.requires]

    def _evaluate(self, text: str) -> Callable[..., Any]:
        """Return (src, shape, special_zero) → the value of an expression."""
        head = "lambda src, shape, special_zero: (lambda rank, _volume:"
        return eval(f"{head} {text})(len(src), product(src))", self._names)  # type: ignore[no-any-return]

    @cached_property
    def requirements(self) -> tuple[tuple[str, Callable[..., bool]], ...]:
        """The rules that require something of a call, and (src, shape, special_zero, form) → whether it has that."""
        head = f"lambda src, shape, special_zero, form: (lambda {', '.join(CallForm._fields)}: bool"
        return tuple((rule, eval(f"{head}({text}))(*form)", self._names)) for rule, text in self._requires)

    @cached_property
    def entries(self) -> Callable[..., tuple[ExplainedEntry, ...]]:
        """(src, shape, special_zero) → each entry of shape, explained by the first rule that fixes or frees it."""
        cases = (f"Entry({rule.rule!r}, {rule.text}, {rule.copies}) if {rule.where} else" for rule in self._gives)
        return self._evaluate(f"tuple({' '.join(cases)} Entry(None, None, None) for i, d in enumerate(shape))")

    @cached_property
    def volumes(self) -> dict[str, Callable[..., int]]:
        """By rule, (src, shape, special_zero) → the volume that dst has to have."""
        return {rule.rule: self._evaluate(rule.text) for rule in self._volumes}


@lru_cache(64)
def _compile(source: str) -> CodeType:
    return compile(source, "<contract>", "exec")


def group_documents(compiled: Mapping[str, Contract]) -> dict[Contract, list[str]]:
    by_source: dict[str, list[str]] = {}
    for document, contract in compiled.items():
        by_source.setdefault(contract.source, []).append(document)
    return {compiled[documents[0]]: documents for documents in by_source.values()}


def contracts(spec: Spec, without: str | None = None) -> dict[str, Contract]:
    """Return the contract of every document; `without` leaves one rule out, and with it all implied rules.

    An implied rule repeats others, so that it could hide that the rule is gone.
    """
    by_key: dict[tuple[object, ...], Contract] = {}
    result = {}
    rules = [rule for rule in spec.rules.values() if without is None or not (rule.implied or rule.id == without)]
    compile_rules(rules)  # first of all, so that the problems of every document are reported at once
    for document in spec.documents.values():
        operation = spec.operations[document.operation]
        binding = [rule for rule in rules if rule.has_contract and document.id in rule.documents]
        key = (tuple(rule.id for rule in binding), operation.types, operation.shape_types)
        if key not in by_key:
            by_key[key] = Contract(binding, operation.types, operation.shape_types)
        result[document.id] = by_key[key]
    return result


# ── the function a contract becomes ───────────────────────────────────────────────────────────────


def _write_source(rules: CompiledRules) -> str:
    lines = ["def meaning(src, shape, special_zero, form=None):", "    rank = len(src)", "    _volume = product(src)"]
    lines += _indent(_collect("broken", rules.requires, "if not ({text}):"))
    lines += ["    if broken:", "        return Meaning('illegal', None, broken)"]
    lines += _indent(_write_entries(rules.gives))
    lines += _indent(_infer_free_lengths(rules.volumes))
    lines += _indent(_agree(rules))
    lines += _indent(_write_bounds(rules))
    lines += _indent(_collect("silent", rules.silences, "if {text}:"))
    most = f", min(({', '.join(rule.text for rule in rules.bounds)},))" if rules.bounds else ""
    lines += ["    if silent or many:", f"        return Meaning('unspecified', tuple(dst), silent{most})"]
    lines += _indent(_collect("beyond", rules.capacities, "if {text}:"))
    lines += ["    return Meaning('legal', tuple(dst), beyond)"]
    return "\n".join(lines) + "\n"


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _collect(name: str, rules: Sequence[CompiledRule], test: str) -> list[str]:
    """Return lines that collect in `name` the rules that pass a test; those about the form only if there is one."""
    plain, of_form = list[str](), list[str]()
    for rule in rules:
        (of_form if rule.of_form else plain).extend([test.format(text=rule.text), f"    {name} += ({rule.rule!r},)"])
    if of_form:
        of_form = ["if form is not None:", *_indent([f"({', '.join(CallForm._fields)}) = form", *of_form])]
    return [f"{name} = ()", *plain, *of_form]


def _write_entries(rules: Sequence[CompiledRule]) -> list[str]:
    """Return lines that fix or free each entry of dst; a call is illegal if two rules fix one entry differently.

    `unknown` is true if no rule gives an entry a meaning. Such an entry is never inferred.
    """
    lines = ["dst = []", "known = 1", "free = 0", "unknown = False"]
    lines += ["for i, d in enumerate(shape):", "    length = None"]
    for number, rule in enumerate(rule for rule in rules if rule.text != "None"):
        lines.append(f"    if {rule.where}:")
        if number == 0:
            lines.append(f"        length = {rule.text}")
        else:
            lines += [f"        other = {rule.text}", "        if length is None:", "            length = other"]
            lines += ["        elif other is not None and other != length:"]
            lines += [f"            return Meaning('illegal', None, ({rule.rule!r},))"]
        lines += ["        if length is not None and length < 0:"]
        lines += [f"            return Meaning('illegal', None, ({rule.rule!r},))"]
    meant = " or ".join(f"({rule.where})" for rule in rules) or "False"
    lines += ["    dst.append(length)", "    if length is None:", "        free += 1"]
    lines += [f"        unknown = unknown or not ({meant})"]
    return [*lines, "    else:", "        known *= length"]


_INFER_FREE_LENGTHS = """\
many = False
if known == 0 or free == 0:
    if known != target:
        return Meaning('illegal', None, {broken!r})
    many = free > 0
else:
    quotient, rest = divmod(target, known)
    if rest or quotient < 0:
        return Meaning('illegal', None, {broken!r})
    if not unknown and (free == 1 or quotient == 1):
        dst = [quotient if length is None else length for length in dst]
    else:
        many = True"""


def _infer_free_lengths(rules: Sequence[CompiledRule]) -> list[str]:
    """Return lines that solve product(dst) == target for the free entries: one division, no search."""
    if not rules:
        return ["many = free > 0 or unknown"]
    lines = [f"target = {rules[0].text}"]
    for rule in rules[1:]:
        lines += [f"if ({rule.text}) != target:", f"    return Meaning('illegal', None, ({rule.rule!r},))"]
    return lines + _INFER_FREE_LENGTHS.format(broken=tuple(rule.rule for rule in rules)).splitlines()


def _agree(rules: CompiledRules) -> list[str]:
    """Return lines that make a call illegal if no dst meets its declaration, even where several dst are possible."""
    if not rules.agreements:
        return []
    broken = tuple(rule.rule for rule in rules.agreements)
    return [
        "if form is not None and form.declared is not None:",
        f"    dst = settle(dst, form.declared, {'target' if rules.volumes else 'None'})",
        "    if dst is None:",
        f"        return Meaning('illegal', None, {broken!r})",
    ]


def _write_bounds(rules: CompiledRules) -> list[str]:
    """Return lines that make a call illegal if each dst has a length that is too large. No length is inferred here."""
    if not rules.bounds:
        return []
    target = "target" if rules.volumes else "None"
    of_bounds = [rule._replace(text=f"is_within(dst, {rule.text}, {target})") for rule in rules.bounds]
    lines = _collect("broken", of_bounds, "if not {text}:")
    return [*lines, "if broken:", "    return Meaning('illegal', None, broken)"]
