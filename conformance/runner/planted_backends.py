"""Run the planted backends of a run: if one is not caught, no verdict holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from ..adapter import resolve_claims
from ..draw.nonce import with_every_row
from ..evidence.results import Target, header_of
from ..evidence.writer import Writer
from ..isolate.backend import Isolation, run_in_isolation, use_backend
from ..isolate.process.launch import ProcessLimits
from ..meaning.contract import contracts
from ..model import FAIL
from ..plan.rows import Plan, Row, rows_of
from ..system.exit_codes import FAILS
from ..system.groups import group_pairs
from ..verdict.conclude import conclude
from ..verdict.planted import PlantedBackend, list_planted

_ROWS, _CRASH_ROWS = 24, 2
"""Rows of each rule that a planted backend is called with; fewer if it crashes, as each crash costs two processes."""
_FEW_ROWS, _FEW_CRASH_ROWS, _FEW_CASES = 6, 1, 6
"""The same for a run without evidence, and the number of cases of each rule from which they are taken."""


def run_all(plan: Plan, isolation: Isolation, limits: ProcessLimits, few: bool = False) -> dict[str, int]:
    """Run each planted backend, and count its failures by its name.

    `few`: call a few rows only, most of them in this process, because the run cannot show conformity; all as the run
    does it if one passes them all.
    """
    chosen = list_planted(isolation)
    rows = _find_rows_about(plan, {rule for planted in chosen for rule in planted.rules}, few)
    by_rule = group_pairs(
        (row.case.rule, row) for row in rows
        if row.type == "f32" and "large" not in row.facets and not row.case.generated
    )  # fmt: skip
    most, most_crashes = (_FEW_ROWS, _FEW_CRASH_ROWS) if few else (_ROWS, _CRASH_ROWS)
    counts: dict[str, int] = {}
    for planted in chosen:
        where: Isolation = "none" if few and not planted.ends_process else isolation  # to start a process is slow
        at_most = most_crashes if planted.ends_process else most
        counts[planted.name] = _run_planted_backend(plan, planted, by_rule, where, limits, at_most)
    return run_all(plan, isolation, limits) if few and not all(counts.values()) else counts


def _find_rows_about(plan: Plan, rules: Iterable[str], few: bool) -> Iterable[Row]:
    """Return rows of the suite, or of its plan under a nonce, among them all or the first that are about some rules."""
    if plan.nonce:
        return with_every_row(plan).rows
    suite, most = plan.suite, _FEW_CASES if few else None
    cases = (case for rule in sorted(rules) for case in islice(suite.cases.about([rule]), most))
    return rows_of(cases, suite.spec, contracts(suite.spec))


def _run_planted_backend(
    plan: Plan, planted: PlantedBackend, by_rule: Mapping[str, Sequence[Row]], isolation: Isolation,
    limits: ProcessLimits, most: int,
) -> int:  # fmt: skip
    """Return the failures in the evidence that is read back; 0 if the conclusion is not that it failed."""
    groups = [by_rule.get(rule, ()) for rule in planted.rules]
    rows = tuple(row for group in groups for row in group[:: max(1, len(group) // most)][:most])
    # Python and NumPy, which it needs, may take more than the memory that is right for a program
    with use_backend(planted.backend, isolation, limits._replace(memory=0)) as adapter:
        claims, target = resolve_claims(adapter, plan.suite.spec.operations), Target()
        header = header_of(plan.suite, adapter.identity, claims, target, planted.backend, with_digest=False)
        writer = Writer(None, header)
        for result in run_in_isolation(rows, adapter, claims, isolation):
            writer.row(result)
        evidence = writer.close(0.0)
    part = Plan(plan.suite, rows)
    conclusion = conclude(part, {result.row: result for result in evidence.results}, claims, target)
    return conclusion.counts.get(FAIL, 0) if conclusion.exit_code == FAILS else 0
