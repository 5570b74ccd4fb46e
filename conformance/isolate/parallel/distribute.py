"""Distribute work over processes of this machine or a Dask cluster; results come in the order of the work.

A process of this machine ends with the command: the kernel kills it, and the backend that it has started. If one dies,
the work ends. A Dask worker that dies is replaced by Dask.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain, islice
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ...adapter import CannotStart
from ...run.call import attempt
from ..process.launch import Limits, ProcessHandle, import_code, kill_tree, signal_name, start
from ..process.orphans import adopt

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Value = TypeVar("Value")
_MAX_PENDING_ITEMS = 8
"""Items of work that wait for each worker; the memory needed does not grow with the work."""
_ITEMS_AT_A_TIME = 2
"""Items that a process has at a time, so that it need not wait for the next."""
_CONNECT_SECONDS = 10.0
"""Seconds in which a scheduler must answer."""
_RESULT_SECONDS = 15.0
"""Seconds to wait for a result before checking that the cluster still has workers."""
_END_SECONDS = 5.0
"""Seconds in which our processes may end by themselves after the last result."""
_UNLIMITED = Limits(memory=0)
"""Limits of our processes; a backend that they start has its own."""


class NoCluster(CannotStart):
    """Dask is not installed, no scheduler answers at the address, or no worker is left."""


class WorkerDied(CannotStart):
    """A process ended before its work was done."""


def run_here(take: Callable[[Item], Value], work: Iterable[Item]) -> Generator[Value]:
    """Do the work in this process, one item after another."""
    for item in work:
        yield take(item)


# ── processes of this machine ─────────────────────────────────────────────────────────────────────


class _Worker(NamedTuple):
    """A process that does work, the connection to it, and the numbers of the items that it has not done yet."""

    handle: ProcessHandle
    link: Connection[Any, Any]
    numbers: deque[int]


def run_in_processes(jobs: int, take: Callable[[Item], Value], work: Iterable[Item]) -> Generator[Value]:
    """Do the work in that many processes; WorkerDied if one of them ends before its work is done.

    `take`, the work and the results are pickled. An exception that `take` raises is raised here.
    """
    rest = iter(work)
    first = list(islice(rest, jobs))
    workers: list[_Worker] = []
    end = time.monotonic()
    try:
        while len(workers) < len(first):
            workers.append(_start())
            _send(workers[-1], take)
        yield from _share_out(workers, chain(first, rest))
        end = time.monotonic() + _END_SECONDS
    finally:
        for worker in workers:
            worker.link.close()
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.handle.child.wait(max(0.0, end - time.monotonic()))
            kill_tree(worker.handle)


def _start() -> _Worker:
    """Start a process, which waits for the function to call and then for items of work."""
    from multiprocessing.connection import Connection

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    our_end, worker_end = socket.socketpair()
    with our_end, worker_end:
        streams = worker_end.fileno(), subprocess.DEVNULL, subprocess.DEVNULL if sys.stderr is None else 2
        handle = start([sys.executable, "-c", import_code() + _MAIN, "worker"], _UNLIMITED, env, streams)
        return _Worker(handle, Connection(our_end.detach()), deque())


_MAIN = "from conformance.isolate.parallel.distribute import serve; serve()"


def _share_out(workers: Sequence[_Worker], work: Iterator[Any]) -> Iterator[Any]:
    """Give work to the workers that have the least, and yield the results in the order of the work."""
    from multiprocessing.connection import wait

    results: dict[int, Any] = {}
    sent = due = 0
    while True:
        for worker in sorted(workers, key=lambda worker: len(worker.numbers)) * _ITEMS_AT_A_TIME:
            if len(worker.numbers) < _ITEMS_AT_A_TIME and sent < due + len(workers) * _MAX_PENDING_ITEMS:
                for item in islice(work, 1):
                    _send(worker, item)
                    worker.numbers.append(sent)
                    sent += 1
        if due == sent:
            return
        ready = wait([worker.link for worker in workers])
        for worker in workers:
            if worker.link in ready:
                results[worker.numbers.popleft()] = _receive(worker)
        while due in results:
            yield results.pop(due)
            due += 1


def _send(worker: _Worker, what: object) -> None:
    with suppress(OSError):  # the process has ended, which `_receive` reports
        worker.link.send(what)


def _receive(worker: _Worker) -> Any:
    try:
        succeeded, value = worker.link.recv()
    except (EOFError, OSError):
        raise WorkerDied(
            f"a worker process {_describe_end(worker)}; add --resume to go on with what was done"
        ) from None
    if succeeded:
        return value
    raise value


def _describe_end(worker: _Worker) -> str:
    try:
        code = worker.handle.child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    return f"died of {signal_name(-code)}"


def serve() -> None:
    """Do the work that comes over the socket on standard input until it is closed; the main of `run_in_processes`."""
    adopt()
    from multiprocessing.connection import Connection

    link, me = Connection(os.dup(0)), os.getpid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    with suppress(EOFError, OSError):
        take = link.recv()
        while True:
            pickled = _pickle_result(take, link.recv())
            if os.getpid() != me:  # a backend forked, and its copy has come back
                os._exit(0)
            link.send_bytes(pickled)


def _pickle_result(take: Callable[[Any], Any], item: Any) -> bytes:
    """Return the pickle of True and the result, or of False and the exception."""
    try:
        return pickle.dumps((True, take(item)))
    except BaseException as error:
        try:
            pickled = pickle.dumps((False, error))
            pickle.loads(pickled)
        except Exception:  # not every exception can be made from its pickle
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return pickled


# ── a Dask cluster ────────────────────────────────────────────────────────────────────────────────


def run_on_dask(address: str, take: Callable[[Item], Value], work: Iterable[Item]) -> Generator[Value]:
    """Do the work on the workers of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise NoCluster("--dask needs Dask; pip install 'reshape-conformance[dask]'") from None
    connect = partial(Client, address, timeout=_CONNECT_SECONDS, set_as_default=False)
    try:
        client = _in_time(address, connect)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise NoCluster(f"--dask {address}: no scheduler answers: {reason}") from None
    with ExitStack() as stack:
        stack.callback(_close, client, address)
        workers = _count_workers(client, address)
        if not workers:
            raise NoCluster(f"--dask {address}: the scheduler has no workers; start some with `dask worker {address}`")
        submit = partial(client.submit, take, pure=False)
        yield from _in_order(submit, partial(_wait_for_result, client, address), work, workers * _MAX_PENDING_ITEMS)


def _in_time(address: str, act: Callable[[], Value]) -> Value:
    """Ask a scheduler, since Dask waits without end for one that is stopped or is none."""
    ended: list[tuple[Any, BaseException | None]] = []
    thread = Thread(target=lambda: ended.append(attempt(act)), daemon=True)
    thread.start()
    thread.join(2 * _CONNECT_SECONDS)
    if not ended:
        wait = f"{2 * _CONNECT_SECONDS:g} s"
        raise NoCluster(f"--dask {address}: no scheduler answers within {wait}; what was done can be resumed")
    value, error = ended[0]
    if error:
        raise error
    return cast("Value", value)


def _count_workers(client: Any, address: str) -> int:
    return len(_in_time(address, partial(client.scheduler_info, n_workers=-1))["workers"])


def _close(client: Any, address: str) -> None:
    with suppress(NoCluster):
        _in_time(address, client.close)


def _wait_for_result(client: Any, address: str, future: Any) -> Any:
    """Wait for a result; dask.distributed gives the work of a worker that died to another."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    while True:
        try:
            return future.result(timeout=_RESULT_SECONDS)
        except TimeoutError:  # noqa: PERF203 - it waits
            if client.status != "running" or not _count_workers(client, address):
                raise NoCluster(f"--dask {address}: no worker is left; what was done can be resumed") from None
        except FutureCancelledError:
            raise NoCluster(f"--dask {address}: the scheduler is gone; what was done can be resumed") from None
        except KilledWorker as killed:
            raise NoCluster(f"--dask {address}: {' '.join(str(killed).split())}") from None
        except (ImportError, RuntimeError) as error:
            if isinstance(error, ImportError) or "deserialization" in str(error):
                reason = str(error.__cause__ or error).partition("\n")[0]
                raise NoCluster(
                    f"--dask {address}: {reason}; install the same suite on the scheduler and on all workers"
                ) from None
            raise


def _in_order(
    submit: Callable[[Item], Any], result: Callable[[Any], Value], work: Iterable[Item], most: int
) -> Iterator[Value]:
    rest = iter(work)
    waiting = deque(map(submit, islice(rest, most)))
    while waiting:
        next_result = result(waiting.popleft())
        waiting.extend(map(submit, islice(rest, 1)))
        yield next_result
