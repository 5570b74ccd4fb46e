"""The rows that failed in the target of a run, grouped by kind: what went wrong, and which sentence that breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from ..evidence.drawn import plan_of_run
from ..evidence.results import Evidence, Target
from ..model import BAD, WAIVED, Claims, Result, Verdict
from ..model.verdicts import SEVERITIES, Severity
from ..plan.memory import volume_of
from ..plan.rows import Plan, Row, drawn_number
from ..run.judge import UNCLAIMED
from ..system.terminal import count_noun
from .blame import HEAVIEST_FIRST, MUST_REJECT, Blamed, describe_blames, heaviest, worst_severity
from .cause import Cause
from .conclude import Conclusion
from .standing import Blames, has_standing, judged_documents

MAX_KINDS_SHOWN = 12
"""Kinds of failures on the terminal; the report has all."""
_MAX_CASE_LINES = 24
"""Lines of a drawn case on the terminal."""
_SAYS_NO_MORE = ("answered an illegal call", "rejected a legal call")
"""Diagnoses that repeat a severity in other words."""
Failed = tuple[Row, Result]


@dataclass(frozen=True)
class FailureKind:
    """Rows that failed by one cause, or with one severity and diagnosis and the same heaviest blame."""

    cause: Cause | None
    severity: Severity | None
    """The worst of its rows; None for an error of the adapter."""
    diagnosis: str
    """That of the first row."""
    blamed: Blamed | None
    """None for an error of the adapter."""
    members: tuple[Failed, ...]
    tests: int
    """The tests of these rows that fail; of waived rows, those that are waived."""
    all_tests: int
    """Those of all kinds."""
    blames: str
    """What the tests of a cause break, which may differ; for other rows, what they break most heavily."""

    @property
    def title(self) -> str:
        """The severity, then the cause, or what went wrong if that says more."""
        what = self.cause.title if self.cause else "" if self.diagnosis in _SAYS_NO_MORE else self.diagnosis
        return ": ".join(filter(None, (self.severity, what)))

    @property
    def about(self) -> str:
        """Name the number of tests, what a cause means for a user, the blame and the rule."""
        if self.blamed is None and self.diagnosis.endswith(UNCLAIMED):  # a type that is not claimed has no tests
            return f"{MUST_REJECT} · {count_noun(len(self.members), 'row')}"
        about = self.members[0][0].case.rule
        if self.blamed:
            about = self.blames if self.cause else f"{self.blames}: {self.blamed.premise.rule}"
        if self.cause and self.cause.is_guess:
            return f"explains {self.tests:,} of {count_noun(self.all_tests, 'failing test')} · {about}"
        return f"{about} · {count_noun(self.tests, 'test')}"


@dataclass(frozen=True)
class Failures:
    """The kinds of failures of a run; those to be mended first come first."""

    kinds: tuple[FailureKind, ...]
    outside: int
    """The failures outside the target, by document; they are no tests."""

    @property
    def title(self) -> str:
        alive = any(result.is_failure for kind in self.kinds for _, result in kind.members)
        return "failures" if alive else "failures, all waived"


def shown_lines(case: str, every_line: bool) -> list[str]:
    """Return the lines of a drawn case that a terminal shows. One that fails as a sequence only may have a hundred."""
    lines = case.rstrip().split("\n")
    more = 0 if every_line else len(lines) - _MAX_CASE_LINES
    return lines if more <= 0 else [*lines[:-more], f"# and {more} more lines; --verbose shows them"]


def sort_failures(rows: Iterable[Failed], conclusion: Conclusion) -> list[Failed]:
    """Put rows that failed into the order in which all reports show them: those of a kind together.

    The kind with the worst severity comes first, and an error of the adapter last; then what breaks the text, and the
    commonest kind. In a kind, the worst severity, single calls, rows of cases and small tensors come first.
    """
    rows = list(rows)
    weights = {row.id: _weight(conclusion.blames, row) for row, _ in rows}
    kinds = {row.id: conclusion.causes.get(row.id) or (weights[row.id], result.diagnosis or "") for row, result in rows}
    numbers = Counter(kinds.values())
    of_kind = {
        kind: weights[row] for row, kind in sorted(kinds.items(), key=lambda each: weights[each[0]], reverse=True)
    }

    def order(failed: Failed) -> tuple[object, ...]:
        row = failed[0]
        kind = kinds[row.id]
        name = kind.fault.id if isinstance(kind, Cause) else kind[1]
        return of_kind[kind], -numbers[kind], name, weights[row.id], *_effort_to_read(row)

    return sorted(rows, key=order)


def _worst_of(blames: Blames, row: Row) -> tuple[Severity | None, Blamed | None]:
    blamed = blames.get(row.id, {}).values()
    return worst_severity(blamed), heaviest(blamed)


def _weight(blames: Blames, row: Row) -> tuple[int, int]:
    severity, blamed = _worst_of(blames, row)
    return (
        SEVERITIES.index(severity) if severity else len(SEVERITIES),
        HEAVIEST_FIRST.index(blamed.blame) if blamed else len(HEAVIEST_FIRST),
    )


def _effort_to_read(row: Row) -> tuple[bool, bool, bool, int, int]:
    """Single calls come before chains and several calls, named cases before drawn ones, and small tensors before large.

    Empty tensors come last.
    """
    steps = row.case.steps
    single = len(steps) == 1 and len(steps[0].shapes) == 1
    size = max(volume_of(step.src) for step in steps)
    drawn = drawn_number(row.id) is not None
    return not single, drawn, size == 0, size, sum(len(shape) for step in steps for shape in step.shapes)


def describe_blames_of(rows: Sequence[str], conclusion: Conclusion) -> str:
    """Say what rows of one kind break: all of them if their cause is known, else what the first breaks most heavily."""
    if rows[0] in conclusion.causes:
        return describe_blames(each for row in rows for each in conclusion.blames.get(row, {}).values())
    worst = heaviest(conclusion.blames.get(rows[0], {}).values())
    return worst.blame if worst else ""


def group_failures(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> Failures:
    """Group the rows that failed in the target. Rows that are waived are left out if any other failed.

    Nothing is known to fail in a row that a waiver kept from being called.
    """
    results = {result.row: result for result in evidence.results if result.diagnosis and result.outcome.kind != "none"}
    rows = [(row, results[row.id]) for row in plan_of_run(plan, evidence).rows if row.id in results]
    failed = sort_failures((each for each in rows if each[1].is_failure), conclusion)
    target, claims = evidence.target, evidence.claims
    inside = sum(_count_tests_of(each, BAD, target, claims) for each in failed)
    outside = sum(verdict in BAD for _, result in failed for verdict in result.verdicts.values()) - inside
    if inside:
        return Failures(tuple(_kinds(failed, BAD, target, claims, conclusion)), outside)
    waived = sort_failures(rows, conclusion)
    return Failures(tuple(_kinds(waived, {WAIVED}, target, claims, conclusion)), outside)


def _count_tests_of(failed: Failed, verdicts: Set[Verdict], target: Target, claims: Claims) -> int:
    """Count the documents of the target in which a row has one of some verdicts.

    In a type that is not claimed a row is no test, but it fails the run if it ends the process.
    """
    row, result = failed
    documents: Iterable[str] = judged_documents(row, target, claims)
    if not claims.offers_type(row.type):
        documents = (each for each in row.documents if has_standing(row, each, target, claims))
    return sum(result.verdicts[each] in verdicts for each in documents)


def _kinds(
    rows: Iterable[Failed], verdicts: Set[Verdict], target: Target, claims: Claims, conclusion: Conclusion
) -> Iterator[FailureKind]:
    """Yield the kinds of rows with some verdicts in the target, in the order of their first rows."""
    kinds: dict[object, list[Failed]] = {}
    numbers: dict[str, int] = {}
    blames = conclusion.blames
    for row, result in rows:
        if number := _count_tests_of((row, result), verdicts, target, claims):
            numbers[row.id] = number
            severity, blamed = _worst_of(blames, row)
            shown = blamed and (blamed.blame, blamed.premise.rule)  # two authorities would show as the same kind twice
            like_it = severity, result.diagnosis, shown
            kinds.setdefault(conclusion.causes.get(row.id, like_it), []).append((row, result))
    for members in kinds.values():
        row, result = members[0]  # the worst of them
        severity, blamed = _worst_of(blames, row)
        cause, tests = conclusion.causes.get(row.id), sum(numbers[row.id] for row, _ in members)
        said = describe_blames_of([row.id for row, _ in members], conclusion)
        yield FailureKind(
            cause, severity, result.diagnosis or "", blamed, tuple(members), tests, sum(numbers.values()), said
        )
