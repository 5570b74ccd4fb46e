"""The result of a run in few words: a label and counts for each document, what is not claimed and what was not run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..model import LIMITS, NOT_RUN, WAIVED, Document, Verdict
from ..model.verdicts import SEVERITIES, Label, count_failed
from ..system.exit_codes import CONFORMS, VOIDS_CERTIFICATES
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from ..verdict.label import count_severities, label_of, name_limits
from ..verdict.sentences import describe_failures
from ..verdict.standing import count_tests
from .judged_run import JudgedRun

_FAMILIES: Mapping[str, str] = {
    "type": "element type {}",
    "shape-type": "shape of {}",
    "length": "lengths and entries of shape from {} on",
    "layout": "src laid out {}",
    "form": "graphs that are not well formed: {}",
    "declared": "declared output shapes",
    "dst-strides": "declared output strides",
    "runtime-shape": "shape that arrives with run",
    "unknown-src": "unknown lengths of src",
    "shape-strides": "strided shape tensors",
    "chain": "chains of nodes",
    "in-place": "dst in the memory of src",
    "shared-src": "nodes that share src",
    "shared-shape": "nodes that share shape",
    "threads": "calls at the same time",
}
_NAMES: Mapping[str, str] = {
    "layout": "src with strides",
    "form": "graphs that are not well formed",
    "runtime-shape:changing-rank": "one program for several ranks",
    "unknown-src:rank": "src of unknown rank",
    "threads:one-program": "one program called by several threads",
}
"""Filters that have names apart from their family."""


class DocumentState(NamedTuple):
    """The result of a backend in one document, in tests."""

    document: Document
    label: Label
    sentence: str
    """The verdict with all its limits, as the conclusion words it."""
    counts: Mapping[Verdict, int]
    """Its tests by verdict."""
    failures: str
    """How many tests fail, by what they do to a user and by what they break; empty if none fails."""
    numbers: tuple[int, ...]
    """The tests that fail by severity, the worst first."""

    @property
    def failed(self) -> int:
        return count_failed(self.counts)

    @property
    def percent(self) -> str:
        """The share of the tests that fail; a failure never rounds to none."""
        share = 100 * self.failed / self.tests if self.tests else 0
        return f"{max(share, 0.1):.1f}" if self.failed else "0.0" if self.tests else "–"

    @property
    def tests(self) -> int:
        return sum(self.counts.values())


def describe_documents(run: JudgedRun) -> tuple[DocumentState, ...]:
    by_document = group_pairs((standing.document, standing) for standing in run.standings)
    code = run.conclusion.exit_code
    states = []
    for name, (_, sentence) in run.verdict_by_document.items():
        document, standings = run.plan.suite.spec.documents[name], by_document.get(name, ())
        label = label_of(standings, run.claims, code if code in VOIDS_CERTIFICATES else CONFORMS)
        if not standings and not run.claims.has_operation(document.operation):
            label = "not claimed"
        severities = count_severities(standings)
        numbers = tuple(severities.get(each, 0) for each in SEVERITIES)
        failures = describe_failures(standings)
        states.append(DocumentState(document, label, sentence, count_tests(standings), failures, numbers))
    return tuple(states)


def name_facet(facet: str) -> str:
    """Name a facet in plain words; an unknown one by its own name."""
    facet = LIMITS.get(facet, facet)
    if facet in _NAMES:
        return _NAMES[facet]
    family, _, value = facet.partition(":")
    if family == "rank" and value.isdecimal():
        return f"more than {int(value) - 1} dimensions"
    return _FAMILIES.get(family, facet).format(value.replace("-", " "))


def list_limits(run: JudgedRun) -> list[str]:
    """List in plain words the operations and features that the backend does not claim, and what its adapter does."""
    names = [each for each in run.plan.suite.spec.operations if each not in run.claims.operations]
    if run.standings:
        names += map(name_facet, name_limits(run.standings, run.claims))
        names += [f"{each} (answered by the adapter)" for each in run.evidence.answered_by_adapter]
        if waived := count_tests(run.standings).get(WAIVED):
            names.append(f"{count_noun(waived, 'test')} that {'is' if waived == 1 else 'are'} waived")
    return names


def list_not_run(run: JudgedRun) -> list[str]:
    """List in plain words what was not run: too large, not chosen, or lost."""
    names = [*run.conclusion.not_run]
    names += [
        f"all but {what}" for what in (run.target.row_options, run.target.shard and f"part {run.target.shard}") if what
    ]
    lost = run.conclusion.counts.get(NOT_RUN, 0)
    return names + [f"{count_noun(lost, 'test')} that did not run"] * bool(lost)
