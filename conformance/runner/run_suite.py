"""A whole run: open the backend, run the planted backends, call every row, and write the evidence."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from itertools import chain, compress, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..adapter import CannotStart, modules_of_adapter, resolve_claims
from ..evidence.command import limits_of
from ..evidence.drawn import DrawnRun, WriteCase
from ..evidence.folder import RESULTS, remove_reports
from ..evidence.results import Evidence, Refused, Target, Writer, header_of, part_of, salvage
from ..evidence.subject import NO_SUBJECT, Subject, read_subject
from ..isolate.backend import Isolation, as_remote, process_notes, run_in_parallel, run_rows, use_backend
from ..isolate.process.launch import DEFAULT_LIMITS, Limits
from ..model import BAD, NOT_RUN, Adapter, Claims, Result
from ..plan.rows import Plan, Row, drawn_number
from ..run.confirm import AFTER_HANGS
from ..run.contain import quiet_backend, remove_places, stay_in
from ..run.row import result_without_call
from ..system.terminal import count_noun
from ..system.text import name_first
from ..verdict import waive
from ..verdict.blame import Blamer
from ..verdict.rejudge import refuse_contradictions
from ..verdict.standing import in_target, judged_documents
from . import planted_backends as canary
from .shards import in_shard

if TYPE_CHECKING:
    from ..isolate.parallel.dask_run import WorkerSetup

Tick = Callable[[int, str, int], None]
"""Called with the number of rows that ran, the case of the last one, and the number that failed in the target."""


@dataclass(frozen=True)
class RunRequest:
    """The rows to run, the backend, and the way to run them."""

    backend: str
    plan: Plan
    target: Target
    chosen: Callable[[Row], bool]
    """True for a row that -k chooses."""
    isolation: Isolation = "none"
    limits: Limits = DEFAULT_LIMITS
    jobs: int = 1
    waivers: Path | None = None
    pinned: Claims | None = None
    """The exact claims that the backend must make."""
    dask: str | None = None
    """The address of a scheduler whose workers take the rows, with the folders of the suite as they are there."""
    spec: Path | None = None
    cases: Path | None = None
    maxfail: int | None = None
    """The number of rows that fail in the target after which no row is called."""
    drawn: int = 0
    """The number of rows that are drawn and called after the others."""
    write: WriteCase | None = None
    """Writes the case of a drawn row that failed."""
    with_subject: bool = False
    """True if the evidence names the files under test, which takes up to some seconds."""
    by: str | None = None
    """The name of whoever is responsible for the run, for its header."""


class ClaimsDiffer(Exception):
    """The backend does not claim what a certifier pinned."""


def run_suite(
    order: RunRequest,
    out: Callable[[str], Path] | None,
    resume: bool = False,
    tick: Tick = lambda ran, case, failed: None,
) -> Evidence:
    """Run an order, write its results, and return what was written.

    `out` is told the backend's name and gives the folder, which it has locked, and cleared unless the run is resumed.
    Without `out` no file is written, and the evidence holds only the rows that ran.
    """
    gc.freeze()  # the plan stays; otherwise the collector would take most of the time of a run
    waivers = load_waivers(order)  # before anything is started
    here, me = os.getcwd(), os.getpid()
    with quiet_backend() as notes:
        with use_backend(order.backend, order.isolation, order.limits) as adapter:
            stay_in(here, notes)
            planted_failures = canary.count_failures(order.plan, order.isolation, order.limits, out is None)
            setup = check_backend(order, adapter, waivers)
            claims, header = setup.claims, setup.header
            folder = out(adapter.identity.name) if out else None
            path = folder and folder / RESULTS
            drawn = DrawnRun(order.plan, claims, order.drawn) if order.drawn else None
            header |= {"drawn": drawn.drawn._asdict()} if drawn else {}
            done = _resume(order.plan, path, header) if path and resume else []
            if folder:
                remove_reports(folder)
            writer = Writer(path, header)
            began = time.perf_counter()
            in_order = _run_in_order(order, adapter, claims, done)
            uncalled: Counter[str] = Counter()
            ran = failed = written = 0
            all_rows = chain(in_order, drawn.run(adapter, order.isolation, order.write) if drawn else ())
            for row, result in all_rows:
                if os.getpid() != me:  # a backend in this process forked, and the fork returned
                    os._exit(0)
                is_run = result is None or set(result.verdicts.values()) != {NOT_RUN}
                if not out and not is_run:
                    continue
                if result is not None:  # None: a drawn row of which nothing is kept
                    uncalled[row.case.id] += result.detail == AFTER_HANGS
                    judged = setup.apply_waivers(row, result)
                    writer.row(judged)
                    failed += _fails_in_target(row, judged, order.target, claims)
                ran += is_run
                tick(ran, row.case.id, failed)
                written += 1
                if failed == order.maxfail:
                    break
            in_order.close()
            if failed == order.maxfail:
                notes.append(f"no row was called after {failed:,} failed, as --maxfail asks")
                for row in order.plan.rows[written:] if folder else ():
                    writer.row(result_without_call(row, NOT_RUN))
        notes.extend(map(remove_places, drawn.notes if drawn else ()))
        notes.extend(note_after_hangs(+uncalled, order.limits))
        subject = read_subject_of(adapter, order.backend) if order.with_subject else NO_SUBJECT
        process = process_notes(adapter)
    all_notes = (*setup.notes, *notes, *map(remove_places, process))
    return writer.close(
        time.perf_counter() - began, all_notes, planted_failures, drawn.counts if drawn else None, subject
    )


def _fails_in_target(row: Row, result: Result, target: Target, claims: Claims) -> bool:
    """True if a row fails for a document that the run is to test, in an operation and a type that are claimed."""
    return any(result.verdicts.get(document) in BAD for document in judged_documents(row, target, claims))


def read_subject_of(adapter: Adapter, backend: str) -> Subject:
    """Name the files under test of a running backend; none if its process ended and does not start again."""
    try:
        remote = as_remote(adapter)
        return read_subject(remote.session().process.pid if remote else os.getpid(), modules_of_adapter(backend))
    except CannotStart:
        return NO_SUBJECT


@dataclass(frozen=True)
class BackendSetup:
    """The facts about a backend that a run has before the first row."""

    claims: Claims
    waivers: tuple[waive.Waiver, ...]
    """Those for this backend and version."""
    header: dict[str, Any]
    """The header of the evidence."""
    notes: tuple[str, ...]
    today: date
    blamer: Blamer

    def apply_waivers(self, row: Row, result: Result) -> Result:
        """Return the result with the failures waived that a waiver covers."""
        return waive.apply_waivers(result, row, self.waivers, self.today, self.blamer)


def load_waivers(order: RunRequest) -> list[waive.Waiver]:
    """Load the waivers of an order, for any backend; Malformed if the file cannot be used."""
    return waive.load_all(order.waivers, order.plan) if order.waivers else []


def check_backend(order: RunRequest, adapter: Adapter, waivers: Sequence[waive.Waiver]) -> BackendSetup:
    """Compare the backend's claims with those that are pinned, choose its waivers and make the header.

    Raises ClaimsDiffer, or Malformed if a waiver cannot be compared with its version.
    """
    identity, claims = adapter.identity, resolve_claims(adapter, order.plan.suite.spec.operations)
    if order.pinned is not None and order.pinned != claims:
        raise ClaimsDiffer(describe_difference(order.pinned, claims))
    chosen = waive.choose_for(waivers, identity, order.waivers) if order.waivers else ()
    folders = {"spec": order.spec, "cases": order.cases}
    header = header_of(order.plan.suite, identity, claims, order.target, order.backend, folders)
    header |= {"isolation": order.isolation, "waivers": [waiver.to_json() for waiver in chosen]}
    optional = {"limits": limits_of(order.limits), "by": order.by, "nonce": order.plan.nonce}
    header |= {name: value for name, value in optional.items() if value}
    near = tuple(waive.note_near_names(waivers, identity))
    today = datetime.now(timezone.utc).date()
    return BackendSetup(claims, chosen, header, near, today, Blamer(order.plan.suite.spec.rules))


def note_after_hangs(uncalled: Counter[str], limits: Limits) -> Iterator[str]:
    """Say how many rows were not called because others of their case hung, what that saved, and how to call them."""
    if not uncalled:
        return
    cases = name_first([case for case, _ in uncalled.most_common()], 3)
    minutes = max(1, round(uncalled.total() * limits.seconds / 60))
    yield (
        f"not called: {count_noun(uncalled.total(), 'row')} of {cases}, because "
        f"{count_noun(limits.maxhang, 'row')} of the same case and operation hung; that saved up to "
        f"{minutes:,} min, and --maxhang 0 calls them"
    )


def _resume(plan: Plan, path: Path, header: Mapping[str, Any]) -> list[Result]:
    """Return the results of an interrupted run, without drawn rows, which are called again."""
    done = [result for result in salvage(path, header) if drawn_number(result.row) is None]
    for row, result in zip_longest(plan.rows, done):
        if result is not None and (row is None or row.id != result.row):
            raise Refused(f"{path}: the row {result.row} is not where the suite has it; begin a new run")
    refuse_contradictions(plan, done, header, part_of(path))
    return done


def _run_in_order(
    order: RunRequest, adapter: Adapter, claims: Claims, done: list[Result]
) -> Generator[tuple[Row, Result]]:
    """Yield one result a row of the plan, in its order: done before, called now, or not called."""
    rows = order.plan.rows
    yield from zip(rows, done, strict=False)
    chosen = chosen_rows(order)[len(done) :]
    waiting = list(compress(rows[len(done) :], chosen))
    if order.dask:
        from ..isolate.parallel.dask_run import run_on_workers  # slow to import, and only needed here

        results = run_on_workers(order.dask, _worker_setup(order, adapter, claims), rows, waiting)
    elif order.jobs > 1:
        results = run_in_parallel(waiting, adapter, claims, order.backend, order.isolation, order.limits, order.jobs)
    else:
        results = run_rows(waiting, adapter, claims, order.isolation)
    for row, is_chosen in zip(rows[len(done) :], chosen, strict=True):
        yield row, next(results) if is_chosen else result_without_call(row, NOT_RUN)


def _worker_setup(order: RunRequest, adapter: Adapter, claims: Claims) -> WorkerSetup:
    from ..isolate.parallel.dask_run import WorkerSetup

    return WorkerSetup(
        order.backend, order.isolation, adapter.identity, claims, order.plan.suite.digest, order.limits,
        order.spec and order.spec.resolve(), order.cases and order.cases.resolve(), order.plan.nonce,
    )  # fmt: skip


def chosen_rows(order: RunRequest) -> list[bool]:
    """Say of each row of the plan whether an order runs it."""
    return [_is_chosen(order, number, row) for number, row in enumerate(order.plan.rows)]


def _is_chosen(order: RunRequest, number: int, row: Row) -> bool:
    if order.target.shard and not in_shard(number, order.target.shard):
        return False
    every = Claims((row.operation,))
    return order.chosen(row) and any(in_target(row, document, order.target, every) for document in row.documents)


def describe_difference(pinned: Claims, claims: Claims) -> str:
    """Say where two claims differ."""
    parts = []
    pairs = (
        ("operations", pinned.operations, claims.operations),
        ("leaves_out", pinned.not_claimed, claims.not_claimed),
    )
    for field, want, got in pairs:
        for names, what in (
            (_without(want, got), "pinned and not claimed"),
            (_without(got, want), "claimed and not pinned"),
        ):
            parts += [f"{field}: {', '.join(names)} {'are' if len(names) > 1 else 'is'} {what}"] if names else []
    if pinned.answers_special_zero != claims.answers_special_zero:
        parts.append(f"answers_special_zero: {str(pinned.answers_special_zero).lower()} is pinned and not claimed")
    return "; ".join(parts) or "the order of the claims differs"


def _without(these: Iterable[str], those: Iterable[str]) -> list[str]:
    return [name for name in these if name not in set(those)]
