"""A failing row as text: the rule and its lines, the call, what is due, the answer, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..model import Rule
from ..verdict.blame import Blamed
from .row_results import RowResult
from .wording import collect_wants, format_answer, format_blames, format_lines, format_step, visible

LABEL_WIDTH = 11


def format_headline(result: RowResult) -> str:
    return visible(result.diagnosis or result.worst)


def format_failure(
    result: RowResult, rules: Mapping[str, Rule], commands: Iterable[str], blames: Mapping[str, Blamed] | None = None
) -> str:
    lines = _list_lines(result, rules, commands, blames)
    return "\n".join(f"{label:<{LABEL_WIDTH}}{visible(text)}" for label, text in lines)


def _list_lines(
    result: RowResult, rules: Mapping[str, Rule], commands: Iterable[str], blames: Mapping[str, Blamed] | None
) -> Iterator[tuple[str, str]]:
    row = result.row
    rule = rules[row.case.rule]
    yield "rule", f"{rule.id}: {rule.sentence}"
    for document in result.failing:
        yield "", f"{document}: {format_lines(rule, document)}"
    yield "case", f"{row.case.place}: {row.case.id}"
    if row.case.title:
        yield "", row.case.title
    for link in row.case.links:
        yield "", link
    steps = f", step {result.step + 1} of {len(row.steps)}" if len(row.steps) > 1 else ""
    shape = "an attribute" if row.shape_passed_as == "attribute" else f"a {row.shape_passed_as} {row.shape_type} tensor"
    yield "call", f"{row.operation}, {row.type}, shape as {shape}{steps}"
    yield "", format_step(row.case, row.case.steps[result.step])
    due = collect_wants([row], result.step)
    for want, documents in due.items():
        yield "want", want if len(due) == 1 else f"{want} ({', '.join(documents)})"
    yield "got", format_answer(result)
    yield "verdict", ", ".join(f"{verdict} ({document})" for document, verdict in result.verdicts.items())
    if blames:
        yield "blame", format_blames(blames, rules)
    yield "diagnosis", result.detail or format_headline(result)
    for command in commands:
        yield "repeat", command
