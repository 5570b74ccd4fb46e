"""The tables of the page: rules, the matrix of rules and types, unspecified calls, rows that are set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..model import OBSERVED, Case, Rule, Verdict, covers, fails
from ..plan.rows import Row
from .finished_run import FinishedRun
from .rows import RowResult, count_verdicts, group_pairs
from .wording import format_answer, format_call, format_lines

Counts = Mapping[Verdict, int]

# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


class RuleRow(NamedTuple):
    """A rule, each document with its lines and the verdicts there, how many cases the rule has, and all its tests."""

    rule: Rule
    documents: list[tuple[str, str, Counts]]
    cases: int
    counts: Counts

    @property
    def state(self) -> Literal["fails", "passes", "open"]:
        """Return `fails` if a test fails or is waived, otherwise `passes` if one passes."""
        if fails(self.counts) or self.counts.get("waived"):
            return "fails"
        return "passes" if self.counts.get("pass") else "open"

    @property
    def failing(self) -> Iterator[tuple[list[str], Counts]]:
        """The documents in which a test fails; those with the same counts together."""
        together = group_pairs((tuple(counts.items()), name) for name, _, counts in self.documents if fails(counts))
        yield from ((list(names), dict(counts)) for counts, names in together.items())


def collect_rules(run: FinishedRun) -> Iterator[RuleRow]:
    """Collect every rule of the specification; a document that it does not bind only if a row failed there."""
    for rule_id, groups in run.groups.items():
        rule = run.plan.suite.spec.rules[rule_id]
        tested = group_pairs((document, group) for group in groups for document in group.first.verdicts)
        documents: list[tuple[str, str, Counts]] = []
        for document in run.plan.suite.spec.documents:
            lines, counts = format_lines(rule, document), run.count(tested.get(document, ()), [document])
            if lines != "not bound" or fails(counts):
                documents.append((document, lines, counts))
        cases = len({result.row.case.id for result in run.rules[rule_id]})
        yield RuleRow(rule, documents, cases, run.count(groups))


# ── matrix ────────────────────────────────────────────────────────────────────────────────────────


class Matrix(NamedTuple):
    """Operations and their types against rules, with the verdicts in each cell."""

    columns: Mapping[str, Sequence[str]]
    rows: list[tuple[str, list[Counts]]]


def collect_matrix(run: FinishedRun, failing: bool = False) -> Matrix:
    """Count the verdicts of every rule, operation and type; `failing`: of the rules with a failing test only."""
    columns = []
    for operation in run.plan.suite.spec.operations.values():
        columns += [(operation.id, type_) for type_ in operation.types]
        if any(r.row.operation == operation.id and r.row.type not in operation.types for r in run.rows):
            columns.append((operation.id, "unlisted"))
    rows = []
    for rule, groups in run.groups.items():
        if groups and not (failing and not fails(run.count(groups))):
            cells = group_pairs(((group.first.row.operation, _column(run, group.first.row)), group) for group in groups)
            rows.append((rule, [run.count(cells.get(each, ())) for each in columns]))
    return Matrix(group_pairs(columns), rows)


def _column(run: FinishedRun, row: Row) -> str:
    return row.type if row.type in run.plan.suite.spec.operations[row.operation].types else "unlisted"


# ── unspecified calls ─────────────────────────────────────────────────────────────────────────────


Observations = dict[tuple[tuple[str, ...], str], dict[str, list[tuple[RowResult, tuple[str, ...]]]]]
"""The silent rules and the case → each answer → the rows with it, and the documents that do not specify one."""


class Observed(NamedTuple):
    """An answer to an unspecified call."""

    rules: tuple[str, ...]
    case: Case
    call: str
    answer: str
    documents: list[str]
    rows: int


def group_observations(run: FinishedRun) -> Observations:
    """Group the rows whose answer a document leaves unspecified."""
    entries: Observations = {}
    for result in run.rows:
        if OBSERVED not in result.verdicts.values():
            continue
        silent: dict[tuple[str, ...], list[str]] = {}
        for judged in result.row.steps[result.step].meanings:
            there = [document for document in judged.documents if result.verdicts[document] == OBSERVED]
            if there:
                silent.setdefault(judged.meaning.rules, []).extend(there)
        for rules, documents in silent.items():
            answers = entries.setdefault((rules, result.row.case.id), {})
            answers.setdefault(format_answer(result, generic=True), []).append((result, tuple(documents)))
    return entries


def collect_observed_calls(run: FinishedRun) -> Iterator[Observed]:
    """Collect the answers to unspecified calls, in the order of the rules."""
    order = list(run.plan.suite.spec.rules)
    entries = group_observations(run)
    for rules, case_id in sorted(entries, key=lambda key: order.index(key[0][0]) if key[0] else -1):
        for answer, found in entries[rules, case_id].items():
            first = found[0][0]
            case = first.row.case
            documents = list(dict.fromkeys(document for _, there in found for document in there))
            yield Observed(rules, case, format_call(case, case.steps[first.step]), answer, documents, len(found))


class ObservedRules(NamedTuple):
    """Rules that leave calls unspecified, with the cases and tests of these calls, and how many were answered."""

    rules: tuple[str, ...]
    cases: int
    tests: int
    answered: int


def count_observed_calls(run: FinishedRun) -> Iterator[ObservedRules]:
    """Count the unspecified calls by the rules that leave them so, in the order of the rules."""
    order = list(run.plan.suite.spec.rules)
    by_rules: dict[tuple[str, ...], list[tuple[str, RowResult]]] = {}
    for (rules, case_id), answers in group_observations(run).items():
        rows = [result for same in answers.values() for result, _ in same]
        by_rules.setdefault(rules, []).extend((case_id, result) for result in rows)
    for rules in sorted(by_rules, key=lambda rules: order.index(rules[0]) if rules else -1):
        found = by_rules[rules]
        answered = sum(result.outcome.kind == "tensor" for _, result in found)
        yield ObservedRules(rules, len({case_id for case_id, _ in found}), len(found), answered)


# ── rows that are set aside ───────────────────────────────────────────────────────────────────────


class RowsOf(NamedTuple):
    """Rows that have one thing in common, such as a facet, a waiver or a reason not to be run."""

    about: Any
    rows: int
    cases: list[str]
    counts: Mapping[Verdict, int]


def count_rows(about: object, rows: Sequence[RowResult]) -> RowsOf:
    """Count rows, their cases and their worst verdicts."""
    cases = list(dict.fromkeys(result.row.case.id for result in rows))
    return RowsOf(about, len(rows), cases, count_verdicts(result.worst for result in rows))


def collect_facets(run: FinishedRun) -> list[RowsOf]:
    """Collect each facet that the backend does not claim, with the rows that need it."""
    combinations = {result.row.facets for result in run.rows}
    collected = []
    for name in run.claims.leaves_out:
        needing = {facets for facets in combinations if any(covers(name, facet) for facet in facets)}
        collected.append(count_rows(name, [result for result in run.rows if result.row.facets in needing]))
    return collected
