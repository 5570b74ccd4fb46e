"""Failing rows at the end of a session: grouped by kind, in place of pytest's own sections on failures.

A backend may fail in hundreds of rows for one reason. pytest would print each of them twice: in full under FAILURES and
in a line of its short summary. A row is in these sections only if a person asks for it: in full if it is the only row
that failed, or with `-vv`; in a line with `-r` and letters that hold for failures. All failures of other tests stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from ..plan.rows import Row
from ..verdict.failure_kinds import MAX_KINDS_SHOWN, Failures

_USUAL = "fE"
"""What `-r` is where nobody gives it."""


class Write(Protocol):
    """Writes a line to the terminal."""

    def __call__(self, text: str, **markup: bool) -> None: ...


def write_failures(failures: Failures, every_row: bool, repeat_command: Callable[[Row], str], write: Write) -> None:
    """Write the kinds of failures as `conformance run` does, each with its first row or with all."""
    if failures.outside:
        number = f"{failures.outside:,} are outside the target"
        write(f"note: of the verdicts that failed {number}; -rf lists their rows", yellow=True)
    if failures.kinds:
        write(f"{failures.title}:", bold=True)
    for kind in failures.kinds if every_row else failures.kinds[:MAX_KINDS_SHOWN]:
        write(f"  {kind.diagnosis} · {kind.about}", red=True)
        for row, result in kind.members if every_row else kind.members[:1]:
            if result.case is None:
                write(f"      {row.case.place}: {row.id}: {result.detail}")
                write(f"      {repeat_command(row)}")
            else:
                write(f"      a drawn row failed: {row.id}: {result.detail}")
                for line in result.case.rstrip().split("\n"):
                    write(f"        {line}")
    if len(failures.kinds) > MAX_KINDS_SHOWN and not every_row:
        write(f"  and {len(failures.kinds) - MAX_KINDS_SHOWN} more kinds; -v shows all")


class FailureSections:
    """Hides failing rows while pytest writes its own sections, and only then: other plugins see all reports.

    pytest writes FAILURES before what other plugins add to the summary, and the short summary after it. So this hook
    stands between both and the others, and `around_pytest` stands around pytest's.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._option = config.option
        self._listed = self._option.reportchars != _USUAL or f"-r{_USUAL}" in config.invocation_params.args
        self._all: list[Any] = []
        self.around_pytest = _AroundPytest(self)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        self.show(terminalreporter)
        yield
        if not self._listed:
            self.hide(terminalreporter)

    def hide_from_failures(self, terminalreporter: pytest.TerminalReporter) -> None:
        rows = [report for report in terminalreporter.stats.get("failed", ()) if _is_row(report)]
        if len(rows) > 1 and self._option.verbose < 2:
            self.hide(terminalreporter)

    def hide(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Take the rows out of the reports that failed, until `show`."""
        self._all = terminalreporter.stats.get("failed", [])
        if self._all:
            terminalreporter.stats["failed"] = [report for report in self._all if not _is_row(report)]

    def show(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Put back what `hide` took out."""
        if self._all:
            terminalreporter.stats["failed"], self._all = self._all, []


class _AroundPytest:
    """Hides the rows from FAILURES, and puts them back for the last line of the session."""

    def __init__(self, sections: FailureSections) -> None:
        self._sections = sections

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        self._sections.hide_from_failures(terminalreporter)
        yield
        self._sections.show(terminalreporter)


def _is_row(report: Any) -> bool:
    return "conformance" in vars(report)
