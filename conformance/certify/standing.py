"""The standing of a backend for each document and element type: a word, and the counts behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..model import BAD, NOT_CLAIMED, NOT_RUN, PASS, Claims, Result, Rule, Verdict, Word
from ..plan.rows import Plan, Row
from .evidence import Target


@dataclass(frozen=True)
class Standing:
    """The result for one document and one element type."""

    document: str
    operation: str
    type: str
    word: Word
    counts: Mapping[Verdict, int]
    """Verdicts of the required rows; all of them are in the denominator."""
    optional: Mapping[Verdict, int]
    """Verdicts of rows in facets that are not claimed."""
    against_document: int
    """Failures of rules that the document states."""
    against_rulings: int
    """Failures of rules that are our rulings there."""
    unshown: tuple[str, ...]
    """Rules that bind and have required rows, but no pass."""
    not_claimed: tuple[str, ...]
    """Facets of rows of the suite that the backend does not claim."""

    @property
    def required(self) -> int:
        return sum(self.counts.values())


class RowGroup(NamedTuple):
    """Rows with the same operation, type, rule, facets and verdicts, grouped so that they are counted once."""

    rows: list[Row]
    verdicts: Mapping[str, Verdict]
    """The verdict in each of their documents; `not run` if there is no result."""


def group_rows(rows: Iterable[Row], results: Mapping[str, Result]) -> list[RowGroup]:
    """Group rows by what a conclusion depends on, in the order of the first row of each group."""
    groups: dict[tuple[object, ...], RowGroup] = {}
    for row in rows:
        result = results.get(row.id)
        verdicts = result.verdicts if result else {}
        key = (row.operation, row.type, row.documents, row.facets, row.case.rule, *verdicts.items())
        if key not in groups:
            groups[key] = RowGroup([], {document: verdicts.get(document, NOT_RUN) for document in row.documents})
        groups[key].rows.append(row)
    return list(groups.values())


def in_target(row: Row, document: str, target: Target, claims: Claims) -> bool:
    """True if a run with this target has to show a row in a document."""
    return (
        row.operation in (target.operations or claims.operations)
        and document in (target.documents or (document,))
        and row.type in (target.types or (row.type,))
        and (target.large or "large" not in row.facets)
    )


def is_required(row: Row, claims: Claims) -> bool:
    """True if conformity depends on a row: it is core, or all its facets are claimed."""
    return not any(claims.leaves(facet) for facet in row.facets)


def standings_of(plan: Plan, groups: Mapping[tuple[str, str], list[RowGroup]], claims: Claims) -> tuple[Standing, ...]:
    """Return the standings of the groups by document and type, in the order of the documents.

    A type that a document does not list has a standing only if a row of it failed.
    """
    documents = plan.suite.spec.documents
    listed = {document.id: plan.suite.spec.operations[document.operation].types for document in documents.values()}
    position = {document: number for number, document in enumerate(documents)}
    return tuple(
        _standing(plan, document, type_, group, claims)
        for (document, type_), group in sorted(groups.items(), key=lambda entry: (position[entry[0][0]], entry[0][1]))
        if type_ in listed[document] or any(rows.verdicts[document] in BAD for rows in group)
    )


def _standing(plan: Plan, document: str, type_: str, group: list[RowGroup], claims: Claims) -> Standing:
    rules = plan.suite.spec.rules
    counts: Counter[Verdict] = Counter()
    optional: Counter[Verdict] = Counter()
    against: Counter[bool] = Counter()
    shown: dict[str, bool] = {}
    not_claimed: dict[str, None] = {}
    for rows in group:
        row, verdict, number = rows.rows[0], rows.verdicts[document], len(rows.rows)
        rule = rules[row.case.rule]
        if verdict in BAD:
            against.update(_states_one(document, _blamed_rules(failure, document, rules)) for failure in rows.rows)
        if is_required(row, claims):
            counts[verdict] += number
            if document in rule.documents and rule.level != "silent":
                shown[rule.id] = shown.get(rule.id, False) or verdict == PASS
        else:
            optional[verdict] += number
            not_claimed.update(dict.fromkeys(sorted(facet for facet in row.facets if claims.leaves(facet))))
    unshown = tuple(rule for rule, passed in shown.items() if not passed)
    return Standing(
        document, plan.suite.spec.documents[document].operation, type_, _word(counts, optional, unshown), dict(counts),
        dict(optional), against[True], against[False], unshown, tuple(not_claimed),
    )  # fmt: skip


def _states_one(document: str, rules: Iterable[Rule]) -> bool:
    """True if the document itself states one of the rules."""
    return any(rule.level == "must" and any(p.document == document for p in rule.stated) for rule in rules)


def _blamed_rules(row: Row, document: str, rules: Mapping[str, Rule]) -> list[Rule]:
    """Find the rules a failure is blamed on: the cited rule if it binds in the document, else those the call breaks."""
    cited = rules[row.case.rule]
    if document in cited.documents:
        return [cited]
    meanings = [judged.meaning for task in row.steps for judged in task.meanings if document in judged.documents]
    return [rules[name] for meaning in meanings if meaning.kind == "illegal" for name in meaning.rules] or [cited]


def _word(counts: Mapping[Verdict, int], optional: Mapping[Verdict, int], unshown: tuple[str, ...]) -> Word:
    bad = sum(c.get(v, 0) for c in (counts, optional) for v in BAD)
    if bad:
        return "does not conform"
    if not counts:
        return "not claimed"
    if counts.get(NOT_RUN):
        return "incomplete"
    if not counts.get(PASS):
        return "nothing shown"
    return "incomplete" if unshown or counts.get(NOT_CLAIMED) else "conforms"


def describe_gap(standing: Standing) -> str:
    """Say what keeps a standing from `conforms`."""
    if not_run := standing.counts.get(NOT_RUN):
        return f"{not_run} rows not run"
    if standing.word == "nothing shown":
        return "nothing passed"
    if standing.unshown:
        return f"no pass for the rule{'s' if len(standing.unshown) > 1 else ''} {', '.join(standing.unshown)}"
    return standing.word
