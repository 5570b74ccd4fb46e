"""Distribute work over processes; results come in the order of the work.

A process ends with the command: the kernel kills it, and the backend that it has started. If one dies, the work ends.
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
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ...adapter import CannotStart
from .launch import ProcessHandle, ProcessLimits, describe_exit, import_code, kill_tree, start
from .orphans import adopt

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Value = TypeVar("Value")
_MAX_PENDING_ITEMS = 8
"""Items of work that wait for each worker; the memory needed does not grow with the work."""
_ITEMS_AT_A_TIME = 2
"""Items that a process has at a time, so that it need not wait for the next."""
_END_SECONDS = 5.0
"""Seconds in which our processes may end by themselves after the last result."""
_UNLIMITED = ProcessLimits(memory=0)
"""Limits of our processes; a backend that they start has its own."""


class HelperDied(CannotStart):
    """A process ended before its work was done."""


class _Worker(NamedTuple):
    """A process that does work, the connection to it, and the numbers of the items that it has not done yet."""

    handle: ProcessHandle
    link: Connection[Any, Any]
    numbers: deque[int]


def run_in_processes(jobs: int, take: Callable[[Item], Value], work: Iterable[Item]) -> Generator[Value]:
    """Do the work in that many processes; HelperDied if one of them ends before its work is done.

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


_MAIN = "from conformance.isolate.process.distribute import serve; serve()"


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
        raise HelperDied(f"a worker process {_describe_end(worker)}") from None
    if succeeded:
        return value
    raise value


def _describe_end(worker: _Worker) -> str:
    try:
        code = worker.handle.child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    return f"{'ended with' if code >= 0 else 'died of'} {describe_exit(code)}"


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
