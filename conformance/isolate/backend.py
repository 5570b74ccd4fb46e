"""Open the backend that a person named: here, in a worker, or as a program; run rows on it, in several at once too."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile
from threading import Event
from typing import TYPE_CHECKING, Literal

from ..adapter import CannotStart, find_bundled, is_own, load_adapter, name_and_device
from ..model import NOT_RUN, Adapter, Claims, Graph, Isolated, Result, Tensor
from ..plan.rows import Row
from ..run.call import arguments_of
from ..run.ended_process import DEFAULT_HANGS, HangCounter, HangPolicy
from ..run.row import make_result_without_call, run_rows
from ..system.files import temporary_folder
from ..system.progress import begin
from .process.launch import CAN_LIMIT_MEMORY, DEFAULT_LIMITS, DEVICE_MEMORY, ProcessLimits

if TYPE_CHECKING:
    from .process.usage import ProcessEnd
    from .protocol.opened import OpenedFiles
    from .protocol.remote import RemoteAdapter

Isolation = Literal["worker", "row", "none"]
_MAX_CALLS_AHEAD, _MAX_BYTES_AHEAD = 32, 1 << 13
"""Calls that are sent together to a process, and the bytes that each may have.

A small row then takes half the CPU time, and `conformance run reference --isolation worker` a fifth less.
"""
_JUDGE_TOO = ("LD_PRELOAD", "LD_AUDIT", "PYTHONHOME")
SmallCall = tuple[Graph, tuple[Tensor, ...], bool]
_MIN_CHUNK_ROWS = 16
"""Few enough to share evenly, many enough to be worth a thread's turn."""
_MAX_LISTS_AHEAD = 100
"""Lists of rows that wait for each process; a long sequence takes as long as some hundred other drawn rows."""
CallRows = Callable[[Iterable[list[Row]]], Generator[Result]]
"""Runs lists of rows and yields the results in their order. If it is closed, it calls no list that it has not begun."""


def isolation_of(backend: str, requested: Isolation | None = None) -> Isolation:
    """Return the requested isolation; by default a worker, or none for the suite's own backends."""
    if requested == "none" and backend.startswith("cmd:"):
        return "worker"  # a program never runs in the suite's process
    return requested or ("none" if is_own(backend) else "worker")


def choose_limits(backend: str, seconds: float | None = None, mebibytes: int | None = None) -> ProcessLimits:
    """Return the limits of the processes of a backend: the usual ones where nothing is given."""
    bundled = find_bundled(backend)
    device = name_and_device(backend)[1] or (bundled.device if bundled else "cpu")
    memory = DEFAULT_LIMITS.memory if device.partition(":")[0] == "cpu" else DEVICE_MEMORY
    return ProcessLimits(
        seconds=DEFAULT_LIMITS.seconds if seconds is None else seconds,
        memory=memory if mebibytes is None else mebibytes << 20,
    )


def open_backend(
    backend: str, isolation: Isolation, limits: ProcessLimits = DEFAULT_LIMITS, opened: OpenedFiles | None = None
) -> Adapter:
    """Start a backend, so that it can be called; CannotStart if it cannot be started.

    `opened`: where its processes note the files that they open.
    """
    if isolation == "none" and not backend.startswith("cmd:"):
        return load_adapter(backend)
    from .protocol import remote  # not needed for a backend in this process

    if backend.startswith("cmd:"):
        return remote.start_program(backend.removeprefix("cmd:"), limits, opened=opened)
    return remote.start_worker(backend, limits, opened=opened)


def as_remote(adapter: Adapter) -> RemoteAdapter | None:
    """Return the adapter if its backend is in another process, else None."""
    if not isinstance(adapter, Isolated):
        return None
    from .protocol.remote import RemoteAdapter

    return adapter if isinstance(adapter, RemoteAdapter) else None


@contextmanager
def note_opened_files() -> Iterator[OpenedFiles]:
    """Make a folder for `opened`; CannotStart if a variable has brought foreign code into the suite's own process."""
    from .protocol.opened import OpenedFiles

    for name in _JUDGE_TOO:
        if os.environ.get(name):
            raise CannotStart(f"{name} is set, and its code would judge too; unset it, or set it for the backend alone")
    with temporary_folder() as folder:
        yield OpenedFiles(folder, time.time(), set(), set())


@contextmanager
def use_backend(
    backend: str, isolation: Isolation, limits: ProcessLimits = DEFAULT_LIMITS, opened: OpenedFiles | None = None
) -> Iterator[Adapter]:
    """Open a backend, and close it at the end of the `with` block, with every process that it started."""
    adapter = open_backend(backend, isolation, limits, opened)
    try:
        yield adapter
    finally:
        close_backend(adapter)


def open_another(first: Adapter, backend: str, isolation: Isolation, limits: ProcessLimits) -> Adapter:
    """Open a backend once more; a call that the first answered tells at once whether copies of the process are good."""
    adapter = open_backend(backend, isolation, limits)
    one, other = as_remote(first), as_remote(adapter)
    if one and one.fork_server and other and other.fork_server:
        other.fork_server.example = one.fork_server.example
    return adapter


def close_backend(adapter: Adapter) -> None:
    """End the backend's process, if it has one."""
    if isinstance(adapter, Isolated):
        adapter.close()


def run_in_isolation(
    rows: Iterable[Row], adapter: Adapter, claims: Claims, isolation: Isolation, policy: HangPolicy = DEFAULT_HANGS
) -> Iterator[Result]:
    """Run rows like `run_rows`; with `row`, each in a fresh process. Once the backend is given up, none is."""
    rest = _note_begun(rows)
    remote = as_remote(adapter)
    hangs = HangCounter(policy.max_hangs) if remote else None
    called = _stop_if_given_up(rest, remote, policy.budget_seconds)
    if isolation == "row" and isinstance(adapter, Isolated):
        for row in called:
            adapter.renew()
            yield from run_rows([row], adapter, claims, hangs)
    else:
        if remote and isinstance(rows, Sequence):
            called = _announce_next_calls(called, rows, remote, claims)
        yield from run_rows(called, adapter, claims, hangs)
    for row in rest:
        yield make_result_without_call(row, NOT_RUN)


def _note_begun(rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        begin(row.case.id)
        yield row
    begin("")


def _announce_next_calls(
    called: Iterable[Row], rows: Sequence[Row], remote: RemoteAdapter, claims: Claims
) -> Iterator[Row]:
    """Yield the rows of `called`, the first of `rows`; let the calls of neighbouring rows be sent together."""
    for place, row in enumerate(called):
        remote.next_calls = _list_small_calls(islice(rows, place, place + _MAX_CALLS_AHEAD), claims)
        yield row


def _list_small_calls(rows: Iterable[Row], claims: Claims) -> Iterator[SmallCall]:
    """Yield the calls of rows, up to a row without a single small call that no earlier call can change."""
    for row in rows:
        case = row.case
        is_single = len(case.steps) == case.times == 1 and not case.generated  # repetitions come before the next row
        if not is_single or case.large or not claims.has_operation(row.operation):
            return
        (step,) = row.steps
        src, shapes, may_overwrite = arguments_of(step)
        tensors = (src, *shapes)
        if sum([len(each.memory) for each in tensors]) > _MAX_BYTES_AHEAD:
            return
        yield step.graph, tensors, may_overwrite


def _stop_if_given_up(rows: Iterator[Row], remote: RemoteAdapter | None, budget: float) -> Iterator[Row]:
    """Yield rows until the backend cannot be started any more or has spent its budget."""
    while True:
        if remote and remote.given_up is None and remote.seconds_lost > budget:
            remote.given_up = (
                f"given up after {remote.seconds_lost:.0f} s of calls that timed out, "
                f"more than --hang-budget {budget:g}; give a larger one to go on"
            )
        row = None if remote and remote.given_up else next(rows, None)
        if row is None:
            return
        yield row


def note_processes(adapter: Adapter) -> list[str]:
    """Return notes for the results: why the backend was given up, how its processes grew, and failed to end."""
    remote = as_remote(adapter)
    if remote is None:
        return []
    notes = [] if CAN_LIMIT_MEMORY else ["--memory is not applied on this system"]
    notes += [f"the backend was {remote.given_up}; the rows after that were not run"] if remote.given_up else []
    grown = filter(None, [end.growth.describe() for end in remote.ends if end.growth])
    notes += [f"not graded: with every 1,000 calls the backend's process grew: {each}" for each in grown]
    problems = dict.fromkeys(end.problem.removeprefix("stop: ") for end in remote.ends if end.problem)
    return notes + [
        f"not graded: the backend's process was asked to end after the last row: {each}" for each in problems
    ]


def list_ends(adapter: Adapter) -> list[ProcessEnd]:
    """Return how the processes of a closed backend ended, and how they grew; none if it ran in ours."""
    remote = as_remote(adapter)
    return remote.ends if remote else []


@contextmanager
def use_jobs(
    first: Adapter, open_another: Callable[[], Adapter], claims: Claims, isolation: Isolation, jobs: int,
    policy: HangPolicy = DEFAULT_HANGS,
) -> Iterator[CallRows]:  # fmt: skip
    """Give a function that runs lists of rows, each in one of several processes; with one job in the first.

    At the end of the `with` block no further row is called, as each may hang.
    """

    def call_here(lists: Iterable[list[Row]]) -> Generator[Result]:
        for rows in lists:
            yield from run_in_isolation(rows, first, claims, isolation, policy)

    if jobs == 1:
        yield call_here
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and only needed here

    adapters, idle = [first], [first]

    def run_list(rows: list[Row]) -> list[Result]:
        try:
            adapter = idle.pop()
        except IndexError:
            adapter = open_another()
            adapters.append(adapter)
            if (adapter.identity, adapter.claims) != (first.identity, first.claims):
                what = f"it describes itself differently: {adapter.identity} and {first.identity}"
                raise CannotStart(f"{first.identity.name}: started twice, {what}") from None
        try:
            results = run_in_isolation(rows, adapter, claims, isolation, policy)
            return list(takewhile(lambda _: not is_over.is_set(), results))
        finally:
            idle.append(adapter)

    def call(lists: Iterable[list[Row]]) -> Generator[Result]:
        rest = iter(lists)
        waiting = deque(pool.submit(run_list, rows) for rows in islice(rest, jobs * _MAX_LISTS_AHEAD))
        try:
            while waiting:
                results = waiting.popleft().result()
                waiting.extend(pool.submit(run_list, rows) for rows in islice(rest, 1))
                yield from results
        finally:
            for future in waiting:
                future.cancel()

    is_over = Event()
    pool = ThreadPoolExecutor(jobs)
    try:
        yield call
    except KeyboardInterrupt:  # nobody waits for the calls that were begun
        for each in filter(None, map(as_remote, adapters)):
            each.interrupt()
        raise
    finally:
        is_over.set()
        pool.shutdown(cancel_futures=True)
        for adapter in adapters[1:]:
            close_backend(adapter)
            if (remote := as_remote(adapter)) and (main := as_remote(first)):  # the caller reads the notes of `first`
                main.given_up = main.given_up or remote.given_up
                main.ends += remote.ends


def split_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Split rows in their order; the rows of a case stay together, as they share compiled programs and crashes."""
    chunk: list[Row] = []
    for row in rows:
        if len(chunk) >= _MIN_CHUNK_ROWS and row.case is not chunk[-1].case:
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk
