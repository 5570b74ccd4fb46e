"""Rows of a case with the same answer, as lines of a table; the values that the filters of the page look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model import BAD, Verdict
from ..system.groups import group_pairs
from .judged_run import Wants
from .row_results import RowResult, list_failing_documents
from .wording import collect_wants, format_labels, format_step, visible

Filters = dict[tuple[tuple[str, ...], ...], int]
"""The verdicts, operations, types, documents and diagnoses of each line of the page, numbered in the lines' order."""
MAX_STEPS = 24
"""If a case has more steps, only the one that decides is described."""


class CaseAnswer(NamedTuple):
    wants: Wants
    got: str
    verdicts: tuple[tuple[Verdict, tuple[str, ...]], ...]
    """Each with its documents; these are left out if the verdict is the same in all."""
    note: str | None
    """The diagnosis or the detail."""


class AnswerLine(NamedTuple):
    filter_number: int
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Operation, labels of its rows, and the documents that are named with them."""
    answer: CaseAnswer


class StepCall(NamedTuple):
    """The call of one step, and what is due for it if the case has several."""

    call: str
    wants: Wants


def make_line(filters: Filters, answer: CaseAnswer, rows: Sequence[RowResult], failing: bool = False) -> AnswerLine:
    """Make a line about rows with one answer; `failing`: about the documents in which they fail, and name these."""
    by_operation: dict[str, tuple[RowResult, ...]] = group_pairs((result.row.operation, result) for result in rows)
    names = tuple(
        (operation, format_labels(result.row for result in same), list_failing_documents(same) if failing else ())
        for operation, same in by_operation.items()
    )
    documents = list_failing_documents(rows) if failing else {d for result in rows for d in result.verdicts}
    return AnswerLine(number_filter(filters, rows, documents), names, answer)


def number_filter(filters: Filters, rows: Sequence[RowResult], documents: Iterable[str]) -> int:
    among = set(documents)
    values = (
        (verdict for result in rows for document, verdict in result.verdicts.items() if document in among),
        (result.row.operation for result in rows),
        (result.row.type for result in rows),
        (document for result in rows for document in result.verdicts if document in among),
        (visible(result.diagnosis) for result in rows if result.worst in BAD and result.diagnosis),
    )
    return filters.setdefault(tuple(tuple(dict.fromkeys(each)) for each in values), len(filters))


def describe_steps(rows: Sequence[RowResult], documents: Sequence[str] = ()) -> list[StepCall]:
    """Describe the calls of a case and what is due for each, in all documents or in those named."""
    representatives = list({result.row.operation: result.row for result in rows}.values())
    case = representatives[0].case
    if len(case.steps) == 1:
        return [StepCall(format_step(case, case.steps[0]), ())]
    calls = []
    shown = case.shown_steps if len(case.steps) <= MAX_STEPS or case.generated else ()
    for k in sorted({*shown, *(result.step for result in rows)}):
        wants = (
            (want, tuple(each for each in binding if not documents or each in documents))
            for want, binding in collect_wants(representatives, k).items()
        )
        number = f"step {k + 1} of {len(case.steps):,}: " if len(shown) < len(case.steps) else ""
        calls.append(StepCall(number + format_step(case, case.steps[k]), tuple(want for want in wants if want[1])))
    return calls
