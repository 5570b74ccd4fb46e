"""The meaning of a call with unknown lengths, decided only where no such length can change it.

An unknown length is at least 1. A text such as `batch` is the name of a length; equal names mean equal lengths.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..model import Form, Meaning, Rule
from .compiled_rules import INFERRED, parse_where
from .contract import Contract
from .expression import CALL_NAMES, FORM_NAMES, parse
from .ranges import POSITIVE, Elements, Range, Value, evaluate

Known = int | str
"""A known length, or the name of one."""
Length = Known | None
"""A length; None if it is unknown and has no name."""
Lengths = tuple[Length, ...]
UNKNOWN_TYPE = ""
"""The type of src or dst in the form of a call, if it is unknown."""


class PartialCall(NamedTuple):
    """A call as far as it is known. A value of None is unknown; for src and shape, even the number of entries is."""

    src: Lengths | None
    shape: Lengths | None
    special_zero: bool | None
    form: Form

    @property
    def missing(self) -> tuple[str, ...]:
        """Names for everything that is not known: `src`, `src[0]`, `batch`."""
        found: list[str] = []
        for name, row in (("src", self.src), ("shape", self.shape)):
            if row is None:
                found.append(name)
            else:
                found += [n or f"{name}[{k}]" for k, n in enumerate(row) if not isinstance(n, int)]
        found += ["special_zero"] if self.special_zero is None else []
        found += ["type of src"] if self.form.src_type == UNKNOWN_TYPE else []
        return tuple(dict.fromkeys(found))


class PartialMeaning(NamedTuple):
    """A meaning, or None if it depends on what is not known; `dst` as far as it is known."""

    meaning: Meaning | None
    dst: Lengths | None = None


class PartialContract:
    """The rules of one document, for calls with unknown parts."""

    def __init__(
        self, rules: Iterable[Rule], contract: Contract, types: tuple[str, ...], shape_types: tuple[str, ...]
    ) -> None:
        rules = list(rules)
        names = CALL_NAMES | FORM_NAMES
        self._contract = contract
        self._names: Mapping[str, Value] = {"types": Elements(types), "shape_types": Elements(shape_types)}
        self._requires = [(r.id, parse(r.requires.text, names)) for r in rules if r.requires]
        self._silences = [(r.id, parse(r.when.text, names)) for r in rules if r.when and r.level != "capacity"]
        self._gives = [_Gives(parse_where(r.where.text), r.gives.text) for r in rules if r.where and r.gives]
        self._volumes = [r.id for r in rules if r.ensures and r.ensures.text == "product(dst) == product(src)"]
        self._agreements = [r.id for r in rules if r.ensures and r.ensures.text == "agrees(dst, declared)"]
        self._is_complete = len(self._volumes) + len(self._agreements) == sum(r.ensures is not None for r in rules)

    def decide(self, call: PartialCall) -> PartialMeaning:
        """Return what the call means whatever the unknown lengths are; None if that depends on them."""
        if not call.missing and call.src is not None and call.shape is not None and call.special_zero is not None:
            src, shape = (tuple(int(n or 0) for n in row) for row in (call.src, call.shape))
            meaning = self._contract.meaning(src, shape, call.special_zero, call.form)
            return PartialMeaning(meaning, meaning.dst)
        values = self._values(call)
        truths = {rule: evaluate(tree, values) for rule, tree in self._requires}
        broken = tuple(rule for rule, truth in truths.items() if truth is False)
        if broken:
            return PartialMeaning(Meaning("illegal", None, broken))
        dst, broken = self._answer(call, values)
        if broken:
            return PartialMeaning(Meaning("illegal", None, broken))
        silent = {rule: evaluate(tree, values) for rule, tree in self._silences}
        if dst is None or None in (*truths.values(), *silent.values()):
            return PartialMeaning(None, dst)
        if silenced := tuple(rule for rule, truth in silent.items() if truth):
            return PartialMeaning(Meaning("unspecified", _without_names(dst), silenced), dst)
        return PartialMeaning(Meaning("legal", _without_names(dst), ()), dst)

    def _values(self, call: PartialCall) -> dict[str, Value]:
        values: dict[str, Value] = {**self._names, "special_zero": call.special_zero}
        values["src"] = Elements(None if call.src is None else tuple(_range(n, POSITIVE) for n in call.src))
        values["shape"] = Elements(None if call.shape is None else tuple(_range(n, Range()) for n in call.shape))
        for name, value in call.form._asdict().items():
            known = (
                Elements(value) if isinstance(value, tuple) else Range(value, value) if type(value) is int else value
            )
            values[name] = None if value == UNKNOWN_TYPE else known
        return values

    def _answer(self, call: PartialCall, values: Mapping[str, Value]) -> tuple[Lengths | None, tuple[str, ...]]:
        """Return dst if it is sure that there is one, and the rules that no dst can keep."""
        if call.src is None or call.shape is None or not self._is_complete:
            return None, ()
        src = tuple(f"src[{k}]" if n is None else n for k, n in enumerate(call.src))
        entries = [self._entry(k, n, src, values) for k, n in enumerate(call.shape)]
        declared = call.form.declared
        agreements = tuple(self._agreements)
        if agreements and declared is not None and len(declared) != len(entries):
            return None, agreements
        if None in entries:
            return None, ()
        known = [entry for entry in entries if entry is not None]
        if not self._volumes and INFERRED in known:
            return None, ()
        holds, inferred = _solve(src, [n for n in known if n != INFERRED], known.count(INFERRED))
        if holds is False and self._volumes:
            return None, tuple(self._volumes)
        holds = holds if self._volumes else True
        if holds is None:
            return None, ()
        dst = tuple(inferred if n == INFERRED else n for n in known)
        if agreements and declared is not None:
            pairs = [pair for pair in zip(dst, declared, strict=True) if pair[1] is not None and pair[0] != pair[1]]
            if any(isinstance(length, int) for length, _ in pairs):
                return None, agreements
            if pairs:
                return None, ()
        return dst, ()

    def _entry(self, index: int, entry: Length, src: Sequence[Known], values: Mapping[str, Value]) -> Length:
        """Return the length that an entry means, INFERRED, or None if that is not known."""
        scope = {**values, "i": Range(index, index), "d": _range(entry, Range())}
        lengths: list[Length] = []
        for rule in self._gives:
            where = evaluate(rule.where, scope)
            if where is None:
                return None
            if where:
                lengths.append(rule.length(index, entry, src, scope))
        return lengths[0] if len(lengths) == 1 else None


class _Gives(NamedTuple):
    """The entries that a rule is about, and what one means."""

    where: ast.expr
    text: str

    def length(self, index: int, entry: Length, src: Sequence[Known], scope: Mapping[str, Value]) -> Length:
        if self.text == INFERRED:
            return INFERRED
        if self.text == "d":
            return entry
        if self.text == "src[i]":
            return src[index] if index < len(src) else None
        number = evaluate(ast.parse(self.text, mode="eval").body, scope)
        is_sure = isinstance(number, Range) and number.low == number.high
        return int(number.low) if isinstance(number, Range) and is_sure else None


def _range(length: Length, unknown: Range) -> Range:
    return Range(length, length) if isinstance(length, int) else POSITIVE if isinstance(length, str) else unknown


def _without_names(dst: Lengths) -> tuple[int | None, ...]:
    return tuple(n if isinstance(n, int) else None for n in dst)


# ── the volume ────────────────────────────────────────────────────────────────────────────────────


def _solve(src: Sequence[Known], dst: Sequence[Known], free: int) -> tuple[bool | None, Length]:
    """Say whether dst can hold as many elements as src, and the length of its free entry.

    True and False hold for all values of the names from 1; None: it depends on them.
    """
    (factor, names), (dst_factor, dst_names) = factors_of(src), factors_of(dst)
    if free > 1 or factor <= 0 or dst_factor <= 0:
        return None, None
    rest, dst_rest = names - dst_names, dst_names - names
    if not free:
        if not rest and not dst_rest:
            return factor == dst_factor, None
        impossible = (not dst_rest and dst_factor % factor) or (not rest and factor % dst_factor)
        return (False if impossible else None), None
    if not dst_rest and factor % dst_factor == 0:
        return True, _product(factor // dst_factor, rest)
    return (False if not rest and factor % dst_factor else None), None


def factors_of(lengths: Iterable[Known]) -> tuple[int, Counter[str]]:
    """Return the product of lengths as a number and the names that it is multiplied by."""
    factor, names = 1, Counter[str]()
    for length in lengths:
        for part in length.split("*") if isinstance(length, str) and _is_product(length) else [length]:
            if isinstance(part, int) or part.isdecimal():
                factor *= int(part)
            else:
                names[part] += 1
    return factor, names


def _is_product(text: str) -> bool:
    return all(part.isidentifier() or part.isdecimal() for part in text.split("*"))


def _product(factor: int, names: Counter[str]) -> Known:
    parts = sorted(names.elements())
    if not parts:
        return factor
    return "*".join([str(factor), *parts] if factor != 1 else parts)


def only_length(src: Sequence[Length], shape: Sequence[Length]) -> int | None:
    """Return the one value that an unknown length of src can have if shape has only lengths; None if there are more."""
    unknown = [k for k, n in enumerate(src) if not isinstance(n, int)]
    numbers = [n for n in shape if isinstance(n, int) and n > 0]
    known = math.prod(n for n in src if isinstance(n, int))
    if len(unknown) != 1 or len(numbers) != len(shape) or not known or math.prod(numbers) % known:
        return None
    return math.prod(numbers) // known
