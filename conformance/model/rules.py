"""The content of spec/: documents, operations, rules and findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from .places import Place


class Pointer(NamedTuple):
    """A line of a document and a few words of that line."""

    document: str
    line: int
    words: str

    def line_for(self, document: str) -> int | str:
        """Return the line, for readers of a document; it may be one of the document that theirs is like."""
        return self.line if document == self.document else f"{self.line} of {self.document}"


class Prose(NamedTuple):
    """A statement of a document that is not a rule, with the reason."""

    pointer: Pointer
    reason: str
    place: Place


class DocumentCommit(NamedTuple):
    commit: str
    date: str


class DocumentOrigin(NamedTuple):
    """The place in a public repository where a document is published."""

    repository: str
    path: str
    releases: tuple[str, ...]
    """The tags that contain the page with this text."""
    added: str
    last_changed: str
    in_force: DocumentCommit | None
    """The newest commit where the page is still this text, if the document is in force."""


class NewerPage(NamedTuple):
    """A newer public page about an operation, and what changed there as far as is known."""

    page: str
    changed: str


@dataclass(frozen=True)
class Document:
    """One published text, identified by its digest."""

    id: str
    operation: str
    title: str
    edition: str
    """A short label for pages: the publication, with its version."""
    licence: str | None
    file: str
    sha256: str
    lines: int
    statements: int
    prose: tuple[Prose, ...]
    place: Place
    origin: DocumentOrigin | None = None
    newer: tuple[NewerPage, ...] = ()
    lacks: str | None = None
    """What the page has and our file lacks."""

    @property
    def in_force(self) -> DocumentCommit | None:
        """Return the newest commit where the page is still this text; None if another document is in force."""
        return self.origin.in_force if self.origin else None


ShapePassedAs = Literal["attribute", "constant", "runtime"]


@dataclass(frozen=True)
class Operation:
    """The signature of an operation: how shape is passed, and the listed types."""

    id: str
    documents: tuple[str, ...]
    shape_passed_as: tuple[ShapePassedAs, ...]
    """How shape reaches the operation: an attribute, an input known beforehand, an input that arrives with run."""
    types: tuple[str, ...]
    shape_types: tuple[str, ...]
    detail: Mapping[str, Any]
    """The whole entry of operations.yaml, for people: attributes, inputs, outputs, names by document."""
    place: Place

    @property
    def kind(self) -> str:
        """The kind of its nodes in a graph: its name without a version."""
        return self.id.partition("-")[0]


Level = Literal["must", "may", "decided", "silent", "capacity"]
LEVELS: tuple[Level, ...] = get_args(Level)
Authority = Literal["stated", "stated, as we read it", "our ruling"]
"""Why a rule binds in a document, the strongest first."""
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)


class Expression(NamedTuple):
    text: str
    place: Place


@dataclass(frozen=True)
class Rule:
    """One normative sentence in our words, the documents that state it, and a contract if there can be one."""

    id: str
    level: Level
    sentence: str
    stated: tuple[Pointer, ...]
    decided_for: Mapping[str, str]
    """Documents for which the rule is our ruling, each with the reason."""
    documents: frozenset[str]
    """The documents in which the rule binds (for `silent`: in which it is silent; for `may`: which allow it)."""
    because: str | None
    requires: Expression | None
    where: Expression | None
    gives: Expression | None
    ensures: Expression | None
    when: Expression | None
    implied: bool
    place: Place
    like: Mapping[str, str] = field(default_factory=dict)
    """Documents that have the rule because they are like another document."""
    as_read: Mapping[str, str] = field(default_factory=dict)
    """Documents that state it in words with several readings, each with the finding that chooses between them."""
    diagnoses: tuple[str, ...] = ()
    """What a diagnosis says of an answer that breaks it."""
    offered_facets: tuple[str, ...] = ()
    """Facets, or families of them: the rule obliges a backend to accept calls that have one."""
    offered_calls: Expression | None = None
    """The calls that the rule obliges a backend to accept."""

    def authority(self, document: str) -> Authority:
        """Say why the rule binds in a document. A document that is like another one has the authority of that one."""
        source = self.source_of(document)
        if self.level not in ("must", "may") or source in self.decided_for:
            return "our ruling"
        return "stated, as we read it" if source in self.as_read else "stated"

    def treatment_in(self, document: str) -> str:
        """Say how a document treats the rule: its authority there, `silent`, `allowed` or `not bound`."""
        if document not in self.documents:
            return "not bound"
        return {"may": "allowed", "silent": "silent"}.get(self.level) or self.authority(document)

    def pointers_in(self, document: str) -> list[Pointer]:
        """Return the pointers into a document, in the order of its lines."""
        source = self.source_of(document)
        return sorted(pointer for pointer in self.stated if pointer.document == source)

    def reason_in(self, document: str) -> str | None:
        """Return the reason for our ruling in a document; None if we gave none."""
        return self.decided_for.get(self.source_of(document)) or self.because

    def source_of(self, document: str) -> str:
        """Return the document from which a document has the rule: itself, or the one that it is like."""
        return self.like.get(document, document)

    @property
    def has_contract(self) -> bool:
        return any((self.requires, self.gives, self.ensures, self.when))


Weight = Literal["changes a verdict", "misleads", "editorial"]
WEIGHTS: tuple[Weight, ...] = get_args(Weight)
"""What a finding costs its readers, the heaviest first."""
FindingKind = Literal["defect", "disagreement", "silence"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


@dataclass(frozen=True)
class Finding:
    """A defect, a disagreement or a silence of the documents."""

    id: str
    kind: FindingKind
    about: str
    at: tuple[Pointer, ...]
    readings: tuple[str, ...]
    follows: str
    ruling: str | None
    rules: tuple[str, ...]
    example: tuple[tuple[int, ...], tuple[int, ...], bool] | None
    """A call (src, shape, special_zero) that shows it."""
    place: Place
    weight: Weight


@dataclass(frozen=True)
class Spec:
    """The whole content of spec/."""

    documents: Mapping[str, Document]
    """By id, in the order of sources.yaml, which reports keep."""
    operations: Mapping[str, Operation]
    rules: Mapping[str, Rule]
    findings: Mapping[str, Finding]
    digest: str
    added: frozenset[str] = frozenset()
    """Ids of the documents that a folder adds to the bundled ones."""

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type_ for operation in self.operations.values() for type_ in operation.types))

    def operation_of(self, document: str) -> Operation:
        return self.operations[self.documents[document].operation]


class KnownFault(NamedTuple):
    """One fault, the backends that have it, and the calls that it may hit."""

    id: str
    title: str
    """What goes wrong, for a user of the library."""
    advice: str
    """What a user has to do or to avoid."""
    backends: tuple[tuple[str, tuple[str, ...]], ...]
    """Each backend, with the versions that have evidence of it."""
    shows: tuple[str, ...]
    """The diagnoses of the failures that it explains."""
    when: Expression | None
    """A condition on the call and, if it is legal, its answer; None for any call."""
    rules: tuple[str, ...] = ()
    """If it hits calls that are not legal: the rules that forbid them or leave them unspecified, and no other rule."""
    facets: tuple[str, ...] = ()
    """Facets of the row without which it hits nothing."""
    link: str | None = None
    """Where it is reported in public; if nowhere, the heading of docs/upstream.md with what we would report."""

    @property
    def seen_in(self) -> str:
        """The backends and versions in words."""
        return "; ".join(f"{backend} {', '.join(versions)}" for backend, versions in self.backends)

    def versions_of(self, backend: str) -> tuple[str, ...]:
        return dict(self.backends).get(backend, ())


class PlainCall(NamedTuple):
    """A call of one node, as far as conditions of faults look at it."""

    src_type: str
    src: tuple[int, ...]
    shape: tuple[int, ...]
    special_zero: bool
    dst: tuple[int, ...]
    """Its one right answer; empty if the call is not legal."""
