"""Opens the backend that a person named: in this process, in a worker, or as a program of any language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from ..adapter import CannotStart, is_own, load_adapter
from ..model import NOT_RUN, Adapter, Claims, Isolated, Result
from ..plan.rows import Row
from ..run.row import result_without_call, run
from .remote import Remote, program, worker
from .started import USUAL, Limits

Isolation = Literal["worker", "case", "none"]
_CHUNK = 16
"""Rows that a worker takes at a time, at least: few enough to share evenly, many enough to be worth a thread's turn."""


def isolation_of(backend: str, asked: Isolation | None = None) -> Isolation:
    """How a backend is run: as asked, else in a worker unless it is the suite's own."""
    if asked is not None:
        return asked
    return "none" if is_own(backend) else "worker"


def open_backend(backend: str, isolation: Isolation, limits: Limits = USUAL) -> Adapter:
    """A backend ready to be called; CannotStart where it is not."""
    if backend.startswith("cmd:"):
        return program(backend.removeprefix("cmd:"), limits)
    return load_adapter(backend) if isolation == "none" else worker(backend, limits)


@contextmanager
def opened(backend: str, isolation: Isolation, limits: Limits = USUAL) -> Iterator[Adapter]:
    """The same, ended with whatever it started."""
    adapter = open_backend(backend, isolation, limits)
    try:
        yield adapter
    finally:
        if isinstance(adapter, Isolated):
            adapter.close()


def run_isolated(rows: Iterable[Row], adapter: Adapter, claims: Claims, isolation: Isolation) -> Iterator[Result]:
    """Like `run`; with `case`, each row in a fresh process. Where none can be started any more, rows are not run."""
    rest = iter(rows)
    if isolation == "case" and isinstance(adapter, Isolated):
        for row in _while_alive(rest, adapter):
            adapter.renew()
            yield from run([row], adapter, claims)
    else:
        yield from run(_while_alive(rest, adapter), adapter, claims)
    for row in rest:
        yield result_without_call(row, NOT_RUN)


def _while_alive(rows: Iterator[Row], adapter: Adapter) -> Iterator[Row]:
    """The rows, until the backend cannot be started any more or has spent its budget."""
    while not (isinstance(adapter, Remote) and _given_up(adapter)):
        row = next(rows, None)
        if row is None:
            return
        yield row


def _given_up(remote: Remote) -> bool:
    if remote.lost is None and remote.late > remote.limits.budget:
        remote.lost = (
            f"given up after {remote.late:.0f} s of calls that timed out, more than --budget {remote.limits.budget:g}; "
            "give a larger one to go on"
        )
    return remote.lost is not None


def remarks(adapter: Adapter) -> tuple[str, ...]:
    """What a reader of the results has to know of the process, once it was closed."""
    if not isinstance(adapter, Remote):
        return ()
    lost = (f"the backend was {adapter.lost}; the rows after that were not run",) if adapter.lost else ()
    return (*lost, f"the backend's process: {adapter.amiss}") if adapter.amiss else lost


def run_in_parallel(
    rows: list[Row], first: Adapter, claims: Claims, backend: str, isolation: Isolation, limits: Limits, jobs: int
) -> Iterator[Result]:
    """The results of rows in their order, called by several processes at once."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and only needed here

    chunks = list(_chunks(rows))
    idle = [first, *(open_backend(backend, isolation, limits) for _ in range(min(jobs, len(chunks)) - 1))]
    everyone = list(idle)

    def results(chunk: list[Row]) -> list[Result]:
        adapter = idle.pop()
        try:
            return list(run_isolated(chunk, adapter, claims, isolation))
        finally:
            idle.append(adapter)

    try:
        for other in everyone[1:]:
            if (other.identity, other.claims) != (first.identity, claims):
                raise CannotStart(
                    f"{backend}: started twice, it describes itself differently: {other.identity} and {first.identity}"
                )
        with ThreadPoolExecutor(len(everyone)) as pool:
            for done in pool.map(results, chunks):
                yield from done
    finally:
        for adapter in everyone[1:]:
            if isinstance(adapter, Remote) and isinstance(first, Remote):  # which is asked for remarks
                first.lost = first.lost or adapter.lost
            if isinstance(adapter, Isolated):
                adapter.close()


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in their order; those of a case stay together, for a program of one may do for another, or die as it did."""
    chunk: list[Row] = []
    for row in rows:
        if len(chunk) >= _CHUNK and row.case is not chunk[-1].case:
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk
