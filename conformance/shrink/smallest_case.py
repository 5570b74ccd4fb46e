"""Write the case of a drawn row that failed, as a call or a sequence, made as small as some thousand calls allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from time import monotonic

from ..model import BAD, Adapter, Case, Claims, Isolated, Result
from ..plan.rows import Row, is_expressible, make_case_of_step, row_of
from ..run.row import run_rows
from .smaller_cases import shrink
from .write_case import find_rule_against, write_case_text

MAX_CALLS = 30_000
"""Calls for one case; then, or once a call hangs, the smallest found so far is written."""
_QUICK_SECONDS = 2
"""Time for one case of --quick."""
MAX_PROCESSES = 60
"""Processes, or instances, for one case; each takes up to a second."""


def write_as_drawn(row: Row, result: Result) -> str:
    rule = find_rule_against(row, result)
    return write_case_text(row, rule, f"{result.diagnosis} {rule}")


def can_be_smaller(result: Result) -> bool:
    """Ask whether a smaller case is looked for. After a crash or timeout each try would cost a process."""
    return not result.ends_process


def find_smallest(
    row: Row, result: Result, adapter: Adapter, claims: Claims, quick: bool = False,
    open_another: Callable[[], Adapter] | None = None,
) -> Result:  # fmt: skip
    """Return the result with the smallest case found that fails in the same way, with steps if one call goes right.

    `open_another` makes an instance without earlier calls of a backend in this process.
    If `quick`, after a few seconds the smallest so far, and a sequence as drawn: a slow backend would take minutes.
    """
    smaller = _SmallerCase(row, result, adapter, claims, open_another)
    one_call = smaller.find_in_fresh_process(make_case_of_step(row, result.step))
    if one_call:
        end = monotonic() + (_QUICK_SECONDS if quick else inf)
        smallest = shrink(one_call[0].case, lambda case: smaller.find(case) if monotonic() < end else None, one_call)
        smaller.calls_left = MAX_CALLS  # the search may have made all
        found = smaller.find_in_fresh_process(smallest[0].case) or one_call
    elif len(row.case.steps) == 1 or smaller.find_in_fresh_process(row.case) is None:
        found, result = (row, result), result._replace(right_alone="row" if smaller.went_right else None)
    else:
        found = (row, result) if quick else smaller.search_sequence()
    return result._replace(smallest_case=write_as_drawn(*found))


class _SmallerCase:
    """The search for a smaller case that fails in the same way."""

    def __init__(
        self, row: Row, result: Result, adapter: Adapter, claims: Claims, open_another: Callable[[], Adapter] | None
    ) -> None:
        self.row, self.result, self.adapter, self.claims, self.open_another = row, result, adapter, claims, open_another
        self.broken = _find_broken(row, result)
        self.calls_left, self.processes_left = MAX_CALLS, MAX_PROCESSES
        self.went_right = False
        """Whether the latest case was called and did not fail; it may fail in another way."""

    def search_sequence(self) -> tuple[Row, Result]:
        """Return the smallest row found for a failure that takes several calls, and its result."""
        best, length = (self.row, self.result), len(self.row.case.steps)
        while length > 1:
            length //= 2
            best = self._without_parts(best, length)
        return shrink(best[0].case, self.find_in_fresh_process, best)

    def _without_parts(self, best: tuple[Row, Result], length: int) -> tuple[Row, Result]:
        """Leave out each part of `length` steps without which the case still fails."""
        at = 0
        while at < len(best[0].case.steps) and len(best[0].case.steps) > length:
            steps = best[0].case.steps
            found = self.find_in_fresh_process(replace(best[0].case, steps=steps[:at] + steps[at + length :]))
            best, at = (found, at) if found else (best, at + length)
        return best

    def find_in_fresh_process(self, case: Case) -> tuple[Row, Result] | None:
        """Do what `find` does, in a process, or an instance, without earlier calls."""
        self.processes_left -= 1
        if self.processes_left < 0:
            return None
        if isinstance(self.adapter, Isolated):
            self.adapter.renew()
        elif self.open_another:
            self.adapter = self.open_another()
        return self.find(case)

    def find(self, case: Case) -> tuple[Row, Result] | None:
        """Return the row of a case if it fails as the row does; None also after too many calls, or a hang."""
        self.went_right = False
        keeps_type = case.shape_type == self.row.case.shape_type  # if not, it is called as the case without that key
        shape_type = self.row.shape_type if keeps_type else self.row.signature.shape_types[0]
        way = self.row.signature, self.row.shape_passed_as, shape_type
        if not is_expressible(case, *way):  # merged lengths may be too long for the type of shape
            return None
        self.calls_left -= len(case.steps)
        if self.calls_left < 0:
            return None
        row = row_of(case, *way, self.row.contracts)
        (result,) = run_rows([row], self.adapter, self.claims)
        self.went_right = not result.is_failure
        if result.outcome.kind == "timeout":
            self.calls_left = 0  # others may hang too, and each takes the time limit twice
        is_alike = result.is_failure and result.diagnosis == self.result.diagnosis
        return (row, result) if is_alike and self.broken <= _find_broken(row, result) else None


def _find_broken(row: Row, result: Result) -> set[tuple[str, str]]:
    """Return each document in which a row fails, with whether its call is legal there, illegal or unspecified.

    Where a smaller call means something else, a failure would be blamed on what is about another one.
    """
    kinds = {document: each.meaning.kind for each in row.meanings(result.step) for document in each.documents}
    return {(document, kinds[document]) for document, verdict in result.verdicts.items() if verdict in BAD}
