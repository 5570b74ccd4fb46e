"""The whole of a run: open the backend, drive the planted bad ones, call every row, write the evidence."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import compress, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from ..adapter import resolve_claims
from ..isolate.backend import Isolation, opened, remarks, run_in_parallel, run_isolated
from ..isolate.started import USUAL, Limits
from ..model import NOT_RUN, Adapter, Claims, Result
from ..plan.rows import Plan, Row
from ..run.contain import contain, remove_places, stay_in
from ..run.row import result_without_call
from . import canary, waive
from .conclude import in_target
from .evidence import Evidence, Refused, Target, Writer, header_of, part_of, salvage
from .folder import RESULTS, remove_reports
from .rejudge import refuse_contradictions

if TYPE_CHECKING:
    from ..isolate.pieces import Errand

Tick = Callable[[int, str], None]


@dataclass(frozen=True)
class Order:
    """What is to be run, and how."""

    backend: str
    plan: Plan
    target: Target
    chosen: Callable[[Row], bool]
    """Whether -k chooses a row."""
    isolation: Isolation = "none"
    limits: Limits = USUAL
    jobs: int = 1
    waivers: Path | None = None
    pinned: Claims | None = None
    """What must be claimed, exactly."""
    dask: str | None = None
    """The address of a scheduler whose workers take the rows, with the folders of the suite as they are there."""
    spec: Path | None = None
    cases: Path | None = None


class Differs(Exception):
    """The backend does not claim what a certifier pinned."""


def certify(
    order: Order, out: Callable[[str], Path], resume: bool = False, tick: Tick = lambda number, row: None
) -> Evidence:
    """Run an order, write its results, and return what was written.

    `out` is told the backend's name and gives the folder, which it has locked, and cleared unless the run is resumed.
    """
    gc.freeze()  # the plan stays; to walk it again and again would be most of the run
    if order.waivers:
        waive.entries(order.waivers)  # a file that cannot be used is said before anything is started
    here, me = os.getcwd(), os.getpid()
    with contain() as notes:
        with opened(order.backend, order.isolation, order.limits) as adapter:
            stay_in(here, notes)
            caught = canary.caught(order.plan, order.isolation, order.limits)
            identity, claims = adapter.identity, resolve_claims(adapter, order.plan.suite.spec.operations)
            if order.pinned is not None and order.pinned != claims:
                raise Differs(difference(order.pinned, claims))
            waivers = waive.load(order.waivers, identity) if order.waivers else ()
            folder = out(identity.name)
            folders = {"spec": order.spec, "cases": order.cases}
            header = header_of(order.plan.suite, identity, claims, order.target, order.backend, folders)
            header |= {"isolation": order.isolation, "waivers": waive.recorded(waivers)}
            done = salvage(folder / RESULTS, header) if resume else []
            _check_order(order.plan.rows, done, folder / RESULTS)
            refuse_contradictions(order.plan, done, header, part_of(folder / RESULTS))
            remove_reports(folder)
            writer = Writer(folder / RESULTS, header)
            began, today = time.perf_counter(), datetime.now(timezone.utc).date()
            for number, (row, result) in enumerate(_in_order(order, adapter, claims, done), 1):
                if os.getpid() != me:  # a backend in this process forked, and the copy came back
                    os._exit(0)
                writer.row(waive.waived(result, row, waivers, today))
                tick(number, row.case.id)
        said = remarks(adapter)
    return writer.close(time.perf_counter() - began, (*notes, *map(remove_places, said)), caught)


def _check_order(rows: Sequence[Row], done: Sequence[Result], path: Path) -> None:
    for row, result in zip_longest(rows, done):
        if result is not None and (row is None or row.id != result.row):
            raise Refused(f"{path}: the row {result.row} is not where the suite has it; begin a new run")


def _in_order(order: Order, adapter: Adapter, claims: Claims, done: list[Result]) -> Iterator[tuple[Row, Result]]:
    """One result a row of the plan, in its order: done before, called now, or not called."""
    rows = order.plan.rows
    yield from zip(rows, done, strict=False)
    called = [_to_be_called(order, number, row) for number, row in enumerate(rows)][len(done) :]
    left = list(compress(rows[len(done) :], called))
    if order.dask:
        from ..isolate.pieces import afield  # imports what runs processes, which most runs need not wait for

        results = afield(order.dask, _errand(order, adapter, claims), rows, left)
    elif order.jobs > 1:
        results = run_in_parallel(left, adapter, claims, order.backend, order.isolation, order.limits, order.jobs)
    else:
        results = run_isolated(left, adapter, claims, order.isolation)
    for row, here in zip(rows[len(done) :], called, strict=True):
        yield row, next(results) if here else result_without_call(row, NOT_RUN)


def _errand(order: Order, adapter: Adapter, claims: Claims) -> Errand:
    from ..isolate.pieces import Errand

    return Errand(
        order.backend, order.isolation, adapter.identity, claims, order.plan.suite.digest, order.limits,
        order.spec and order.spec.resolve(), order.cases and order.cases.resolve(),
    )  # fmt: skip


def _to_be_called(order: Order, number: int, row: Row) -> bool:
    if order.target.shard:
        part, _, count = order.target.shard.partition("/")
        if number % int(count) != int(part) - 1:
            return False
    every = Claims((row.operation,))
    return order.chosen(row) and any(in_target(row, document, order.target, every) for document in row.documents)


def difference(pinned: Claims, claims: Claims) -> str:
    """Say where two claims differ."""
    parts = []
    for field in ("operations", "leaves_out"):
        want, got = getattr(pinned, field), getattr(claims, field)
        for names, what in (
            (_without(want, got), "pinned and not claimed"),
            (_without(got, want), "claimed and not pinned"),
        ):
            parts += [f"{field}: {', '.join(names)} {'are' if len(names) > 1 else 'is'} {what}"] if names else []
    if pinned.answers_special_zero != claims.answers_special_zero:
        parts.append(f"answers_special_zero: {str(pinned.answers_special_zero).lower()} is pinned and not claimed")
    return "; ".join(parts) or "the order of the claims differs"


def _without(these: Iterable[str], those: Iterable[str]) -> list[str]:
    return [each for each in these if each not in set(those)]
