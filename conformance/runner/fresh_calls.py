"""Another process or instance of the backend, in which failing rows are called again, alone, and made smaller."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from time import monotonic

from ..adapter import CannotStart
from ..isolate.backend import Isolation, close_backend
from ..model import PASS, Adapter, Claims, Isolated, Result
from ..plan.rows import Row, make_case_of_step
from ..run.row import run_rows
from ..system.go_on import go_on
from ..verdict.drawn_rows import make_failure_key

_TRIES = 2
"""Times that a row must go right alone, each in a fresh process: what fails at random goes right now and then."""
_MAX_SECONDS, _MAX_RIGHT = 60, 40
"""Time for rows that fail again alone, after which none is called again, as to start a process may take seconds; and
rows that go right alone, after which none of a kind with such a row is."""


class FreshCalls:
    """Calls failing rows again. The process, or instance, is opened for the first of them."""

    def __init__(
        self, open_another: Callable[[], Adapter], claims: Claims, isolation: Isolation, tell: Callable[[str], object]
    ) -> None:
        self.open_another, self._claims, self._tell = open_another, claims, tell
        self._seconds_left: float = 0 if isolation == "row" else _MAX_SECONDS  # a process for each row is fresh already
        self._right_left = _MAX_RIGHT
        self._wrong_alone: set[object] = set()
        """Kinds of failures with a row that failed again."""
        self._right_alone: set[object] = set()
        """Kinds of failures with a row that went right."""
        self._answered: Row | None = None
        """A row that the backend answered rightly."""

    @cached_property
    def adapter(self) -> Adapter:
        return self.open_another()

    def close(self) -> None:
        if "adapter" in vars(self):
            close_backend(self.adapter)

    def note_right_alone(self, row: Row, result: Result) -> Result:
        """Return the result of a row of a case; if it failed and goes right alone, with a note of it.

        If the row fails again, the step that failed is called without the others. Rows of each kind of failures are
        called again up to the first that fails again. What crashed or hung was. After many calls, a row counts as those
        of its kind that went right.
        """
        if self._seconds_left <= 0 or row.case.large:
            return result
        if not result.is_failure:
            if result.outcome.kind == "tensor" and PASS in result.verdicts.values():
                self._answered = row
            return result
        case, at = row.case, result.step
        states = len(case.steps[0].shapes), len(case.steps), case.times, case.concurrent, at + 1
        kind = make_failure_key(row, result), tuple(number > 1 for number in states)
        if result.ends_process or kind in self._wrong_alone:
            return result
        if self._right_left <= 0 and kind in self._right_alone:
            return result._replace(right_alone="row of its kind")
        right, began = None, monotonic()
        # threads run all steps at once, and memory that changed may be what other steps use
        has_steps = len(case.steps) > 1 and case.concurrent == 1 and not result.outcome.side_effects
        step_alone = [row._replace(case=make_case_of_step(row, at), first=None)] if has_steps else []
        with go_on(f"{row.id}: was not called again alone", self._tell):
            for each in (row, *step_alone):
                if monotonic() - began < self._seconds_left and self._goes_right(each, result):
                    right = each  # a hang takes the time limit twice
                    break
        if right:
            self._right_left -= 1
            self._right_alone.add(kind)
            if not self._right_left:
                self._tell(f"{_MAX_RIGHT} failing rows went right alone; later ones like them were not called again")
            return result._replace(right_alone="step" if right is not row and at > 0 else "row")
        self._wrong_alone.add(kind)
        if self._seconds_left > 0:
            self._seconds_left -= monotonic() - began
            if self._seconds_left <= 0:
                self._tell("later kinds of failures were not called again alone: they may depend on the calls before")
        return result

    def _goes_right(self, row: Row, result: Result) -> bool:
        try:
            return all(self._goes_right_once(row, result) for _ in range(_TRIES))
        except CannotStart as error:
            self._seconds_left = 0
            self._tell(f"no failing row was called again alone: {error}")
            return False
        finally:
            self._renew()  # so that it needs no memory until the next one

    def _goes_right_once(self, row: Row, result: Result) -> bool:
        self._renew()
        again = self._call(row)
        if again.is_failure or again.outcome.call_number < result.outcome.call_number:
            return False
        if again.outcome.kind == "tensor":
            return True
        # a second process may reject whatever it is given, for example for want of memory on a device
        self._renew()  # or the first call may be what a backend with state rejects it for
        return self._answered is not None and self._call(self._answered).outcome.kind == "tensor"

    def _renew(self) -> None:
        if "adapter" in vars(self) and isinstance(self.adapter, Isolated):
            self.adapter.renew()
        else:
            vars(self).pop("adapter", None)

    def _call(self, row: Row) -> Result:
        (result,) = run_rows([row], self.adapter, self._claims)
        return result
