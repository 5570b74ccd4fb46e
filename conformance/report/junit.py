"""junit.xml: one testsuite a case file, one testcase a row, for GitHub, GitLab and Jenkins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from ..certify.conclude import Conclusion
from ..certify.evidence import Evidence
from ..plan.rows import Plan
from .facts import BAD, SKIPPED, Facts, Shown, answer_of, call_of, grouped, lines_of, visible, wants


def xml(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> str:
    """The whole file; a row is a failure, an error or skipped where it is so in any document."""
    return of(Facts(plan, evidence, conclusion))


def of(facts: Facts) -> str:
    """The same of a run whose facts have been gathered."""
    evidence = facts.evidence
    files = grouped((shown.row.case.file, shown) for shown in facts.told)
    started = str(evidence.header.get("started", ""))[:19]
    totals = _counts(facts.told)
    totals["tests"] += len(facts.left)
    del totals["skipped"]  # the usual schema has it on a suite only
    name = _attribute("name", f"reshape conformance of {facts.name}{facts.reach}")
    seconds = f"{float(evidence.footer.get('seconds', 0)):.3f}"
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{name}{_numbers(totals)}{_attribute('time', seconds)}>",
    ]
    for file, rows in files.items():
        when = _attribute("timestamp", started) if started else ""
        parts.append(f'<testsuite{_attribute("name", file)}{_numbers(_counts(rows))} time="0"{when}>')
        parts += [part for shown in rows for part in _testcase(facts, shown)]
        parts.append("</testsuite>")
    parts += _left(facts)
    return "\n".join([*parts, "</testsuites>", ""])


def _left(facts: Facts) -> Iterator[str]:
    """Rows that the run was not to make: one skipped test for each reason, which says how many."""
    if facts.left:
        number = len(facts.left)
        yield f'<testsuite name="not run" tests="{number}" failures="0" errors="0" skipped="{number}" time="0">'
        for why, rows in facts.left.items():
            yield f'<testcase classname="not run"{_attribute("name", f"{len(rows)} rows: {why}")} time="0">'
            yield f"<skipped{_attribute('message', f'not run: {why}')}/></testcase>"
        yield "</testsuite>"


def _counts(rows: Iterable[Shown]) -> dict[str, int]:
    found = [_element(shown) for shown in rows]
    named = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": len(found), **{name: found.count(element) for name, element in named.items()}}


def _element(shown: Shown) -> str | None:
    """The element that tells what became of a row; none where it is right in every document."""
    if shown.worst in BAD:
        return "failure" if shown.worst == "fail" else "error"
    return "skipped" if shown.worst in SKIPPED else None


def _numbers(counts: Mapping[str, int]) -> str:
    return "".join(f' {name}="{number}"' for name, number in counts.items())


def _attribute(name: str, value: object) -> str:
    """Between apostrophes where it holds quotation marks and nothing else would do with fewer references."""
    text = escape(visible(value), quote=False)
    if '"' in text and "'" not in text:
        return f" {name}='{text}'"
    return f' {name}="{text.replace(chr(34), "&quot;")}"'


def _testcase(facts: Facts, shown: Shown) -> Iterator[str]:
    row = shown.row
    yield f'<testcase{_attribute("classname", row.case.file)}{_attribute("name", row.id)} time="0">'
    yield "<properties>"
    yield f'<property name="rule"{_attribute("value", row.case.rule)}/>'
    for document, verdict in shown.verdicts.items():
        yield f"<property{_attribute('name', document)}{_attribute('value', verdict)}/>"
    yield "</properties>"
    element = _element(shown)
    if element == "skipped":
        why = facts.why_not_run(shown) if shown.worst == "not run" else answer_of(shown)
        yield f"<skipped{_attribute('message', f'{shown.worst}: {why}')}/>"
    elif element:
        message = f"{shown.diagnosis or shown.worst} ({', '.join(shown.failing)})"
        yield f"<{element}{_attribute('type', shown.diagnosis or shown.worst)}{_attribute('message', message)}>"
        yield f"{escape(_told(facts, shown), quote=False)}</{element}>"
    yield "</testcase>"


def _told(facts: Facts, shown: Shown) -> str:
    """All that one needs to find the fault."""
    row = shown.row
    rule = facts.plan.suite.spec.rules[row.case.rule]
    lines = [f"rule:    {rule.id}: {rule.sentence}"]
    lines += [f"         {document}: {lines_of(rule, document)}" for document in shown.failing]
    lines.append(f"call:    {call_of(row.case, row.case.steps[shown.step])}")
    for want, documents in wants([row], shown.step).items():
        if there := [document for document in documents if document in shown.failing]:
            lines.append(f"want:    {want} ({', '.join(there)})")
    lines.append(f"got:     {answer_of(shown)}")
    if shown.detail:
        lines.append(f"detail:  {shown.detail}")
    lines += [f"repeat:  {command}" for command in facts.commands(row)]
    return "\n".join(map(visible, lines))
