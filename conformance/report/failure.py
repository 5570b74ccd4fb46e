"""One failing row told in full: the rule and where it stands, the call, what was due, what came, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Result, Rule
from ..plan.rows import Row
from .facts import Shown, answer_of, call_of, lines_of, visible, wants, worst

_GAP = 11


def shown_of(row: Row, result: Result) -> Shown:
    """A row with its own result."""
    return Shown(row, result.verdicts, worst(result.verdicts.values()), result.outcome, result.diagnosis, result.detail)


def headline(shown: Shown) -> str:
    """The failure in one short line: its verdict where that is not plain, and the diagnosis."""
    return visible(shown.diagnosis or shown.worst)


def told(shown: Shown, rule: Rule, command: str) -> str:
    """The failure in a few labelled lines."""
    return "\n".join(f"{label:<{_GAP}}{visible(text)}" for label, text in _lines(shown, rule, command))


def _lines(shown: Shown, rule: Rule, command: str) -> Iterator[tuple[str, str]]:
    row = shown.row
    yield "rule", f"{rule.id}: {rule.sentence}"
    for document in shown.failing:
        yield "", f"{document}: {lines_of(rule, document)}"
    yield "case", f"{row.case.place}: {row.case.id}"
    steps = f", step {shown.step + 1} of {len(row.steps)}" if len(row.steps) > 1 else ""
    yield "call", f"{row.operation}, {row.type}, shape as {_given(shown)}{steps}"
    yield "", call_of(row.case, row.case.steps[shown.step])
    due = wants([row], shown.step)
    for want, documents in due.items():
        yield "want", want if len(due) == 1 else f"{want} ({', '.join(documents)})"
    yield "got", answer_of(shown)
    yield "verdict", ", ".join(f"{verdict} ({document})" for document, verdict in shown.verdicts.items())
    yield "diagnosis", shown.detail or headline(shown)
    yield "repeat", command


def _given(shown: Shown) -> str:
    row = shown.row
    return "an attribute" if row.given == "attribute" else f"a {row.given} {row.shape_type} tensor"
