"""Decide a reshape node in each document. What is not known decides nothing: a rule that reads it is left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from ..meaning.contract import Contract, contracts
from ..model import Form, Operation, Rule, Spec
from .nodes import Dims, ReshapeNode, whole

Kind = Literal["legal", "illegal", "unspecified", "not decided"]


class Decision(NamedTuple):
    """The meaning of a node in a document, for one binding of the inputs."""

    kind: Kind
    rules: tuple[str, ...] = ()
    """Illegal: the broken rules. Unspecified: the silent rules."""
    missing: tuple[str, ...] = ()
    """Not decided: what is not known."""
    dst: Dims | None = None


class Judge:
    """The contracts of the documents that a user asks about."""

    def __init__(self, spec: Spec, documents: tuple[str, ...]) -> None:
        self.spec, self.documents = spec, documents
        self._contracts = contracts(spec)
        self._of_part = cache(self._make_part)

    def decide(self, node: ReshapeNode) -> dict[str, Decision]:
        """Return the decision in each document about the node's operation, or in all if none of them is about it."""
        about = [document for document in self.documents if self._covers(document, node)]
        return {document: self._decide(node, document) for document in about or self.documents}

    def decide_everywhere(self, node: ReshapeNode) -> dict[str, Decision]:
        """Return the decision in every document, whichever the user asks about."""
        return {document: self._decide(node, document) for document in self.spec.documents}

    def contract(self, document: str) -> Contract:
        """Return the contract of a document."""
        return self._contracts[document]

    def rule_of_entries(self, node: ReshapeNode) -> str:
        """Return a rule that gives an entry of shape its length; of an empty shape, the first rule of all."""
        document = next(iter(self.spec.documents))
        entries = self._contracts[document].entries(node.src, node.shape, node.special_zero)
        return next((entry.rule for entry in entries if entry.rule), next(iter(self.spec.rules)))

    def answer(self, node: ReshapeNode) -> Dims | None:
        """Return dst if a document gives it and no document gives another one or forbids the call."""
        found = [self._decide(node, document) for document in self.spec.documents if self._covers(document, node)]
        dims = {decision.dst for decision in found if decision.kind != "not decided"}
        return dims.pop() if len(dims) == 1 else None

    def _covers(self, document: str, node: ReshapeNode) -> bool:
        operation = self.spec.documents[document].operation
        return node.operation is None or operation.partition("-")[0] == node.operation

    def _decide(self, node: ReshapeNode, document: str) -> Decision:
        if not self._covers(document, node):
            return Decision("not decided", (), (f"the document is not about {node.operation}",))
        missing = tuple(_find_missing(node))
        form = _form_of(node, self.spec.operations[self.spec.documents[document].operation])
        src, shape = whole(node.src), whole(node.shape)
        if src is not None and shape is not None and not missing:
            meaning = self._contracts[document].meaning(src, shape, node.special_zero, form)
            return Decision(meaning.kind, meaning.rules, (), meaning.dst)
        unknown = frozenset(_find_unknown_names(node))
        meaning = self._of_part(document, unknown).meaning(src or (), shape or (), bool(node.special_zero), form)
        if meaning.kind == "illegal":
            return Decision("illegal", meaning.rules)
        return Decision("not decided", (), missing)

    def _make_part(self, document: str, unknown: frozenset[str]) -> Contract:
        """Return the contract of those requirements that read nothing unknown."""
        rules = [rule for rule in self.spec.rules.values() if document in rule.documents and _reads_none(rule, unknown)]
        operation = self.spec.operations[self.spec.documents[document].operation]
        return Contract(rules, operation.types, operation.shape_types)


def _reads_none(rule: Rule, unknown: frozenset[str]) -> bool:
    if not rule.requires:
        return False
    tree = ast.parse(rule.requires.text, mode="eval")
    return not unknown & {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _find_unknown_names(node: ReshapeNode) -> Iterator[str]:
    """Yield the names of the language of contracts whose values are not known."""
    if whole(node.src) is None:
        yield "src"
    if whole(node.shape) is None:
        yield "shape"
    if node.special_zero is None:
        yield "special_zero"
    if node.src_type is None and node.form is None:
        yield from ("src_type", "dst_type")


def _find_missing(node: ReshapeNode) -> Iterator[str]:
    """Yield in words what is missing for a whole call."""
    if node.missing:
        yield node.missing
    for name, part in (("src", node.src), ("shape", node.shape)):
        if part is None and not node.missing:
            yield f"{name} is not known"
        elif part is not None:
            yield from (f"{name}[{k}] is not known" for k, length in enumerate(part) if length is None)
    if node.special_zero is None:
        yield "special_zero is not known"
    if node.src_type is None and node.form is None:
        yield "the element type is not known"


def _form_of(node: ReshapeNode, operation: Operation) -> Form:
    """Return the form of the call; a format that names its own type of shape is read as the first listed one."""
    if node.form is not None:
        return node.form
    src_type = node.src_type or operation.types[0]
    return Form(src_type, src_type, operation.shape_types[0], declared=node.declared)
