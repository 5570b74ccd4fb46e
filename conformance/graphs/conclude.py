"""Put together what a node means for each length tried, and say it in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from .decide import Decision, Judge, Kind
from .nodes import Binding, Model, ReshapeNode, whole

KINDS: tuple[Kind, ...] = ("illegal", "not decided", "unspecified", "legal")
"""The worst first."""
MAX_NAMED = 4
"""Combinations of several lengths to name."""


class Trial(NamedTuple):
    """The dims of the inputs for one trial."""

    lengths: tuple[tuple[str, int], ...]
    """The lengths that differ between trials, such as ('x[0]', 2)."""
    binding: Binding


class CheckedNode(NamedTuple):
    """A reshape, and its decisions by document, one for each trial."""

    variants: tuple[ReshapeNode, ...]
    """The node as it is in each trial."""
    decisions: Mapping[str, tuple[Decision, ...]]

    @property
    def first(self) -> ReshapeNode:
        return self.variants[0]

    @property
    def kind(self) -> Kind:
        """The worst kind in any document for any length."""
        found = {decision.kind for decisions in self.decisions.values() for decision in decisions}
        return next(kind for kind in KINDS if kind in found)

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """The rules that a document's decisions name, with those documents."""
        named: dict[str, dict[str, None]] = {}
        for document, decisions in self.decisions.items():
            for rule in (rule for each in decisions if each.kind != "legal" for rule in each.rules):
                named.setdefault(rule, {})[document] = None
        return {rule: tuple(documents) for rule, documents in named.items()}


def check_model(model: Model, judge: Judge, trials: Sequence[Trial]) -> list[CheckedNode]:
    """Decide every reshape of a model for every trial."""
    by_trial = [model.nodes(trial.binding) for trial in trials]
    checked = []
    for variants in zip(*by_trial, strict=True):
        decisions = [judge.decide(node) for node in variants]
        checked.append(CheckedNode(variants, {name: tuple(each[name] for each in decisions) for name in decisions[0]}))
    return checked


def format_findings(node: CheckedNode, trials: Sequence[Trial]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what holds for a node and in which documents; the documents are left out if they agree."""
    by_text: dict[str, list[str]] = {}
    for document, decisions in node.decisions.items():
        by_text.setdefault(_format_decisions(decisions, trials), []).append(document)
    return [(text, tuple(documents) if len(by_text) > 1 else ()) for text, documents in by_text.items()]


def _format_decisions(decisions: Sequence[Decision], trials: Sequence[Trial]) -> str:
    """Say for which lengths a node is what, the worst first."""
    if len(trials) == 1 and not trials[0].lengths:
        is_open = decisions[0].kind == "legal" and whole(decisions[0].dst) is None
        return _format_one(decisions[0]) + (" for every length from 1" if is_open else "")
    by_text: dict[str, list[Trial]] = {}
    for kind in KINDS:
        for decision, trial in zip(decisions, trials, strict=True):
            if decision.kind == kind:
                by_text.setdefault(_format_one(decision), []).append(trial)
    if len(by_text) == 1:
        return next(_insert(text, "for every length tried") for text in by_text)
    return "; ".join(_insert(text, f"for {_format_lengths(some, trials)}") for text, some in by_text.items())


def _format_one(decision: Decision) -> str:
    if decision.kind == "legal":
        return "legal"
    if decision.kind == "not decided":
        return f"not decided: {', '.join(decision.missing)}"
    return f"{decision.kind}: {', '.join(decision.rules) or 'more than one dst keeps every rule'}"


def _insert(text: str, words: str) -> str:
    """Put words before the colon."""
    kind, colon, rest = text.partition(":")
    return f"{kind} {words}{colon}{rest}"


def _format_lengths(some: Sequence[Trial], trials: Sequence[Trial]) -> str:
    """Write `x[0] = 1, 3..8`, or combinations if several lengths differ."""
    places = [place for place, _ in trials[0].lengths]
    if len(places) == 1:
        runs = _runs(sorted({trial.lengths[0][1] for trial in some}))
        return f"{places[0]} = {', '.join(f'{first}..{last}' if last > first else str(first) for first, last in runs)}"
    named = [", ".join(f"{place} = {length}" for place, length in trial.lengths) for trial in some[:MAX_NAMED]]
    more = f" and {len(some) - MAX_NAMED} more of {len(trials)}" if len(some) > MAX_NAMED else ""
    return f"({'), ('.join(named)}){more}"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that follow one another."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield run[0], run[-1]
