"""Call again what crashed or hung, in a fresh process, and stop calling rows of a case that always hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..model import Adapter, Outcome, Result
from ..plan.rows import Row

_AGAIN = "(deterministic: again alone in a fresh process)"
_ALIKE = "(deterministic: alone in a fresh process, like the row before)"
AFTER_HANGS = (Outcome("none", message="the rows before it of this case and operation hung"),)
"""The outcomes of a row that is not called because of `HangPolicy.max_hangs`."""


class HangPolicy(NamedTuple):
    """The limits of a run on calls that time out, apart from the time that one call may take."""

    max_hangs: int = 3
    """Rows of a case and operation that may hang in turn; the next are not called. 0: no limit."""
    budget_seconds: float = 1800.0
    """Seconds that calls may lose by timing out, for each of --jobs."""


DEFAULT_HANGS = HangPolicy()


class HangCounter:
    """Counts the rows of one case and operation that timed out twice, one after the other.

    The rows after `most` of them are not called (0: all are), also not at the end of the run: what hung several times
    nearly always hangs again, and each try costs the time limit. They are `not run`, and the run says how to call them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._key: tuple[str, str] | None = None
        self._times = 0

    def must_skip(self, row: Row) -> bool:
        """Ask whether so many rows before this one hung that it is not called."""
        return 0 < self._most <= self._times and self._key == (row.case.id, row.operation)

    def count(self, row: Row, result: Result) -> None:
        if self._key != (row.case.id, row.operation):
            self._key, self._times = (row.case.id, row.operation), 0
        self._times = self._times + 1 if hung_twice(result) else 0


def hung_twice(result: Result) -> bool:
    """Ask whether a row timed out, and again when it was called alone in a fresh process."""
    return result.outcome.kind == "timeout" and str(result.outcome.message).endswith((_AGAIN, _ALIKE))


def confirm(
    row: Row,
    adapter: Adapter,
    outcomes: list[Outcome],
    previous: Result | None,
    call_again: Callable[[], list[Outcome]],
) -> list[Outcome]:
    """Call steps that crashed or hung again, alone in a fresh process. Keep the worse of two outcomes.

    Its message says whether the second call ended in the same way.
    """
    restart = getattr(adapter, "restart", None)
    if restart is None:
        return outcomes
    if len(outcomes) == 1 and previous is not None and _had_fresh_process(row, outcomes[0], previous):
        return [outcomes[0]._replace(message=f"{outcomes[0].message} {_ALIKE}")]
    restart()
    again = call_again()
    worse = []
    for first, second in zip(outcomes, again, strict=True):
        if not first.ends_process:
            worse.append(second if second.ends_process else first)
        elif second.kind == first.kind:
            worse.append(first._replace(message=f"{first.message} {_AGAIN}"))
        else:
            after = f"the call before it was {previous.row}" if previous else "it was the first call"
            note = f"(flaky: not alone in a fresh process; {after})"
            worse.append(first._replace(message=f"{first.message} {note}"))
    return worse


def _had_fresh_process(row: Row, outcome: Outcome, previous: Result) -> bool:
    """Ask whether the previous row of this case died the same way and was confirmed: this process is then fresh."""
    same_case = previous.row.startswith(f"{row.case.id}[")
    confirmed = str(previous.outcome.message).endswith((_AGAIN, _ALIKE))
    return same_case and confirmed and previous.outcome.kind == outcome.kind
