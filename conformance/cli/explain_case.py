"""`conformance explain CASE`: a case or a row with its meanings and commands, or with --backend a script of it."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Mapping
from typing import Any

from ..adapter import REFERENCE, name_and_device, read_bundled_backends
from ..model import Case, Spec, Suite, Unsupported
from ..plan.rows import Row, explain_drawn, plan_of
from ..report.repeat_script import complete_script
from ..report.wording import format_step
from ..shrink.write_case import write_expectation
from ..system.terminal import label_paragraph, paint, say, say_raw, verbatim
from ..system.text import describe_unknown
from .arguments import Stop, emit, locate_case
from .facts import of_meaning
from .printing import print_heading, print_meanings

_MAX_ROWS_SHOWN = 4
"""Rows to list, so that the meaning and the commands fit on one screen."""


def _find_rows(suite: Suite, name: str) -> list[Row]:
    """Return the rows of the case of that name, or the row of that name."""
    wanted = name.strip().rpartition("::")[2]
    return [row for row in plan_of(suite).rows if wanted in (row.id, row.case.id)]


def find_case(suite: Suite, name: str, options: str, pytest_options: str) -> list[dict[str, Any]]:
    """Return the case of that name, or of the row of that name; at most one. Its commands have the options."""
    rows = _find_rows(suite, name)
    case = rows[0].case if rows else suite.cases.get(name.strip())
    if case is None:
        return []
    chosen = f"-k {shlex.quote(rows[0].id if len(rows) == 1 else case.id)}"
    return [
        {
            "case": case.id,
            "title": case.title,
            "links": case.links,
            "place": str(locate_case(case, suite)),
            "rule": case.rule,
            "sentence": suite.spec.rules[case.rule].sentence,
            "steps": [_describe_step(suite, rows, case, number) for number in case.shown_steps],
            "rows": {row.id: sorted(row.facets) for row in rows},
            "commands": [
                f"conformance run BACKEND{options} {chosen}",
                f"pytest --adapter BACKEND{pytest_options} {chosen}",
            ],
        }
    ]


def _describe_step(suite: Suite, rows: list[Row], case: Case, number: int) -> dict[str, Any]:
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


def print_script(suite: Suite, name: str, backend: str, as_json: bool, options: str) -> None:
    """Print a script that repeats the row of that name, or a row of the case, in the library's own Python."""
    rows = _find_rows(suite, name)
    if not rows and name in suite.spec.rules:
        raise Stop(f"{name!r} is a rule, and --backend takes a case; see `conformance list cases {name}`")
    if not rows:
        raise Stop(explain_drawn(name) or describe_unknown("case", name, suite.cases, "conformance list cases"))
    rows.sort(key=lambda row: row.type != "f32")  # most libraries have f32
    row = _find_writable(rows, backend, f"conformance run {shlex.quote(backend)}{options} -k {shlex.quote(name)}")
    text = complete_script({row.case.id: row}, backend)
    if as_json:
        emit({"row": row.id, "backend": backend, "language": "python", "text": text})
    else:
        say_raw(text)


def _find_writable(rows: list[Row], backend: str, run: str) -> Row:
    """Return the first row that a script can be written for. `run`: the command that calls them without a script."""
    name, device = name_and_device(backend)
    if name not in read_bundled_backends():
        if ":" in backend:
            raise Stop(f"--backend takes bundled backends only; to call the case on {backend}: {run}")
        raise Stop(describe_unknown("backend", name, read_bundled_backends(), "conformance list backends"))
    repro: Any = importlib.import_module("conformance.adapters.repro")
    if name not in repro.WRITERS:
        own = name == REFERENCE
        why = "is the suite’s own reference and no library; try numpy" if own else "has no writer of scripts"
        raise Stop(f"--backend {name}: {name} {why}")
    if device is not None and name not in repro.WITH_DEVICE:
        raise Stop(f"--backend {backend}: {name} has no choice of device; write --backend {name}")
    facets = []
    for row in rows:
        try:
            repro.WRITERS[name](row, backend)
        except Unsupported as unsupported:  # noqa: PERF203 - which row it has words for is seen by trying
            facets.append(unsupported.facet)
        else:
            return row
    raise Stop(
        f"no script for {name} can make the call of {rows[0].case.id}: it needs {', '.join(dict.fromkeys(facets))}"
    )
