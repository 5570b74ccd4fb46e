"""The meaning of a call with unknown parts: the function of its contract, run for each way that it can go.

An unknown length is at least 1. A text such as `batch` is the name of a length; equal names mean equal lengths.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..model import CallForm, Kind
from ..system.text import format_dims
from .contract import Contract
from .symbols import Fact, Facts, Symbol, Undecidable, UnknownTruth, runs

Length = int | str | None
"""A length, or the name of one; None if it is unknown and has no name."""
Lengths = tuple[Length, ...]
UNKNOWN_TYPE = ""
"""The type of src or dst in the form of a call, if it is unknown."""


class PartialCall(NamedTuple):
    """A call as far as it is known. A value of None is unknown; for src and shape, even the number of entries is."""

    src: Lengths | None
    shape: Lengths | None
    special_zero: bool | None
    form: CallForm | None
    declared: Lengths | None = None
    """Dims declared of dst where a length has a name; they replace those of the form."""


class Branch(NamedTuple):
    """The meaning of a call where some facts about its unknown parts hold."""

    facts: tuple[Fact, ...]
    kind: Kind
    rules: tuple[str, ...]
    """Those that an illegal call breaks, and those by which it is unspecified."""
    dst: Lengths | None
    """A length that depends on names is a product of them, such as `3*n/2`; None if it is not known."""

    @property
    def when(self) -> str:
        """The facts in words; empty if the call means this in any case."""
        return describe_facts(self.facts)


class _UnknownRow:
    """A row of lengths; not even their number is known."""

    def __iter__(self) -> Iterator[int]:
        raise Undecidable

    def __len__(self) -> int:
        raise Undecidable


def decide(contract: Contract, call: PartialCall) -> tuple[Branch, ...]:
    """Return what a call means, by facts about its unknown parts; nothing if that cannot be decided."""
    if call.src is None or call.shape is None:  # the contract needs both, some of its requirements do not
        broken = tuple(
            rule
            for rule, holds in contract.requirements
            if all(run.result is False for run in runs(lambda facts: holds(*_make_values(call, facts))))  # noqa: B023
        )
        return (Branch((), "illegal", broken, None),) if broken else ()
    branches: list[Branch] = []
    for facts, meaning in runs(lambda facts: find_meaning_with(facts, contract, call)):
        if meaning is None:
            return ()
        rules = () if meaning.kind == "legal" else meaning.rules  # a legal call may be past a capacity
        branch: Branch | None = Branch(facts, meaning.kind, rules, meaning.dst)
        while branch is not None:
            branches.append(branch)
            branch = _join(branches)
    return tuple(branches)


def _join(branches: list[Branch]) -> Branch | None:
    """Take the last two branches out, and return them as one, if they differ only in whether their last fact holds.

    Two unspecified ones may also differ in dst; the common lengths are left. The rules that both break are left, so
    that each call of a branch breaks each of its rules; two without a common rule stay apart.
    """
    if len(branches) < 2:
        return None
    one, other = branches[-2:]
    same = (*one.facts[:-1], one.facts[-1][:3]) == (*other.facts[:-1], other.facts[-1][:3])
    is_unspecified = one.kind == "unspecified" and one.rules == other.rules
    common = tuple(rule for rule in one.rules if rule in other.rules)
    is_told_apart = (one.dst != other.dst and not is_unspecified) or (one.rules and not common)
    if not same or one.kind != other.kind or is_told_apart:
        return None
    del branches[-2:]
    return one._replace(facts=one.facts[:-1], rules=common, dst=answer_of((one, other)))


def describe(branches: Sequence[Branch]) -> str:
    """Say for which lengths a call means what: `legal if and only if n is even; otherwise illegal: same-volume`."""
    answered = [branch for branch in branches if branch.kind != "illegal"]
    broken = ", ".join(rules_of([branch for branch in branches if branch.kind == "illegal"]))
    if not answered:
        return f"illegal for every length: {broken}" if branches else "not decided"
    how = "if and only if" if len(answered) == 1 else "if"
    parts = [_describe_branch(branch, how) for branch in answered]
    return "; ".join([*parts, f"otherwise illegal: {broken}"] if broken else parts)


def _describe_branch(branch: Branch, how: str) -> str:
    parts = [branch.kind, f"{how} {branch.when}" if branch.when else "for every length"]
    if branch.dst is not None and any(isinstance(n, str) for n in branch.dst):
        parts.append(f"({'dst' if branch.kind == 'legal' else 'if answered,'} {format_dims(branch.dst)})")
    return " ".join(parts) + (f": {', '.join(branch.rules)}" if branch.rules else "")


def kind_of(branches: Sequence[Branch]) -> Kind | Literal["conditional", "not decided"]:
    """Return the kind of a call if it has one for every length."""
    kinds = {branch.kind for branch in branches}
    return "not decided" if not kinds else kinds.pop() if len(kinds) == 1 else "conditional"


def rules_of(branches: Sequence[Branch]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(rule for branch in branches for rule in branch.rules))


def answer_of(branches: Sequence[Branch]) -> Lengths | None:
    """Return dst as far as all branches that have one agree."""
    answers = [branch.dst for branch in branches if branch.dst is not None]
    dst = (found.pop() if len(found := {*lengths}) == 1 else None for lengths in zip(*answers, strict=True))
    return tuple(dst) if answers else None


def find_folded_names(src: Lengths, shape: Lengths, dst: Lengths) -> tuple[str, ...]:
    """Return the names of src that a -1 takes in together with other lengths, as when a batch is folded into it."""
    taken = [str(d) for entry, d in zip(shape, dst, strict=True) if entry == -1 and d not in src]
    parts = {part for d in taken for part in re.split(r"[*/]", d)}
    return tuple(dict.fromkeys(n for n in src if isinstance(n, str) and not parts.isdisjoint((n, f"({n})"))))


def describe_folded(names: Sequence[str]) -> str:
    """Say at the end of a line which names a -1 takes in; an empty text for none."""
    verb = "are" if len(names) > 1 else "is"
    return f"; {' and '.join(names)} {verb} folded into -1 with others" if names else ""


def find_meaning_with(facts: Facts, contract: Contract, call: PartialCall) -> Any:
    """Return the meaning of a call in one run, with the texts of lengths that depend on names."""
    meaning = contract.meaning(*_make_values(call, facts))
    return meaning._replace(dst=meaning.dst and tuple(map(text_of, meaning.dst)))


def text_of(length: Any) -> Any:
    """Return the text of a length that depends on names; those with one value by now are gone from it."""
    settled = length.times(1) if isinstance(length, Symbol) else length
    return str(settled) if isinstance(settled, Symbol) else settled


def _make_values(call: PartialCall, facts: Facts) -> tuple[Any, ...]:
    """Return src, shape, special_zero and the form as values that a contract takes."""
    src, shape = (
        _UnknownRow() if row is None else tuple(_make_value(n, f"{name}[{k}]", low, facts) for k, n in enumerate(row))
        for name, row, low in (("src", call.src, 1), ("shape", call.shape, -math.inf))
    )
    zero = UnknownTruth(facts, "special_zero") if call.special_zero is None else call.special_zero
    if call.form is None:
        return src, shape, zero, None
    text: Any = UnknownTruth(facts, "type of src")
    parts: dict[str, Any] = {
        name: text for name in ("src_type", "dst_type") if getattr(call.form, name) == UNKNOWN_TYPE
    }
    if call.declared is not None:
        parts["declared"] = tuple(facts.length(n) if isinstance(n, str) else n for n in call.declared)
    return src, shape, zero, call.form._replace(**parts)


def _make_value(length: Length, own_name: str, low: float, facts: Facts) -> Any:
    if isinstance(length, int):
        return length
    return facts.length(own_name, low) if length is None else facts.length(length)


def describe_facts(facts: Sequence[Fact]) -> str:
    """Write facts in words; if a length is one number, leave out how it compares with others."""
    # what is said of a product, or of another length, need not follow
    of_numbers = [fact for fact in facts if re.fullmatch(r"-?[0-9/]+", fact.right) and "*" not in fact.left]
    fixed = {fact.left for fact in of_numbers if fact.relation == "=" and fact.holds}
    implied = {fact for fact in of_numbers if fact.left in fixed and not (fact.relation == "=" and fact.holds)}
    told = (fact for fact in facts if fact not in implied)
    return " and ".join(map(_describe_fact, told))


def _describe_fact(fact: Fact) -> str:
    left, relation, right, holds = fact
    if relation == "is":
        return f"{left} is {'' if holds else 'not '}{right}"
    if relation == "is a multiple of":
        word = ("even" if holds else "odd") if right == "2" else f"{'' if holds else 'not '}a multiple of {right}"
        return f"{left} is {word}"
    return f"{left} {({'=': '=', '<': '<'} if holds else {'=': '≠', '<': '≥'})[relation]} {right}"
