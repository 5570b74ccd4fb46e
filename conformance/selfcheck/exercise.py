"""Find the rules that a step exercises: a wrong answer to the call, or a wrong rejection, would break them.

A step exercises

- the rule that its case cites, if it is legal, or illegal and the rule has no contract;
- the rule that makes it illegal, if it breaks no other rule, since a backend may reject it because of any of them;
- the rules that give the lengths of dst, if it is legal, and those that oblige a backend to take the call (`offers`);
- the rules that such a call exercises according to `shown` in spec/cells.yaml.

Only documents in which a rule binds count, and only rules that an answer can break: levels `must` and `decided`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from ..load.cells import Classes, Shown
from ..meaning.compiled_rules import condition
from ..meaning.contract import Contract
from ..meaning.expression import Invalid
from ..model import Malformed, Meaning, Problem, Spec, Step
from ..plan.rows import Row

Condition = Callable[[tuple[int, ...], tuple[int, ...], bool], bool]
CellClasses = Mapping[str, Sequence[str]]
"""The classes of a step by dimension; it may have several arrangements."""


def rules_to_test(spec: Spec) -> tuple[str, ...]:
    """Return the ids of the rules of the bundled documents that a backend can break."""
    return tuple(
        rule.id
        for rule in spec.rules.values()
        if rule.level in ("must", "decided") and not rule.documents <= spec.added
    )


class Exercises:
    """Finds the rules that steps exercise, under one specification."""

    def __init__(self, spec: Spec, shown: Sequence[Shown]) -> None:
        """Malformed if a condition of `shown` is not in the language of contracts."""
        self._spec = spec
        rules = [spec.rules[name] for name in rules_to_test(spec)]
        self._binding = {
            document: {rule.id for rule in rules if document in rule.documents}
            for document in spec.documents.keys() - spec.added
        }
        self._offering = [rule for rule in rules if rule.offered_facets]
        self._offering_calls = [(rule.id, condition(rule.offered_calls.text)) for rule in rules if rule.offered_calls]
        self._shown = [(each, _condition_of(each)) for each in shown]
        self._offered = cache(self._offered_by_facets)

    def find(self, row: Row, at: int, classes: CellClasses) -> set[str]:
        """Return the ids of the rules that a step of a row exercises."""
        found: set[str] = set()
        for meaning, documents in row.steps[at].meanings:
            known = [document for document in documents if document in self._binding]
            if known and meaning.kind != "unspecified":
                names = {*self._by_contract(row, at, meaning, known[0]), *self._shown_by(row, at, meaning, classes)}
                for document in known:
                    found |= names & self._binding[document]
        return found

    def _by_contract(self, row: Row, at: int, meaning: Meaning, document: str) -> Iterator[str]:
        rule, step = row.case.rule, row.case.steps[at]
        if meaning.kind == "illegal":
            yield from meaning.rules if len(meaning.rules) == 1 else ()
            yield from () if self._spec.rules[rule].has_contract else (rule,)
            return
        yield rule
        yield from _rules_of_lengths(step, row.contracts[document])
        yield from self._offered(row.facets)
        for name, offers in self._offering_calls:
            if offers(step.src, step.shapes[0], step.special_zero[0]):
                yield name

    def _shown_by(self, row: Row, at: int, meaning: Meaning, classes: CellClasses) -> Iterator[str]:
        step = row.case.steps[at]
        for shown, holds in self._shown:
            fits = shown.by in ("any", meaning.kind) and _are_among(classes, shown.classes)
            if fits and holds(step.src, step.shapes[-1], step.special_zero[-1]):
                yield from shown.rules

    def _offered_by_facets(self, facets: frozenset[str]) -> tuple[str, ...]:
        families = {facet.partition(":")[0] for facet in facets}
        return tuple(rule.id for rule in self._offering if (facets | families) & set(rule.offered_facets))


def _condition_of(shown: Shown) -> Condition:
    try:
        return condition(shown.condition or "True")
    except Invalid as why:
        raise Malformed((Problem(shown.place, str(why)),)) from None


def _are_among(classes: CellClasses, allowed: Classes) -> bool:
    """A step needs one of the allowed classes in every dimension that names some."""
    return all(set(classes[dimension]) & set(names) for dimension, names in allowed.items())


def _rules_of_lengths(step: Step, contract: Contract) -> Iterator[str]:
    """Yield the rules that give lengths in the nodes of a legal call."""
    dims: tuple[int | None, ...] = step.src
    for shape, zero in zip(step.shapes, step.special_zero, strict=True):
        yield from (entry.rule for entry in contract.entries(dims, shape, zero) if entry.rule)
        dims = step.src if step.shared_src else contract.meaning(dims, shape, zero).dst or ()
