"""Search new cases for a call that a backend gets wrong, and shrink it.

Cases are drawn from a seed, and calls are made and judged as they are for the suite's own cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..adapter import resolve_claims
from ..draw.calls import Draw
from ..draw.cases import draw_case
from ..draw.factors import Factors
from ..meaning.contract import contracts
from ..model import Adapter, Case, Result, Spec
from ..plan.rows import Row, rows_of
from ..run.row import run
from .filed_rule import is_failure, rule_against
from .shrink import shrink
from .write_case import case_text


class Counterexample(NamedTuple):
    """A call that went wrong."""

    row: Row
    result: Result
    rule: str
    """The rule that it breaks."""

    @property
    def text(self) -> str:
        return case_text(self.row.case, self.rule, self.row, f"{self.result.diagnosis} {self.rule}")


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


def hunt(adapter: Adapter, scope: Scope, examples: int, number: int = 0) -> HuntResult:
    """Try `examples` cases, until one fails; the same seed `number` tries the same ones."""
    search, factors = _Search(adapter, scope), Factors(scope.spec)
    types = scope.types or scope.spec.types
    for example in range(examples):
        case = draw_case(Draw(f"hunt {number} {example}"), list(types), factors)
        counterexample = search.find(case)
        if counterexample:
            steady = search.find(case) is not None
            return HuntResult(example + 1, search.shrink(counterexample) if steady else counterexample, steady)
    return HuntResult(examples, None)


class _Search:
    """Calls the rows of a case, and returns the first that goes wrong."""

    def __init__(self, adapter: Adapter, scope: Scope) -> None:
        self.adapter, self.scope = adapter, scope
        self.claims = resolve_claims(adapter, scope.spec.operations)
        self.compiled = contracts(scope.spec)

    def find(self, case: Case) -> Counterexample | None:
        """Return the first row of a case in which the backend fails or errs."""
        for row in self.rows(case):
            (result,) = run([row], self.adapter, self.claims)
            if is_failure(result):
                return Counterexample(row, result, rule_against(row, result))
        return None

    def shrink(self, found: Counterexample) -> Counterexample:
        """Return the smallest counterexample that goes wrong in the same way."""

        def find_same(case: Case) -> Counterexample | None:
            other = self.find(case)
            return other if other and other.rule == found.rule else None

        return shrink(found.row.case, find_same, found)

    def rows(self, case: Case) -> Iterator[Row]:
        for row in rows_of([case], self.scope.spec, self.compiled):
            if not self.scope.operations or row.operation in self.scope.operations:
                yield row
