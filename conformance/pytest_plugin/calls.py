"""Call the rows of a session: each when its item runs, or ahead of it in several processes."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from functools import partial

import pytest

from ..adapter import CannotStart
from ..isolate.backend import open_backend, run_in_isolation, split_rows, use_jobs
from ..model import Adapter, Claims, Result
from ..plan.rows import Row
from ..runner.fresh_calls import FreshCalls
from ..runner.run_suite import RunRequest
from ..system.terminal import plain


class RowCalls:
    """Calls rows on a backend, with the limits of `conformance run` on hangs and on lost time."""

    def __init__(self, request: RunRequest, adapter: Adapter, claims: Claims) -> None:
        self._request, self._adapter, self._claims = request, adapter, claims
        self._next: deque[Row] = deque()
        self._running = self._run_next()
        self._ahead: Generator[Result] | None = None
        self._done: dict[str, Result] = {}
        self._open_another = partial(open_backend, request.backend, request.isolation, request.limits)
        self._fresh = FreshCalls(self._open_another, claims, request.isolation, warnings.warn)

    def call_ahead(self, rows: Iterable[Row]) -> None:
        """With several jobs: call these rows in their order, from the first `call` on."""
        if self._request.jobs > 1:
            self._ahead = self._run_ahead(list(rows))

    def _run_ahead(self, rows: list[Row]) -> Generator[Result]:
        request, adapter = self._request, self._adapter
        isolation, jobs, hangs = request.isolation, request.jobs, request.hangs
        with use_jobs(adapter, self._open_another, self._claims, isolation, jobs, hangs) as call:
            yield from call(split_rows(rows))

    def call(self, row: Row) -> Result:
        """Return the result of a row. A row that was called ahead and is asked for again is called again.

        The session ends if another process of the backend cannot start.
        """
        while self._ahead is not None and row.id not in self._done:
            try:
                result = next(self._ahead, None)
            except CannotStart as error:
                pytest.exit(plain(f"--conformance-jobs {self._request.jobs}: {error}"), pytest.ExitCode.USAGE_ERROR)
            if result is None:
                self._ahead = None
            else:
                self._done[result.row] = result
        result = self._done.pop(row.id, None) or self._call_now(row)
        return self._fresh.note_right_alone(row, result)

    def _call_now(self, row: Row) -> Result:
        self._next.append(row)
        try:
            return next(self._running)
        except BaseException:
            self._running = self._run_next()  # the exception has ended the one before
            raise

    def _run_next(self) -> Iterator[Result]:
        """Run the rows in `self._next`, one for each result that is taken."""
        rows = iter(self._next.popleft, None)
        return run_in_isolation(rows, self._adapter, self._claims, self._request.isolation)

    def close(self) -> None:
        """Call no further row ahead, and end the processes that did."""
        self._fresh.close()
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
