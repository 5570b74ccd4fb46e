"""Failing rows at the end of a session: grouped by kind, instead of pytest's own sections on failures.

A backend may fail in hundreds of rows for one reason. pytest would print each of them twice: in full under FAILURES and
in a line of its short summary. A row is in these sections only if a person asks for it: in full if it is the only row
that failed, or with `-vv`; in a line with `-r` and letters that hold for failures. All failures of other tests stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ..plan.rows import Row, parse_drawn_id
from ..verdict.failure_kinds import MAX_KINDS_SHOWN, Failures, list_shown_lines

_USUAL = "fE"
"""What `-r` is where nobody gives it."""


def write_failures(
    failures: Failures, every_row: bool, repeat_command: Callable[[Row], str], write: Callable[..., None]
) -> None:
    """Write the kinds of failures as `conformance run` does, each with its first row or with all, line by line."""
    if failures.outside:
        number = f"{failures.outside:,} are outside the target"
        write(f"note: of the verdicts that failed {number}; -rf lists their rows", yellow=True)
    if failures.kinds:
        write(f"{failures.title}:", bold=True)
    for kind in failures.kinds if every_row else failures.kinds[:MAX_KINDS_SHOWN]:
        if kind.is_further_rule and not every_row:
            row, result = kind.members[0]
            write(f"    {kind.line}: {row.id if result.needs_calls_before else repeat_command(row)}")
            continue
        write(f"  {kind.title} · {kind.about}", red=True)
        for row, result in kind.members if every_row else kind.members[:1]:
            is_drawn = parse_drawn_id(row.id) is not None
            write(f"      {'a drawn row failed' if is_drawn else row.case.place}: {row.id}: {result.detail}")
            for line in list_shown_lines(row, result, every_row):
                write(f"        {line}")
            if not is_drawn and not result.needs_calls_before:
                write(f"      {repeat_command(row)}")
    if len(failures.kinds) > MAX_KINDS_SHOWN and not every_row:
        write(f"  and {len(failures.kinds) - MAX_KINDS_SHOWN} more kinds; -v shows all")


class FailureSections:
    """Hides failing rows while pytest writes its own sections, and only then: other plugins see all reports.

    pytest writes FAILURES before what other plugins add to the summary, and its short summary after it. No option of
    pytest can do this: each holds for the failures of other tests too.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._verbose = config.option.verbose
        self._listed = config.option.reportchars != _USUAL or f"-r{_USUAL}" in config.invocation_params.args

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Around pytest: hide the rows from FAILURES, and show them for the last line of the session."""
        stats = terminalreporter.stats
        self._every = stats.get("failed", [])
        self._others = [report for report in self._every if "conformance" not in vars(report)]
        if len(self._every) - len(self._others) > 1 and self._verbose < 2:
            stats["failed"] = self._others
        yield
        if self._every:
            stats["failed"] = self._every

    @pytest.hookimpl(hookwrapper=True, trylast=True, specname="pytest_terminal_summary")
    def pytest_terminal_summary_of_plugins(self, terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
        """Around other plugins: show them the rows, and hide the rows from the short summary."""
        if self._every:
            terminalreporter.stats["failed"] = self._every
        yield
        if self._every and not self._listed:
            terminalreporter.stats["failed"] = self._others
