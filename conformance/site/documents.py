"""The specification, annotated: a page for each document with its rules in the order of the text.

Each rule has its standing, the words that state it, the findings about it, an example, the cases that try it, and the
backends that fail these. The pages are files without scripts; every link is relative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from ..meaning.contract import Contract
from ..model import WEIGHTS, Call, Case, Document, Finding, Meaning, Rule, Spec
from ..plan.rows import Plan, Row
from ..report.judged_run import JudgedRun
from ..report.picture import Picture, draw_reading
from ..report.render import Site, render_page
from ..report.wording import format_step, format_want
from ..system.files import replace_pages
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from .compare_page import COMPARED
from .playground import find_plain_call, link_to

INDEX, DIFFERENCES, CASES = "index.html", "differences.html", "cases.html"
_NO_LINE, _FEW = 1 << 30, 4
Failing = Mapping[tuple[str, str], int]
"""By case and document, or an empty text for any document: the number of backends that fail it there."""
RuleStandings = tuple[Rule, Mapping[str, str]]
"""A rule and its standing in each document."""


class RuleExample(NamedTuple):
    """A call of a case, what it means in a document, and its picture."""

    call: str
    want: str
    rules: tuple[str, ...]
    """The rules that an illegal call breaks, or those that leave it unspecified."""
    picture: Picture | None
    link: str | None
    """The end of the link to the playground; None if the form cannot hold the call."""


class RuleEntry(NamedTuple):
    rule: Rule
    findings: tuple[Finding, ...]
    example: RuleExample | None
    cases: int
    """The number of cases that try it."""
    failed: int
    """The number of those that a backend fails."""


class CaseEntry(NamedTuple):
    """A case, its call, and the number of backends that fail it."""

    case: Case
    call: str
    backends: int


def write_document_pages(folder: Path, plan: Plan, runs: Sequence[JudgedRun], site: Site) -> None:
    """Write the pages into a folder beside the pages of these runs; pages of documents of before are removed."""
    spec, failing = plan.suite.spec, _count_failing(runs)
    frame = site.frame("../", "Documents")
    rows = group_pairs((row.case.rule, row) for row in plan.rows if row.first is None)  # other types say the same
    pages = {
        f"{document.id}.html": render_page(
            "site_document.html", spec=spec, document=document, index=INDEX, runs=len(runs), cases=CASES,
            entries=list(_list_rules(spec, document, rows, failing)), findings=_list_findings(spec, document.id),
            **frame,
        )
        for document in spec.documents.values()
    }  # fmt: skip
    differing, agreed = _compare_standings(spec)
    pages[DIFFERENCES] = render_page(
        "site_differences.html", spec=spec, differing=differing, agreed=agreed, index=INDEX, **frame,
        disagreements=[finding for finding in _sort(spec.findings.values()) if finding.kind == "disagreement"],
    )  # fmt: skip
    pages[CASES] = render_page(
        "site_cases.html", rules=_list_cases(spec, rows, failing), index=INDEX, differences=DIFFERENCES,
        runs=len(runs), compared=f"../{COMPARED}", **frame,
    )  # fmt: skip
    pages[INDEX] = render_page(
        "site_index.html", spec=spec, differences=DIFFERENCES, cases=len(plan.suite.cases),
        counts={name: _count(spec, name, rows) for name in spec.documents}, weights=WEIGHTS, case_list=CASES,
        **frame,
    )  # fmt: skip
    replace_pages(folder, pages)


def _list_rules(
    spec: Spec, document: Document, rows: Mapping[str, Sequence[Row]], failing: Failing
) -> Iterator[RuleEntry]:
    """Yield the rules that bind in a document: in the order of its lines, and then those that it does not state."""
    binding = [rule for rule in spec.rules.values() if document.id in rule.documents]
    findings_here, drawn = _list_findings(spec, document.id), set[str]()
    for rule in sorted(binding, key=lambda rule: _find_first_line(rule, document.id)):
        own = [row for row in rows.get(rule.id, ()) if document.id in row.documents]
        findings = tuple(finding for finding in findings_here if rule.id in finding.rules)
        cases = {row.case.id for row in own}
        example = _make_example(own, document.id)
        if example and example.call in drawn:
            example = example._replace(picture=None)
        drawn |= {example.call} if example else set()
        yield RuleEntry(rule, findings, example, len(cases), sum((case, document.id) in failing for case in cases))


def _find_first_line(rule: Rule, document: str) -> tuple[bool, int]:
    """Return what sorts a rule: its first line in a document; lines of the one that it is like come later."""
    return next(((at.document != document, at.line) for at in rule.pointers_in(document)), (True, _NO_LINE))


def _sort(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: WEIGHTS.index(finding.weight))


def _list_findings(spec: Spec, document: str) -> list[Finding]:
    return _sort(each for each in spec.findings.values() if document in {pointer.document for pointer in each.at})


def _make_example(rows: Sequence[Row], document: str) -> RuleExample | None:
    """Make an example of the first case with a single call, the smallest if there are several."""
    single = [row for row in rows if len(row.case.steps) == 1]
    plain = [row for row in single if len(row.case.steps[0].shapes) == 1 and row.case.steps[0].layout == "dense"]
    row = min(plain or single, key=_size, default=None)
    if row is None:
        return None
    meaning = next(each.meaning for each in row.steps[0].meanings if document in each.documents)
    step = row.case.steps[0]
    rules = meaning.rules if meaning.kind != "legal" else ()
    want = "it must be rejected" if meaning.kind == "illegal" else format_want(meaning, step.src_type)
    call = find_plain_call(row)
    return RuleExample(
        format_step(row.case, step), want, rules, _draw_example(row, row.contracts[document], meaning),
        call and f"../{link_to(call)}",
    )  # fmt: skip


def _size(row: Row) -> tuple[bool, int]:
    """Order calls by their size; those of fewer than four elements show little."""
    src = row.case.steps[0].src
    return prod(src) < _FEW, sum(src) + len(src)


def _draw_example(row: Row, contract: Contract, meaning: Meaning) -> Picture | None:
    """Draw a call of one node; None if shape is the answer, or says little because the node is not well formed."""
    case, step = row.case, row.case.steps[0]
    computed = -1 in step.shapes[0] or (0 in step.shapes[0] and step.special_zero[0])
    if not computed or case.attributes or case.inputs or case.outputs or case.shape_rank != 1 or len(step.shapes) > 1:
        return None
    return draw_reading(Call(step.src, step.shapes[0], step.special_zero[0]), contract, meaning)


def _count_failing(runs: Sequence[JudgedRun]) -> Failing:
    return Counter(
        (case, document)
        for run in runs
        for case, rows in run.rows_by_case.items()
        for failing in [{document for each in rows for document in each.failing}]
        for document in (failing and {"", *failing})
    )


def _list_cases(spec: Spec, rows: Mapping[str, Sequence[Row]], failing: Failing) -> list[tuple[Rule, list[CaseEntry]]]:
    """List the cases of each rule that has any, in the order of the rules."""
    return [
        (rule, [
            CaseEntry(case, _describe_calls(case), failing.get((case.id, ""), 0))
            for case in {row.case.id: row.case for row in rows[rule.id]}.values()
        ])
        for rule in spec.rules.values() if rule.id in rows
    ]  # fmt: skip


def _describe_calls(case: Case) -> str:
    """Write the first call of a case, and how many come after it."""
    more = len(case.steps) - 1
    return format_step(case, case.steps[0]) + (f"; {count_noun(more, 'more call')}" if more else "")


def _compare_standings(spec: Spec) -> tuple[list[RuleStandings], list[RuleStandings]]:
    """Return the rules in which the documents differ and the others, each with its standing in each document.

    First are those about a 0 in shape, as most readers come for these.
    """
    lines: list[RuleStandings] = [
        (rule, {name: rule.treatment_in(name) for name in spec.documents}) for rule in spec.rules.values()
    ]
    lines.sort(key=lambda line: not line[0].id.startswith("zero-"))
    differing = [line for line in lines if len(set(line[1].values())) > 1]
    return differing, [line for line in lines if line not in differing]


def _count(spec: Spec, document: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, int]:
    """Count the rules of a document, those that it states, what is not tested, and the findings about it."""
    binding = [rule for rule in spec.rules.values() if document in rule.documents]
    tested = {rule for rule, own in rows.items() if any(document in row.documents for row in own)}
    return {
        "rules": len(binding),
        "stated": sum(rule.level == "must" and rule.authority(document) != "our ruling" for rule in binding),
        "untested": sum(rule.id not in tested for rule in binding),
        **{weight: sum(each.weight == weight for each in _list_findings(spec, document)) for weight in WEIGHTS},
    }
