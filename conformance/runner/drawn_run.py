"""The drawn rows of a run: their results, with the first failure of each kind with its smallest case."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from ..evidence.results import DrawnCounts, Target
from ..isolate.backend import CallRows
from ..model import Result
from ..plan.rows import SEED, Plan, Row, find_drawn, name_in
from ..system.go_on import go_on
from ..verdict.drawn_rows import make_failure_key
from .fresh_calls import FreshCalls

if TYPE_CHECKING:
    from .run_suite import BackendSetup

_MAX_KINDS = 12
"""Kinds of failures after which a run draws no more calls."""


class DrawnRun:
    """The drawn rows of one run, and the counts so far."""

    def __init__(self, plan: Plan, setup: BackendSetup, count: int, target: Target) -> None:
        from ..draw.rows import Drawn, RowDrawer  # slow to import, and not every run draws calls

        seed, _ = find_drawn(plan.select) or (SEED, 0)
        self.drawn = Drawn(seed, count, plan.select)
        self.called = self.failed = self.waived = self.not_called = 0
        self.notes: list[str] = []
        rows = enumerate(RowDrawer(plan.suite.spec, setup.claims).rows(self.drawn))
        self._name = name_in(plan.select) if self.drawn.named else ""
        self._rows = (  # other claims can give another row the same number
            row for number, row in rows
            if target.has_in_shard(number) and (not self._name or self._name in (row.id, row.case.id))
        )  # fmt: skip
        self._setup = setup

    @property
    def counts(self) -> DrawnCounts | None:
        """The counts for the footer; None if no calls were asked for, as of a part of a session of pytest."""
        counts = DrawnCounts(self.called, self.failed, self.not_called, self.waived)
        return counts if self.drawn.rows else None

    def run(self, call: CallRows, fresh: FreshCalls) -> Iterator[tuple[Row, Result | None]]:
        """Call the rows; yield each in their order, and the first failure of each kind, waived or not, with its case.

        The row that -k names comes with its result in any case.
        After many kinds of failures, or a call that hung, no more are called.
        """
        kinds, failing, sent = set(), 0, deque[Row]()

        def lists() -> Iterator[list[Row]]:
            for row in self._rows:
                if self._setup.waive_call(row):
                    self.waived += 1
                else:
                    sent.append(row)
                    yield [row]

        with closing(call(lists())) as results:
            for returned in results:
                if not returned.was_called:  # the backend was given up
                    return
                row = sent.popleft()
                self.called += 1
                result = self._setup.apply_waivers(row, returned)
                is_bad, is_waived = result.is_failure, result.waiver is not None
                self.failed += is_bad
                self.waived += is_waived and not is_bad
                kind = (make_failure_key(row, result), result.waiver)
                if (is_bad or is_waived) and kind not in kinds:
                    kinds.add(kind)
                    failing += is_bad
                    yield row, self._with_case(row, result, fresh)
                else:
                    yield row, result if self._name else None
                if failing == _MAX_KINDS or result.outcome.kind == "timeout":
                    return
        self.not_called = self.drawn.rows - self.called

    def _with_case(self, row: Row, result: Result, fresh: FreshCalls) -> Result:
        """Return a result with the smallest case that could be written; if waived, the case as drawn.

        If writing fails, a note says so.
        """
        # most runs have no such failure
        from ..shrink.smallest_case import can_be_smaller, find_smallest, write_as_drawn

        with go_on(f"{row.id}: no smaller case is shown", self.notes.append):
            result = result._replace(smallest_case=write_as_drawn(row, result))
            if can_be_smaller(result) and result.waiver is None:
                result = find_smallest(
                    row, result, fresh.adapter, self._setup.claims, self.drawn.is_quick, fresh.open_another
                )
        return result
