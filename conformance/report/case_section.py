"""Every case on the page: its calls, what is due, the answers and their verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ..model import ERROR, FAIL, VERDICTS, WAIVED, Case, Verdict, worst
from ..system.groups import group_pairs
from .answer_lines import AnswerLine, CaseAnswer, Filters, StepCall, describe_steps, make_line
from .judged_run import JudgedRun, Wants
from .row_results import RowResult, count_results
from .wording import format_answer

MAX_LINES = 6
"""Lines of one case; if more would be needed, the last is about all the others."""
LISTED: tuple[Verdict, ...] = (FAIL, ERROR, WAIVED)
"""Verdicts for which a brief page names a case."""


class CaseAnswers(NamedTuple):
    case: Case
    counts: Mapping[Verdict, int]
    steps: list[StepCall]
    lines: list[AnswerLine]


class RuleCases(NamedTuple):
    rule: str
    entries: list[CaseAnswers]
    idle: list[Case]
    """Cases that the run was not meant to make; they are only named."""
    idle_counts: Mapping[Verdict, int]


def collect_cases(run: JudgedRun, filters: Filters) -> Iterator[RuleCases]:
    listed = {result.row.id for result in run.listed}
    for rule, cases in _group_by_rule(run).items():
        by_kind = group_pairs((not any(result.row.id in listed for result in rows), rows) for rows in cases)
        entries, idle = [], by_kind.get(True, ())
        for rows in by_kind.get(False, ()):
            lines = [make_line(filters, answer, same) for answer, same in _group_answers(run, rows).items()]
            entries.append(CaseAnswers(rows[0].row.case, count_results(rows), describe_steps(rows), lines))
        yield RuleCases(rule, entries, [rows[0].row.case for rows in idle], count_results(chain.from_iterable(idle)))


def collect_other_failures(
    run: JudgedRun, shown: Collection[str]
) -> Iterator[tuple[str, dict[str, dict[Verdict, int]]]]:
    """Yield rules with their cases that failed or were waived, and the verdicts; cases shown elsewhere are left out."""
    for rule, cases in _group_by_rule(run).items():
        failing = {
            rows[0].row.case.id: count_results(rows)
            for rows in cases
            if any(result.worst in LISTED for result in rows) and rows[0].row.case.id not in shown
        }
        if failing:
            yield rule, failing


def _group_by_rule(run: JudgedRun) -> dict[str, tuple[tuple[RowResult, ...], ...]]:
    by_rule = group_pairs((rows[0].row.case.rule, rows) for rows in run.rows_by_case.values())
    return {rule: by_rule[rule] for rule in run.plan.suite.spec.rules if rule in by_rule}


def list_filters(run: JudgedRun, brief: bool) -> Mapping[str, Iterable[str]]:
    """List the values of each filter; `brief`: only for what failed."""
    spec = run.plan.suite.spec
    rules = [rule for rule, rows in run.rows_by_rule.items() if any(not brief or result.failing for result in rows)]
    verdicts: Mapping[str, Iterable[str]] = {} if brief else {"verdict": VERDICTS}
    return {
        **verdicts,
        "diagnosis": dict.fromkeys(filter(None, (result.diagnosis for result in run.failing))),
        "rule": rules,
        "operation": spec.operations,
        "type": sorted({result.row.type for result in run.rows}),
        "document": spec.documents,
    }


def _group_answers(run: JudgedRun, rows: Iterable[RowResult]) -> Mapping[CaseAnswer, Sequence[RowResult]]:
    answers: dict[CaseAnswer, tuple[RowResult, ...]] = group_pairs((_answer(run, result), result) for result in rows)
    if len(answers) <= MAX_LINES:
        return answers
    kept = dict(list(answers.items())[: MAX_LINES - 1])
    others = [result for same in list(answers.values())[MAX_LINES - 1 :] for result in same]
    text = f"{len(answers) - len(kept)} other answers; the evidence has each"
    return {**kept, CaseAnswer((), text, ((worst(result.worst for result in others), ()),), None): others}


def _answer(run: JudgedRun, result: RowResult) -> CaseAnswer:
    wants: Wants = run.want(result.row, result.step)
    by_verdict = group_pairs((verdict, document) for document, verdict in result.verdicts.items())
    return CaseAnswer(
        wants if len(wants) > 1 else ((wants[0][0], ()),),
        format_answer(result, generic=True),
        tuple(by_verdict.items()) if len(by_verdict) > 1 else ((result.worst, ()),),
        result.diagnosis if result.failing or result.worst == WAIVED else None,
    )
