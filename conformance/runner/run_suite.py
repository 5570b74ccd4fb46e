"""A whole run: open the backend, run the planted backends, call every row, and write the evidence."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..adapter import CannotStart, digest_of_adapter, resolve_claims
from ..evidence.command import limits_of
from ..evidence.folder import RESULTS, remove_reports
from ..evidence.results import Evidence, InvalidEvidence, Tampered, Target, header_of, name_unfinished, salvage
from ..evidence.subject import NO_SUBJECT, Subject, read_subject
from ..evidence.writer import Writer
from ..isolate.backend import (
    Isolation,
    as_remote,
    list_ends,
    note_opened_files,
    note_processes,
    open_another,
    split_rows,
    use_backend,
    use_jobs,
)
from ..isolate.process.launch import DEFAULT_LIMITS, ProcessLimits
from ..model import BAD, NOT_RUN, Adapter, Claims, Result
from ..plan.quick import quick_rows
from ..plan.rows import Plan, Row, has_many_elements, parse_drawn_id
from ..run.ended_process import AFTER_HANGS, DEFAULT_HANGS, HangPolicy
from ..run.quiet_backend import quiet_backend, remove_places, stay_in
from ..run.row import make_result_without_call
from ..system.terminal import count_noun
from ..system.text import name_first
from ..verdict import waive
from ..verdict.blame import Blamer
from ..verdict.rejudge import refuse_contradictions
from ..verdict.sentences import note_fewer_calls
from ..verdict.standing import is_in_target, list_counted_documents
from . import planted_backends
from .drawn_run import DrawnRun
from .fresh_calls import FreshCalls

if TYPE_CHECKING:
    from ..isolate.protocol.opened import OpenedFiles

ProgressCallback = Callable[[int, int], None]
"""Called with the number of rows that ran, and the number that failed in the target."""


@dataclass(frozen=True)
class RunRequest:
    """One run: the backend, the rows, and the way to run them. Every way to start a run makes one of these."""

    backend: str
    """A bundled name, `module:Class`, `file.py:Class` or `cmd:PROGRAM`."""
    plan: Plan
    target: Target
    """The part of the suite that the run is about, as its evidence records it."""
    chosen: Callable[[Row], bool] = lambda row: True
    """Says if --last-failed chooses a row of the plan, which has those of -k."""
    isolation: Isolation = "none"
    """The process in which the backend runs."""
    limits: ProcessLimits = DEFAULT_LIMITS
    """Time and memory of that process."""
    hangs: HangPolicy = DEFAULT_HANGS
    """When rows are not called because others hung."""
    jobs: int = 1
    """Processes that call rows at the same time."""
    waivers: tuple[Path, ...] = ()
    """The files of known failures."""
    pinned: tuple[Path, Claims] | None = None
    """The exact claims that the backend must make, and their file."""
    maxfail: int | None = None
    """The number of rows that fail in the target after which no row is called."""
    drawn_rows: int = 0
    """The number of drawn rows. They come before the rows with many elements."""
    resume: bool = False
    """Go on with the run that left results in the folder."""
    with_subject: bool = False
    """Name the files under test in the evidence, which takes up to some seconds."""
    tester: str | None = None
    """Who is responsible for the run, for its header."""


OpenFolder = Callable[[Mapping[str, Any]], Path]
"""Called with the header before any row runs. Returns the folder, locked, and cleared unless the run is resumed."""


def run_suite(
    request: RunRequest, open_folder: OpenFolder | None, tick: ProgressCallback = lambda *_: None
) -> Evidence:
    """Run what is requested, write its results, and return what was written.

    Without `open_folder` no file is written, and the evidence holds only the rows that ran.
    """
    gc.freeze()  # the plan stays; otherwise the collector would take most of the time of a run
    waivers = waive.load_all(request.waivers, request.plan)  # before anything is started
    here, me = os.getcwd(), os.getpid()
    with quiet_backend() as notes, note_opened_files() if request.with_subject else nullcontext() as opened:
        with use_backend(request.backend, request.isolation, request.limits, opened) as adapter, ExitStack() as calls:
            stay_in(here, notes)
            setup = set_up_backend(request, adapter, waivers)
            claims, header = setup.claims, setup.header
            folder = open_folder(header) if open_folder else None
            path = folder and folder / RESULTS
            few = bool(request.target.row_options)
            planted_failures = planted_backends.run_all(request.plan, request.isolation, request.limits, few)
            drawn = DrawnRun(request.plan, setup, request.drawn_rows, request.target) if request.drawn_rows else None
            header |= {"drawn": drawn.drawn.to_json()} if drawn else {}
            done = _resume(request.plan, path, header) if path and request.resume else []
            if folder:
                remove_reports(folder)
            writer = Writer(path, header)
            began = time.perf_counter()
            in_order = _run_in_order(request, adapter, setup, done, drawn, notes.append)
            calls.enter_context(_tell_of_failure(in_order))
            uncalled: Counter[str] = Counter()
            ran = failed = failed_of_cases = written = 0
            for row, result in in_order:
                if os.getpid() != me:  # a backend in this process forked, and the fork returned
                    os._exit(0)
                is_run, is_drawn = result is None or not result.is_not_run, parse_drawn_id(row.id) is not None
                if not open_folder and not is_run:
                    continue
                if result is not None:  # None: a drawn row that did not fail, or not the first that fails so
                    notes.extend(note_fewer_calls(row, result))
                    uncalled[row.case.id] += result.outcomes == AFTER_HANGS
                    judged = setup.apply_waivers(row, result)
                    writer.row(judged)
                    failed_of_cases += not is_drawn and any(
                        judged.verdicts.get(document) in BAD
                        for document in list_counted_documents(row, request.target, claims)
                    )
                ran += is_run
                failed = failed_of_cases + (drawn.failed if drawn else 0)
                tick(ran + (drawn.not_called if drawn else 0), failed)
                written += not is_drawn
                if failed == request.maxfail:
                    break
            in_order.close()
            if failed == request.maxfail:
                notes.append(f"no row was called after {failed:,} failed, as --maxfail asks")
                for result in _list_left_out(request.plan, done, written) if folder else ():
                    writer.row(result)
            refuse_changed_adapter(request.backend, header)
            subject = read_subject_of(adapter, request.backend, opened) if opened else NO_SUBJECT
        notes.extend(map(remove_places, drawn.notes if drawn else ()))
        notes.extend(note_after_hangs(+uncalled, request.limits.seconds, request.hangs.max_hangs))
    all_notes = (*setup.notes, *notes, *map(remove_places, note_processes(adapter)))
    return writer.close(
        time.perf_counter() - began, all_notes, planted_failures, drawn.counts if drawn else None, subject,
        list_ends(adapter),
    )  # fmt: skip


@contextmanager
def _tell_of_failure(in_order: Generator[Any]) -> Iterator[None]:
    """Raise an exception of the `with` block in the generator too: with --jobs, its threads still use the backend."""
    try:
        yield
    except BaseException as error:
        in_order.throw(error)
        raise


def refuse_changed_adapter(backend: str, header: Mapping[str, Any]) -> None:
    """Raise Tampered if the adapter is another than when the run began: later processes of a run import it again.

    The command line of a program may name files that it writes, so that such a change says nothing.
    """
    if not backend.startswith("cmd:") and digest_of_adapter(backend) != header["backend"]["digest"]:
        raise Tampered("the adapter was changed while it was tested; no verdict holds, run again")


def read_subject_of(adapter: Adapter, backend: str, opened: OpenedFiles) -> Subject:
    """Name the files under test of a running backend; say so if its process ended and does not start again."""
    try:
        remote = as_remote(adapter)
        return read_subject(remote.session().process.pid if remote else os.getpid(), backend, opened)
    except CannotStart:
        return NO_SUBJECT._replace(not_named=("all files of a backend that does not start again",))


@dataclass(frozen=True)
class BackendSetup:
    """The facts about a backend that a run has before the first row."""

    claims: Claims
    header: dict[str, Any]
    """The header of the evidence, with the waivers for this backend and version."""
    notes: tuple[str, ...]
    blamer: Blamer

    def waive_call(self, row: Row) -> Result | None:
        """Return the result of a claimed row that a waiver keeps from being called; None if the row is called."""
        if result := waive.waive_call(row, self.header):  # first, as few rows have one
            is_claimed = self.claims.has_operation(row.operation) and not self.claims.find_unclaimed(row.facets)
            return result if is_claimed else None
        return None

    def apply_waivers(self, row: Row, result: Result) -> Result:
        return waive.apply_waivers(result, row, self.header, self.blamer)


def set_up_backend(request: RunRequest, adapter: Adapter, waivers: Sequence[waive.Waiver]) -> BackendSetup:
    """Compare the backend's claims with those that are pinned, choose its waivers and make the header.

    Raises CannotStart if the claims differ, or Malformed if a waiver cannot be compared with its version.
    """
    identity, claims = adapter.identity, resolve_claims(adapter, request.plan.suite.spec.operations)
    if request.pinned and request.pinned[1] != claims:
        difference = describe_difference(request.pinned[1], claims)
        raise CannotStart(f"{identity.name}: its claims are not those that are pinned: {difference}")
    header = header_of(request.plan.suite, identity, claims, request.target, request.backend)
    if request.pinned:
        header.setdefault("folders", {})["claims"] = str(request.pinned[0])
    header |= {"isolation": request.isolation, "waivers": waive.choose_for(waivers, identity)}
    limits = limits_of(request.limits, request.backend)
    optional = {"limits": limits, "tester": request.tester, "nonce": request.plan.nonce}
    header |= {name: value for name, value in optional.items() if value}
    near = tuple(waive.note_near_names(waivers, identity))
    return BackendSetup(claims, header, near, Blamer(request.plan.suite.spec.rules))


def note_after_hangs(uncalled: Counter[str], seconds: float, max_hangs: int) -> Iterator[str]:
    """Say how many rows were not called because others of their case hung, what that saved, and how to call them."""
    if not uncalled:
        return
    cases = name_first([case for case, _ in uncalled.most_common()], 3)
    minutes = max(1, round(uncalled.total() * seconds / 60))
    yield (
        f"not called: {count_noun(uncalled.total(), 'row')} of {cases}, because "
        f"{count_noun(max_hangs, 'row')} of the same case and operation hung; that saved up to "
        f"{minutes:,} min, and --max-hangs 0 calls them"
    )


def _resume(plan: Plan, path: Path, header: Mapping[str, Any]) -> list[Result]:
    """Return the results of an interrupted run, without drawn rows, which are called again."""
    done = [result for result in salvage(path, header) if parse_drawn_id(result.row) is None]
    expired = {waiver["number"] for waiver in header["waivers"] if waive.has_expired(waiver, header)}
    done = list(takewhile(lambda result: result.waiver not in expired, done))  # it may have expired since
    for row, result in zip_longest(order_rows(plan), done):
        if result is not None and (row is None or row.id != result.row):
            raise InvalidEvidence(f"{path}: the row {result.row} is not where the suite has it; begin a new run")
    refuse_contradictions(plan, done, header, name_unfinished(path))
    return done


def _list_left_out(plan: Plan, done: list[Result], written: int) -> list[Result]:
    """Return the results of the rows after the first `written`: what an interrupted run had done, or not called."""
    rest = order_rows(plan)[max(written, len(done)) :]
    return [*done[written:], *(make_result_without_call(row, NOT_RUN) for row in rest)]


def _run_in_order(
    request: RunRequest,
    adapter: Adapter,
    setup: BackendSetup,
    done: list[Result],
    drawn: DrawnRun | None,
    tell: Callable[[str], object],
) -> Generator[tuple[Row, Result | None]]:
    """Yield a result for each row, in the order of a run: done before, called now, or not called.

    Drawn rows come before those with many elements, which take long and tell little.
    """
    rows, claims = order_rows(request.plan), setup.claims
    chosen = choose_rows(request)
    waived = {row.id: result for row in chosen if (result := setup.waive_call(row))}
    called = {row.id for row in chosen} - waived.keys()
    another = partial(open_another, adapter, request.backend, request.isolation, request.limits)
    first_slow = next((number for number, row in enumerate(rows) if has_many_elements(row.case)), len(rows))

    def run_part(start: int, end: int) -> Iterator[tuple[Row, Result]]:
        begin = min(max(start, len(done)), end)
        yield from zip(rows[start:begin], done[start:begin], strict=True)
        waiting = [row for row in rows[begin:end] if row.id in called]
        lists = [waiting] if request.jobs == 1 else split_rows(waiting)
        is_slow = start == first_slow  # many elements need much memory, so that one list is called after the other
        results = chain.from_iterable(call([each]) for each in lists) if is_slow else call(lists)
        for row in rows[begin:end]:
            if row.id in called:
                yield row, fresh.note_right_alone(row, next(results))
            else:
                yield row, waived.get(row.id) or make_result_without_call(row, NOT_RUN)

    with (
        use_jobs(adapter, another, claims, request.isolation, request.jobs, request.hangs) as call,
        closing(FreshCalls(another, claims, request.isolation, tell)) as fresh,
    ):
        yield from run_part(0, first_slow)
        if drawn:
            yield from drawn.run(call, fresh)
        yield from run_part(first_slow, len(rows))


def order_rows(plan: Plan) -> list[Row]:
    """Return the rows as a run calls them: those of --quick first, so that an interrupted run has said the most."""
    quick = frozenset(quick_rows().rows)
    return sorted(plan.rows, key=lambda row: (has_many_elements(row.case), row.id not in quick))


def choose_rows(request: RunRequest) -> list[Row]:
    """Return the rows of the plan that a request runs."""
    every = Claims(tuple(request.plan.suite.spec.operations))
    return [
        row for number, row in enumerate(request.plan.rows)
        if request.target.has_in_shard(number) and request.chosen(row)
        and is_in_target(row, request.target, every)
    ]  # fmt: skip


def describe_difference(pinned: Claims, claims: Claims) -> str:
    """Say where the claims of a backend differ from those in a file, and what to write there."""
    parts = []
    for here, there, what in (
        (pinned.operations, claims.operations, "the backend does not claim {} (remove it from operations)"),
        (claims.operations, pinned.operations, "the backend claims {} (add it to operations)"),
        (pinned.not_claimed, claims.not_claimed, "the backend claims {} (remove it from not_claimed)"),
        (claims.not_claimed, pinned.not_claimed, "the backend does not claim {} (add it to not_claimed)"),
    ):
        names = [name for name in here if name not in there]
        words = what if len(names) == 1 else what.replace(" it ", " them ")
        parts += [words.format(", ".join(names))] if names else []
    if pinned.answers_special_zero != claims.answers_special_zero:
        field = f"answers_special_zero: {str(claims.answers_special_zero).lower()}"
        parts.append(f"the backend claims {field} (write that)")
    return f"{'; '.join(parts) or 'the backend has the names in another order'}; change the file so, or the backend"
