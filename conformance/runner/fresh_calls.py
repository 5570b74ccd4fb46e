"""Another process of the backend, in which failing rows are called again, alone, and made smaller."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ..isolate.backend import close_backend
from ..model import Adapter, Claims, Isolated, Result
from ..plan.rows import Row
from ..run.confirm import DIED, tell_right_alone
from ..run.row import run
from ..system.late import go_on
from ..verdict.drawn_calls import failure_kind_of

_MAX_ROWS = 12
"""Rows of a run to call again; a backend without copies of its process takes seconds to start for each."""


class FreshCalls:
    """Calls failing rows again. The process is opened for the first of them."""

    def __init__(
        self, first: Adapter, open_another: Callable[[], Adapter], claims: Claims, tell: Callable[[str], object]
    ) -> None:
        self._open, self._claims, self._tell = open_another, claims, tell
        self._left = _MAX_ROWS if isinstance(first, Isolated) else 0  # in our process no call is alone
        self._failing_alone: set[object] = set()

    @cached_property
    def adapter(self) -> Adapter:
        return self._open()

    def close(self) -> None:
        if "adapter" in vars(self):
            close_backend(self.adapter)

    def note_right_alone(self, row: Row, result: Result) -> Result:
        """Return the result of a row of a case; if it failed and goes right alone, with a line that says so.

        Of each kind of failures, rows are called again up to the first that fails again. What crashed or hung was.
        """
        kind = failure_kind_of(row, result)
        died = any(outcome.kind in DIED for outcome in result.outcomes)
        if not (self._left and result.is_failure) or died or kind in self._failing_alone:
            return result
        self._left -= 1
        with go_on(f"{row.id}: was not called again alone", self._tell):
            if isinstance(self.adapter, Isolated):
                self.adapter.renew()
            (again,) = run([row], self.adapter, self._claims)
            if not again.is_failure:
                return result._replace(case=tell_right_alone(row))
            self._failing_alone.add(kind)
        return result
