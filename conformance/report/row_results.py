"""Rows of the plan with their results, and the worst verdict of several rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import BAD, NOT_RUN, VERDICTS, Outcome, Result, Verdict, worst
from ..model.verdicts import count_verdicts
from ..plan.rows import Row, parse_drawn_id
from ..run.row import make_result_without_call
from ..system.terminal import count_noun


class RowResult(NamedTuple):
    """A row of the plan with its result; `not run` if the evidence holds none."""

    row: Row
    result: Result
    worst: Verdict

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        return self.result.verdicts

    @property
    def outcome(self) -> Outcome:
        """The outcome of the deciding step."""
        return self.result.outcome

    @property
    def diagnosis(self) -> str | None:
        return self.result.diagnosis

    @property
    def detail(self) -> str | None:
        return self.result.detail

    @property
    def step(self) -> int:
        """The index of the step that decided."""
        return self.result.step if self.result.step < len(self.row.case.steps) else 0

    @property
    def failing(self) -> tuple[str, ...]:
        """The documents in which the row fails or errs."""
        return tuple(document for document, verdict in self.verdicts.items() if verdict in BAD)


def pair_rows(rows: Iterable[Row], results: Mapping[str, Result]) -> Iterator[RowResult]:
    for row in rows:
        result = results.get(row.id) or make_result_without_call(row, NOT_RUN)
        verdicts = {document: result.verdicts.get(document, NOT_RUN) for document in row.documents}
        yield RowResult(row, result._replace(verdicts=verdicts), worst(verdicts.values()))


def format_counts(counts: Mapping[Verdict, int]) -> str:
    """Write counts as a sum: `409 pass + 2 observed + 1 fail`."""
    return " + ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts.get(verdict)) or "0"


def count_results(rows: Iterable[RowResult]) -> dict[Verdict, int]:
    """Count rows in each of their documents by verdict, whether they are tests of the run or not."""
    return count_verdicts(verdict for result in rows for verdict in result.verdicts.values())


def describe_cases(rows: Iterable[RowResult]) -> str:
    """Count the cases of some rows; drawn rows are no cases: `2 cases and 1 drawn row`."""
    names = {result.row.case.id: parse_drawn_id(result.row.id) is not None for result in rows}
    drawn = sum(names.values())
    parts = [count_noun(len(names) - drawn, "case")] * (len(names) > drawn or not drawn)
    return " and ".join(parts + [count_noun(drawn, "drawn row")] * bool(drawn))


def list_failing_documents(rows: Sequence[RowResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(document for result in rows for document in result.failing))
