"""The needs of a legal call: rules that oblige a backend to accept it. Results show which needs a backend meets.

A backend that rejects a call does not say why. Its other answers do: a backend without f16 answers no call in f16, and
one that reads a copying 0 as a length answers no call in which the two differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..meaning.chains import fill_unknown
from ..meaning.compiled_rules import condition
from ..meaning.contract import Contract, ExplainedEntry
from ..model import FAIL, PASS, Call, Result, Rule, Step
from ..model.cases import CASE_KEYS, STEP_KEYS
from ..plan.facets import RUNTIME_SHAPE, has_unknown_src
from ..plan.memory import volume_of
from ..plan.rows import Row

TYPES = ("type", "shape-type")
"""Families of facets that a document may leave to the backend: "supported type" names none. A backend that answers
calls of a type supports it, and the document then speaks of all calls of that type."""
NO_ANSWER = ("rejected", "unsupported", "crash", "timeout")
SAME_INDEX, ALONE, SAME_RANK = "corresponding-is-the-same-index", "each-call-alone", "dst-has-shape-rank"
COPIES, FRONT_ZERO = "zero-copies", "zero-in-front-copies-the-first-length"
FLAG = "special-zero-is-boolean"

_MIN_UNMET = 3
"""Fewer calls without an answer tell little of a need: a run of some rows has one call that is laid out so."""
_ENOUGH = 20
"""Calls without an answer that show as much as an answer to a call without the need: more than -k of a case has."""


class Need(NamedTuple):
    """A rule that obliges a backend to accept a call, and the facet of the call that it is about, if any."""

    rule: str
    facet: str = ""

    @property
    def is_general(self) -> bool:
        """Ask whether nearly every call has such a need. Then it explains a rejection only if it is never met."""
        return self.rule in (SAME_RANK, FLAG) or self.facet.partition(":")[0] in (*TYPES, RUNTIME_SHAPE)


class Needs:
    """Counts how often a backend answered calls with a need rightly, and how often it did not answer them."""

    def __init__(self, rules: Iterable[Rule], rows: Iterable[Row], results: Mapping[str, Result]) -> None:
        self._offers = [(at, rule) for at, rule in enumerate(rules) if rule.offered_facets or rule.offered_calls]
        self._of_calls = [
            (at, Need(rule.id), condition(rule.offered_calls.text)) for at, rule in self._offers if rule.offered_calls
        ]
        self._of_facets: dict[str, list[tuple[int, Need]]] = {}
        self._met: Counter[tuple[str, Need]] = Counter()
        self._unmet: Counter[tuple[str, Need]] = Counter()
        self._unanswered: dict[str, list[frozenset[Need]]] = {}
        """The needs of each call without an answer, by operation."""
        self._in_all: dict[str, set[str]] = {}
        """The rules that all these calls need."""
        self._never_met: dict[str, list[set[str]]] = {}
        """For the same calls, the rules of their needs that are never met; if it was asked for."""
        self._explained: dict[tuple[str, Need, Need], bool] = {}
        self._answered: set[str] = set()
        self._copying_by_index: set[str] = set()
        for row in rows:
            result, document = results.get(row.id), row.documents[0]
            if result is None or result.step >= len(row.case.steps):
                continue
            verdict = result.verdicts.get(document)
            is_answered = verdict == PASS and result.outcome.kind == "tensor"
            if not is_answered and not (verdict == FAIL and result.outcome.kind in NO_ANSWER):
                continue
            step = row.case.steps[result.step]
            needs = self._find(row, result.step, document, step, only_telling=True)
            if is_answered:
                self._answered.add(row.operation)
                self._met.update((row.operation, need) for need in needs)
                calls = list_calls_of_nodes(step, row.contracts[document]) if Need(SAME_INDEX) in needs else ()
                if any(_find_forbidden_by_other_indices(call) == {True} for call, _ in calls):
                    self._copying_by_index.add(row.operation)
                continue
            every = frozenset(self._find(row, result.step, document, step))
            self._unanswered.setdefault(row.operation, []).append(every)
            rules_of_call = {need.rule for need in every}
            self._in_all.setdefault(row.operation, rules_of_call).intersection_update(rules_of_call)
            for need in needs:
                if need.rule != FLAG or not any(0 in shape for shape in step.shapes):
                    self._unmet[row.operation, need] += 1  # who rejects a call with a 0 may mind the 0, not the flag

    def of_call(self, row: Row, at: int, document: str, step: Step | None = None) -> list[Need]:
        """Return the needs of a legal call, without general ones that the backend meets elsewhere or another explains.

        `step`: what is called instead of the step of the row.
        """
        operation, needs = row.operation, self._find(row, at, document, step or row.case.steps[at])
        return [
            need
            for need in needs
            if not need.is_general
            or (self.is_never_met(operation, need) and not any(self.explains(operation, each, need) for each in needs))
        ]

    def _find(self, row: Row, at: int, document: str, step: Step, only_telling: bool = False) -> list[Need]:
        """Return the needs of a call; only those that its answer tells of, without zeros that two readings agree on."""
        needs = [Need(FLAG)] if any(step.special_zero) else []
        if list_earlier_steps(row, at) or row.case.times > 1:
            needs.append(Need(ALONE))
        nodes = [*list_calls_of_nodes(step, row.contracts[document])]
        if any(True in _find_forbidden_by_other_indices(call) for call, _ in nodes):
            needs.append(Need(SAME_INDEX))
        offered, of_entries = [], []
        # any may be rejected; only the dst of the last is seen
        for call, entries in nodes[-1:] if only_telling else nodes:
            offered += [(at, need) for at, need, is_about in self._of_calls if is_about(*call[:3])]
            of_entries += [Need(SAME_RANK)] * (len(call.src) != len(entries))
            for k, entry in enumerate(entries):
                if entry.rule and not (only_telling and entry.length == 0 and call.src[k : k + 1] == (0,)):
                    of_entries.append(Need(entry.rule))
        for facet in row.facets:
            offered += self._offers_for(facet)
        if row.case.dst_type:  # who declares the type of dst declares a dst, if only of unknown rank
            offered += self._offers_for("declared")
        if row.case.shape_offset:  # every backend has to take it; the rule is that of strides of shape
            offered += self._offers_for("shape-strides")
        if has_unknown_src(row.case, row.shape_passed_as):  # it is no facet if shape comes at run time, too
            offered += self._offers_for("unknown-src")
        needs += [need for _, need in sorted(offered, key=itemgetter(0))]  # in the order of the rules
        return list(dict.fromkeys([*needs, *of_entries]))

    def _offers_for(self, facet: str) -> list[tuple[int, Need]]:
        """Return the needs of calls with a facet, each with the position of its rule. Rows share a few facets."""
        if facet not in self._of_facets:
            names = {facet, facet.partition(":")[0]}
            self._of_facets[facet] = [
                (at, Need(rule.id, facet)) for at, rule in self._offers if not names.isdisjoint(rule.offered_facets)
            ]
        return self._of_facets[facet]

    def is_never_met(self, operation: str, need: Need) -> bool:
        """Ask whether the backend answered no call with a need, and the run shows that this is the reason."""
        unmet = self._unmet[operation, need]
        if need.rule == FLAG:
            is_shown = operation in self._answered and unmet > 0
        else:
            is_shown = operation in self._answered or unmet >= _ENOUGH or self.explains_all(operation, need)
        return is_shown and not self._met[operation, need]

    def explains_all(self, operation: str, need: Need) -> bool:
        """Ask whether the backend answered no call of an operation, and each had a need of this rule."""
        is_shown = operation not in self._answered and len(self._unanswered.get(operation, ())) >= _ENOUGH
        return is_shown and need.rule in self._in_all[operation]

    def explains(self, operation: str, need: Need, other: Need) -> bool:
        """Ask whether each call without an answer that has `other`, which is never met, has `need`; not the reverse.

        All needs of one rule that are never met count as one. If the backend meets `need` elsewhere, a call with it and
        without any need that is never met must have no answer.
        """
        key = operation, need, other
        if key not in self._explained:
            unanswered = self._unanswered.get(operation, [])
            if operation not in self._never_met:
                self._never_met[operation] = [
                    {each.rule for each in needs if self.is_never_met(operation, each)} for needs in unanswered
                ]
            calls = list(zip(unanswered, self._never_met[operation], strict=True))
            if self.is_never_met(operation, need):
                having = [(needs, rules) for needs, rules in calls if need.rule in rules]
                is_alone = any(other.rule not in rules for _, rules in having)
            else:
                having = [(needs, rules) for needs, rules in calls if need in needs]
                is_alone = not need.is_general and not all(rules for _, rules in having)
            every = sum(other in needs for needs, _ in calls)
            self._explained[key] = is_alone and sum(other in needs for needs, _ in having) == every
        return self._explained[key]

    def is_often_unmet(self, operation: str, need: Need) -> bool:
        return self._unmet[operation, need] >= _MIN_UNMET

    def copies_no_zero(self, operation: str) -> bool:
        """Ask whether the backend answered calls of the operation, and none in which a 0 copies another length."""
        return operation in self._answered and self.is_never_met(operation, Need(COPIES))

    def copies_by_index(self, operation: str) -> bool:
        """Ask whether the backend answered a call of the operation that every other index of copied lengths forbids."""
        return operation in self._copying_by_index

    def share_unmet(self, operation: str, need: Need) -> float:
        met, unmet = self._met[operation, need], self._unmet[operation, need]
        return unmet / (met + unmet) if unmet else 0.0


def keys_of(need: Need) -> frozenset[str]:
    """Return the keys that can give a case this need; empty if a case without any key may have it."""
    return _KEYS_OF.get(need.facet.partition(":")[0] or need.rule, frozenset())


_KEYS_OF: Mapping[str, frozenset[str]] = {
    **{key.facet.partition(":")[0]: frozenset({key.name}) for key in (*STEP_KEYS, *CASE_KEYS) if key.facet},
    "threads": frozenset({"concurrent"}),
    "chain": frozenset({"chain"}),
    "declared": frozenset({"declared", "dst_type"}),
    "unknown-src": frozenset({"known", "unknown_rank"}),
    ALONE: frozenset({"steps", "times", "concurrent"}),
}  # fmt: skip


def list_earlier_steps(row: Row, at: int) -> list[int]:
    """Return the earlier steps of a row that run the program of a step."""
    return [k for k in range(at) if row.steps[k].graph == row.steps[at].graph]


def list_calls_of_nodes(step: Step, contract: Contract) -> Iterator[tuple[Call, tuple[ExplainedEntry, ...]]]:
    """Yield the call of each node of a step, with src as far as it is known, and what the entries of its shape mean."""
    src = step.src
    for shape, special_zero in zip(step.shapes, step.special_zero, strict=True):
        yield Call(src, shape, special_zero), contract.entries(src, shape, special_zero)
        if not step.shared_src and (dst := contract.meaning(src, shape, special_zero).dst) is not None:
            src = fill_unknown(dst, volume_of(src))


def _find_forbidden_by_other_indices(call: Call) -> set[bool]:
    """Return whether a legal call has no dst if zeros copy dimensions counted from the right, or one after another."""
    src, shape, special_zero, _ = call
    if not special_zero:
        return set()
    shift = len(src) - len(shape)
    order = [at for at, entry in enumerate(shape) if entry == 0]
    from_the_right, in_turn = {at: at + shift for at in order}, {at: turn for turn, at in enumerate(order)}
    return {_is_forbidden(src, shape, copied) for copied in (from_the_right, in_turn)}


def _is_forbidden(src: Sequence[int], shape: Sequence[int], copied: Mapping[int, int]) -> bool:
    """Ask whether a call has no dst if the given entries copy the lengths of the given dimensions."""
    if not all(0 <= index < len(src) for index in copied.values()):
        return True
    lengths = [src[copied[at]] if at in copied else entry for at, entry in enumerate(shape)]
    known = volume_of(tuple(length for length in lengths if length != -1))
    volume = volume_of(tuple(src))
    return known != volume and (-1 not in lengths or not known or volume % known != 0)
