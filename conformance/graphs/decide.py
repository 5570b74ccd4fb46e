"""Decide a reshape node in each document. Lengths that are not known decide nothing, unless all of them agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ..meaning.contract import contracts
from ..meaning.partial import UNKNOWN_TYPE, Branch, PartialCall, answer_of, decide, find_folded_names, kind_of, rules_of
from ..model import CallForm, Operation, Spec
from .nodes import Dims, ReshapeNode, known_dims, without_names

NodeKind = Literal["legal", "illegal", "unspecified", "conditional", "not decided"]


class NodeDecision(NamedTuple):
    """The meaning of a node in a document, for one binding of the inputs."""

    kind: NodeKind
    rules: tuple[str, ...] = ()
    """Illegal: the broken rules. Unspecified: the silent rules."""
    missing: tuple[str, ...] = ()
    """Not decided: what is not known."""
    dst: Dims | None = None
    branches: tuple[Branch, ...] = ()
    """Conditional: what the node means by facts about its lengths."""
    folded: tuple[str, ...] = ()
    """Names of lengths that a -1 takes in together with others, as when a batch is folded into it."""


class NodeJudge:
    """The contracts of the documents that a user asks about."""

    def __init__(self, spec: Spec, documents: tuple[str, ...]) -> None:
        self.spec, self.documents = spec, documents
        self.contracts = contracts(spec)

    def decide(self, node: ReshapeNode) -> dict[str, NodeDecision]:
        """Return the decision in each document about the node's operation, or in all if none of them is about it."""
        about = [document for document in self.documents if self._covers(document, node)]
        return {document: self._decide(node, document) for document in about or self.documents}

    def decide_everywhere(self, node: ReshapeNode) -> dict[str, NodeDecision]:
        return {document: self._decide(node, document) for document in self.spec.documents}

    def find_rule_of_entries(self, node: ReshapeNode) -> str:
        """Return a rule that gives an entry of shape its length; of an empty shape, the first rule of all."""
        document = next(iter(self.spec.documents))
        entries = self.contracts[document].entries(node.src, node.shape, node.special_zero)
        return next((entry.rule for entry in entries if entry.rule), next(iter(self.spec.rules)))

    def answer(self, node: ReshapeNode) -> Dims | None:
        """Return dst if a document gives it and no document gives another one or forbids the call."""
        found = [self._decide(node, document) for document in self.spec.documents if self._covers(document, node)]
        dims = {_without_own_names(decision.dst) for decision in found}
        return dims.pop() if len(dims) == 1 else None

    def _covers(self, document: str, node: ReshapeNode) -> bool:
        return node.operation in (None, self.spec.operation_of(document).kind)

    def _decide(self, node: ReshapeNode, document: str) -> NodeDecision:
        if not self._covers(document, node):
            return NodeDecision("not decided", (), (f"the document is not about {node.operation}",))
        form = _form_of(node, self.spec.operation_of(document))
        src, shape = known_dims(node.src), known_dims(node.shape)
        missing = tuple(dict.fromkeys(_find_missing(node)))
        if src is not None and shape is not None and node.special_zero is not None and not missing:
            meaning = self.contracts[document].meaning(src, shape, node.special_zero, form)
            return NodeDecision(meaning.kind, meaning.rules, (), meaning.dst)
        call = PartialCall(node.src, node.shape, node.special_zero, form, _find_declared_names(node))
        branches = decide(self.contracts[document], call)
        dst = answer_of(branches)
        kind = kind_of(branches)
        is_told = _has_unknown_lengths_alone(node) if kind == "conditional" else kind == "illegal" or not node.missing
        if kind == "not decided" or not is_told:
            return NodeDecision("not decided", (), missing, dst)
        decision = NodeDecision(kind, rules_of(branches), (), dst, branches if kind == "conditional" else ())
        if node.src is None or node.shape is None or decision.dst is None:
            return decision
        return decision._replace(folded=find_folded_names(node.src, node.shape, decision.dst))


def _find_declared_names(node: ReshapeNode) -> Dims | None:
    """Return the dims declared of dst without names that src and shape do not have; None if no name is left."""
    known = _list_names((*(node.src or ()), *(node.shape or ())))
    dims = tuple(n if isinstance(n, int) or (n and _list_names([n]) <= known) else None for n in node.declared or ())
    return dims if _list_names(dims) else None


def _list_names(dims: Iterable[int | str | None]) -> set[str]:
    return {part for n in dims if isinstance(n, str) for part in n.split("*") if not part.isdecimal()}


def _has_unknown_lengths_alone(node: ReshapeNode) -> bool:
    """Ask whether only single lengths are missing, which a condition can name."""
    return _knows_types(node) and not node.missing and node.special_zero is not None and None not in (node.shape or ())


def _knows_types(node: ReshapeNode) -> bool:
    """Ask whether the types of src and dst are known."""
    form = node.form
    return node.src_type is not None if form is None else UNKNOWN_TYPE not in (form.src_type, form.dst_type)


def _without_own_names(dst: Dims | None) -> Dims | None:
    """Return dims without names such as `src[0]`, which are lengths of this node alone."""
    if dst is None:
        return None
    return tuple(None if isinstance(length, str) and "[" in length else length for length in dst)


def _find_missing(node: ReshapeNode) -> Iterator[str]:
    """Yield in words what is missing for a whole call."""
    if node.missing:
        yield node.missing
    for name, part in (("src", node.src), ("shape", node.shape)):
        if part is None and not node.missing:
            yield f"{name} is not known"
        elif part is not None:
            named = (length or f"{name}[{k}]" for k, length in enumerate(part) if not isinstance(length, int))
            yield from (f"{each} is not known" for each in named)
    if node.special_zero is None and not node.missing:
        yield "special_zero is not known"
    if not _knows_types(node):
        yield "the element type is not known"


def _form_of(node: ReshapeNode, operation: Operation) -> CallForm:
    """Return the form of the call. If the format has other types of shape, the first listed one is taken."""
    if node.form is not None:
        return node.form
    src_type = node.src_type or UNKNOWN_TYPE
    return CallForm(src_type, src_type, operation.shape_types[0], declared=without_names(node.declared))
