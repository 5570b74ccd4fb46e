"""Planted bad backends, driven in every certified run the way that it goes: if one escapes, no verdict of it holds."""

from __future__ import annotations

from collections.abc import Iterable

from ..adapter import resolve_claims
from ..isolate.backend import Isolation, opened, run_isolated
from ..isolate.started import Limits
from ..model import FAIL
from ..plan.rows import Plan, Row
from .conclude import conclude
from .evidence import Target, Writer, header_of
from .planted import IN_PROCESSES, planted_in

_ROWS = 24
"""Rows of each rule that a planted backend is driven over."""
_DEATHS = 2
"""The same where each refusal costs a process, twice."""


def caught(plan: Plan, isolation: Isolation, limits: Limits) -> dict[str, int]:
    """How many failures each planted backend was seen to have."""
    own = _grouped(plan.rows)
    return {
        backend.rpartition(":")[2]: _failures(plan, backend, [own.get(rule, []) for rule in rules], isolation, limits)
        for backend, rules in planted_in(isolation).items()
    }


def _failures(plan: Plan, backend: str, groups: list[list[Row]], isolation: Isolation, limits: Limits) -> int:
    """The failures that reading the evidence back shows; 0 where the conclusion is not that it failed."""
    most = _DEATHS if backend in IN_PROCESSES else _ROWS
    rows = tuple(row for own in groups for row in own[:: max(1, len(own) // most)][:most])
    with opened(backend, isolation, limits) as adapter:
        claims, target = resolve_claims(adapter, plan.suite.spec.operations), Target()
        writer = Writer(None, header_of(plan.suite, adapter.identity, claims, target, backend))
        for result in run_isolated(rows, adapter, claims, isolation):
            writer.row(result)
        evidence = writer.close(0.0)
    part = Plan(plan.suite, rows)
    conclusion = conclude(part, {result.row: result for result in evidence.results}, claims, target)
    return conclusion.counts.get(FAIL, 0) if conclusion.exit_code == 1 else 0


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows that may be driven, by rule."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.type == "f32" and "large" not in row.facets:
            found.setdefault(row.case.rule, []).append(row)
    return found
