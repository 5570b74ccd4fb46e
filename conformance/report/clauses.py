"""The clauses that a failure breaks: a few words of a document, their line, and where to read on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model import Document, Rule, Spec
from ..verdict.blame import Blamed, heaviest

MAX_CLAUSES = 4
"""Clauses to show of one failure."""


class ClauseWords(NamedTuple):
    """A few words of a line of a document."""

    document: Document
    line: int
    words: str

    @property
    def page(self) -> str | None:
        """A public page about the operation, newer than the document; None if none is known."""
        return self.document.newer[0].page if self.document.newer else None


class BrokenRule(NamedTuple):
    """The rule that a failure breaks in some documents, with its clauses there; none if it is our ruling."""

    rule: Rule
    clauses: tuple[ClauseWords, ...]


def find_broken(spec: Spec, rule: Rule, blames: dict[str, Blamed], documents: Iterable[str]) -> BrokenRule:
    """Find the rule that decides the heaviest blame, or `rule` if nothing is blamed, and the words that state it."""
    if blames:
        worst = heaviest(blames.values())
        first = next(each for each in blames.values() if each.blame == worst)
        rule = spec.rules.get(first.premise.rule, rule)
        documents = [name for name, each in blames.items() if each.blame == worst]
    return BrokenRule(rule, tuple(_clauses(spec, rule, documents))[:MAX_CLAUSES])


def _clauses(spec: Spec, rule: Rule, documents: Iterable[str]) -> Iterator[ClauseWords]:
    """The first clause of each document that states a rule; a document like another one has the words from there."""
    for name in dict.fromkeys(rule.source_of(name) for name in documents if rule.authority(name) != "our ruling"):
        for pointer in rule.pointers_in(name)[:1]:
            yield ClauseWords(spec.documents[name], pointer.line, pointer.words)
