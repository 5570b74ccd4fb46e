"""`conformance publish`: runs backends whole; puts their results, reports and the page of all of them in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..adapter import CannotStart, bundled_backends
from ..certify.certify import Order, certify
from ..certify.evidence import Refused, Tampered, Target
from ..certify.folder import RESULTS
from ..isolate.backend import isolation_of
from ..isolate.started import Limits
from ..load.cases import load_suite
from ..model import Verdict
from ..plan.rows import Plan, plan_of
from ..report.finished_run import FinishedRun
from ..report.publish import Stale, index, publish, size
from ..system.files import InUse, lock_folder
from ..system.temporary import temporary_folder
from ..system.terminal import Progress, counted, say, table
from .arguments import Usage, emit, folder_given

DEFAULT_OUT = Path("reports")
SLOW = ("pytensor-numba",)
"""Installed, and yet not run unless it is named: it takes more than five minutes."""

SHOWN: tuple[Verdict, ...] = ("pass", "fail", "error", "observed")


def run(args: argparse.Namespace) -> int:
    """Publishes what is named, or every backend that is installed; 1 where some folder is of another suite."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    reports = args.out or DEFAULT_OUT
    given = args.results or []
    if args.index and not args.backends and not given and not reports.is_dir():
        raise Usage(f"--out {str(reports)!r} does not exist; give the folder that holds what is published")
    names = args.backends or ([] if given or args.index else installed())
    with _lock(reports):
        for path in given:
            _published(path / RESULTS if path.is_dir() else path, plan, reports)
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


def installed() -> list[str]:
    """The backends that come along and whose library is here."""
    return [name for name, known in bundled_backends().items() if known.version and name not in SLOW]


def _run(args: argparse.Namespace, name: str, plan: Plan, reports: Path) -> None:
    isolation = isolation_of(name)
    limits = Limits(seconds=args.timeout, memory=args.memory << 20)
    jobs = 1 if isolation == "none" else args.jobs
    with temporary_folder() as folder:
        progress = Progress(f"running {name}", len(plan.rows))
        order = Order(name, plan, Target(), lambda row: True, isolation=isolation, limits=limits, jobs=jobs)
        try:
            with closing(progress):
                certify(order, lambda _: folder / "out", tick=progress.at)
        except CannotStart as cannot:
            raise Usage(str(cannot), code=3) from None
        except Tampered as tampered:
            raise Usage(str(tampered), code=5) from None
        _published(folder / "out" / RESULTS, plan, reports)


def _published(results: Path, plan: Plan, reports: Path) -> None:
    try:
        folder, replaced = publish(results, plan, reports)
    except Refused as refused:
        raise Usage(str(refused)) from None
    said = f"; {replaced}" if replaced else ""
    say(f"{folder}: {counted(size(folder) // 1024, 'KiB').replace('KiBs', 'KiB')}{said}", sys.stderr)


def _show(runs: list[FinishedRun], stale: list[Stale], reports: Path) -> None:
    rows = [(facts.name, *(str(facts.conclusion.counts.get(verdict, 0)) for verdict in SHOWN)) for facts in runs]
    if rows:
        say(table(rows, ("backend", *SHOWN), tuple(range(1, 1 + len(SHOWN)))))
    for each in stale:
        say(f"not on the page: {each.why}")
    say(f"{counted(len(runs), 'backend')} in {reports / 'index.html'}; {size(reports) / 1e6:.1f} MB in all")
