"""`conformance explain CASE`: a case or one of its rows, what it means in each document, and how to run it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..hunt.write_case import write_expectation
from ..model import Case, Spec, Suite
from ..plan.rows import Row, plan_of
from ..report.wording import format_step
from ..system.terminal import label_paragraph, paint, say, verbatim
from .arguments import locate_case
from .facts import of_meaning
from .layout import print_heading, print_meanings

_MAX_ROWS_SHOWN = 4
"""Rows to list, so that the meaning and the commands fit on one screen."""


def find_rows(suite: Suite, name: str) -> list[Row]:
    """Return the rows of the case of that name, or the row of that name."""
    wanted = name.strip().rpartition("::")[2]
    return [row for row in plan_of(suite).rows if wanted in (row.id, row.case.id)]


def find_case(suite: Suite, name: str, options: str, pytest_options: str) -> list[dict[str, Any]]:
    """Return the case of that name, or of the row of that name; at most one. Its commands have the options."""
    rows = find_rows(suite, name)
    case = rows[0].case if rows else suite.cases.get(name.strip())
    if case is None:
        return []
    chosen = f"-k {shlex.quote(case.id)}"
    return [
        {
            "case": case.id,
            "title": case.title,
            "links": case.links,
            "place": str(locate_case(case, suite)),
            "rule": case.rule,
            "sentence": suite.spec.rules[case.rule].sentence,
            "steps": [_of_step(suite, rows, case, number) for number in case.shown_steps],
            "rows": {row.id: sorted(row.facets) for row in rows},
            "commands": [
                f"conformance run BACKEND{options} {chosen}",
                f"pytest --adapter BACKEND{pytest_options} {chosen}",
            ],
        }
    ]


def _of_step(suite: Suite, rows: list[Row], case: Case, number: int) -> dict[str, Any]:
    step = case.steps[number]
    meanings = {
        document: of_meaning(suite.spec, document, judged.meaning)
        for row in reversed(rows)
        for judged in row.steps[number].meanings
        for document in judged.documents
    }
    return {
        "step": number + 1,
        "call": format_step(case, step),
        "expect": {
            document: write_expectation(step.src_type, each.kind, each.dims) for document, each in step.expect.items()
        },
        "meanings": {document: meanings[document] for document in suite.spec.documents if document in meanings},
    }


def print_case(spec: Spec, case: Mapping[str, Any]) -> None:
    print_heading(case["case"], "case", case["place"])
    if case["title"]:
        say(label_paragraph("title", case["title"]))
    for link in case["links"]:
        say(label_paragraph("found as", link))
    say(label_paragraph("rule", f"{case['rule']}: {case['sentence']}"))
    for step in case["steps"]:
        say()
        say(label_paragraph(f"step {step['step']}" if len(case["steps"]) > 1 else "call", paint("bold", step["call"])))
        expected = step["expect"]
        by_document = ", ".join(f"{name}: {want}" for name, want in expected.items())
        say(label_paragraph("expect", expected["*"] if [*expected] == ["*"] else by_document))
        say()
        print_meanings(spec, step["meanings"])
    say()
    say(paint("bold", "rows"))
    rows = list(case["rows"].items())
    for row, facets in rows[:_MAX_ROWS_SHOWN]:
        say(f"  {row}")
        if len(rows) == 1:
            say(f"  {' '.join(facets)}")
    if len(rows) > _MAX_ROWS_SHOWN:
        say(f"  and {len(rows) - _MAX_ROWS_SHOWN} more; --json has all, with their facets")
    say()
    for command in case["commands"]:
        say(verbatim(paint("bold", command)))
