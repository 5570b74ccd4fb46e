"""Rows of the plan with their results, and the worst verdict of several rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..certify.evidence import Refused
from ..model import BAD, NOT_RUN, VERDICTS, Outcome, Result, Verdict, worst
from ..plan.rows import Row
from ..run.row import result_without_call


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
        return self.result.step if self.result.step < len(self.row.steps) else 0

    @property
    def failing(self) -> tuple[str, ...]:
        """The documents in which the row fails or errs."""
        return tuple(document for document, verdict in self.verdicts.items() if verdict in BAD)


def pair_rows(rows: Iterable[Row], results: Mapping[str, Result]) -> Iterator[RowResult]:
    """Each row with its result; Refused if a verdict is not one of ours."""
    deciding: dict[tuple[Verdict, ...], Verdict] = {}
    for row in rows:
        result = results.get(row.id) or result_without_call(row, NOT_RUN)
        verdicts = tuple([result.verdicts.get(document, NOT_RUN) for document in row.documents])
        if tuple(result.verdicts) != row.documents:
            result = result._replace(verdicts=dict(zip(row.documents, verdicts, strict=True)))
        if verdicts not in deciding:
            _check_verdicts(row, result.verdicts)
            deciding[verdicts] = worst(verdicts)
        yield RowResult(row, result, deciding[verdicts])


def _check_verdicts(row: Row, verdicts: Mapping[str, Verdict]) -> None:
    for document, verdict in verdicts.items():
        if verdict not in VERDICTS:
            raise Refused(
                f"the row {row.id} has the verdict {verdict!r} for {document}; verdicts are {', '.join(VERDICTS)}"
            )


class RowGroup(NamedTuple):
    """Rows of one rule, operation and type with the same verdicts, grouped so that they are counted once."""

    first: RowResult
    number: int


def group_rows(rows: Iterable[RowResult]) -> tuple[RowGroup, ...]:
    """The groups of some rows of one rule, in the order of their first rows."""
    groups = group_pairs(((r.row.operation, r.row.type, "large" in r.row.facets, *r.verdicts.items()), r) for r in rows)
    return tuple(RowGroup(same[0], len(same)) for same in groups.values())


def group_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    """Values by key, both in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}


def count_verdicts(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    """The number of each verdict that occurs, in the order of the vocabulary."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def format_counts(counts: Mapping[Verdict, int]) -> str:
    """Counts as a sum: `409 pass + 2 observed + 1 fail`."""
    return " + ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts.get(verdict)) or "0"


def failing_documents(rows: Sequence[RowResult]) -> tuple[str, ...]:
    """The documents in which some of the rows fail or err."""
    return tuple(dict.fromkeys(document for result in rows for document in result.failing))
