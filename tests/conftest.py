"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os

import pytest

from . import memo

memo.install()
gc.set_threshold(100_000)  # as the command does: objects stay, and the collector would look at all of them again
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads in each of hundreds of processes

from .skips import describe_skips  # noqa: E402
from .small import Cli  # noqa: E402


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if isinstance(report.longrepr, tuple)]
    if line := describe_skips(report.longrepr[2] for report in skipped):
        terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asserts that a command says nothing need not ask how long it took."""
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", float("inf"))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`conformance` in this process."""
    return Cli(capsys)
