"""`conformance publish`: run backends and write their results, reports and the page of all of them into a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..adapter import REFERENCE, CannotStart, bundled_backends
from ..evidence.folder import RESULTS
from ..evidence.results import Refused, Tampered, Target
from ..isolate.backend import isolation_of
from ..isolate.process.launch import Limits
from ..plan.rows import Plan
from ..report.finished_run import FinishedRun
from ..runner.run_suite import RunRequest, run_suite
from ..site.publish import COLUMNS, Stale, index, publish, size
from ..system.exit_codes import CANNOT_START, UNTRUSTED
from ..system.files import InUse, lock_folder
from ..system.progress import Progress
from ..system.temporary import temporary_folder
from ..system.terminal import count_noun, say, table
from .arguments import Usage, emit, load_plan
from .compare import results_path
from .parser import Parser, path
from .shared_options import add_cases, add_jobs, add_memory, add_timeout

DEFAULT_OUT = Path("reports")
SLOW = ("pytensor-numba",)
"""Backends that run only if they are named, since they take more than five minutes."""


EXAMPLES = """\
  conformance publish onednn                          run it whole, and put its report into reports/
  conformance publish --results build/mine --index    a run made already; put the page together"""


def add_options(parser: Parser) -> None:
    text = "bundled names of the backends to run (every one whose library is installed here)"
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=text)
    parser.many("--results", "DIR", "the folder of a run that was made already", type=path)
    parser.add_argument("--index", action="store_true", help="run nothing; write the page of what is published")
    add_jobs(parser, 2)
    add_timeout(parser)
    add_memory(parser)
    parser.path("--out", "DIR", "where it goes (reports)")
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """Publish the named backends, or every installed one; 1 if some folder is of another suite."""
    plan = load_plan(args)
    reports = args.out or DEFAULT_OUT
    results = args.results or []
    if args.index and not args.backends and not results and not reports.is_dir():
        raise Usage(f"--out {str(reports)!r} does not exist; give the folder that holds what is published")
    names = args.backends or ([] if results or args.index else installed_backends())
    with _lock(reports):
        for path in results:
            _publish(results_path(path), plan, reports)
        for name in names:
            _run(args, name, plan, reports)
        runs, stale = index(reports, plan)
    if args.json:
        emit({
            "folder": str(reports),
            "backends": [{"name": facts.name, "verdicts": dict(facts.conclusion.counts)} for facts in runs],
            "stale": [each.why for each in stale],
        })  # fmt: skip
    else:
        _show(runs, stale, reports)
    return 1 if stale else 0


@contextmanager
def _lock(reports: Path) -> Iterator[None]:
    try:
        with lock_folder(reports, "conformance publish"):
            yield
    except InUse as in_use:
        raise Usage(f"--out: {in_use}") from None


def installed_backends() -> list[str]:
    """Return the bundled backends whose library is installed."""
    return [name for name, known in bundled_backends().items() if known.version and name not in (*SLOW, REFERENCE)]


def _run(args: argparse.Namespace, name: str, plan: Plan, reports: Path) -> None:
    isolation = isolation_of(name)
    limits = Limits(seconds=args.timeout, memory=args.memory << 20)
    jobs = 1 if isolation == "none" else args.jobs
    with temporary_folder() as folder:
        progress = Progress(f"running {name}", len(plan.rows))
        order = RunRequest(name, plan, Target(), lambda row: True, isolation=isolation, limits=limits, jobs=jobs)
        try:
            with closing(progress):
                run_suite(order, lambda _: folder / "out", tick=progress.at)
        except CannotStart as cannot:
            raise Usage(str(cannot), code=CANNOT_START) from None
        except Tampered as tampered:
            raise Usage(str(tampered), code=UNTRUSTED) from None
        _publish(folder / "out" / RESULTS, plan, reports)


def _publish(results: Path, plan: Plan, reports: Path) -> None:
    try:
        folder, replaced = publish(results, plan, reports)
    except Refused as refused:
        raise Usage(str(refused)) from None
    note = f"; {replaced}" if replaced else ""
    say(f"{folder}: {count_noun(size(folder) // 1024, 'KiB').replace('KiBs', 'KiB')}{note}", sys.stderr)


def _show(runs: list[FinishedRun], stale: list[Stale], reports: Path) -> None:
    rows = [(facts.name, *(str(facts.conclusion.counts.get(verdict, 0)) for verdict in COLUMNS)) for facts in runs]
    if rows:
        say(table(rows, ("backend", *COLUMNS), tuple(range(1, 1 + len(COLUMNS)))))
    for each in stale:
        say(f"not on the page: {each.why}")
    say(f"{count_noun(len(runs), 'backend')} in {reports / 'index.html'}; {size(reports) / 1e6:.1f} MB in all")
