"""A run and what is concluded of it: its rows by case, rule and failure. Every report is made from one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from ..evidence.command import list_pytest_suite_options, list_row_options, list_run_words, list_same_run
from ..evidence.drawn import plan_of_run
from ..evidence.results import Evidence, Target, name_with_version
from ..meaning.contract import Contract, contracts
from ..model import BAD, NOT_CLAIMED, NOT_RUN, Claims, Verdict
from ..model.verdicts import STANDING_NAMES, Label, count_failed
from ..plan.rows import Plan, Row, parse_drawn_id
from ..run.ended_process import AFTER_HANGS
from ..system.exit_codes import VOIDS_VERDICTS
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from ..verdict.blame import Blamed
from ..verdict.conclude import Conclusion, conclude_evidence
from ..verdict.failure_kinds import FailureKind, group_by_kind
from ..verdict.sentences import LARGE_TENSORS, describe_failures, scope_phrase
from ..verdict.standing import Standing, is_in_target, tests_of
from .row_results import RowResult, pair_rows
from .wording import collect_wants

TOO_LARGE = f"{LARGE_TENSORS}: add --large"
LOST = "the run did not call it: run again"
MAX_KINDS = 60
Wants = tuple[tuple[str, tuple[str, ...]], ...]
"""What is due in words, each with the documents that say so."""


class FailureCounts(NamedTuple):
    """The numbers of failures that are tests, and of those that count for no document."""

    tests: int
    outside: int
    """Outside the target, or in a type that no document lists."""

    def __str__(self) -> str:
        parts = [count_noun(self.tests, "test")] * bool(self.tests)
        if self.outside:
            number = count_noun(self.outside, "failure")
            parts.append(f"{number} that count for no document")
        return " and ".join(parts)


@dataclass(frozen=True)
class JudgedRun:
    """A run with what is concluded of it; the run may have been interrupted."""

    plan: Plan
    evidence: Evidence
    conclusion: Conclusion

    @cached_property
    def rows(self) -> tuple[RowResult, ...]:
        """Every row of the plan, in its order."""
        return tuple(pair_rows(self.plan.rows, {result.row: result for result in self.evidence.results}))

    @cached_property
    def rows_by_case(self) -> Mapping[str, tuple[RowResult, ...]]:
        return group_pairs((result.row.case.id, result) for result in self.rows)

    @cached_property
    def rows_by_rule(self) -> Mapping[str, tuple[RowResult, ...]]:
        """The rows of each rule of the specification, in its order; none if no case cites it."""
        by_rule = group_pairs((result.row.case.rule, result) for result in self.rows)
        return {rule: by_rule.get(rule, ()) for rule in self.plan.suite.spec.rules}

    @cached_property
    def tests(self) -> Mapping[str, Mapping[str, tuple[Verdict, ...]]]:
        """The verdicts of the tests of each rule, by document."""
        return {
            rule: group_pairs(test for row in rows for test in self.tests_of(row).items())
            for rule, rows in self.rows_by_rule.items()
        }

    def tests_of(self, result: RowResult) -> Mapping[str, Verdict]:
        return tests_of(result.row, result.verdicts, self.target, self.claims)

    @cached_property
    def failures(self) -> Mapping[FailureKind, Mapping[str, tuple[RowResult, ...]]]:
        """Failing rows: kind → case → rows, those to be mended first in front."""
        bad = {result.row.id: result for result in self.rows if result.worst in BAD}
        kinds = group_by_kind(((each.row, each.result) for each in bad.values()), self.conclusion)
        if len(kinds) > MAX_KINDS:  # our own diagnoses are few; a page must not grow huge over others
            rest = FailureKind(None, None, "", f"{len(kinds) - MAX_KINDS} more kinds")
            kinds[MAX_KINDS:] = [(rest, [each for _, rows in kinds[MAX_KINDS:] for each in rows])]
        return {kind: group_pairs((row.case.id, bad[row.id]) for row, _ in rows) for kind, rows in kinds}

    @property
    def failing(self) -> Iterator[RowResult]:
        """Failing rows, kind by kind and case by case."""
        return (result for cases in self.failures.values() for rows in cases.values() for result in rows)

    @cached_property
    def waivers(self) -> tuple[tuple[Mapping[str, Any], tuple[RowResult, ...]], ...]:
        """Each waiver of the run with the rows that it waives."""
        waivers = self.evidence.header.get("waivers") or ()
        used = group_pairs((result.result.waiver, result) for result in self.rows) if waivers else {}
        return tuple((waiver, used.get(waiver["number"], ())) for waiver in waivers)

    @cached_property
    def claims(self) -> Claims:
        return self.evidence.claims

    @cached_property
    def target(self) -> Target:
        return self.evidence.target

    @cached_property
    def not_run(self) -> Mapping[str, tuple[RowResult, ...]]:
        """Rows that were not run, by reason."""
        return group_pairs((self.explain_not_run(result), result) for result in self.rows if result.worst == NOT_RUN)

    @cached_property
    def left_out(self) -> Mapping[str, tuple[RowResult, ...]]:
        """Rows that the run was not meant to make, by reason; reports give only their number."""
        chosen = self.target.row_options or self.target.shard
        listed = (LOST, AFTER_HANGS[0].describe(), *(() if chosen else (TOO_LARGE,)))
        return {why: rows for why, rows in self.not_run.items() if why not in listed}

    @cached_property
    def listed(self) -> tuple[RowResult, ...]:
        """The rows that reports list one by one: all that are not left out."""
        left_out = {result.row.id for rows in self.left_out.values() for result in rows}
        return tuple(result for result in self.rows if result.row.id not in left_out)

    def explain_not_run(self, result: RowResult) -> str:
        row = result.row
        if "large" in row.facets and not self.target.large:
            return TOO_LARGE
        if not is_in_target(row, self.target, self.claims):
            return "outside the target of this run"
        if result.result.outcomes == AFTER_HANGS:
            return AFTER_HANGS[0].describe()
        if self.target.row_options:
            return f"not chosen by {self.target.row_options}"
        if self.target.shard:
            return f"not in the part {self.target.shard} of the suite"
        return LOST

    @property
    def backend(self) -> str:
        """The name that starts the backend."""
        return str(self.evidence.header["backend"]["adapter"])

    @property
    def name(self) -> str:
        """The backend and its version."""
        return name_with_version(self.evidence.header["backend"])

    @property
    def scope_phrase(self) -> str:
        """The limit of verdicts that do not come from the whole bundled suite, after a blank, if there is one."""
        return scope_phrase(self.plan.suite)

    @property
    def standings(self) -> tuple[Standing, ...]:
        return self.conclusion.standings

    @cached_property
    def verdict_by_document(self) -> Mapping[str, tuple[str, str]]:
        """Each document → the name of its worst standing, and its sentence."""
        words = group_pairs((standing.document, standing.name) for standing in self.standings)
        sentences = dict(zip(words, self.conclusion.sentences, strict=True))
        doubt = "not to be relied on: " if self.conclusion.exit_code in VOIDS_VERDICTS else ""
        verdicts: dict[str, tuple[str, str]] = {}
        for name, document in self.plan.suite.spec.documents.items():
            if name in words:
                verdicts[name] = min(words[name], key=STANDING_NAMES.index), doubt + sentences[name]
            elif self.claims.has_operation(document.operation):
                verdicts[name] = NOT_RUN, f"{name}: not in the target of this run"
            else:
                verdicts[name] = NOT_CLAIMED, f"{name}: {document.operation} is not claimed, and so not called"
        return verdicts

    @property
    def label(self) -> Label:
        return self.conclusion.label

    @property
    def failed(self) -> int:
        return count_failed(self.conclusion.counts)

    @property
    def failures_in_words(self) -> str:
        return describe_failures(self.standings)

    def blames_of(self, rows: Iterable[RowResult]) -> dict[str, Blamed]:
        """Return what some rows break in each document; the first row that fails there decides."""
        blames: dict[str, Blamed] = {}
        for result in rows:
            blames = {**self.conclusion.blames.get(result.row.id, {}), **blames}
        return blames

    def count_failures(self, rows: Iterable[RowResult]) -> FailureCounts:
        """Count the failures of some rows, each in every document in which it fails."""
        rows = list(rows)
        tests = sum(verdict in BAD for result in rows for verdict in self.tests_of(result).values())
        return FailureCounts(tests, sum(len(result.failing) for result in rows) - tests)

    @cached_property
    def with_drawn(self) -> JudgedRun:
        """This run with the drawn rows of its evidence in its plan."""
        plan = plan_of_run(self.plan, self.evidence)
        return self if plan is self.plan else replace(self, plan=plan)

    def want(self, row: Row, step: int) -> Wants:
        return tuple((text, tuple(documents)) for text, documents in collect_wants([row], step).items())

    def commands(self, result: RowResult) -> tuple[str, str]:
        """Return the commands that repeat a row, ready to be pasted: all of the run if it fails after other calls."""
        header, alone = self.evidence.header, list_row_options(result.row)
        run = list_same_run(header) if result.result.needs_calls_before else [*list_run_words(header), *alone]
        drawn = ["--drawn-rows", str(header.get("drawn", {}).get("rows", 0))]
        session = drawn if parse_drawn_id(result.row.id) or result.result.needs_calls_before else alone
        return (
            shlex.join(run),
            shlex.join(["pytest", "--adapter", self.backend, *list_pytest_suite_options(header), *session]),
        )

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        return contracts(self.plan.suite.spec)


def conclude_run(plan: Plan, evidence: Evidence) -> JudgedRun:
    """Return a run with what its evidence shows."""
    return JudgedRun(plan, evidence, conclude_evidence(plan, evidence))
