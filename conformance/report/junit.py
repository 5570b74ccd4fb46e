"""junit.xml: one testsuite a case file, one testcase a row, for GitHub, GitLab and Jenkins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from ..model import BAD, FAIL, NOT_RUN, RIGHT
from ..system.groups import group_pairs
from ..verdict.blame import worst_severity
from .failure_text import format_failure
from .finished_run import FinishedRun
from .rows import RowResult
from .wording import format_answer, visible


def render(run: FinishedRun) -> str:
    """Render the file; a row is a failure, an error or skipped if it is so in any document."""
    evidence = run.evidence
    files = group_pairs((result.row.case.file, result) for result in run.listed)
    started = str(evidence.header.get("started", ""))[:19]
    totals = _count_elements(run.listed)
    totals["tests"] += len(run.left_out)
    del totals["skipped"]  # the usual schema has it on a suite only
    title = _format_attribute("name", f"reshape conformance of {run.name}{run.scope_phrase}: {run.label}")
    time = _format_time(round(1000 * evidence.footer.get("seconds", 0)))
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{title}{_format_numbers(totals)}{time}>"]
    for file, rows in files.items():
        when = _format_attribute("timestamp", started) if started else ""
        name, numbers = _format_attribute("name", file), _format_numbers(_count_elements(rows))
        time = _format_time(sum(result.result.milliseconds for result in rows))
        parts.append(f"<testsuite{name}{numbers}{time}{when}>")
        parts += [part for result in rows for part in _render_row(run, result)]
        parts.append("</testsuite>")
    parts += _render_left_out(run)
    return "\n".join([*parts, "</testsuites>", ""])


def _render_left_out(run: FinishedRun) -> Iterator[str]:
    """Render the rows that are left out: one skipped test for each reason, which says how many."""
    if run.left_out:
        number = len(run.left_out)
        yield f'<testsuite name="{NOT_RUN}" tests="{number}" failures="0" errors="0" skipped="{number}" time="0">'
        for why, rows in run.left_out.items():
            yield f'<testcase classname="{NOT_RUN}"{_format_attribute("name", f"{len(rows)} rows: {why}")} time="0">'
            yield f"<skipped{_format_attribute('message', f'not run: {why}')}/></testcase>"
        yield "</testsuite>"


def _count_elements(rows: Iterable[RowResult]) -> dict[str, int]:
    elements = [_choose_element(result) for result in rows]
    named = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": len(elements), **{name: elements.count(element) for name, element in named.items()}}


def _choose_element(result: RowResult) -> str | None:
    """Choose the element for the worst verdict of a row; None if the row is right in every document."""
    if result.worst in BAD:
        return "failure" if result.worst == FAIL else "error"
    return None if result.worst in RIGHT else "skipped"


def _format_numbers(counts: Mapping[str, int]) -> str:
    return "".join(f' {name}="{number}"' for name, number in counts.items())


def _format_time(milliseconds: int) -> str:
    return f' time="{milliseconds / 1000:.3f}"'


def _format_attribute(name: str, value: object) -> str:
    """Write an attribute, between apostrophes if that needs fewer references."""
    text = escape(visible(value), quote=False)
    if '"' in text and "'" not in text:
        return f" {name}='{text}'"
    return f' {name}="{text.replace(chr(34), "&quot;")}"'


def _render_row(run: FinishedRun, result: RowResult) -> Iterator[str]:
    row, time = result.row, _format_time(result.result.milliseconds)
    yield f"<testcase{_format_attribute('classname', row.case.file)}{_format_attribute('name', row.id)}{time}>"
    yield "<properties>"
    yield f'<property name="rule"{_format_attribute("value", row.case.rule)}/>'
    for document, verdict in result.verdicts.items():
        yield f"<property{_format_attribute('name', document)}{_format_attribute('value', verdict)}/>"
    for document, blamed in run.conclusion.blames.get(row.id, {}).items():
        what = f"{blamed.severity}; {blamed.blame}: {blamed.premise.rule}"
        yield f"<property{_format_attribute('name', f'failure in {document}')}{_format_attribute('value', what)}/>"
    yield "</properties>"
    element = _choose_element(result)
    if element == "skipped":
        why = run.explain_not_run(result) if result.worst == NOT_RUN else format_answer(result)
        yield f"<skipped{_format_attribute('message', f'{result.worst}: {why}')}/>"
    elif element:
        diagnosis = result.diagnosis or result.worst
        severity = worst_severity(run.conclusion.blames.get(row.id, {}).values())
        cause = run.conclusion.causes.get(row.id)
        message = f"{severity or result.worst}: {cause.title if cause else diagnosis} ({', '.join(result.failing)})"
        yield f"<{element}{_format_attribute('type', diagnosis)}{_format_attribute('message', message)}>"
        yield f"{escape(_describe(run, result), quote=False)}</{element}>"
    yield "</testcase>"


def _describe(run: FinishedRun, result: RowResult) -> str:
    row = result.row
    rule, blames = run.plan.suite.spec.rules[row.case.rule], run.conclusion.blames.get(row.id)
    text = format_failure(result, rule, run.commands(result), blames)
    return text + "".join(f"\n{visible(line)}" for line in (result.result.case or "").rstrip().split("\n") if line)
