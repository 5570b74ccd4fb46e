"""junit.xml: one testsuite a case file, one testcase a row, for GitHub, GitLab and Jenkins."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..model import BAD, FAIL, NOT_RUN, RIGHT, Verdict, worst
from ..plan.rows import Row
from ..system.exit_codes import VOIDS_VERDICTS
from ..system.groups import group_pairs
from ..verdict.blame import find_worst
from ..verdict.failure_kinds import list_shown_lines
from .failure_text import format_failure
from .judged_run import JudgedRun
from .row_results import RowResult
from .wording import format_answer, visible


def render(run: JudgedRun) -> str:
    """Render the file; a row is a failure, an error or skipped if it is so in any document that was asked for."""
    evidence = run.evidence
    totals = _count_elements(run, run.listed)
    totals["tests"] += len(run.left_out)
    del totals["skipped"]  # the usual schema has it on a suite only
    is_void = run.conclusion.exit_code in VOIDS_VERDICTS
    totals["tests"] += is_void
    totals["errors"] += is_void
    title = f"reshape conformance of {run.name}{run.scope_phrase}: {run.label}"
    time = _write_seconds(round(1000 * evidence.footer["seconds"]))
    root = make(None, "testsuites", name=title, **totals, time=time)
    if is_void:  # whoever reads only this file would see rows that pass
        add_error(root, "verdict", "the run can be relied on", run.label, run.conclusion.why)
    for file, rows in group_pairs((result.row.case.file, result) for result in run.listed).items():
        time = _write_seconds(sum(result.result.milliseconds for result in rows))
        started = evidence.header["started"][:19]
        suite = make(root, "testsuite", name=file, **_count_elements(run, rows), time=time, timestamp=started)
        for result in rows:
            _add_row(run, suite, result)
    if number := len(run.left_out):  # one skipped test for each reason, which says how many rows
        counts = {"tests": number, "failures": 0, "errors": 0, "skipped": number}
        suite = make(root, "testsuite", name=NOT_RUN, **counts, time=0)
        for why, rows in run.left_out.items():
            test = make(suite, "testcase", classname=NOT_RUN, name=f"{len(rows)} rows: {why}", time=0)
            make(test, "skipped", message=f"not run: {why}")
    return write(root)


def make(parent: Element | None, tag: str, **attributes: object) -> Element:
    shown = {name: visible(value) for name, value in attributes.items()}
    return Element(tag, shown) if parent is None else SubElement(parent, tag, shown)


def add_error(root: Element, suite: str, test: str, kind: str, why: str) -> None:
    """Add a suite of one test, which is about no row, with an error."""
    parent = make(root, "testsuite", name=suite, tests=1, failures=0, errors=1, skipped=0, time=0)
    case = make(parent, "testcase", classname=suite, name=test, time=0)
    make(make(case, "properties"), "property", name="rule", value=suite)
    make(case, "error", type=kind, message=why).text = visible(why)


def write(root: Element) -> str:
    indent(root, "")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n'


def _count_elements(run: JudgedRun, rows: Iterable[RowResult]) -> dict[str, int]:
    elements = [_choose_element(result.row, _find_verdict(run, result)) for result in rows]
    named = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": len(elements), **{name: elements.count(element) for name, element in named.items()}}


def _find_verdict(run: JudgedRun, result: RowResult) -> Verdict:
    """Find the worst verdict of a row in the documents that were asked for; in all if none of its documents was."""
    asked = [verdict for document, verdict in result.verdicts.items() if document in run.target.documents]
    return worst(asked) if asked else result.worst


def _choose_element(row: Row, verdict: Verdict) -> str | None:
    """Choose the element for the verdict of a row; None if the row is right."""
    if verdict in BAD and row.has_listed_type:
        return "failure" if verdict == FAIL else "error"
    return None if verdict in RIGHT else "skipped"


def _write_seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"


def _add_row(run: JudgedRun, suite: Element, result: RowResult) -> None:
    row, blames = result.row, run.conclusion.blames.get(result.row.id, {})
    time = _write_seconds(result.result.milliseconds)
    test = make(suite, "testcase", classname=row.case.file, name=row.id, time=time)
    properties = make(test, "properties")
    make(properties, "property", name="rule", value=row.case.rule)
    for document, verdict in result.verdicts.items():
        make(properties, "property", name=document, value=verdict)
    for document, blamed in blames.items():
        what = f"{blamed.severity}; {blamed.blame}: {blamed.premise.rule}"
        make(properties, "property", name=f"failure in {document}", value=what)
    verdict = _find_verdict(run, result)
    element = _choose_element(row, verdict)
    if element == "skipped":
        why = run.explain_not_run(result) if verdict == NOT_RUN else format_answer(result)
        uncounted = f", not counted, as no document lists {row.type}" if verdict in BAD else ""
        make(test, "skipped", message=f"{verdict}{uncounted}: {why}")
    elif element:
        diagnosis = result.diagnosis or verdict
        cause = run.conclusion.causes.get(row.id)
        worst = find_worst(blames.values())
        what = f"{worst.severity if worst else verdict}: {cause.title if cause else diagnosis}"
        failure = make(test, element, type=diagnosis, message=f"{what} ({', '.join(result.failing)})")
        text = format_failure(result, run.plan.suite.spec.rules, run.commands(result), blames)
        failure.text = "\n".join([text, *map(visible, list_shown_lines(row, result.result, True))])
