"""Blame: whose sentence a failure breaks, decided by the weakest premise of the failure.

A failure rests on premises: the rule that the outcome broke, what obliges a backend to take the call, and where a
forbidden call was answered, our ruling that it must be rejected. Each premise has an authority in the document, and the
weakest decides. A backend that answers has taken the call, so only a rejection, a crash or a timeout asks what obliged
it. A premise "as we read it" is as weak as a ruling, so that nobody can deny "breaks the text". A call that a document
forbids in words that we had to read is still one that the text forbids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..meaning.chains import fill_unknown
from ..meaning.clauses import condition
from ..meaning.contract import Entry
from ..model import AUTHORITIES, BAD, BLAMES, FAIL, WAIVED, Authority, Blame, Meaning, Outcome, Result, Rule
from ..plan.memory import volume_of
from ..plan.rows import Row
from ..run.judge import UNCLAIMED

HEAVIEST_FIRST = tuple(BLAMES)
TYPES = ("type", "shape-type")
"""Families of facets that a document may leave to the backend: "supported type" names none. A backend that answers
calls of a type supports it, and the document then speaks of all calls of that type."""
_MUST_REJECT, _SAME_RANK = "refuse-illegal-calls", "dst-has-shape-rank"
_SAME_INDEX, _NODES, _ALONE = "corresponding-is-the-same-index", "nodes-compose", "each-call-alone"
_LAYOUT = "layout-is-no-content"
_OF_FORM = (None, "wrong type", "wrong dims", "wrong volume")
"""Diagnoses of an answer whose elements were not compared."""
_NO_ANSWER = ("rejected", "unsupported", "crash", "timeout")


class Premise(NamedTuple):
    """A rule that a failure rests on, and the authority of the rule in the document."""

    rule: str
    authority: Authority


class Blamed(NamedTuple):
    """The sentence that a failure breaks in one document."""

    blame: Blame
    premise: Premise
    """The premise that decides."""


def find_answered_types(rows: Iterable[Row], results: Mapping[str, Result]) -> frozenset[tuple[str, str]]:
    """Return (operation, facet) for each type and shape type of which a backend answered a call rightly."""
    answered: set[tuple[str, str]] = set()
    for row in rows:
        result = results.get(row.id)
        if result and result.diagnosis is None and result.outcome.kind == "tensor":
            answered |= {(row.operation, facet) for facet in row.facets if facet.partition(":")[0] in TYPES}
    return frozenset(answered)


class Blamer:
    """Blames failures under the rules of a specification."""

    def __init__(self, rules: Mapping[str, Rule], answered: Collection[tuple[str, str]] = ()) -> None:
        """`answered`: the types that the backend takes, from `find_answered_types`."""
        self.rules = rules
        self.answered = answered
        self.broken_by: dict[str, list[str]] = {}
        for rule in rules.values():
            for diagnosis in rule.diagnoses:
                self.broken_by.setdefault(diagnosis, []).append(rule.id)
        self.offers = [rule for rule in rules.values() if rule.offered_facets or rule.offered_calls]

    def blame(self, row: Row, result: Result, document: str) -> Blamed | None:
        """Return whose sentence a failure breaks; None if nothing fails there, or only the adapter does."""
        if result.verdicts.get(document) not in BAD:
            return None
        at = _failing_step(row, result, document)
        outcome, meaning = result.outcome_of(at), _meaning(row, at, document)
        if outcome.kind in ("error", "none"):
            return None
        if row.case.at_once > 1:  # no document speaks of programs that run at the same time
            return Blamed("breaks only our ruling", Premise(_ALONE, "our ruling"))
        if meaning.kind == "illegal" and outcome.kind == "tensor" and not outcome.faults:
            return self._blame_answer(row, at, document, outcome, meaning)
        diagnosis = result.diagnosis if at == result.step else None
        if diagnosis and diagnosis.endswith(UNCLAIMED):  # nothing obliges the backend to take the call
            return Blamed("breaks only our ruling", Premise(_MUST_REJECT, "our ruling"))
        premises = [self._strongest(_broken_rules(row, at, document, outcome, diagnosis, self.broken_by), document)]
        if meaning.kind != "legal" or (meaning.rules and outcome.kind in _NO_ANSWER):
            premises.append(Premise((*meaning.rules, _MUST_REJECT)[0], "our ruling"))
        elif outcome.kind in _NO_ANSWER:
            premises += self._premises(self._obligations(row, at), document)
        elif row.steps[at].source.layout != "dense" and diagnosis not in _OF_FORM:
            premises += self._premises([_LAYOUT], document)
        decides = max(premises, key=_weakness)
        blame: Blame = "breaks the text" if decides.authority == "stated" else "breaks only our ruling"
        return Blamed(blame, decides)

    def broken_rules(self, row: Row, result: Result) -> frozenset[str]:
        """Return the rules that a result breaks in every document in which it fails, waived or not."""
        by_document = []
        for document in (document for document, verdict in result.verdicts.items() if verdict in (FAIL, WAIVED)):
            at = _failing_step(row, result, document)
            outcome, meaning = result.outcome_of(at), _meaning(row, at, document)
            if meaning.kind == "illegal" and outcome.kind == "tensor" and not outcome.faults:
                by_document.append(frozenset(meaning.rules))
            else:
                diagnosis = result.diagnosis if at == result.step else None
                broken = _broken_rules(row, at, document, outcome, diagnosis, self.broken_by)
                by_document.append(frozenset(broken))
        return frozenset.intersection(*by_document) if by_document else frozenset()

    def _blame_answer(self, row: Row, at: int, document: str, outcome: Outcome, meaning: Meaning) -> Blamed:
        """Blame the answer to a forbidden call: one broken rule that the document has in any words is enough."""
        if _is_of_earlier_step(row, at, document, outcome):
            return Blamed("breaks only our ruling", Premise(_ALONE, "our ruling"))
        moved = _copies_another_index(row, at, document, outcome.dims or ())
        broken = self._strongest([_SAME_INDEX] if moved else meaning.rules, document)
        ours = broken.authority == "our ruling"
        return Blamed("breaks only our ruling" if ours else "answers what the text forbids", broken)

    def _premises(self, names: Iterable[str], document: str) -> list[Premise]:
        """Return premises for those of the rules that bind in the document."""
        rules = (self.rules[name] for name in dict.fromkeys(names) if name in self.rules)
        return [Premise(rule.id, rule.authority(document)) for rule in rules if document in rule.documents]

    def _strongest(self, names: Iterable[str], document: str) -> Premise:
        """Return the broken rule with the strongest authority: one broken sentence is enough."""
        return min(self._premises(names, document), key=_weakness, default=Premise(_MUST_REJECT, "our ruling"))

    def _obligations(self, row: Row, at: int) -> Iterator[str]:
        """Yield the rules that oblige a backend to take a call."""
        step = row.case.steps[at]
        if _earlier_steps(row, at):
            yield _ALONE
        if step.special_zero[0] and _another_index_forbids(step.src, step.shapes[0]):
            yield _SAME_INDEX
        for rule in self.offers:
            facets = [facet for facet in row.facets if {facet, facet.partition(":")[0]} & {*rule.offered_facets}]
            calls = rule.offered_calls
            if any((row.operation, facet) not in self.answered for facet in facets) or (
                calls and condition(calls.text)(step.src, step.shapes[0], step.special_zero[0])
            ):
                yield rule.id


def heaviest(blamed: Iterable[Blamed]) -> Blame:
    """Return the heaviest of the blames of a row in several documents."""
    return min((each.blame for each in blamed), key=HEAVIEST_FIRST.index)


def _weakness(premise: Premise) -> int:
    return AUTHORITIES.index(premise.authority)


def _meaning(row: Row, at: int, document: str) -> Meaning:
    return next(judged.meaning for judged in row.steps[at].meanings if document in judged.documents)


def _failing_step(row: Row, result: Result, document: str) -> int:
    """Return the step that fails in a document: the deciding one, unless the document allows what it came to."""

    def may_fail(at: int) -> bool:
        rejected, kind = result.outcome_of(at).kind == "rejected", _meaning(row, at, document).kind
        return kind == "legal" if rejected else True

    others = range(len(result.outcomes)) if len(result.outcomes) > 1 else ()
    return next((at for at in (result.step, *others) if may_fail(at)), result.step)


def _earlier_steps(row: Row, at: int) -> list[int]:
    """Return the earlier steps of a row that run the program of a step."""
    return [k for k in range(at) if row.steps[k].graph == row.steps[at].graph]


def _is_of_earlier_step(row: Row, at: int, document: str, outcome: Outcome) -> bool:
    """True if an answer has the dims due for an earlier step of the same program, or for its shape and this src."""
    earlier = _earlier_steps(row, at)
    if any(_meaning(row, k, document).dst == outcome.dims for k in earlier):
        return True
    src, meaning = row.case.steps[at].src, row.contracts[document].meaning
    calls = [(row.case.steps[k].shapes[-1], row.case.steps[k].special_zero[-1]) for k in earlier]
    return outcome.dims is not None and any(meaning(src, *call).dst == outcome.dims for call in calls)


# ── the rules that an outcome broke ───────────────────────────────────────────────────────────────


def _broken_rules(
    row: Row, at: int, document: str, outcome: Outcome, diagnosis: str | None, by_diagnosis: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the rules that an outcome broke: those of the diagnosis, or those that say what the answer is."""
    due = _meaning(row, at, document).dst
    if diagnosis == "wrong dims" and outcome.dims is not None and due is not None:
        if _is_of_earlier_step(row, at, document, outcome):
            return [_ALONE]
        return [*_rules_of_dims(row, at, document, outcome.dims, due)]
    if outcome.kind in _NO_ANSWER and not outcome.faults:
        return [_SAME_RANK, *(entry.rule for entry in _entries(row, at, document)[1] if entry.rule)]
    names = (diagnosis or "", *(diagnosis or "").split(", "))
    return [rule for name in names for rule in by_diagnosis.get(name, ())]


def _rules_of_dims(row: Row, at: int, document: str, got: Sequence[int], due: Sequence[int | None]) -> Iterator[str]:
    """Yield the rules that say what the wrong lengths of an answer should be."""
    src, entries = _entries(row, at, document)
    if len(got) != len(due) or min(got, default=0) < 0 or len(entries) != len(got):
        yield _SAME_RANK
        return
    wrong = [k for k, (length, other) in enumerate(zip(got, due, strict=True)) if other not in (None, length)]
    fixed = [k for k in wrong if entries[k].length is not None or entries[k].source is not None]
    for k in fixed if fixed and volume_of(tuple(got)) == volume_of(src) else wrong:  # an inferred length follows others
        if entries[k].source is None:
            yield entries[k].rule or _SAME_RANK
        elif len(row.case.steps[at].shapes) > 1:
            yield _NODES  # it is copied from a tensor that no document speaks of
        else:
            yield _SAME_INDEX if _has_another_length(k, got[k], src) else entries[k].rule or _SAME_RANK


def _has_another_length(k: int, length: int, src: Sequence[int]) -> bool:
    """True if entry k has the length of another dimension of src than dimension k."""
    return length in (*src[:k], *src[k + 1 :]) and length not in src[k : k + 1]


def _another_index_forbids(src: Sequence[int], shape: Sequence[int]) -> bool:
    """True if a legal call has no dst where zeros copy dimensions counted from the right, or one after another."""
    shift = len(src) - len(shape)
    order = [at for at, entry in enumerate(shape) if entry == 0]
    from_the_right, in_turn = {at: at + shift for at in order}, {at: turn for turn, at in enumerate(order)}
    for copied in (from_the_right, in_turn):
        if not all(0 <= index < len(src) for index in copied.values()):
            return True
        lengths = [src[copied[at]] if at in copied else entry for at, entry in enumerate(shape)]
        known = volume_of(tuple(length for length in lengths if length != -1))
        if known != volume_of(tuple(src)) and (-1 not in lengths or not known or volume_of(tuple(src)) % known):
            return True
    return False


def _copies_another_index(row: Row, at: int, document: str, got: Sequence[int]) -> bool:
    """True if an answer is right but for zeros that copy a dimension of another index than their own."""
    src, entries = _entries(row, at, document)
    if len(got) != len(entries) or volume_of(tuple(got)) != volume_of(src):
        return False
    copied = [k for k, entry in enumerate(entries) if entry.source is not None]
    stated = all(entry.length in (None, got[k]) for k, entry in enumerate(entries) if entry.source is None)
    moved = any(_has_another_length(k, got[k], src) for k in copied)
    return stated and moved and all(_has_another_length(k, got[k], src) or got[k] in src[k : k + 1] for k in copied)


def _entries(row: Row, at: int, document: str) -> tuple[tuple[int, ...], tuple[Entry, ...]]:
    """Return src of the last node of a step, as far as it is known, and what the entries of its shape stand for."""
    step, contract = row.case.steps[at], row.contracts[document]
    src = step.src
    for shape, special_zero in () if step.shared_src else zip(step.shapes[:-1], step.special_zero[:-1], strict=True):
        dst = contract.meaning(src, shape, special_zero).dst
        src = fill_unknown(dst, volume_of(src)) if dst is not None else src
    return src, contract.entries(src, step.shapes[-1], step.special_zero[-1])
