"""Drawn rows: a run calls them after the others. Readers draw those again that are in the evidence, as they failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ..draw.challenge import challenge
from ..isolate.backend import Isolation, run_rows
from ..model import BAD, Adapter, Claims, Result
from ..plan.rows import Plan, Row, drawn_number
from ..system.late import go_on
from .results import DrawnCounts, Evidence, Refused

SEED = 0
"""The seed of every run, so that two runs of one backend draw the same calls."""
_MAX_KINDS = 12
"""Kinds of failures after which a run draws no more calls."""
WriteCase = Callable[[Row, Result, Adapter, Claims], Iterable[str]]
"""Writes the case of a drawn row that failed; if it yields several texts, the last is the smallest case."""


class DrawnRun:
    """The drawn rows of one run, and the counts so far."""

    def __init__(self, plan: Plan, claims: Claims, calls: int) -> None:
        from ..draw.rows import Drawer, Drawn  # not every run draws calls

        self.drawn = Drawn(SEED, calls)
        self.calls = self.failures = 0
        self.notes: list[str] = []
        self._rows = Drawer(plan.suite.spec, claims).rows(self.drawn)
        self._claims = claims

    @property
    def counts(self) -> DrawnCounts | None:
        """The counts for the footer; None if no calls were asked for."""
        return DrawnCounts(self.calls, self.failures) if self.drawn.calls else None

    def run(
        self, adapter: Adapter, isolation: Isolation, write: WriteCase | None
    ) -> Iterator[tuple[Row, Result | None]]:
        """Call the rows in their order in one process; yield each, and the first failure of each kind with its case.

        After many kinds of failures, or a call that hung, no more are called.
        """
        kinds = set()
        for row in self._rows:
            result = next(run_rows([row], adapter, self._claims, isolation))
            if result.outcome.kind == "none":  # the backend was given up
                return
            self.calls += 1
            bad = tuple(document for document, verdict in result.verdicts.items() if verdict in BAD)
            kind = (result.diagnosis, row.case.rule, bad)
            self.failures += bool(bad)
            if bad and kind not in kinds:
                kinds.add(kind)
                yield row, self._with_case(row, result, adapter, write) if write else result
            else:
                yield row, None
            if len(kinds) == _MAX_KINDS or result.outcome.kind == "timeout":
                return

    def _with_case(self, row: Row, result: Result, adapter: Adapter, write: WriteCase) -> Result:
        """Return a result with the smallest case that could be written; if writing fails, a note says so."""
        text = result.case
        with go_on(f"{row.id}: no smaller case is shown", self.notes.append):
            for smaller in write(row, result, adapter, self._claims):
                text = smaller
        return result._replace(case=text)


def plan_of_run(plan: Plan, evidence: Evidence, path: Path | str = "the evidence") -> Plan:
    """Return the plan of a run: under its nonce, and with the drawn rows of its evidence.

    Refused if this suite draws other ones.
    """
    plan = challenge(plan, evidence.header.get("nonce"))
    wanted = [result.row for result in evidence.results if drawn_number(result.row)]
    there = {row.id for row in plan.rows} if wanted else set()
    wanted = [row_id for row_id in wanted if row_id not in there]
    if not wanted:
        return plan
    from ..draw.rows import Drawer

    drawn = evidence.header.get("drawn", {"seed": SEED, "calls": 0})
    drawer, rows = Drawer(plan.suite.spec, evidence.claims), []
    for row_id in wanted:
        seed, number = drawn_number(row_id) or (0, 0)
        row = drawer.row(seed, number) if seed == drawn["seed"] and number < drawn["calls"] else None
        if row is None or row.id != row_id:
            raise Refused(f"{path}: {row_id} is not what this suite draws; read it with the version that wrote it")
        rows.append(row)
    return replace(plan, rows=(*plan.rows, *rows))


def find_comparable(plan: Plan, old: Evidence, new: Evidence) -> frozenset[str]:
    """Find the drawn rows that can be compared: one run holds a failure, and both show how the call ended.

    Another suite, other claims, another seed or fewer calls can make one of the runs call other rows.
    """
    both = (old, new)
    held = [{result.row for result in each.results if drawn_number(result.row)} for each in both]
    if not any(held) or any(each.header["suite"]["digest"] != plan.suite.digest for each in both):
        return frozenset()
    old_called, new_called = (_draw_calls(plan, each) for each in both)
    same = {id_ for id_, row in old_called.items() if id_ in new_called and new_called[id_].case == row.case}
    unknown = _find_unknown(old, old_called, held[0]) | _find_unknown(new, new_called, held[1])
    return frozenset((same & (held[0] | held[1])) - unknown)


def _draw_calls(plan: Plan, evidence: Evidence) -> Mapping[str, Row]:
    """Draw again the rows that a run called, in their order."""
    from ..draw.rows import Drawer, Drawn

    if "drawn" not in evidence.footer:
        return {}
    drawer = Drawer(plan.suite.spec, evidence.claims)
    rows = islice(drawer.rows(Drawn(**evidence.header["drawn"])), evidence.footer["drawn"]["calls"])
    return {row.id: row for row in rows}


def _find_unknown(evidence: Evidence, called: Mapping[str, Row], held: set[str]) -> set[str]:
    """Find the called rows that may have failed although the evidence does not hold them.

    It holds the first failure of each kind. So an unknown row comes after one that is held and is about the same rule.
    """
    if evidence.footer.get("drawn", {}).get("failures", 0) == len(held):
        return set()
    unknown: set[str] = set()
    rules: set[str] = set()
    for id_, row in called.items():
        if id_ in held:
            rules.add(row.case.rule)
        elif row.case.rule in rules:
            unknown.add(id_)
    return unknown
