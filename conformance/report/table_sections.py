"""The tables of the page: rules, the matrix of rules and types, unspecified calls, rows that are set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from ..model import OBSERVED, Rule, Verdict, covers, fails
from ..model.verdicts import count_verdicts
from ..system.groups import group_pairs
from ..verdict.blame import Blamed
from .judged_run import JudgedRun
from .row_results import RowResult, count_results, describe_cases
from .wording import format_lines

Counts = Mapping[Verdict, int]


class RuleRow(NamedTuple):
    """A rule, where its tests fail, its cases, all its tests, and the failures that break it.

    A failing test may break another rule than the one that its case is about.
    """

    rule: Rule
    failing: Mapping[tuple[tuple[Verdict, int], ...], tuple[str, ...]]
    """The counts of documents in which a test fails, with these documents and their lines."""
    cases: str
    """Their number; empty if the rule has none."""
    counts: Counts
    broken: tuple[Blamed, ...]
    """The failing tests that break the rule."""

    @property
    def state(self) -> Literal["fails", "passes", "open"]:
        """Return `fails` if a test fails, is waived or breaks the rule, otherwise `passes` if one passes."""
        if self.broken or fails(self.counts) or self.counts.get("waived"):
            return "fails"
        return "passes" if self.counts.get("pass") else "open"


def collect_rules(run: JudgedRun) -> Iterator[RuleRow]:
    blames = run.conclusion.blames.values()
    broken = group_pairs((blamed.premise.rule, blamed) for documents in blames for blamed in documents.values())
    for rule_id, tests in run.tests.items():
        rule = run.plan.suite.spec.rules[rule_id]
        failing = group_pairs(
            (tuple(count_verdicts(tests[document]).items()), f"{document} ({format_lines(rule, document)})")
            for document in run.plan.suite.spec.documents
            if fails(tests.get(document, ()))
        )
        cases = describe_cases(run.rows_by_rule[rule_id]) if run.rows_by_rule[rule_id] else ""
        yield RuleRow(
            rule, failing, cases, count_verdicts(chain.from_iterable(tests.values())), broken.get(rule_id, ())
        )


Observations = Mapping[tuple[tuple[str, ...], str], Sequence[tuple[RowResult, tuple[str, ...]]]]
"""The silent rules and the case → the rows with an answer, each with the documents that do not specify one."""


def group_observations(run: JudgedRun) -> Observations:
    """Group the rows with an answer that a document leaves unspecified."""
    found = []
    for result in run.rows:
        if OBSERVED in result.verdicts.values():
            read = ((each.meaning.rules, name) for each in result.row.meanings(result.step) for name in each.documents)
            silent = group_pairs((rules, name) for rules, name in read if result.verdicts[name] == OBSERVED)
            found += [((rules, result.row.case.id), (result, documents)) for rules, documents in silent.items()]
    return group_pairs(found)


class ObservedRules(NamedTuple):
    """Rules that leave calls unspecified, with the cases and tests of these calls, and how many were answered."""

    rules: tuple[str, ...]
    cases: str
    tests: int
    answered: int


def count_observed_calls(run: JudgedRun) -> Iterator[ObservedRules]:
    """Count the unspecified calls by the rules that leave them so, in the order of the rules."""
    order = list(run.plan.suite.spec.rules)
    by_rules: dict[tuple[str, ...], tuple[tuple[RowResult, tuple[str, ...]], ...]] = group_pairs(
        (rules, found) for (rules, _), some in group_observations(run).items() for found in some
    )
    for rules in sorted(by_rules, key=lambda rules: order.index(rules[0]) if rules else -1):
        found = by_rules[rules]
        tests = sum(len(documents) for _, documents in found)
        answered = sum(len(documents) for result, documents in found if result.outcome.kind == "tensor")
        yield ObservedRules(rules, describe_cases(result for result, _ in found), tests, answered)


class RowsAbout(NamedTuple):
    """Rows that have one thing in common, such as a facet, a waiver or a reason not to be run."""

    about: Any
    cases: list[str]
    counts: Mapping[Verdict, int]


def count_rows(about: object, rows: Sequence[RowResult]) -> RowsAbout:
    cases = list(dict.fromkeys(result.row.case.id for result in rows))
    return RowsAbout(about, cases, count_results(rows))


def collect_facets(run: JudgedRun) -> list[RowsAbout]:
    """Collect each facet that the backend does not claim, with the rows that need it."""
    combinations = {result.row.facets for result in run.rows}
    collected = []
    for name in run.claims.not_claimed:
        needing = {facets for facets in combinations if any(covers(name, facet) for facet in facets)}
        collected.append(count_rows(name, [result for result in run.rows if result.row.facets in needing]))
    return collected
