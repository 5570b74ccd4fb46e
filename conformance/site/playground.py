"""The playground: a page that says what a call means in each document, and what backends did with such calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..exchange.code.write import render_code
from ..meaning.compiled_rules import compile_rules
from ..model import FAIL, WAIVED, Call, Document, Malformed, Outcome, Rule, Spec
from ..model.cases import list_given_keys
from ..model.types import range_of
from ..model.verdicts import ERROR, NOT_RUN, SEVERITIES
from ..plan.rows import Row
from ..report.judged_run import JudgedRun
from ..report.render import Site, render_page
from ..system.files import replace_text
from ..verdict.blame import severity_of
from .compare_page import COMPARED, name_runs

PLAYGROUND = "playground.html"
_SCRIPTS = ("playground.css", "playground.js", "playground_page.js")
_ASIDE = ("title", "rows", "large")
"""Keys of a case that leave its call a plain one."""


class BackendFailures(NamedTuple):
    """The failures of one backend with a call, in one document."""

    backend: int
    severity: int
    """The worst of them, as an index of SEVERITIES."""
    failed: int
    tests: int


class CallRecord(NamedTuple):
    """What the backends did with a call in one document."""

    backends: int
    """The number of backends with a test of it."""
    failing: tuple[BackendFailures, ...]


def link_to(call: Call) -> str:
    """Return the link to the page with a call filled in."""
    zero = str(call.special_zero).lower()
    return f"{PLAYGROUND}#src={_join(call.src)}&shape={_join(call.shape)}&special_zero={zero}"


def find_plain_call(row: Row) -> Call | None:
    """Return the call of a row if it is all there is: one call of a well-formed node with a dense tensor."""
    case, step = row.case, row.case.steps[0]
    keys = {key.name for part in (case, step) for key, _ in list_given_keys(part)}
    special = case.attributes or case.inputs or case.outputs or case.declared is not None
    if special or len(case.steps) > 1 or len(step.shapes) > 1 or not keys.issubset(_ASIDE):
        return None
    return Call(step.src, step.shapes[0], step.special_zero[0]) if row.has_listed_type else None


def write_playground(path: Path, spec: Spec, site: Site, runs: Sequence[JudgedRun], pages: Sequence[str]) -> None:
    """Write the page; if a rule has no exact form in JavaScript, the page says so. `pages`: links to the reports."""
    try:
        code, why_none = render_code(spec, "javascript")[1], ""
    except Malformed as form:
        code, why_none = "", str(form)
    calls: dict[str, tuple[Call, list[CallRecord]]] = {}
    for case, rows in runs[0].rows_by_case.items() if runs else ():
        if call := find_plain_call(rows[0].row):
            calls[case] = call, [*_list_answers(runs, case, call, spec.documents)]
    distinct = [*dict.fromkeys(each for _, done in calls.values() for each in done)]
    numbers = {each: number for number, each in enumerate(distinct)}
    data = {
        "documents": {name: _describe(spec, document) for name, document in spec.documents.items()},
        "backends": list(zip(name_runs(runs), pages, strict=True)),
        "severities": SEVERITIES,
        "done": distinct,
        "calls": [  # lengths are texts, because a number of JSON loses digits past 2^53
            [case, _join(call.src), _join(call.shape), int(call.special_zero), *(numbers[each] for each in done)]
            for case, (call, done) in calls.items()
        ],
    }
    page = render_page(
        "playground.html", files=_SCRIPTS if code else (), **site.frame("", "Playground"),
        code=code, why_none=why_none, spec=spec, data=data, compared=COMPARED,
        examples=[(each, link_to(Call(*each.example))) for each in spec.findings.values() if each.example],
    )  # fmt: skip
    replace_text(path, page)


def _join(lengths: Iterable[int]) -> str:
    return ",".join(map(str, lengths))


def _describe(spec: Spec, document: Document) -> dict[str, Any]:
    binding = [rule for rule in spec.rules.values() if document.id in rule.documents]
    operation = spec.operations[document.operation]
    return {
        "title": f"{document.title}, {document.edition}",
        "rules": {rule.id: _describe_clause(rule, document.id) for rule in binding if rule.has_contract},
        "volume": [each.rule for each in compile_rules(binding).volumes],
        "shape_types": [[each, str(range_of(each)[0]), str(range_of(each)[-1])] for each in operation.shape_types],
    }


def _describe_clause(rule: Rule, document: str) -> dict[str, Any]:
    """Return how a document treats a rule, the lines that state it, and the reason where none does."""
    treatment = rule.treatment_in(document)
    return {
        "treatment": treatment,
        "lines": [[each.line_for(document), each.words] for each in rule.pointers_in(document)],
        "why": rule.reason_in(document) if treatment == "our ruling" else None,
        "finding": rule.as_read.get(rule.source_of(document)),
    }


def _list_answers(runs: Sequence[JudgedRun], case: str, call: Call, documents: Iterable[str]) -> Iterator[CallRecord]:
    tests: dict[str, list[list[Outcome | None]]] = {document: [[] for _ in runs] for document in documents}
    for number, run in enumerate(runs):
        for result in run.rows_by_case[case]:
            for document, verdict in run.tests_of(result).items():
                if verdict not in (NOT_RUN, ERROR):
                    tests[document][number].append(result.outcome if verdict in (FAIL, WAIVED) else None)
    for document, by_run in tests.items():
        kind = runs[0].contracts[document].meaning(call.src, call.shape, call.special_zero).kind
        failing = []
        for number, outcomes in enumerate(by_run):
            if failed := [SEVERITIES.index(severity_of(outcome, kind)) for outcome in outcomes if outcome]:
                failing.append(BackendFailures(number, min(failed), len(failed), len(outcomes)))
        yield CallRecord(sum(map(bool, by_run)), tuple(sorted(failing, key=lambda each: each.severity)))
