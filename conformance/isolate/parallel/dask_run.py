"""Run the rows of a suite on the workers of a Dask cluster; the results come in the order of the rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from ... import __version__
from ...adapter import CannotStart, resolve_claims
from ...draw.challenge import challenge
from ...load.cases import load_suite
from ...model import Adapter, Claims, Identity, Result
from ...plan.rows import Plan, Row, plan_of
from ...plan.select import choose
from ...run.confirm import DEFAULT_HANGS, HangPolicy
from ..backend import Isolation, open_backend, run_rows
from ..process.launch import DEFAULT_LIMITS, Limits
from .distribute import run_on_dask

_ROWS_PER_BATCH = 64
"""Rows that a worker takes at a time: some tenths of a second of work."""


class WorkerSetup(NamedTuple):
    """The backend and the suite that a worker must have; rows are sent as their numbers in the plan."""

    backend: str
    isolation: Isolation
    identity: Identity
    claims: Claims
    digest: str
    limits: Limits = DEFAULT_LIMITS
    hangs: HangPolicy = DEFAULT_HANGS
    suite: Path | None = None
    nonce: str | None = None
    select: str | None = None
    version: str = __version__
    """The version of the suite, here and at the workers."""


class WorkerDiffers(CannotStart):
    """A worker has another suite or another backend than the one that the run began with."""


_LOCK = threading.Lock()
"""Held while a backend is called: one thread at a time may call it."""


@lru_cache(1)
def _load(setup: WorkerSetup) -> tuple[Plan, Adapter]:
    """Load the plan and open the backend, once a worker; WorkerDiffers if either is not as in `setup`."""
    if setup.version != __version__:
        raise WorkerDiffers(f"the suite is version {__version__} at a worker, {setup.version} here; install the same")
    plan = plan_of(load_suite(setup.suite))
    if plan.suite.digest != setup.digest:
        raise WorkerDiffers(
            f"the suite is {plan.suite.digest[:12]} at a worker, {setup.digest[:12]} here; install the same"
        )
    plan = choose(challenge(plan, setup.nonce), setup.select)
    adapter = open_backend(setup.backend, setup.isolation, setup.limits)
    if (adapter.identity, resolve_claims(adapter, plan.suite.spec.operations)) != (setup.identity, setup.claims):
        there, here = adapter.identity, setup.identity
        raise WorkerDiffers(f"the backend is {there.name} {there.version} at a worker, {here.name} {here.version} here")
    return plan, adapter


def run_numbered_rows(setup: WorkerSetup, numbers: Sequence[int]) -> list[Result]:
    """Run the rows with these numbers, on a worker."""
    with _LOCK:
        plan, adapter = _load(setup)
        rows = [plan.rows[number] for number in numbers]
        return list(run_rows(rows, adapter, setup.claims, setup.isolation, setup.hangs))


def run_on_workers(address: str, setup: WorkerSetup, rows: Sequence[Row], chosen: Sequence[Row]) -> Iterator[Result]:
    """Run the chosen rows on the workers of a Dask cluster."""
    number_of = {row.id: number for number, row in enumerate(rows)}
    numbers = [number_of[row.id] for row in chosen]
    batches = [numbers[at : at + _ROWS_PER_BATCH] for at in range(0, len(numbers), _ROWS_PER_BATCH)]
    work = run_on_dask(address, partial(run_numbered_rows, setup), batches)
    for batch, results in zip(batches, work, strict=True):
        if [result.row for result in results] != [rows[number].id for number in batch]:
            raise WorkerDiffers(
                "a worker gave results of other rows than it was asked for; install the same suite there"
            )
        yield from results
