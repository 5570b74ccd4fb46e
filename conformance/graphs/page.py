"""A page about the reshape nodes of model files, with a picture of each call that is known whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..meaning.contract import Contract, contracts
from ..model import Rule, Spec, Step
from ..report.picture import Picture, draw_call
from ..report.render import render_page
from .decide import KINDS, Decision, Judged, Tried
from .describe import CheckedFile, describe, describe_call
from .write_cases import call_of

_COLOURS = {"legal": "pass", "illegal": "fail", "unspecified": "open", "not decided": "warn"}


class Outcome(NamedTuple):
    """What a node means for some lengths and documents."""

    text: str
    colour: str
    documents: tuple[str, ...]
    """Empty if it holds in all documents that judge the node."""
    call: str
    picture: Picture | None


class NodeSection(NamedTuple):
    """A node and its outcomes, the worst first."""

    name: str
    kind: str
    at: str
    outcomes: tuple[Outcome, ...]


def render_graphs(spec: Spec, files: Sequence[CheckedFile]) -> str:
    """Return the page. Names from the files only show; they cannot act."""
    compiled = contracts(spec)
    sections = [(str(file.path), _summary(file), [_section(file, n, compiled) for n in file.nodes]) for file in files]
    return render_page("graphs.html", files=sections, rules=_rules_of(spec, files))


def _summary(file: CheckedFile) -> str:
    kinds = Counter(judged.worst for judged in file.nodes)
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind]) or "no reshape node"


def _section(file: CheckedFile, judged: Judged, compiled: Mapping[str, Contract]) -> NodeSection:
    node, groups = judged.node, judged.groups()
    outcomes = []
    for documents, decision, tries in groups:
        everywhere = len(documents) == len(judged.tries[0].decisions)
        outcomes.append(
            Outcome(
                describe(file, decision, tries), _COLOURS[decision.kind], () if everywhere else documents,
                describe_call(tries[0]), _draw(tries[0], decision, compiled[documents[0]]),
            )
        )  # fmt: skip
    return NodeSection(node.name, node.kind, node.at, tuple(outcomes))


def _draw(tried: Tried, decision: Decision, contract: Contract) -> Picture | None:
    """Draw a call; None if it is not known whole, or something else than its lengths decides."""
    call = call_of(tried)
    if call is None:
        return None
    type_, src, shape, zero = call
    meaning = contract.meaning(src, shape, zero)
    if meaning.kind != decision.kind:
        return None
    return draw_call(Step(type_, src, (shape,), (zero,), {}), contract, meaning, None)


def _rules_of(spec: Spec, files: Sequence[CheckedFile]) -> list[Rule]:
    named = {
        rule
        for file in files
        for judged in file.nodes
        for tried in judged.tries
        for decision in tried.decisions.values()
        for rule in decision.rules
    }
    return [rule for rule in spec.rules.values() if rule.id in named]
