"""Search new cases for a call that a backend gets wrong, and shrink it.

Cases are drawn from a seed, and calls are made and judged as they are for the suite's own cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..adapter import resolve_claims
from ..draw.calls import Draw
from ..draw.cases import draw_case
from ..meaning.contract import contracts
from ..model import Adapter, Case, Outcome, Result, Spec
from ..plan.rows import Row, rows_of
from ..run.row import call_steps, run
from .filed_rule import is_failure, rule_against
from .shrink import shrink
from .write_case import case_text


class Counterexample(NamedTuple):
    """A call that went wrong, or on which two backends differ."""

    row: Row
    result: Result
    rule: str
    """The rule that it breaks; for a difference, the rule that leaves the call unspecified."""
    difference: str | None = None
    """The difference between two backends if no document says who is right."""

    @property
    def text(self) -> str:
        """The case as YAML."""
        diagnosis = self.result.diagnosis if self.difference is None else "backends differ"
        return case_text(self.row.case, self.rule, self.row, f"{diagnosis} {self.rule}")


class HuntResult(NamedTuple):
    examples: int
    """The number of examples tried."""
    counterexample: Counterexample | None
    steady: bool = True
    """The same call failed again."""


class Scope(NamedTuple):
    """The operations and types to hunt in; empty for all."""

    spec: Spec
    operations: Sequence[str] = ()
    types: Sequence[str] = ()


def hunt(adapter: Adapter, scope: Scope, examples: int, number: int = 0, other: Adapter | None = None) -> HuntResult:
    """Try `examples` cases, until one fails; the same seed `number` tries the same ones."""
    search = _Search(adapter, scope, other)
    types = scope.types or scope.spec.types
    for example in range(examples):
        case = draw_case(Draw(f"hunt {number} {example}"), list(types))
        counterexample = search.find(case)
        if counterexample:
            steady = search.find(case) is not None
            return HuntResult(example + 1, search.shrink(counterexample) if steady else counterexample, steady)
    return HuntResult(examples, None)


class _Search:
    """Calls the rows of a case, and returns the first that goes wrong."""

    def __init__(self, adapter: Adapter, scope: Scope, other: Adapter | None) -> None:
        self.adapter, self.scope, self.other = adapter, scope, other
        self.claims = resolve_claims(adapter, scope.spec.operations)
        others = () if other is None else (resolve_claims(other, scope.spec.operations),)
        self.both_claims = (self.claims, *others)
        self.compiled = contracts(scope.spec)

    def find(self, case: Case) -> Counterexample | None:
        """Return the first row of a case that goes wrong."""
        for row in self.rows(case):
            counterexample = self.find_failure(row) or (self.other and self.find_difference(row, self.other))
            if counterexample:
                return counterexample
        return None

    def shrink(self, found: Counterexample) -> Counterexample:
        """Return the smallest counterexample that goes wrong in the same way."""

        def find_same(case: Case) -> Counterexample | None:
            other = self.find(case)
            return other if other and _kind_of(other) == _kind_of(found) else None

        return shrink(found.row.case, find_same, found)

    def rows(self, case: Case) -> Iterator[Row]:
        for row in rows_of([case], self.scope.spec, self.compiled):
            if not self.scope.operations or row.operation in self.scope.operations:
                yield row

    def find_failure(self, row: Row) -> Counterexample | None:
        """Return the row if the backend fails or errs in it."""
        (result,) = run([row], self.adapter, self.claims)
        return Counterexample(row, result, rule_against(row, result)) if is_failure(result) else None

    def find_difference(self, row: Row, other: Adapter) -> Counterexample | None:
        """Return the row if no document specifies a step of it and two backends differ there."""
        silent = [
            (at, row_step.meanings[0].meaning.rules[:1] or ("same-volume",))
            for at, row_step in enumerate(row.steps)
            if all(judged.meaning.kind == "unspecified" for judged in row_step.meanings)
        ]
        if not silent or any(
            not each.offers(row.operation) or each.find_unclaimed(row.facets) for each in self.both_claims
        ):
            return None
        ours, theirs = call_steps(row, self.adapter), call_steps(row, other)
        for at, (rule,) in silent:
            if _comparable(ours[at]) != _comparable(theirs[at]):
                (result,) = run([row], self.adapter, self.claims)
                names = self.adapter.identity.name, other.identity.name
                difference = f"{names[0]}: {ours[at].describe()}; {names[1]}: {theirs[at].describe()}"
                return Counterexample(row, result, rule, difference)
        return None


def _kind_of(counterexample: Counterexample) -> tuple[str, bool]:
    return counterexample.rule, counterexample.difference is not None


def _comparable(outcome: Outcome) -> tuple[object, ...]:
    """Return what is compared of two backends: an answer to the last byte, otherwise only the kind."""
    if outcome.kind != "tensor":
        return (outcome.kind,)
    return outcome.type, outcome.dims, bytes(outcome.data or b"")
