"""Rows of the plan as pytest items, collected by file; a failure is printed without a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from ..model import BAD, RIGHT, WAIVED, Result
from ..model.verdicts import FAILED_OR_WAIVED
from ..plan.rows import Row
from ..system.terminal import plain

if TYPE_CHECKING:
    from .hooks import ConformanceSession


class RowFailure:
    """A failure as pytest prints it; `reprcrash.message` is what its short summary and JUnit show."""

    def __init__(self, text: str, message: str) -> None:
        self.text = safe(text)
        self.message, self.reprcrash = plain(message), self

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        for line in self.text.splitlines():
            writer.line(line)


def safe(text: str) -> str:
    """Return lines of a backend, such as its output, in a form that is safe to print."""
    return "\n".join(map(plain, text.splitlines())) + "\n" * text.endswith("\n")


class RowFailed(AssertionError):
    """A row failed or erred; it is shown without a traceback. Reports call an assertion failed, and others broken."""

    def __init__(self, failure: RowFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class CaseFile(pytest.Collector):
    """A file of the suite; its node id does not depend on the working directory."""

    def __init__(self, conformance: ConformanceSession, rows: Sequence[Row], **options: Any) -> None:
        super().__init__(**options)
        self.conformance, self.rows = conformance, rows

    def collect(self) -> list[pytest.Item]:
        return [
            CaseRow.from_parent(self, name=row.id, nodeid=row.pytest_id, row=row, conformance=self.conformance)
            for row in self.rows
        ]


class CaseRow(pytest.Item):
    def __init__(self, conformance: ConformanceSession, row: Row, **options: Any) -> None:
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
        if verdicts.isdisjoint(BAD) and WAIVED in verdicts:
            pytest.xfail(plain(self.conformance.waiver_reason(result)))  # does nothing under --runxfail
        if not verdicts.isdisjoint(BAD) and not self.row.has_listed_type:
            pytest.skip(plain(f"not counted, as no document lists {self.row.type}: {result.detail}"))
        if not verdicts.isdisjoint(FAILED_OR_WAIVED):
            raise RowFailed(self.conformance.failure(self.row, result))
        if verdicts.isdisjoint(RIGHT):
            pytest.skip(plain(self.conformance.skip_reason(self.row, result)))
        self.row.free_steps()  # its calls take most memory, and a row that passes needs them no more

    def attach(self, report: pytest.TestReport) -> None:
        """Attach the result to a report of the call, in a form that every process can read."""
        if (result := self.result) is not None:
            extras = {"detail": result.detail, "milliseconds": result.milliseconds}  # not always in the record
            vars(report)["conformance"] = (result.to_json(), self.conformance.pin, extras)
        report.sections = [(plain(name), safe(text)) for name, text in report.sections]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, RowFailed):
            return excinfo.value.failure
        if isinstance(excinfo.value, pytest.xfail.Exception):  # waived: a traceback says nothing, and takes a while
            return RowFailure(reason := str(excinfo.value), reason)
        return super().repr_failure(excinfo, style)
