"""Looks for a call that a backend gets wrong, among calls that nobody wrote down, and shrinks it to the smallest.

Hypothesis draws and shrinks; the engine calls and the contracts judge, as they do for the suite's own cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import FlakyFailure, HypothesisException

from ..adapter import resolve_claims
from ..meaning.contract import contracts
from ..model import Adapter, Case, Claims, Outcome, Result, Spec
from ..plan.rows import Row, rows_of
from ..run.row import call_steps, run
from .found import case_text, flawed, rule_against
from .invent import cases
from .lessen import least


class Quarry(NamedTuple):
    """A call that went wrong, or on which two backends part."""

    row: Row
    result: Result
    rule: str
    """The rule that it goes against; of a difference, the silence in which it lies."""
    difference: str | None = None
    """How two backends part where no document says who is right."""

    @property
    def text(self) -> str:
        """The case as YAML."""
        what = self.result.diagnosis if self.difference is None else "backends differ"
        return case_text(self.row.case, self.rule, self.row, f"{what} {self.rule}")


class Hunted(NamedTuple):
    """What came of a hunt."""

    examples: int
    """How many were tried before something was found, or at all."""
    quarry: Quarry | None
    steady: bool = True
    """Whether the failure came again when the very same call was tried again."""


class Ground(NamedTuple):
    """Where to hunt."""

    spec: Spec
    operations: Sequence[str] = ()
    types: Sequence[str] = ()


class _Caught(Exception):
    """Tells Hypothesis that an example is what it looks for."""


def hunt(adapter: Adapter, ground: Ground, examples: int, number: int = 0, other: Adapter | None = None) -> Hunted:
    """Tries so many examples; the same seed number tries the same ones."""
    chase = _Chase(adapter, ground, other)
    trial = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    types = ground.types or dict.fromkeys(t for operation in ground.spec.operations.values() for t in operation.types)
    steady = True
    try:
        trial(seed(number)(given(cases(list(types)))(chase.tried)))()
    except _Caught:
        pass
    except (FlakyFailure, HypothesisException):
        if chase.quarry is None:
            raise
        steady = False
    if steady and chase.quarry:
        chase.quarry = least(chase.quarry.row.case, chase.same, chase.quarry)
    return Hunted(chase.first or chase.count, chase.quarry, steady)


class _Chase:
    """One hunt: the examples tried, and the last that was caught, which after shrinking is the smallest."""

    def __init__(self, adapter: Adapter, ground: Ground, other: Adapter | None) -> None:
        self.adapter, self.ground, self.other = adapter, ground, other
        self.claims = resolve_claims(adapter, ground.spec.operations)
        others = () if other is None else (resolve_claims(other, ground.spec.operations),)
        self.both_claims = (self.claims, *others)
        self.compiled = contracts(ground.spec)
        self.count = 0
        self.first = 0
        self.quarry: Quarry | None = None

    def tried(self, case: Case) -> None:
        self.count += 1
        quarry = self.caught(case)
        if quarry:
            self.quarry = quarry
            self.first = self.first or self.count
            raise _Caught

    def caught(self, case: Case) -> Quarry | None:
        """What is wrong in the first row of a case in which anything is."""
        for row in self.rows(case):
            quarry = self.wrong(row) or (self.other and self.parting(row, self.other))
            if quarry:
                return quarry
        return None

    def same(self, case: Case) -> Quarry | None:
        """The same, where it is wrong in the same way as what was caught."""
        quarry, kept = self.caught(case), self.quarry
        if (
            quarry is None
            or kept is None
            or quarry.rule != kept.rule
            or bool(quarry.difference) != bool(kept.difference)
        ):
            return None
        return quarry

    def rows(self, case: Case) -> Iterator[Row]:
        for row in rows_of([case], self.ground.spec, self.compiled):
            if not self.ground.operations or row.operation in self.ground.operations:
                yield row

    def wrong(self, row: Row) -> Quarry | None:
        """The row, if the backend fails or errs in it."""
        (result,) = run([row], self.adapter, self.claims)
        return Quarry(row, result, rule_against(row, result)) if flawed(result) else None

    def parting(self, row: Row, other: Adapter) -> Quarry | None:
        """The row, if the documents are silent on a step of it and the two backends are not at one."""
        silent = [
            (at, task.meanings[0].meaning.rules[:1] or ("same-volume",))
            for at, task in enumerate(row.steps)
            if all(judged.meaning.kind == "unspecified" for judged in task.meanings)
        ]
        if not silent or not all(_claimed(row, claims) for claims in self.both_claims):
            return None
        ours, theirs = call_steps(row, self.adapter), call_steps(row, other)
        for at, (rule,) in silent:
            if _seen(ours[at]) != _seen(theirs[at]):
                (result,) = run([row], self.adapter, self.claims)
                names = self.adapter.identity.name, other.identity.name
                said = f"{names[0]} {_told(ours[at])}, {names[1]} {_told(theirs[at])}"
                return Quarry(row, result, rule, said)
        return None


def _claimed(row: Row, claims: Claims) -> bool:
    return row.operation in claims.operations and not any(claims.leaves(facet) for facet in row.facets)


def _seen(outcome: Outcome) -> tuple[object, ...]:
    """What two backends are compared by: that they refuse, however it is worded, or the answer to the last byte."""
    if outcome.kind != "tensor":
        return (outcome.kind,)
    return outcome.type, outcome.dims, bytes(outcome.data or b"")


def _told(outcome: Outcome) -> str:
    if outcome.kind == "tensor":
        return f"answers {outcome.type}{list(outcome.dims or ())}"
    return f"{'refuses' if outcome.kind == 'rejected' else outcome.kind}: {outcome.message}"
