"""Spread work over processes of this machine or over a Dask cluster; results come in the order of the work.

A process of ours ends with the command, however that ends: the kernel kills it, and the backend that it has started.
Such a process that dies ends the work. A Dask worker that dies is replaced by Dask.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..adapter import CannotStart
from .orphans import adopt
from .started import Limits, Started, bury, start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Work = TypeVar("Work")
Done = TypeVar("Done")
_AHEAD = 8
"""Pieces of work that wait for each worker: memory stays flat however much there is."""
_QUEUED = 2
"""Pieces that a process of ours has at a time: it need not wait for the next."""
_PATIENCE = 15.0
"""Seconds to wait for a result before asking whether anybody is left to give it."""
_GRACE = 5.0
"""Seconds in which our processes, once nothing is left to do, may end by themselves."""
_UNLIMITED = Limits(memory=0)
"""For our processes; a backend that they start has limits of its own."""


class NoCluster(CannotStart):
    """Dask is not installed, nobody answers at the address, or nobody is left there."""


class WorkerDied(CannotStart):
    """A process that was given work ended before it was done."""


def here(take: Callable[[Work], Done], work: Iterable[Work]) -> Generator[Done]:
    """Do the work in this process, one piece after another."""
    for piece in work:
        yield take(piece)


# ── processes of this machine ─────────────────────────────────────────────────────────────────────


class _Worker(NamedTuple):
    """A process that is given work, the socket to it, and the numbers of what it has not done yet."""

    started: Started
    link: Connection[Any, Any]
    numbers: deque[int]


def processes(jobs: int, take: Callable[[Work], Done], work: Iterable[Work]) -> Generator[Done]:
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
        yield from _shared_out(workers, chain(first, rest))
        end = time.monotonic() + _GRACE
    finally:
        for worker in workers:
            worker.link.close()
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.started.child.wait(max(0.0, end - time.monotonic()))
            bury(worker.started)


def _start() -> _Worker:
    """Start a process, which waits to be told what to do with the work that it is going to get."""
    from multiprocessing.connection import Connection

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        streams = theirs.fileno(), subprocess.DEVNULL, subprocess.DEVNULL if sys.stderr is None else 2
        started = start([sys.executable, "-c", _MAIN, "worker"], _UNLIMITED, env, streams)
        return _Worker(started, Connection(ours.detach()), deque())


_MAIN = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "  # the working directory may hide our modules
    "from conformance.isolate.spread import serve; serve()"
)


def _shared_out(workers: Sequence[_Worker], work: Iterator[Any]) -> Iterator[Any]:
    """Give work to whichever worker has little, and yield the results in the order of the work."""
    from multiprocessing.connection import wait

    results: dict[int, Any] = {}
    given = due = 0
    while True:
        for worker in sorted(workers, key=lambda each: len(each.numbers)) * _QUEUED:
            if len(worker.numbers) < _QUEUED and given < due + len(workers) * _AHEAD:
                for piece in islice(work, 1):
                    _send(worker, piece)
                    worker.numbers.append(given)
                    given += 1
        if due == given:
            return
        ready = wait([worker.link for worker in workers])
        for worker in workers:
            if worker.link in ready:
                results[worker.numbers.popleft()] = _receive(worker)
        while due in results:
            yield results.pop(due)
            due += 1


def _send(worker: _Worker, what: object) -> None:
    with suppress(OSError):  # it has ended, which is seen when its result is wanted
        worker.link.send(what)


def _receive(worker: _Worker) -> Any:
    try:
        succeeded, value = worker.link.recv()
    except (EOFError, OSError):
        raise WorkerDied(f"a worker process {_ending(worker)}; add --resume to go on with what was done") from None
    if succeeded:
        return value
    raise value


def _ending(worker: _Worker) -> str:
    try:
        code = worker.started.child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    if code >= 0:
        return f"ended with exit code {code}"
    return f"died of {next((each.name for each in signal.Signals if each == -code), f'signal {-code}')}"


def serve() -> None:
    """Do what comes over the socket that is our standard input, until nobody has more; for `processes`."""
    adopt()
    from multiprocessing.connection import Connection

    link, me = Connection(os.dup(0)), os.getpid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    with suppress(EOFError, OSError):
        take = link.recv()
        while True:
            outcome = _outcome(take, link.recv())
            if os.getpid() != me:  # a backend forked, and its copy has come back
                os._exit(0)
            link.send_bytes(outcome)


def _outcome(take: Callable[[Any], Any], piece: Any) -> bytes:
    """The pickle of True and the result, or of False and the exception."""
    try:
        return pickle.dumps((True, take(piece)))
    except BaseException as error:
        try:
            pickled = pickle.dumps((False, error))
            pickle.loads(pickled)
        except Exception:  # not every exception can be made from its pickle
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return pickled


# ── a Dask cluster ────────────────────────────────────────────────────────────────────────────────


def cluster(address: str, take: Callable[[Work], Done], work: Iterable[Work]) -> Generator[Done]:
    """On the workers of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise NoCluster("--dask needs Dask; pip install 'reshape-conformance[dask]'") from None
    try:
        client = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise NoCluster(f"--dask {address}: no scheduler answers: {said}") from None
    with closing(client):
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise NoCluster(f"--dask {address}: the scheduler has no workers; start some with `dask worker {address}`")
        submit = partial(client.submit, take, pure=False)
        yield from _in_order(submit, partial(_from_cluster, client, address), work, workers * _AHEAD)


def _from_cluster(client: Any, address: str, future: Any) -> Any:
    """A result; dask.distributed gives the work of a worker that died to another."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    while True:
        try:
            return future.result(timeout=_PATIENCE)
        except TimeoutError:  # noqa: PERF203 - it waits
            if client.status != "running" or not client.scheduler_info(n_workers=-1)["workers"]:
                raise NoCluster(f"--dask {address}: no worker is left; what was done can be resumed") from None
        except FutureCancelledError:
            raise NoCluster(f"--dask {address}: the scheduler is gone; what was done can be resumed") from None
        except KilledWorker as killed:
            raise NoCluster(f"--dask {address}: {' '.join(str(killed).split())}") from None
        except (ImportError, RuntimeError) as error:
            if isinstance(error, ImportError) or "deserialization" in str(error):
                said = str(error.__cause__ or error).partition("\n")[0]
                raise NoCluster(
                    f"--dask {address}: {said}; install the same suite on the scheduler and on all workers"
                ) from None
            raise


def _in_order(
    submit: Callable[[Work], Any], result: Callable[[Any], Done], work: Iterable[Work], most: int
) -> Iterator[Done]:
    rest = iter(work)
    waiting = deque(map(submit, islice(rest, most)))
    while waiting:
        done = result(waiting.popleft())
        waiting.extend(map(submit, islice(rest, 1)))
        yield done
