"""Lengths of the engine in meaning/symbols.py that write down, as terms of SMT-LIB 2, what they are asked.

Each operation of Python on a length becomes one of SMT-LIB, whatever the engine computes for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..meaning.symbols import Facts, WholeNumber


class Trace:
    """What one run asked about lengths."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.tried: dict[str, None] = {}
        """Comparisons as this run answers them, where the engine tries the other answer in another run."""
        self.claims: dict[str, None] = {}
        """Comparisons with the only answer that the engine believes to be possible."""
        self.lemmas: dict[str, None] = {}
        """Where `common-factor` may help a solver: it holds for all numbers."""

    def count_facts(self) -> int:
        return len(self._facts.taken)

    def note(self, comparison: str, answer: bool, facts_before: int) -> bool:
        """Note and return the engine's answer to a comparison, with the number of facts before it was asked."""
        notes = self.tried if self.count_facts() > facts_before else self.claims
        notes[comparison if answer else f"(not {comparison})"] = None
        return answer


class TracedLength(WholeNumber):
    """A length of the engine, or the number that the engine made of it, and the term for what Python computed."""

    __slots__ = ("factors", "trace", "value")

    def __init__(self, value: Any, factors: Iterable[str], trace: Trace) -> None:
        self.value, self.factors, self.trace = value, tuple(factors), trace

    # ── arithmetic ────────────────────────────────────────────────────────────────────────────────

    def __mul__(self, other: Any) -> TracedLength:
        return TracedLength(self.value * value_of(other), self.factors + factors_of(other), self.trace)

    __rmul__ = __mul__

    def _apply(self, sign: str, function: Callable[..., Any], *operands: Any) -> TracedLength:
        term = f"({' '.join([sign, *map(term_of, operands)])})"
        return TracedLength(function(*map(value_of, operands)), [term], self.trace)

    def __add__(self, other: Any) -> TracedLength:
        return self._apply("+", operator.add, self, other)

    def __radd__(self, other: Any) -> TracedLength:
        return self._apply("+", operator.add, other, self)

    def __sub__(self, other: Any) -> TracedLength:
        return self._apply("-", operator.sub, self, other)

    def __rsub__(self, other: Any) -> TracedLength:
        return self._apply("-", operator.sub, other, self)

    def __neg__(self) -> TracedLength:
        return self._apply("-", operator.neg, self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        above, below = term_of(self), term_of(other)
        self.trace.claims[f"(> {below} 0)"] = None  # only there, div and mod of SMT-LIB are // and % of Python
        if shared := _cancel(self.factors, factors_of(other)):
            self.trace.lemmas[f"(common-factor {' '.join(map(product_of, shared))})"] = None
        facts_before = self.trace.count_facts()
        quotient, rest = divmod(self.value, value_of(other))
        self.trace.note(f"(= (mod {above} {below}) 0)", bool(rest == 0), facts_before)
        traced = None if quotient is None else TracedLength(quotient, [f"(div {above} {below})"], self.trace)
        return traced, TracedLength(rest, [f"(mod {above} {below})"], self.trace)

    def __rdivmod__(self, other: int) -> tuple[Any, Any]:
        return divmod(TracedLength(other, factors_of(other), self.trace), self)

    # ── comparisons ───────────────────────────────────────────────────────────────────────────────

    def _compare(self, sign: str, compare: Callable[[Any, Any], Any], other: Any) -> bool:
        facts_before = self.trace.count_facts()
        answer = bool(compare(self.value, value_of(other)))
        return self.trace.note(f"({sign} {term_of(self)} {term_of(other)})", answer, facts_before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | TracedLength) and self._compare("=", operator.eq, other)

    __hash__ = WholeNumber.__hash__

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", operator.lt, other)


def value_of(length: Any) -> Any:
    return length.value if isinstance(length, TracedLength) else length


def factors_of(length: Any) -> tuple[str, ...]:
    if isinstance(length, TracedLength):
        return length.factors
    return (str(length) if length >= 0 else f"(- {-length})",)


def term_of(length: Any) -> str:
    return product_of(factors_of(length))


def product_of(factors: Sequence[str]) -> str:
    factors = [factor for factor in factors if factor != "1"]
    return f"(* {' '.join(factors)})" if len(factors) > 1 else factors[0] if factors else "1"


def _cancel(above: Iterable[str], below: Iterable[str]) -> tuple[list[str], list[str], list[str]] | None:
    """Return the factors that two products share and what is left of each; None if they share none."""
    common, left, right = list[str](), list[str](), list(below)
    for factor in above:
        if factor in right:
            right.remove(factor)
            common.append(factor)
        else:
            left.append(factor)
    return (common, left, right) if common else None
