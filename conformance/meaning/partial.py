"""The meaning of a call with unknown parts: the function of its contract, run for each way that it can go.

An unknown length is at least 1. A text such as `batch` is the name of a length; equal names mean equal lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..model import Form, Meaning
from .contract import Contract
from .symbols import Facts, Flag, Symbol, Text, Undecidable, runs

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
    form: Form


class PartialMeaning(NamedTuple):
    """A meaning, or None if it depends on what is not known; `dst` as far as it is known if the call is not illegal."""

    meaning: Meaning | None
    dst: Lengths | None = None


class _UnknownRow:
    """A row of lengths of which not even the number is known."""

    def __iter__(self) -> Iterator[int]:
        raise Undecidable

    def __len__(self) -> int:
        raise Undecidable


def decide(contract: Contract, call: PartialCall) -> PartialMeaning:
    """Return what a call means whatever its unknown parts are; no meaning if that depends on them."""
    if call.src is None or call.shape is None:  # the contract needs both, some of its requirements do not
        broken = tuple(
            rule
            for rule, holds in contract.requirements
            if all(run.result is False for run in runs(lambda facts: holds(*_values(call, facts))))  # noqa: B023
        )
        return PartialMeaning(Meaning("illegal", None, broken) if broken else None)
    found = [run.result for run in runs(lambda facts: meaning_with(facts, contract, call))]
    if None in found:
        return PartialMeaning(None)
    answers = [meaning.dst for meaning in found if meaning.dst is not None]
    dst = tuple(lengths[0] if len({*lengths}) == 1 else None for lengths in zip(*answers, strict=True))
    kinds = {meaning.kind for meaning in found}
    if len(kinds) > 1:
        return PartialMeaning(None, dst)
    common = tuple(rule for rule in found[0].rules if all(rule in meaning.rules for meaning in found))
    rules = common or tuple(dict.fromkeys(rule for meaning in found for rule in meaning.rules))
    if not answers:
        return PartialMeaning(Meaning("illegal", None, rules))
    return PartialMeaning(Meaning(kinds.pop(), tuple(n if isinstance(n, int) else None for n in dst), rules), dst)


def meaning_with(facts: Facts, contract: Contract, call: PartialCall) -> Any:
    """Return the meaning of a call in one run, with the texts of lengths that depend on names."""
    meaning = contract.meaning(*_values(call, facts))
    dst: Any = meaning.dst
    return meaning._replace(dst=dst and tuple(str(n) if isinstance(n, Symbol) else n for n in dst))


def _values(call: PartialCall, facts: Facts) -> tuple[Any, ...]:
    """Return src, shape, special_zero and the form as values that a contract takes."""
    src, shape = (
        _UnknownRow() if row is None else tuple(_value(n, f"{name}[{k}]", low, facts) for k, n in enumerate(row))
        for name, row, low in (("src", call.src, 1), ("shape", call.shape, -math.inf))
    )
    zero = Flag(facts, "special_zero") if call.special_zero is None else call.special_zero
    text: Any = Text(facts, "type of src")
    of_types = {name: text for name in ("src_type", "dst_type") if getattr(call.form, name) == UNKNOWN_TYPE}
    return src, shape, zero, call.form._replace(**of_types)


def _value(length: Length, own_name: str, low: float, facts: Facts) -> Any:
    if isinstance(length, int):
        return length
    return facts.length(own_name, low) if length is None else facts.length(length)


def only_length(src: Lengths, shape: Lengths) -> int | None:
    """Return the one value that an unknown length of src can have if shape has only lengths; None if there are more."""
    unknown = [k for k, n in enumerate(src) if not isinstance(n, int)]
    numbers = [n for n in shape if isinstance(n, int) and n > 0]
    known = math.prod(n for n in src if isinstance(n, int))
    if len(unknown) != 1 or len(numbers) != len(shape) or not known or math.prod(numbers) % known:
        return None
    return math.prod(numbers) // known
