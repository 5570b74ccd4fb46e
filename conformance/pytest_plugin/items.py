"""Rows of the plan as pytest items: collected by file, run by the session, told without a traceback."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from ..model import Result, Verdict
from ..plan.rows import Row
from ..report.rows import BAD
from ..system.terminal import plain


class Told:
    """A failure as pytest prints it; `reprcrash.message` is what its short summary and JUnit take."""

    def __init__(self, text: str, message: str) -> None:
        self.text = safe(text)
        self.message, self.reprcrash = plain(message), self

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        for line in self.text.splitlines():
            writer.line(line)


def safe(text: str) -> str:
    """Several lines of a backend, such as its output, that pytest may print."""
    return "\n".join(map(plain, text.splitlines())) + "\n" * text.endswith("\n")


class Broken(Exception):
    """A row failed or erred; no traceback is of any use."""

    def __init__(self, told: Told) -> None:
        super().__init__(told.text)
        self.told = told


class Runs(Protocol):
    """What items need of the session that has the backend."""

    pin: str
    """Who gives the answers."""

    def call(self, row: Row) -> Result: ...
    def verdicts(self, result: Result) -> set[Verdict]: ...
    def failure(self, row: Row, result: Result) -> Told: ...
    def not_claimed(self, row: Row) -> str: ...


class CaseFile(pytest.Collector):
    """A file of the suite; its node id is fixed, wherever pytest is started."""

    def __init__(self, conformance: Runs, rows: list[Row], **options: Any) -> None:
        super().__init__(**options)
        self.conformance, self.rows = conformance, rows

    def collect(self) -> list[pytest.Item]:
        return [
            CaseRow.from_parent(self, name=row.id, nodeid=row.node_id, row=row, conformance=self.conformance)
            for row in self.rows
        ]


class CaseRow(pytest.Item):
    """A row of the plan."""

    def __init__(self, conformance: Runs, row: Row, **options: Any) -> None:
        super().__init__(**options)
        self.conformance, self.row = conformance, row
        self.result: Result | None = None
        self.extra_keyword_matches.add(row.case.rule)
        self.location = (row.case.file, row.case.place.line - 1, row.id)

    def reportinfo(self) -> tuple[str, int, str]:
        return self.location[0], self.row.case.place.line - 1, self.location[2]

    def runtest(self) -> None:
        self.result = result = self.conformance.call(self.row)
        verdicts = self.conformance.verdicts(result)
        if not verdicts.isdisjoint(BAD):
            raise Broken(self.conformance.failure(self.row, result))
        if verdicts.isdisjoint(("pass", "observed")):
            pytest.skip(self.conformance.not_claimed(self.row))
        self.row.free_steps()  # nobody asks for those of a row that passes, and they are most of what is kept

    def attach(self, report: pytest.TestReport) -> None:
        """Sends the result along with a report of the call, in a form that every process can read."""
        if (result := self.result) is not None:
            vars(report)["conformance"] = (
                *result, self.conformance.pin,
            )  # fmt: skip
        report.sections = [(plain(name), safe(text)) for name, text in report.sections]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return excinfo.value.told if isinstance(excinfo.value, Broken) else super().repr_failure(excinfo, style)
