"""Fixtures of all tests, and one line at the end: how many were skipped for want of libraries, and how to get these."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from . import memo

memo.install()
gc.set_threshold(100_000)  # as the command does: objects stay, and the collector would look at all of them again
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads in each of hundreds of processes
signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup make.py test &` would have tests ignore interrupts


from conformance.model import Spec  # noqa: E402
from conformance.plan.rows import Plan  # noqa: E402

from .builders import Cli, Command, build_site, bundled_plan, make_once, plan_as_bundled, spare_planted  # noqa: E402
from .builders import spec as builders_spec  # noqa: E402

_MISSING = re.compile(r"(?:No module named|[Cc]ould not import) '(\w+)|(libdnnl)")
_COMMAND = re.compile(r"pip install (.+)$")


def describe_skips(reasons: Iterable[str]) -> str | None:
    """Count the tests with a reason that names a missing library, and say what to install; None if there are none."""
    counts: Counter[str] = Counter()
    packages: set[str] = set()
    for reason in reasons:
        if name := _MISSING.search(reason):
            counts[name[1] or name[2]] += 1
            packages.update(install[1].split() if (install := _COMMAND.search(reason)) else [name[1] or name[2]])
    if not counts:
        return None
    names = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    words = " ".join(sorted(packages, key=str.casefold))
    return (
        f"{counts.total()} tests skipped without a library ({names}): pip install {words}; "
        "`python -m tools.lab test NAME` makes an environment for each"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if isinstance(report.longrepr, tuple)]
    if line := describe_skips(report.longrepr[2] for report in skipped):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asserts that a command says nothing need not ask how long it took."""
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", float("inf"))


@pytest.fixture(autouse=True)
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of an adapter that a test ran in this process is not on the path of the next test."""
    monkeypatch.setattr("sys.path", [*sys.path])


@pytest.fixture
def only_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a page of README only, as those of all docs take longer than the rest of a site."""
    monkeypatch.setattr("conformance.site.markdown_pages.list_sources", lambda: ["README.md"])


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`conformance` in this process."""
    return Cli(capsys)


@pytest.fixture
def no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs write their results only: reports take a third of a run's time."""
    monkeypatch.setattr("conformance.report.write", lambda *_: ())


@pytest.fixture
def command(reporting: Command, no_reports: None) -> Command:
    """The command on the few cases; only the results are written."""
    return reporting


@pytest.fixture
def reporting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on the few cases; the reports are written too."""
    return Command(tmp_path, capsys)


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The plan of four cases, as if they were the bundled ones; many tests have another plan."""
    return plan_as_bundled(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="session")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each kind, published."""
    return make_once(tmp_path_factory, "small-site", build_site) / "reports"


@pytest.fixture(scope="session")
def bundled_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the bundled suite, before anything is published."""
    from conformance.certificate.check import Trust  # most tests publish nothing
    from conformance.site.publish import write_pages

    return make_once(tmp_path_factory, "bundled-site", lambda folder: write_pages(folder, bundled_plan(), Trust()))


@pytest.fixture(scope="session")
def spec() -> Spec:
    """The bundled specification."""
    return builders_spec()


@pytest.fixture(autouse=True)
def no_planted_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process call no planted backends. A module that tests them replaces this fixture."""
    spare_planted(monkeypatch)


@pytest.fixture(autouse=True)
def few_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whole runs in this process draw few rows. README's command, which CI runs too, draws all."""
    monkeypatch.setattr("conformance.cli.request.count_drawn_rows", lambda *_: 120)
