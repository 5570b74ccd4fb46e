"""Work spread over processes of this machine or over a Dask cluster; results come in the order of the work.

Both engines exist already: concurrent.futures and dask.distributed. A worker that dies is replaced by theirs.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from .adapter import CannotStart
from .orphans import adopt

Work = TypeVar("Work")
Done = TypeVar("Done")
_AHEAD = 8
"""Pieces of work that wait for each worker: memory stays flat however much there is."""
_PATIENCE = 15.0
"""Seconds to wait for a result before asking whether anybody is left to give it."""


class NoCluster(CannotStart):
    """Dask is not installed, nobody answers at the address, or nobody is left there."""


def here(take: Callable[[Work], Done], work: Iterable[Work]) -> Iterator[Done]:
    """In this process, one after another."""
    return map(take, work)


def processes(jobs: int, take: Callable[[Work], Done], work: Iterable[Work]) -> Iterator[Done]:
    """In so many processes, which are ended at once where the results are not wanted any more."""
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=adopt)
    try:
        yield from _in_order(lambda each: pool.submit(take, each), Future.result, work, jobs * _AHEAD)
    except BaseException:  # nobody waits for what they are at, which may take for ever
        for child in multiprocessing.active_children():
            if child not in others:
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def cluster(address: str, take: Callable[[Work], Done], work: Iterable[Work]) -> Iterator[Done]:
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


def _in_order(
    submit: Callable[[Work], Any], result: Callable[[Any], Done], work: Iterable[Work], most: int
) -> Iterator[Done]:
    rest = iter(work)
    waiting: deque[Future[Any] | Any] = deque(map(submit, islice(rest, most)))
    while waiting:
        done = result(waiting.popleft())
        waiting.extend(map(submit, islice(rest, 1)))
        yield done
