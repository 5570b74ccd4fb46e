"""Failures by diagnosis: some cases in full, the others in a line each, so that the page does not grow huge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import ERROR, FAIL, Case, Rule, Verdict
from .answer_lines import Answer, AnswerLine, Facets, StepCall, describe_steps, make_line, number_facet
from .finished_run import FinishedRun, Wants
from .picture import Picture, draw_call
from .rows import RowResult, failing_documents, group_pairs
from .wording import format_answer, format_blames, format_clauses

IN_FULL = 60
"""Cases in full, of all diagnoses together."""
_OF_A_DIAGNOSIS = 8
"""Cases in full of one diagnosis, if there are several."""
_IN_SHORT = 1200
"""Cases in a line each, of all diagnoses together."""
_MOST_LINES = 12
"""Lines of one case."""
Cases = Mapping[str, Sequence[RowResult]]


class FailingCase(NamedTuple):
    """A failing case in full."""

    case: Case
    rule: Rule
    number: int
    documents: tuple[str, ...]
    clauses: str
    blames: str
    """Whose sentence the rows break, document by document."""
    reasons: list[str]
    """Why we ruled so, for each document in which the rule is our ruling."""
    steps: list[StepCall]
    picture: Picture
    lines: list[AnswerLine]
    more_lines: int
    detailed: bool
    row: str
    commands: tuple[str, str]
    text: str | None
    """Of a drawn row: the case as YAML."""


class ShortCase(NamedTuple):
    """A failing case in a line."""

    facet: int
    case: Case
    number: int
    documents: tuple[str, ...]
    wants: Wants
    answers: list[str]


class FailureGroup(NamedTuple):
    """The failures of one diagnosis."""

    diagnosis: str
    word: Verdict
    rules: list[str]
    rows: int
    cases: int
    full: list[FailingCase]
    short: list[ShortCase]
    more: int
    """Cases that are only in the list of all cases."""


def collect_failures(run: FinishedRun, facets: Facets) -> Iterator[FailureGroup]:
    """Collect the failures of each diagnosis, the commonest first."""
    chosen, left = _choose_in_full(run), _IN_SHORT
    for diagnosis, cases in run.failures.items():
        full = [_make_full(run, facets, cases[case]) for case in chosen[diagnosis]]
        others = [rows for case, rows in cases.items() if case not in chosen[diagnosis]]
        short = [_make_short(run, facets, rows) for rows in others[:left]]
        every = [result for rows in cases.values() for result in rows]
        word: Verdict = ERROR if all(result.worst == ERROR for result in every) else FAIL
        rules = list(dict.fromkeys(result.row.case.rule for result in every))
        yield FailureGroup(diagnosis, word, rules, len(every), len(cases), full, short, len(others) - len(short))
        left = max(0, left - len(others))


def _choose_in_full(run: FinishedRun) -> Mapping[str, Sequence[str]]:
    """Choose cases of as many rules as possible, and some of every diagnosis."""
    most = IN_FULL if len(run.failures) == 1 else _OF_A_DIAGNOSIS
    chosen: dict[str, list[str]] = {diagnosis: [] for diagnosis in run.failures}
    queues = {diagnosis: _alternate_rules(cases)[:most] for diagnosis, cases in run.failures.items()}
    left = IN_FULL
    for place in range(most):
        for diagnosis, queue in queues.items():
            if place < len(queue) and (left > 0 or place == 0):
                chosen[diagnosis].append(queue[place])
                left -= 1
    return chosen


def _alternate_rules(cases: Cases) -> list[str]:
    """Order cases so that each rule has its first before any has its second."""
    by_rule = group_pairs((rows[0].row.case.rule, case) for case, rows in cases.items())
    turns = [(place, case) for same in by_rule.values() for place, case in enumerate(same)]
    return [case for _, case in sorted(turns, key=lambda turn: turn[0])]


def _make_full(run: FinishedRun, facets: Facets, rows: Sequence[RowResult]) -> FailingCase:
    first, documents = rows[0], failing_documents(rows)
    case, rule = first.row.case, run.plan.suite.spec.rules[first.row.case.rule]
    because = {each: rule.because for each in documents if rule.level == "decided"} | dict(rule.decided_for)
    answers: Mapping[Answer, Sequence[RowResult]] = group_pairs((_answer(run, result), result) for result in rows)
    lines = [make_line(facets, answer, same, failing=True) for answer, same in list(answers.items())[:_MOST_LINES]]
    return FailingCase(
        case, rule, len(rows), documents, format_clauses(rule, documents),
        format_blames(run.blames_of(rows)),
        list(dict.fromkeys(reason for each in documents if (reason := because.get(each)))),
        describe_steps(rows, documents), _draw(run, first), lines, len(answers) - len(lines),
        any(answer.note for answer in answers), first.row.id, run.commands(first.row),
        first.result.case,
    )  # fmt: skip


def _answer(run: FinishedRun, result: RowResult) -> Answer:
    wants, got = _want(run, result), format_answer(result, generic=True)
    return Answer(wants, got, ((result.worst, ()),), _detail(result))


def _want(run: FinishedRun, result: RowResult) -> Wants:
    """The wants of the documents in which a row fails; these are named if they disagree."""
    wants = run.want(result.row, result.step)
    due = [(want, tuple(each for each in documents if each in result.failing)) for want, documents in wants]
    due = [(want, documents) for want, documents in due if documents]
    return tuple(due) if len(due) > 1 else tuple((want, ()) for want, _ in due)


def _detail(result: RowResult) -> str:
    """The detail of a failure, unless the answer says it already."""
    detail = result.detail or ""
    return "" if detail in format_answer(result) else detail


def _draw(run: FinishedRun, result: RowResult) -> Picture:
    """Draw the call as the first document in which it fails reads it."""
    judged = next(
        (each for each in result.row.steps[result.step].meanings if set(each.documents) & set(result.failing)),
        result.row.steps[result.step].meanings[0],
    )
    document = next((each for each in judged.documents if each in result.failing), judged.documents[0])
    return draw_call(result.row.case.steps[result.step], run.contracts[document], judged.meaning, result.outcome)


def _make_short(run: FinishedRun, facets: Facets, rows: Sequence[RowResult]) -> ShortCase:
    documents = failing_documents(rows)
    answers = list(dict.fromkeys(format_answer(result, generic=True) for result in rows))
    facet = number_facet(facets, rows, documents)
    return ShortCase(facet, rows[0].row.case, len(rows), documents, _want(run, rows[0]), answers)
