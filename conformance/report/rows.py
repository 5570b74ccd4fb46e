"""Rows of the plan with their results, and the worst verdict of several rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..certify.evidence import IDLE, Refused
from ..model import VERDICTS, Result, Verdict
from ..plan.rows import Row
from ..run.judge import WORST

MARKS: Mapping[str, str] = {
    "pass": "✓", "fail": "✗", "observed": "◆", "not claimed": "○", "error": "▲", "waived": "◐", "not run": "□",
    "conforms": "✓", "does not conform": "✗", "incomplete": "□", "nothing shown": "□",
}  # fmt: skip
"""A shape for each verdict and each word about a document, so that no reader depends on colour."""
BAD = frozenset(("fail", "error"))
SKIPPED = frozenset(("not run", "not claimed", "waived"))


class RowResult(NamedTuple):
    """A row of the plan with its result; `not run` if the evidence holds none."""

    row: Row
    verdicts: Mapping[str, Verdict]
    worst: Verdict
    outcome: Mapping[str, Any]
    diagnosis: str | None
    detail: str | None

    @property
    def failing(self) -> tuple[str, ...]:
        """The documents in which the row fails or errs."""
        return tuple(document for document, verdict in self.verdicts.items() if verdict in BAD)

    @property
    def step(self) -> int:
        """The index of the step that decided."""
        step = self.outcome.get("step", 1)
        return step - 1 if isinstance(step, int) and 0 < step <= len(self.row.steps) else 0


def pair_rows(rows: Iterable[Row], results: Mapping[str, Result]) -> Iterator[RowResult]:
    """Each row with its result; Refused if a verdict is not one of ours."""
    known: dict[tuple[tuple[str, Verdict], ...], Verdict] = {}
    for row in rows:
        result = results.get(row.id)
        if result is None:
            yield RowResult(row, dict.fromkeys(row.documents, "not run"), "not run", IDLE, None, None)
            continue
        verdicts = {document: result.verdicts.get(document, "not run") for document in row.documents}
        key = tuple(verdicts.items())
        if key not in known:
            _check_verdicts(row, verdicts)
            known[key] = worst(verdicts.values())
        yield RowResult(row, verdicts, known[key], result.outcome, result.diagnosis, result.detail)


def _check_verdicts(row: Row, verdicts: Mapping[str, Verdict]) -> None:
    for document, verdict in verdicts.items():
        if verdict not in VERDICTS:
            raise Refused(
                f"the row {row.id} has the verdict {verdict!r} for {document}; verdicts are {', '.join(VERDICTS)}"
            )


class RowGroup(NamedTuple):
    """Rows of one rule, operation and type with the same verdicts, group_pairs so that they are count_noun once."""

    first: RowResult
    number: int


def group_rows(rows: Iterable[RowResult]) -> tuple[RowGroup, ...]:
    """The groups of some rows of one rule, in the order of their first rows."""
    groups = group_pairs(((r.row.operation, r.row.type, "large" in r.row.facets, *r.verdicts.items()), r) for r in rows)
    return tuple(RowGroup(same[0], len(same)) for same in groups.values())


class Share(NamedTuple):
    """The worst verdict among some rows, and how many have it."""

    word: Verdict
    number: int
    total: int
    aside: int
    """Rows outside the target that were not run; they are not in the total."""


def group_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    """Values by key, both in the order in which they come."""
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}


_PLACE: Mapping[Verdict, int] = {verdict: place for place, verdict in enumerate(WORST)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides; `not run` if there is none."""
    return min(verdicts, key=_PLACE.__getitem__, default="not run")


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
