"""Blame: the sentence that a failure breaks, by the document or by a ruling of the suite, and the rule that decides it.

An answer breaks the rules that say what the answer is. One broken sentence of the document is enough; the rulings that
the failure also needs can only weaken it. A legal call that was not answered has several premises: the rule of each
entry of shape, and what obliges a backend to take such a call (its type, rank, size, layout, place in a program). The
weakest premise decides, unless the backend meets another one in no call at all: then that one is the cause. A premise
"as we read it" is as weak as a ruling, so that nobody can deny "breaks the text". A call that a document forbids in
words that we had to read is still one that the text forbids.

No document speaks of earlier calls: a call that goes right alone, or fails as no single call does, breaks no more than
a ruling. What the smallest case of a drawn row lacks, such as a layout, is not needed to fail; nor is what a single
call lacks that fails in the same way and has nothing else around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from ..model import AUTHORITIES, BAD, BLAMES, FAIL, WAIVED, Authority, Blame, Kind, Outcome, Result, Rule
from ..model.verdicts import SEVERITIES, Severity, describe_severity
from ..plan.memory import volume_of
from ..plan.rows import Row, parse_drawn_id
from ..run.diagnose import STALE
from ..run.judge import UNCLAIMED
from ..system.groups import group_pairs
from .failing_step import FailingStep, find_conditions, find_failing, find_type, find_words_of_rejection
from .needs import (
    ALONE,
    FLAG,
    FRONT_ZERO,
    NO_ANSWER,
    SAME_INDEX,
    SAME_RANK,
    Need,
    Needs,
    keys_of,
    list_calls_of_nodes,
)

HEAVIEST_FIRST = tuple(BLAMES)
_TEXT, _FORBIDDEN, _RULING = BLAMES
MUST_REJECT, _EMPTY_PRODUCT, _NODES = "reject-illegal-calls", "empty-product-is-one", "nodes-compose"
_NO_NEGATIVE = "no-length-below-zero"
_LAYOUT = "layout-is-no-content"
_OF_FORM = (None, "wrong type", "wrong dims", "wrong volume")
"""Diagnoses of an answer if its elements were not compared."""
_SHARED_BY_MISTAKES = (
    None, "wrong volume", "wrong elements", "elements in the wrong places",
    "same elements in another order", "crash", "timeout",
)  # fmt: skip
"""Diagnoses that two mistakes may well have."""
_UNKNOWN = frozenset(("known", "unknown_rank"))
"""Keys of a graph that leaves lengths of src open."""
_AROUND = frozenset(("layout", "dst_strides", "chain", "shape_step", "shape_offset", "concurrent"))
"""Keys of what is around a call: documents speak of a call without them."""


class Premise(NamedTuple):
    """A rule that a failure rests on, and the authority of the rule in the document."""

    rule: str
    authority: Authority


class Blamed(NamedTuple):
    """The sentence that a failure breaks in one document, and what the failure does to a user."""

    blame: Blame
    premise: Premise
    """The premise that decides."""
    severity: Severity


BlameAndPremise = tuple[Blame, Premise]
_Way = tuple[str | None, frozenset[str]]
"""A way of failing: the diagnosis, and the rules that an illegal call or the wrong dims of an answer break."""


class Blamer:
    """Blames failures under the rules of a specification."""

    def __init__(
        self, rules: Mapping[str, Rule], rows: Iterable[Row] = (), results: Mapping[str, Result] | None = None
    ) -> None:
        """`rows` and `results` of the whole run show which calls the backend accepts at all."""
        self.rules = rules
        rows, results = list(rows), results or {}
        self.needs = Needs(rules.values(), rows, results)
        few = [row for row in rows if row.id in results and (len(row.case.steps) == 1 or parse_drawn_id(row.id))]
        called, several = [(row, results[row.id]) for row in few], keys_of(Need(ALONE))
        single = [each for each in called if several.isdisjoint(find_conditions(each[0], each[1].step, each[1]))]
        right = (
            row.case.steps[0] for row, result in single if result.outcome.kind == "tensor" and not result.is_failure
        )
        self._right_layouts = {step.layout for step in right if len(step.shapes) == 1}
        """The layouts of src in single calls of one node that go right."""
        failing = [each for each in single if each[1].is_failure and not each[1].right_alone]
        self._failing_alone: dict[_Way, set[tuple[Set[str], str, str]]] = {}
        """By way of failing, what is around single calls that fail so, with their operation and type."""
        self._rejected_alone: dict[object, set[frozenset[Need]]] = {}
        self._failing_if_known = set[_Way]()
        """Ways in which single calls fail although their graph leaves no length of src open."""
        for row, result in failing:
            conditions, way = find_conditions(row, result.step, result), self._find_way_of_failing(row, result)
            of_call = _AROUND & conditions, row.operation, find_type(row, result.step)
            self._failing_alone.setdefault(way, set()).add(of_call)
            if not _UNKNOWN & conditions:
                self._failing_if_known.add(way)
                if words := find_words_of_rejection(row, result.step, result.outcome):
                    needs = frozenset(self.needs.of_call(row, result.step, row.documents[0]))
                    self._rejected_alone.setdefault(words, set()).add(needs)
        self.broken_by = group_pairs((diagnosis, rule.id) for rule in rules.values() for diagnosis in rule.diagnoses)

    def blame(self, row: Row, result: Result, document: str) -> Blamed | None:
        """Return the sentence that a failure breaks; None if nothing fails there, or only the adapter does."""
        if result.verdicts.get(document) not in BAD:
            return None
        failing = find_failing(row, result, document)
        if failing.outcome.kind in ("error", "none"):
            return None
        return Blamed(*self._blame(failing), severity_of(failing.outcome, failing.meaning.kind))

    def _blame(self, failing: FailingStep) -> BlameAndPremise:
        outcome, kind = failing.outcome, failing.meaning.kind
        if "concurrent" in self._find_needed_around(failing):
            return _blame_ruling(ALONE)  # no document speaks of programs that run at the same time
        if failing.diagnosis and failing.diagnosis.endswith(UNCLAIMED):
            return _blame_ruling(MUST_REJECT)  # nothing obliges the backend to take the call
        if self._goes_right_alone(failing):
            return _blame_ruling(ALONE)
        if failing.answers_illegal_call:
            return self._blame_illegal_answer(failing)
        if outcome.side_effects or outcome.kind == "tensor":
            return self._blame_answer(failing)
        if kind == "legal" and not failing.meaning.rules:
            return self._blame_no_answer(failing)
        unmet = [] if kind == "illegal" else self._find_never_met(failing)
        return _blame_ruling(unmet[0].rule if unmet else MUST_REJECT)

    def find_broken_rules(self, row: Row, result: Result) -> frozenset[str]:
        """Return the rules that a result breaks in every document in which it fails, waived or not."""
        steps = [
            find_failing(row, result, each) for each, verdict in result.verdicts.items() if verdict in (FAIL, WAIVED)
        ]
        broken = [{*(each.meaning.rules if each.answers_illegal_call else self._find_broken(each))} for each in steps]
        return frozenset(set.intersection(*broken) if broken else ())

    def _goes_right_alone(self, failing: FailingStep) -> bool:
        """Ask whether the failure takes earlier calls."""
        row, result = failing.row, failing.result
        if result.right_alone or "steps" not in failing.conditions:
            return bool(result.right_alone)
        if parse_drawn_id(row.id) and not failing.outcome.ends_process:
            return True  # a smaller case was looked for, first among single calls
        is_of_dims = failing.answers_illegal_call or failing.diagnosis in _OF_FORM
        is_of_calls = row.case.rule == ALONE and (not is_of_dims or failing.has_dims_of_earlier_step)
        return (is_of_calls or failing.diagnosis == STALE) and not self._fails_alone(failing)

    def _blame_illegal_answer(self, failing: FailingStep) -> BlameAndPremise:
        """Blame the answer to a forbidden call: one broken rule that the document has in any words is enough."""
        step = failing.step
        names, dims = failing.meaning.rules, failing.outcome.dims or ()
        if all(self.rules[name].ensures for name in names):
            names = self._find_rules_of_moved_zeros(failing) or tuple(self._find_rules_if_undeclared(failing)) or names
        broken = self._find_strongest(names, failing.document)
        answers_another_volume = volume_of(dims) != volume_of(step.src) and not failing.row.case.outputs
        if broken.authority == "our ruling" and answers_another_volume:  # the text forbids it, whatever the call means
            broken = self._find_strongest(self.broken_by.get("wrong volume", ()), failing.document)
        if broken.authority == "our ruling":
            return _RULING, broken
        if self.rules[broken.rule].ensures:  # it is about a volume
            if not (step.src and all(step.shapes)):
                return _blame_ruling(_EMPTY_PRODUCT)  # only our ruling gives a tensor without dimensions a volume
            later = zip(step.shapes[1:], step.special_zero[1:], strict=True)
            if not step.shared_src and any(zero and 0 in shape for shape, zero in later):
                return _blame_ruling(_NODES)  # a 0 copies from a tensor that no document speaks of
        return _FORBIDDEN, broken

    def _blame_answer(self, failing: FailingStep) -> BlameAndPremise:
        """Blame a wrong answer, or an outcome that changed memory: the broken rule, or a ruling that it also needs."""
        if not failing.outcome.side_effects and self._needs_open_lengths(failing):
            return _blame_ruling(ALONE)  # no document speaks of lengths that a graph leaves open
        broken = self._find_strongest(self._find_broken(failing), failing.document)
        if failing.meaning.kind != "legal":  # whoever reads the documents otherwise need not see a call with a meaning
            silent = [] if broken.authority == "our ruling" else failing.meaning.rules
            return _RULING, next(iter(self._find_premises(silent, failing.document)), broken)
        needed, diagnosis, is_of_form = [], failing.diagnosis, failing.diagnosis in _OF_FORM
        around, of_alike = self._find_needed_around(failing), [each for each, *_ in self._find_alike(failing)]
        if not is_of_form:  # layouts and earlier nodes decide which elements are due
            needed += [_LAYOUT] * (not around.isdisjoint(("layout", "dst_strides")))
        needed += [_LAYOUT] * (not around.isdisjoint(("shape_step", "shape_offset")) and diagnosis != "wrong type")
        if "chain" in around and not (is_of_form and any("chain" not in each for each in of_alike)):
            needed.insert(0 if failing.step.layout in self._right_layouts else len(needed), _NODES)
        premises = self._find_premises(needed, failing.document)
        decides = premises and all(of_alike) and not failing.outcome.side_effects  # no dense call fails so
        return _find_weakest(premises if decides else [broken, *premises])

    def _blame_no_answer(self, failing: FailingStep) -> BlameAndPremise:
        """Blame a legal call without an answer.

        If the backend meets a need of the call in no call at all, that is its fault, whatever else the call needs.
        Otherwise the weakest premise decides; among equals, the need that the backend meets least.
        """
        operation = failing.row.operation
        needs = self._find_never_met(failing) or self._find_telling_needs(failing)
        least_met_first = sorted(needs, key=lambda need: -self.needs.share_unmet(operation, need))
        return _find_weakest(self._find_premises([need.rule for need in least_met_first], failing.document))

    def _find_never_met(self, failing: FailingStep) -> list[Need]:
        """Return the needs of a call that bind in the document, and that the backend meets in no call at all.

        If it answers no call of the operation, what all of them need is why, and not what only some need.
        """
        needs = (n for n in self._needs_of(failing) if self._find_premises([n.rule], failing.document))
        unmet = [need for need in needs if self.needs.is_never_met(failing.row.operation, need)]
        unmet = [n for n in unmet if not any(self.needs.explains(failing.row.operation, other, n) for other in unmet)]
        if of_all := [need for need in unmet if self.needs.explains_all(failing.row.operation, need)]:
            return of_all
        flag = [need for need in unmet if need.rule == FLAG]  # who rejects special_zero can meet nothing that it means
        return flag or [need for need in unmet if self.needs.is_often_unmet(failing.row.operation, need)] or unmet

    def _needs_of(self, failing: FailingStep) -> list[Need]:
        """Return the needs of a call; of a drawn row, without those that its smallest case lacks."""
        needs = self.needs.of_call(*failing.place)
        if (smallest := failing.smallest_step) is None:
            return needs
        of_smallest = self.needs.of_call(*failing.place, smallest)
        needs = [each for each in needs if not (keys := keys_of(each)) or keys & failing.conditions]
        return [each for each in needs if keys_of(each) or each in of_smallest] or of_smallest

    def _find_telling_needs(self, failing: FailingStep) -> list[Need]:
        """Return the needs of a call that is like others which the backend meets.

        If no single call on a known src is rejected in the same words, unknown lengths tell all. If one is, they and
        earlier calls tell nothing; nor do a layout, other nodes and the like, if that call has no other need than this
        one. What is around each of several such calls tells all.
        """
        needs, words = self._needs_of(failing), find_words_of_rejection(failing.row, failing.at, failing.outcome)
        alone = self._rejected_alone.get(words, ())
        if failing.outcome.call_number > 1 or not alone:
            return [need for need in needs if words and keys_of(need) == _UNKNOWN] or needs
        telling = [need for need in needs if need.rule != ALONE]
        plain = [need for need in telling if not keys_of(need)]
        if any(each and each.issubset(plain) for each in alone):
            return plain
        if len(alone) > 1:
            around = set.intersection(*({need.rule for need in each if keys_of(need)} for each in alone))
            telling = [need for need in telling if need.rule in around] or telling
        return telling or needs

    def _fails_alone(self, failing: FailingStep) -> bool:
        """Ask whether a single call of the run fails in the same way. A chain tells of chains only."""
        return any("chain" in failing.conditions or "chain" not in each for each, *_ in self._find_alike(failing))

    def _find_way_of_failing(self, row: Row, result: Result) -> _Way:
        meaning = row.steps[result.step].meanings[0].meaning
        rules: Iterable[str] = meaning.rules if meaning.kind == "illegal" else ()
        if result.diagnosis == "wrong dims" and meaning.dst is not None:
            rules = self._find_rules_of_dims(find_failing(row, result, row.documents[0]), result.outcome.dims or ())
        return result.diagnosis, frozenset(rules)

    def _needs_open_lengths(self, failing: FailingStep) -> bool:
        """Ask whether a graph leaves lengths of src open, and single calls fail so only if theirs does, too."""
        if not _UNKNOWN & failing.conditions:
            return False
        if all(name != failing.result.diagnosis for name, _ in self._failing_alone):
            return False  # no single call fails so
        way = self._find_way_of_failing(failing.row, failing.result)
        return not any(_is_alike(each, way) for each in self._failing_if_known)

    def _find_alike(self, failing: FailingStep) -> Set[tuple[Set[str], str, str]]:
        """Find the single calls that fail so."""
        way = self._find_way_of_failing(failing.row, failing.result)
        alike = (of for each, of in self._failing_alone.items() if _is_alike(each, way))
        return frozenset[tuple[Set[str], str, str]]().union(*alike)

    def _find_needed_around(self, failing: FailingStep) -> Set[str]:
        """Find what is around a call and needed to fail: no more than is around a single call that fails so."""
        around = _AROUND & failing.conditions
        if failing.outcome.only_rejects:
            words = find_words_of_rejection(failing.row, failing.at, failing.outcome)
            return frozenset() if words in self._rejected_alone else around
        if failing.answers_illegal_call:
            return frozenset() if self._fails_alone(failing) else around
        alike = self._find_alike(failing)
        plain = frozenset[str](), failing.row.operation, find_type(failing.row, failing.at)
        if plain in alike and failing.diagnosis not in _SHARED_BY_MISTAKES:
            return frozenset()
        fewer = [each for each, *_ in alike if each and each <= around]
        return max(fewer, key=lambda each: (-len(each), sorted(each)), default=around)

    def _find_broken(self, failing: FailingStep) -> list[str]:
        """Return the rules that an outcome broke: those of the diagnosis, or those that say what the answer is."""
        outcome, diagnosis = failing.outcome, failing.diagnosis
        if diagnosis == "wrong dims" and outcome.dims is not None and failing.meaning.dst is not None:
            if failing.has_dims_of_earlier_step and not self._fails_alone(failing):
                return [ALONE]
            return [*self._find_rules_of_dims(failing, outcome.dims)]
        if outcome.kind in NO_ANSWER and not outcome.side_effects:
            return list(dict.fromkeys(entry.rule for entry in failing.entries[1] if entry.rule))
        names = (diagnosis or "", *(diagnosis or "").split(", "))
        rules = [rule for name in names for rule in self.broken_by.get(name, ())]
        if not rules and diagnosis and outcome.kind == "tensor":
            # no rule lists every way in which elements are wrong, such as memory around src that was read
            return list(self.broken_by.get("wrong elements", ()))
        return rules

    def _find_rules_of_dims(self, failing: FailingStep, got: Sequence[int]) -> Iterator[str]:
        """Yield the rules that say what the wrong lengths of an answer should be."""
        due = failing.meaning.dst or ()
        src, entries = failing.entries
        if len(got) != len(due) or len(entries) != len(got):
            yield SAME_RANK
            return
        wrong = [k for k, (length, other) in enumerate(zip(got, due, strict=True)) if other not in (None, length)]
        fixed = [k for k in wrong if entries[k].length is not None or entries[k].copied_from is not None]
        keeps_volume = volume_of(tuple(got)) == volume_of(src)
        for k in fixed if fixed and keeps_volume else wrong:  # an inferred length follows others
            if entries[k].copied_from is None:
                yield entries[k].rule or SAME_RANK
            elif "chain" in failing.conditions and "shared_src" not in failing.conditions:
                yield _NODES  # it is copied from a tensor that no document speaks of
            elif self._is_of_another_index(failing.row, k, got, src):
                yield from _find_rules_of_index(k)
            else:
                yield entries[k].rule or SAME_RANK
        if not wrong and min(got, default=0) < 0:
            yield _NO_NEGATIVE

    def _is_of_another_index(self, row: Row, k: int, got: Sequence[int], src: Sequence[int]) -> bool:
        """Ask whether a backend that copies lengths gave entry k the length of another dimension of src.

        If dimensions are counted from the right, as in broadcasting, one that src lacks is 1. A length of 0 may also be
        an entry that was read literally, and is if the backend copies the right lengths elsewhere.
        """
        if self.needs.copies_no_zero(row.operation) or (got[k] == 0 and self.needs.copies_by_index(row.operation)):
            return False
        missing = (1,) if k + len(src) < len(got) else ()
        return got[k] in (*src[:k], *src[k + 1 :], *missing) and got[k] not in src[k : k + 1]

    def _find_rules_of_moved_zeros(self, failing: FailingStep) -> tuple[str, ...]:
        """Return the broken rules if an answer is right, except that zeros copy dimensions of another index."""
        row, got = failing.row, failing.outcome.dims or ()
        src, entries = failing.entries
        if len(got) != len(entries) or volume_of(tuple(got)) != volume_of(src):
            return ()
        copied = [k for k, entry in enumerate(entries) if entry.copied_from is not None]
        stated = all(entry.length in (None, got[k]) for k, entry in enumerate(entries) if entry.copied_from is None)
        moved = [k for k in copied if self._is_of_another_index(row, k, got, src)]
        right = all(k in moved or got[k] in src[k : k + 1] for k in copied)
        return tuple(rule for k in moved for rule in _find_rules_of_index(k)) if stated and right else ()

    def _find_rules_if_undeclared(self, failing: FailingStep) -> Iterator[str]:
        """Yield the rules that an answer breaks if only what is declared of dst forbids a call, and it were not."""
        if len(failing.step.shapes) > 1:
            return  # what the nodes before it answer is a ruling
        contract = failing.row.contracts[failing.document]
        (call, _), *_ = list_calls_of_nodes(failing.step, contract)
        meaning, got = contract.meaning(*call), failing.outcome.dims or ()
        if meaning.kind == "legal" and meaning.dst != got:
            yield from self._find_rules_of_dims(failing._replace(meaning=meaning), got)

    def _find_premises(self, names: Iterable[str], document: str) -> list[Premise]:
        """Return premises for those of the rules that bind in the document."""
        rules = (self.rules[name] for name in dict.fromkeys(names) if name in self.rules)
        return [Premise(rule.id, rule.authority(document)) for rule in rules if document in rule.documents]

    def _find_strongest(self, names: Iterable[str], document: str) -> Premise:
        """Return the broken rule with the strongest authority: one broken sentence is enough."""
        return min(self._find_premises(names, document), key=_rank_weakness, default=Premise(MUST_REJECT, "our ruling"))


def _find_weakest(premises: Iterable[Premise]) -> BlameAndPremise:
    """Blame by the weakest of some premises; the first of equals decides."""
    decides = max(premises, key=_rank_weakness, default=Premise(MUST_REJECT, "our ruling"))
    return _TEXT if decides.authority == "stated" else _RULING, decides


def _find_rules_of_index(k: int) -> tuple[str, ...]:
    """Return the rules that entry k breaks if it copies the length of another dimension."""
    return (SAME_INDEX, FRONT_ZERO) if k == 0 else (SAME_INDEX,)


def _blame_ruling(rule: str) -> BlameAndPremise:
    return _RULING, Premise(rule, "our ruling")


def severity_of(outcome: Outcome, kind: Kind) -> Severity:
    """Say what a failing outcome of a call of this kind does to a user, whatever sentence it breaks."""
    if outcome.ends_process:
        return "ends the process"
    if outcome.kind != "tensor" and not outcome.side_effects:
        return "rejects a legal call"
    return "accepts an illegal call" if kind == "illegal" and not outcome.side_effects else "wrong answer"


def find_worst(blamed: Iterable[Blamed]) -> Blamed | None:
    """Return the worst of what is blamed, by severity and then by blame; None if only the adapter went wrong.

    A row may do one thing in a document and another in the next: what it does and breaks is said of the same one.
    """
    return min(blamed, key=rank_of, default=None)


def rank_of(blamed: Blamed | None) -> tuple[int, int]:
    """Rank what is blamed: the worst severity first, then the heaviest blame; an error of the adapter is last."""
    if not blamed:
        return len(SEVERITIES), len(HEAVIEST_FIRST)
    return SEVERITIES.index(blamed.severity), HEAVIEST_FIRST.index(blamed.blame)


def describe_blames(blamed: Iterable[Blamed]) -> str:
    """Say what some tests break, with numbers if it is not the same; and what they do, if that is not the same.

    `3 give a wrong answer, 39 reject a legal call; breaks the text in 13, breaks only our ruling in 29`
    """
    blamed = list(blamed)
    does, breaks = Counter(each.severity for each in blamed), Counter(each.blame for each in blamed)
    doing = [f"{does[each]:,} {describe_severity(each, does[each])}" for each in SEVERITIES if does[each]]
    breaking = [f"{each} in {breaks[each]:,}" if len(breaks) > 1 else each for each in HEAVIEST_FIRST if breaks[each]]
    return "; ".join(filter(None, (", ".join(doing) if len(doing) > 1 else "", ", ".join(breaking))))


def _rank_weakness(premise: Premise) -> int:
    return AUTHORITIES.index(premise.authority)


def _is_alike(single: _Way, way: _Way) -> bool:
    """Ask whether a single call fails in this way: whoever takes an illegal call takes those that break more rules."""
    return single[0] == way[0] and single[1] <= way[1]
