"""`conformance explain CASE`: a case or one of its rows, what it means in each document, and how to run it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ..model import Case, Expected, Suite
from ..plan.rows import Row, plan_of
from ..plan.steps import RowStep
from ..report.wording import format_step
from ..system.terminal import label_paragraph, paint, say
from ..system.text import format_dims
from .arguments import folder_options
from .facts import of_meaning
from .meaning import print_meanings

_MOST_ROWS = 4
"""Rows that are listed, so that the meaning and the commands stand on one screen."""


def things(suite: Suite, name: str) -> list[dict[str, Any]]:
    """Return the case of that name, or the case of the row of that name; at most one."""
    rows = plan_of(suite).rows
    wanted = name.strip().rpartition("::")[2]
    case = suite.cases.get(wanted) or next((row.case for row in rows if row.id == wanted), None)
    if case is None:
        return []
    own = [row for row in rows if row.case is case and wanted in (row.id, case.id)]
    return [_of_case(suite, case, own)]


def _of_case(suite: Suite, case: Case, rows: list[Row]) -> dict[str, Any]:
    return {
        "case": case.id,
        "title": case.title,
        "place": str(case.place),
        "rule": case.rule,
        "sentence": suite.spec.rules[case.rule].sentence,
        "steps": [_of_step(suite, rows, case, number) for number in case.shown_steps],
        "rows": {row.id: sorted(row.facets) for row in rows},
    }


def _of_step(suite: Suite, rows: list[Row], case: Case, number: int) -> dict[str, Any]:
    step = case.steps[number]
    meanings: dict[str, Any] = {}
    for row in rows:
        for document, meaning in _meanings(row.steps[number]):
            meanings.setdefault(document, of_meaning(suite.spec, document, meaning))
    return {
        "step": number + 1,
        "call": format_step(case, step),
        "expect": {document: _format_expectation(each) for document, each in step.expect.items()},
        "meanings": {document: meanings[document] for document in suite.spec.documents if document in meanings},
    }


def _meanings(task: RowStep) -> Iterator[tuple[str, Any]]:
    for judged in task.meanings:
        for document in judged.documents:
            yield document, judged.meaning


def _format_expectation(expected: Expected) -> str:
    if expected.kind == "legal":
        return f"{expected.type}{format_dims(expected.dims or ())}"
    return "reject" if expected.kind == "illegal" else "unspecified"


def commands(case: str, args: argparse.Namespace) -> list[str]:
    """Return the commands that run a case of the suite that was asked for."""
    chosen = f"-k {shlex.quote(case)}"
    return [
        f"conformance run BACKEND{folder_options(args)} {chosen}",
        f"pytest --adapter BACKEND{folder_options(args, '--conformance-')} {chosen}",
    ]


def print_case(suite: Suite, case: Mapping[str, Any]) -> None:
    """Print the case."""
    say(f"{paint('bold', case['case'])}  {paint('dim', 'case · ' + case['place'])}")
    if case["title"]:
        say(label_paragraph("title", case["title"]))
    say(label_paragraph("rule", f"{case['rule']}: {case['sentence']}"))
    for step in case["steps"]:
        say()
        say(label_paragraph(f"step {step['step']}" if len(case["steps"]) > 1 else "call", paint("bold", step["call"])))
        expected = step["expect"]
        text = (
            expected["*"] if set(expected) == {"*"} else ", ".join(f"{name}: {want}" for name, want in expected.items())
        )
        say(label_paragraph("expect", text))
        say()
        print_meanings(suite.spec, step["meanings"])
    say()
    say(paint("bold", "rows"))
    rows = list(case["rows"].items())
    for row, facets in rows[:_MOST_ROWS]:
        say(f"  {row}")
        if len(rows) == 1:
            say(f"  {' '.join(facets)}")
    if len(rows) > _MOST_ROWS:
        say(f"  and {len(rows) - _MOST_ROWS} more; --json has all, with their facets")
    say()
    for command in case["commands"]:
        say(paint("bold", command))
