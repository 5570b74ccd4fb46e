"""Rows of a suite taken in pieces, each wherever a worker of a cluster is free; the results come in the rows' order."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..adapter import CannotStart, resolve_claims
from ..load.cases import load_suite
from ..model import Adapter, Claims, Identity, Result
from ..plan.rows import Plan, Row, plan_of
from .backend import Isolation, open_backend, run_isolated
from .spread import cluster
from .started import USUAL, Limits

_PIECE = 64
"""Rows of a piece: some tenths of a second of work."""


class Errand(NamedTuple):
    """What a worker has to know to take a piece: nothing is sent but names and numbers."""

    backend: str
    isolation: Isolation
    identity: Identity
    claims: Claims
    digest: str
    limits: Limits = USUAL
    spec: Path | None = None
    cases: Path | None = None
    version: str = __version__
    """Of the suite, here and at the workers."""


class Elsewhere(CannotStart):
    """A worker has another suite or another backend than the one that the run began with."""


_ALONE = threading.Lock()
"""A backend is called by one thread at a time."""


@lru_cache(1)
def _kept(errand: Errand) -> tuple[Plan, Adapter]:
    """What a worker keeps between pieces."""
    if errand.version != __version__:
        raise Elsewhere(f"the suite is version {__version__} at a worker, {errand.version} here; install the same")
    plan = plan_of(load_suite(errand.spec, errand.cases))
    if plan.suite.digest != errand.digest:
        raise Elsewhere(
            f"the suite is {plan.suite.digest[:12]} at a worker, {errand.digest[:12]} here; install the same"
        )
    adapter = open_backend(errand.backend, errand.isolation, errand.limits)
    if (adapter.identity, resolve_claims(adapter, plan.suite.spec.operations)) != (errand.identity, errand.claims):
        there, here = adapter.identity, errand.identity
        raise Elsewhere(f"the backend is {there.name} {there.version} at a worker, {here.name} {here.version} here")
    return plan, adapter


def piece(errand: Errand, numbers: Sequence[int]) -> list[Result]:
    """The results of the rows with these numbers."""
    with _ALONE:
        plan, adapter = _kept(errand)
        rows = [plan.rows[number] for number in numbers]
        return list(run_isolated(rows, adapter, errand.claims, errand.isolation))


def afield(address: str, errand: Errand, rows: Sequence[Row], chosen: Sequence[Row]) -> Iterator[Result]:
    """The results of the chosen rows, taken on the workers of a Dask cluster."""
    number_of = {row.id: number for number, row in enumerate(rows)}
    numbers = [number_of[row.id] for row in chosen]
    work = [numbers[at : at + _PIECE] for at in range(0, len(numbers), _PIECE)]
    for piece_of_rows, results in zip(work, cluster(address, partial(piece, errand), work), strict=True):
        if [result.row for result in results] != [rows[number].id for number in piece_of_rows]:
            raise Elsewhere("a worker gave results of other rows than it was asked for; install the same suite there")
        yield from results
