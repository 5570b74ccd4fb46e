"""Put together what a node means for each length tried, and say it in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ..meaning.faults import KnownFaults
from ..meaning.partial import describe, describe_folded
from ..model import KnownFault, PlainCall
from ..system.groups import group_pairs
from .decide import NodeDecision, NodeJudge, NodeKind
from .lengths import bind_length
from .nodes import Binding, Dims, Model, ReshapeNode, known_dims

KINDS: tuple[NodeKind, ...] = ("illegal", "not decided", "conditional", "unspecified", "legal")
"""The worst first."""
MAX_NAMED = 4
"""Combinations of several lengths to name."""


class Trial(NamedTuple):
    lengths: tuple[tuple[str, int], ...]
    """The lengths that differ between trials, such as ('x[0]', 2)."""
    binding: Binding


class CheckedNode(NamedTuple):
    """A reshape, and its decisions by document, one for each trial."""

    trials: Sequence[Trial]
    variants: tuple[ReshapeNode, ...]
    """The node as it is in each trial."""
    decisions: Mapping[str, tuple[NodeDecision, ...]]
    faults: tuple[KnownFault, ...] = ()
    """The faults of backends that a legal call of the node may meet, for any length tried."""

    @property
    def first(self) -> ReshapeNode:
        return self.variants[0]

    @property
    def kind(self) -> NodeKind:
        """The worst kind in any document for any length."""
        found = {decision.kind for decisions in self.decisions.values() for decision in decisions}
        return next(kind for kind in KINDS if kind in found)

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """The rules that a document's decisions name, with those documents."""
        decided = ((document, each) for document, decisions in self.decisions.items() for each in decisions)
        named = ((rule, document) for document, each in decided if each.kind != "legal" for rule in each.rules)
        return group_pairs(dict.fromkeys(named))


def fit_trials(trials: Sequence[Trial], inputs: Mapping[str, Dims | None]) -> list[Trial]:
    """Return the trials with names such as `batch` replaced in the dims of inputs.

    Trials that give one name two lengths are left out, unless all do.
    """
    fitted = [_fit_trial(trial, inputs) for trial in trials]
    return [trial for trial, is_possible in fitted if is_possible] or [trial for trial, _ in fitted]


def _fit_trial(trial: Trial, inputs: Mapping[str, Dims | None]) -> tuple[Trial, bool]:
    """Return a trial for these inputs, and whether each name has one length in it."""
    named = {name: n for name, dims in trial.binding.items() if name not in inputs and isinstance(n := dims[0], int)}
    lengths = [*named.items()]
    binding: dict[str, Dims] = {}
    for name, declared in inputs.items():
        dims = trial.binding.get(name, declared) or ()
        bound = tuple(bind_length(length, named) for length in dims)
        if name in trial.binding or bound != dims:
            binding[name] = bound
        pairs = zip(declared or (), bound, strict=False)
        lengths += [(symbol, n) for symbol, n in pairs if isinstance(symbol, str) and isinstance(n, int)]
    places = (place.removesuffix("[0]") if place.removesuffix("[0]") in named else place for place, _ in trial.lengths)
    varied = tuple((place, length) for place, (_, length) in zip(places, trial.lengths, strict=True))
    found = dict(lengths)
    return Trial(varied, binding), all(bind_length(symbol, found) == length for symbol, length in lengths)


def check_model(model: Model, judge: NodeJudge, trials: Sequence[Trial], known: KnownFaults) -> list[CheckedNode]:
    by_trial = [model.nodes(trial.binding) for trial in trials]
    checked = []
    for variants in zip(*by_trial, strict=True):
        decisions = [judge.decide(node) for node in variants]
        by_document = {name: tuple(each[name] for each in decisions) for name in decisions[0]}
        node = CheckedNode(trials, variants, by_document)
        faults = dict.fromkeys(fault for call in _list_legal_calls(node) for fault in known.of_legal_call(call))
        checked.append(node._replace(faults=tuple(faults)))
    return checked


def _list_legal_calls(node: CheckedNode) -> Iterator[PlainCall]:
    """Yield the call of each trial in which it is legal and known whole."""
    for number, variant in enumerate(node.variants):
        src, shape = known_dims(variant.src), known_dims(variant.shape)
        decided = [decisions[number] for decisions in node.decisions.values()]
        dst = next((known_dims(decision.dst) for decision in decided if decision.kind == "legal"), None)
        if src is not None and shape is not None and dst is not None and variant.src_type is not None:
            yield PlainCall(variant.src_type, src, shape, bool(variant.special_zero), dst)


def format_decisions(node: CheckedNode) -> list[tuple[str, tuple[str, ...]]]:
    """Return what holds for a node and in which documents; the documents are left out if they agree."""
    by_text = group_pairs((_format_decisions(each, node.trials), document) for document, each in node.decisions.items())
    return [(text, documents if len(by_text) > 1 else ()) for text, documents in by_text.items()]


def _format_decisions(decisions: Sequence[NodeDecision], trials: Sequence[Trial]) -> str:
    """Say for which lengths a node is what, the worst first."""
    if len(trials) == 1 and not trials[0].lengths:
        is_open = decisions[0].kind == "legal" and known_dims(decisions[0].dst) is None
        return f"{decisions[0].kind}{' for every length from 1' if is_open else ''}{_describe(decisions[0])}"
    worst_first = sorted(zip(decisions, trials, strict=True), key=lambda each: KINDS.index(each[0].kind))
    found = group_pairs(((decision.kind, _describe(decision)), trial) for decision, trial in worst_first)
    if len(found) == 1:
        return next(f"{kind} for every length tried{more}" for kind, more in found)
    return "; ".join(f"{kind} for {_format_lengths(some, trials)}{more}" for (kind, more), some in found.items())


def _describe(decision: NodeDecision) -> str:
    """Say what is to be told of a decision after its kind."""
    folded = describe_folded(decision.folded)
    match decision.kind:
        case "legal":
            return folded
        case "conditional":
            return f": {describe(decision.branches)}{folded}"
        case "not decided":
            return f": {', '.join(decision.missing)}"
    return f": {', '.join(decision.rules) or 'more than one dst keeps every rule'}"


def _format_lengths(some: Sequence[Trial], trials: Sequence[Trial]) -> str:
    """Write `x[0] = 1, 3..8`, or combinations if several lengths differ."""
    places = [place for place, _ in trials[0].lengths]
    if len(places) == 1:
        runs = _find_runs(sorted({trial.lengths[0][1] for trial in some}))
        return f"{places[0]} = {', '.join(f'{first}..{last}' if last > first else str(first) for first, last in runs)}"
    named = [", ".join(f"{place} = {length}" for place, length in trial.lengths) for trial in some[:MAX_NAMED]]
    more = f" and {len(some) - MAX_NAMED} more of {len(trials)}" if len(some) > MAX_NAMED else ""
    return f"({'), ('.join(named)}){more}"


def _find_runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that follow one another."""
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield run[0], run[-1]
