"""Decide every reshape node of a file in every document, for every combination of lengths that is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ..meaning.contract import contracts
from ..meaning.expressible import holding_type
from ..meaning.partial import UNKNOWN_TYPE, Lengths, PartialCall, PartialContract, PartialMeaning, only_length
from ..model import Form, Spec
from .lengths import known_lengths
from .nodes import Bound, ModelFile, ReshapeNode

Kind = Literal["legal", "illegal", "unspecified", "not decided"]
KINDS: tuple[Kind, ...] = ("illegal", "not decided", "unspecified", "legal")
"""The worst first."""


class Decision(NamedTuple):
    """What a node means in a document for one combination of lengths."""

    kind: Kind
    rules: tuple[str, ...] = ()
    why: str = ""
    """Not decided: what is missing."""


class Tried(NamedTuple):
    """A node with the lengths of one try, and what it means in each document."""

    bound: Bound
    node: ReshapeNode
    decisions: Mapping[str, Decision]
    dst: Lengths | None


class Judged(NamedTuple):
    """A node of a file with every try; the tries of all nodes are the same."""

    tries: tuple[Tried, ...]

    @property
    def node(self) -> ReshapeNode:
        """The node with the lengths of the first try."""
        return self.tries[0].node

    def groups(self) -> list[tuple[tuple[str, ...], Decision, tuple[Tried, ...]]]:
        """Return documents, decision and tries of each outcome: the worst first; legal only if nothing else is."""
        found: dict[tuple[str, Decision], list[Tried]] = {}
        for tried in self.tries:
            for document, decision in tried.decisions.items():
                found.setdefault((document, decision), []).append(tried)
        merged: dict[tuple[Decision, tuple[int, ...]], tuple[list[str], tuple[Tried, ...]]] = {}
        for (document, decision), tries in found.items():
            key = (decision, tuple(map(id, tries)))
            merged.setdefault(key, ([], tuple(tries)))[0].append(document)
        groups = [(tuple(documents), key[0], tries) for key, (documents, tries) in merged.items()]
        return sorted(groups, key=lambda group: KINDS.index(group[1].kind))

    @property
    def worst(self) -> Kind:
        return self.groups()[0][1].kind


class Judge:
    """Decides nodes by the rules of a specification."""

    def __init__(self, spec: Spec, document: str | None = None) -> None:
        self._spec = spec
        self._only = document
        compiled = contracts(spec)
        self._contracts = {
            name: PartialContract(
                [rule for rule in spec.rules.values() if name in rule.documents], compiled[name],
                spec.operations[each.operation].types, spec.operations[each.operation].shape_types,
            )
            for name, each in spec.documents.items()
        }  # fmt: skip

    def judge_file(self, file: ModelFile, tries: Sequence[Bound]) -> list[Judged]:
        """Decide every node of a file for every try."""
        by_node: list[list[Tried]] = []
        for bound in tries:
            for k, node in enumerate(file.nodes(bound, self.answer)):
                if k == len(by_node):
                    by_node.append([])
                by_node[k].append(self._try(bound, node))
        return [Judged(tuple(tried)) for tried in by_node]

    def answer(self, node: ReshapeNode) -> Lengths | None:
        """Return dst of a node as far as its first document tells it, without the names `src[0]` of its own lengths."""
        dst = self._decide(node, self._documents(node)[0]).dst
        return None if dst is None else tuple(None if isinstance(n, str) and "src[" in n else n for n in dst)

    def _try(self, bound: Bound, node: ReshapeNode) -> Tried:
        meanings = {name: self._decide(node, name) for name in self._documents(node)}
        decisions = {name: self._decision(node, name, meaning) for name, meaning in meanings.items()}
        return Tried(bound, node, decisions, next(iter(meanings.values())).dst)

    def _documents(self, node: ReshapeNode) -> tuple[str, ...]:
        if self._only:
            return (self._only,)
        operation = self._spec.operations.get(node.operation or "")
        return operation.documents if operation else tuple(self._spec.documents)

    def _decide(self, node: ReshapeNode, document: str) -> PartialMeaning:
        return self._contracts[document].decide(self._call(node, document))

    def _call(self, node: ReshapeNode, document: str) -> PartialCall:
        """Return the call of a node; a type of shape that the file does not tell is one that the document lists."""
        operation = self._spec.operations[self._spec.documents[document].operation]
        entries = tuple(n for n in node.shape or () if isinstance(n, int))
        src_type = node.src_type or UNKNOWN_TYPE
        form = Form(
            src_type, node.dst_type or src_type, node.shape_type or holding_type(operation, entries),
            missing_attributes=node.missing, declared=None if node.declared is None else known_lengths(node.declared),
        )  # fmt: skip
        return PartialCall(node.src, node.shape, node.special_zero, form)

    def _decision(self, node: ReshapeNode, document: str, result: PartialMeaning) -> Decision:
        if result.meaning is not None:
            return Decision(result.meaning.kind, result.meaning.rules if result.meaning.kind != "legal" else ())
        missing = self._call(node, document).missing
        parts = []
        for name in missing:
            maker = node.whence.get(name.partition("[")[0])
            parts.append(f"{name}, which {maker} gives" if maker and name in ("src", "shape") else name)
        why = f"missing: {', '.join(parts)}" if parts else "the rules do not decide it"
        if node.shape is not None and any(not isinstance(n, int) for n in node.shape) and "shape" in node.whence:
            why += f"; shape comes from {node.whence['shape']}"
        if node.src is not None and node.shape is not None and (only := only_length(node.src, node.shape)) is not None:
            why += f"; legal at most for {missing[0]} = {only}"
        return Decision("not decided", (), why)
