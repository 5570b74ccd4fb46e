"""The rows that failed in the target of a run, grouped by kind: what went wrong, and which sentence that breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ..evidence.drawn import plan_of_run
from ..evidence.results import Evidence, Target
from ..model import BAD, WAIVED, Claims, Result, Verdict
from ..model.cases import list_given_keys
from ..model.results import RightAlone
from ..model.verdicts import Severity
from ..plan.memory import volume_of
from ..plan.rows import Plan, Row, parse_drawn_id
from ..run.judge import UNCLAIMED
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from .blame import MUST_REJECT, describe_blames, rank_of
from .cause import Cause
from .conclude import Conclusion
from .standing import has_standing, list_counted_documents

MAX_KINDS_SHOWN = 12
"""Kinds of failures on the terminal; the report has all."""
_MAX_CASE_LINES = 24
"""Lines of a drawn case on the terminal and on a page."""
_SAYS_NO_MORE = ("answered an illegal call", "rejected a legal call")
"""Diagnoses that repeat a severity in other words."""
Failed = tuple[Row, Result]


class FailureKind(NamedTuple):
    """The cause that failing rows have in common, or what else is alike in them."""

    cause: Cause | None
    severity: Severity | None
    """The worst of them. None for an error of the adapter, or if the failures count for no document."""
    blame: str
    """What its tests break; if the cause is known, they may break different things."""
    diagnosis: str
    """If the cause is known, that of the first row."""

    @property
    def title(self) -> str:
        return self.cause.title if self.cause else self.diagnosis

    @property
    def heading(self) -> str:
        """The severity, then the cause, or what went wrong if that says more."""
        says_more = self.severity is None or self.title not in _SAYS_NO_MORE
        return ": ".join(filter(None, (self.severity, self.title if says_more else "")))


@dataclass(frozen=True)
class KindUnderRule:
    """The rows of a kind that failed in the target of a run; without a known cause, those that break one rule."""

    common: FailureKind
    rule: str | None
    """The rule that the worst of its tests break, or the first if the cause is known; None for an adapter error."""
    members: tuple[Failed, ...]
    tests: int
    """The tests of these rows that fail; of waived rows, those that are waived."""
    all_tests: int
    """Those of all kinds."""
    is_further_rule: bool
    """Whether it differs from the kind before in the rule only; a terminal has a line for it."""

    @property
    def title(self) -> str:
        return self.common.heading

    @property
    def line(self) -> str:
        """Name the rule and the number of tests."""
        return f"also {self.rule or self.members[0][0].case.rule} · {count_noun(self.tests, 'test')}"

    @property
    def about(self) -> str:
        """Name the number of tests, what a cause means for a user, the blame and the rule."""
        cause = self.common.cause
        if self.rule is None and self.common.diagnosis.endswith(UNCLAIMED):  # a type that is not claimed has no tests
            return f"{MUST_REJECT} · {count_noun(len(self.members), 'row')}"
        about = self.common.blame or self.members[0][0].case.rule
        if self.rule and not cause:
            about += f": {self.rule}"
        if cause and cause.is_guess:
            return f"explains {self.tests:,} of {count_noun(self.all_tests, 'failing test')} · {about}"
        return f"{about} · {count_noun(self.tests, 'test')}"


@dataclass(frozen=True)
class Failures:
    """The kinds of failures of a run; those to be mended first come first."""

    kinds: tuple[KindUnderRule, ...]
    outside: int
    """The failures outside the target, by document; they are no tests."""

    @property
    def title(self) -> str:
        alive = any(result.is_failure for kind in self.kinds for _, result in kind.members)
        return "failures" if alive else "failures, all waived"


def list_shown_lines(row: Row, result: Result, every_line: bool) -> list[str]:
    """Return the smallest case of a drawn row, after a line that says what went right alone.

    A case that fails as a sequence only may have a thousand lines.
    """
    lines = [_describe_right_alone(row, result.right_alone)] if result.right_alone else []
    lines += (result.smallest_case or "").splitlines()
    more = 0 if every_line else len(lines) - _MAX_CASE_LINES
    return lines if more <= 0 else [*lines[:-more], f"# and {more} more lines; --verbose shows them"]


def _describe_right_alone(row: Row, right_alone: RightAlone) -> str:
    reason = "the calls before it, which the same run makes again"
    if right_alone == "step":
        reason = "the steps before it"
    elif row.case.concurrent > 1:
        reason = "which thread comes first, or on calls before it"
    subject = "was not called again; others that fail so went" if right_alone == "row of its kind" else "went"
    return f"# {subject} right alone: it depends on {reason}"


def group_by_kind(rows: Iterable[Failed], conclusion: Conclusion) -> list[tuple[FailureKind, list[Failed]]]:
    """Group rows that failed, in the order in which all reports show them.

    The kind with the worst severity comes first, and an error of the adapter last; then what breaks the text, and the
    commonest kind. In a kind, the worst severity, rows that fail alone, those known to do so by their earlier steps,
    single calls, rows of cases and small tensors come first.
    """
    causes = conclusion.causes

    def weight(row: Row) -> tuple[int, int]:
        return rank_of(conclusion.find_worst(row.id))

    alike = group_pairs((causes.get(row.id) or (weight(row), result.diagnosis), (row, result)) for row, result in rows)

    def readable(failed: Failed) -> tuple[object, ...]:
        row, result = failed
        return weight(row), result.needs_calls_before, result.right_alone != "step", _rank_effort(row)

    groups = [sorted(same, key=readable) for same in alike.values()]
    kinds = [(_kind_of(same, conclusion), same) for same in groups]

    def order(group: tuple[FailureKind, list[Failed]]) -> tuple[object, ...]:
        kind, same = group
        return weight(same[0][0]), -len(same), kind.cause.fault.id if kind.cause else kind.diagnosis

    return sorted(kinds, key=order)


def _kind_of(same: Sequence[Failed], conclusion: Conclusion) -> FailureKind:
    """Return the kind of failures that are alike, the worst in front."""
    row, result = same[0]
    cause, worst = conclusion.causes.get(row.id), conclusion.find_worst(row.id)
    if cause:
        blame = describe_blames(each for row, _ in same for each in conclusion.blames.get(row.id, {}).values())
    else:
        blame = worst.blame if worst else ""
    return FailureKind(cause, worst.severity if worst else None, blame, result.diagnosis or "no diagnosis")


def _rank_effort(row: Row) -> tuple[bool, bool, bool, int, int]:
    """Single calls come before chains and several calls, named cases before drawn ones, and plain calls before others.

    Of equally plain ones, small tensors and short shapes come first. Empty tensors come last.
    """
    steps = row.case.steps
    single = len(steps) == row.case.times == 1 and len(steps[0].shapes) == 1
    size = max(volume_of(step.src) for step in steps)
    drawn = parse_drawn_id(row.id) is not None
    keys = len([*list_given_keys(row.case), *chain.from_iterable(map(list_given_keys, steps))])
    entries = sum(len(shape) for step in steps for shape in step.shapes)
    return not single, drawn, size == 0, keys, size + entries


def group_failures(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> Failures:
    """Group the rows that failed in the target. Rows that are waived are left out if any other failed.

    Nothing is known to fail in a row that a waiver kept from being called.
    """
    results = {result.row: result for result in evidence.results if result.diagnosis and result.was_called}
    rows = [(row, results[row.id]) for row in plan_of_run(plan, evidence).rows if row.id in results]
    failed = [each for each in rows if each[1].is_failure]
    target, claims = evidence.target, evidence.claims
    inside = sum(_count_tests_of(each, BAD, target, claims) for each in failed)
    outside = sum(verdict in BAD for _, result in failed for verdict in result.verdicts.values()) - inside
    shown, verdicts = (failed, BAD) if inside else (rows, {WAIVED})
    numbers = {row.id: _count_tests_of((row, result), verdicts, target, claims) for row, result in shown}
    kinds = []
    for common, same in group_by_kind(shown, conclusion):
        worst = {row.id: conclusion.find_worst(row.id) for row, _ in same if numbers[row.id]}
        rules = {row: blamed.premise.rule if blamed else None for row, blamed in worst.items()}
        tests = ((row, result) for row, result in same if row.id in rules)
        # rows that fail alike may break several rules: they are told apart, unless one cause explains them all
        apart = group_pairs((common.cause or rules[row.id], (row, result)) for row, result in tests)
        for place, members in enumerate(apart.values()):
            number, rule = sum(numbers[row.id] for row, _ in members), rules[members[0][0].id]
            kinds.append(KindUnderRule(common, rule, members, number, sum(numbers.values()), place > 0))
    return Failures(tuple(kinds), outside)


def _count_tests_of(failed: Failed, verdicts: Set[Verdict], target: Target, claims: Claims) -> int:
    """Count the documents of the target in which a row has one of some verdicts.

    In a type that is not claimed a row is no test, but it fails the run if it ends the process.
    """
    row, result = failed
    documents: Iterable[str] = list_counted_documents(row, target, claims)
    if not claims.has_type(row.type):
        documents = (each for each in row.documents if has_standing(row, each, target, claims))
    return sum(result.verdicts[each] in verdicts for each in documents)
