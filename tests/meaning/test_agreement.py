"""Two readings agree: what the contracts say and what the reference resolves, call by call, in every document."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from conformance.adapters.planted.base import Illegal, Unspecified, resolve
from conformance.meaning.contract import contracts, group_documents
from conformance.meaning.domain import FULL_DOMAIN, SMALL_DOMAIN, calls
from conformance.model import CallForm, Meaning, Spec

Lengths = tuple[int, ...]
Plain = tuple[Lengths, Lengths, bool]

SLICE = 47
"""Odd, so that both flags are met."""


Read = tuple[Plain, tuple[Meaning, ...]]
"""A call, and what it means in each reading."""


class Reading(NamedTuple):
    """The contract shared by some documents."""

    documents: tuple[str, ...]
    meaning: Callable[..., Meaning]
    rules: frozenset[str]

    @property
    def zero_may_meet_infer(self) -> bool:
        return "zero-meets-infer" not in self.rules


def readings(spec: Spec) -> list[Reading]:
    """Each contract once: for plain calls neither the types nor the operation count."""
    return [
        Reading(
            tuple(documents),
            contract.meaning,
            frozenset(name for name, rule in spec.rules.items() if documents[0] in rule.documents),
        )
        for contract, documents in group_documents(contracts(spec)).items()
    ]


def read(spec: Spec, domain: Iterable[Plain]) -> Iterator[Read]:
    meanings = [reading.meaning for reading in readings(spec)]
    return ((call, tuple(meaning(*call) for meaning in meanings)) for call in domain)


@pytest.fixture(
    scope="module", params=["part", pytest.param("whole", marks=[pytest.mark.slow, pytest.mark.exhaustive])]
)
def domain(spec: Spec, request: pytest.FixtureRequest) -> list[Read]:
    """Every call of the whole domain; or every small call, and one in SLICE of the whole domain."""
    part = itertools.chain(calls(SMALL_DOMAIN), itertools.islice(calls(FULL_DOMAIN), 0, None, SLICE))
    known: dict[tuple[Meaning, ...], tuple[Meaning, ...]] = {}  # equal meanings once, since there are millions of calls
    made = read(spec, calls(FULL_DOMAIN) if request.param == "whole" else part)
    return [(call, known.setdefault(meanings, meanings)) for call, meanings in made]


def resolve_call(call: Plain, zero_may_meet_infer: bool) -> tuple[str, Any]:
    try:
        return "dst", resolve(*call, zero_may_meet_infer)
    except Illegal as illegal:
        return "illegal", str(illegal)
    except Unspecified as open_:
        return "open", open_.args


def agree(meaning: Meaning, kind: str, answer: Any, rules: frozenset[str]) -> bool:
    """The reference must give the answer that the contract means; a rejection needs the same reason where it binds."""
    if kind == "dst":
        return meaning.kind != "illegal" and meaning.dst == answer and "zero-past-rank" not in meaning.rules
    if kind == "illegal":  # it serves three pages of StaticReshape, and may name a rule that one of them lacks
        return meaning.kind == "illegal" and (answer in meaning.rules or answer not in rules)
    rule, known = answer
    return meaning.kind == "unspecified" and rule in meaning.rules and meaning.dst == known


def disagreements(spec: Spec, domain: Sequence[Read]) -> Iterator[str]:
    groups = readings(spec)
    for call, meanings in domain:
        answers = {may: resolve_call(call, may) for may in {group.zero_may_meet_infer for group in groups}}
        for group, meaning in zip(groups, meanings, strict=True):
            kind, answer = answers[group.zero_may_meet_infer]
            if not agree(meaning, kind, answer, group.rules):
                yield f"{call} in {group.documents}: the contract says {meaning}, the reference {kind} {answer}"


def test_every_document_has_a_reading(spec: Spec) -> None:
    assert sorted(each for reading in readings(spec) for each in reading.documents) == sorted(spec.documents)


@pytest.mark.slow
def test_contract_and_reference_agree(spec: Spec, domain: list[Read]) -> None:
    assert list(itertools.islice(disagreements(spec, domain), 5)) == []


def test_the_whole_domain_reaches_its_limits() -> None:
    sources, shapes = {call[0] for call in calls(FULL_DOMAIN)}, {call[1] for call in calls(FULL_DOMAIN)}
    dims, entries = (list(itertools.chain(*lengths)) for lengths in (sources, shapes))
    assert (max(map(len, sources)), max(dims)) == (3, 4)
    assert (max(map(len, shapes)), min(entries), max(entries)) == (4, -2, 4)


# ── how the documents part ────────────────────────────────────────────────────────────────────────
Signature = tuple[tuple[str, str], ...]


def signature(meanings: dict[str, Meaning]) -> Signature | None:
    """Each document's kind and which of the answers it gives; None where all documents mean the same."""
    if len({meaning[:2] for meaning in meanings.values()}) == 1:
        return None
    answers = list(dict.fromkeys(meaning.dst for meaning in meanings.values()))
    return tuple((document, f"{each.kind} {answers.index(each.dst)}") for document, each in sorted(meanings.items()))


def meanings_of(spec: Spec, call: Plain, form: CallForm | None = None) -> dict[str, Meaning]:
    return {document: contract.meaning(*call, form) for document, contract in contracts(spec).items()}


def differences(spec: Spec, domain: Iterable[Read]) -> dict[Signature, Plain]:
    """Every way in which documents part, with the first call that shows it."""
    groups = readings(spec)
    found: dict[Signature, Plain] = {}
    for call, by_group in domain:
        if all(each[:2] == by_group[0][:2] for each in by_group):
            continue
        by_document = zip(groups, by_group, strict=True)
        shown = signature({document: meaning for group, meaning in by_document for document in group.documents})
        if shown is not None:
            found.setdefault(shown, call)
    return found


def shown_by_findings(spec: Spec) -> dict[Signature, str]:
    shown: dict[Signature, str] = {}
    for finding in spec.findings.values():
        if finding.example:
            of_example = signature(meanings_of(spec, finding.example))
            if of_example is not None:
                shown.setdefault(of_example, finding.id)
    return shown


def test_every_difference_between_documents_is_a_finding(spec: Spec, domain: list[Read]) -> None:
    found, shown = differences(spec, domain), shown_by_findings(spec)
    assert found, "the documents part nowhere, which they do"
    missing = {call: parting for parting, call in found.items() if parting not in shown}
    assert not missing, f"no finding has an example of what these calls show: {missing}"


def test_a_finding_with_an_example_names_a_rule_that_differs(spec: Spec) -> None:
    """An example of a disagreement that the rules see must name a rule that not all documents have."""
    for finding in spec.findings.values():
        if finding.example and signature(meanings_of(spec, finding.example)) is not None:
            partial = [name for name in finding.rules if spec.rules[name].documents not in ({*spec.documents}, set())]
            assert partial, f"{finding.id}: its example parts the documents, but it names no rule that only some have"


# ── silence has a name ────────────────────────────────────────────────────────────────────────────
def test_every_meaning_names_its_rules(spec: Spec, domain: list[Read]) -> None:
    silent = {name for name, rule in spec.rules.items() if rule.level == "silent"}
    kinds = set()
    for (number, reading), (call, meanings) in itertools.product(enumerate(readings(spec)), domain):
        meaning = meanings[number]
        kinds.add(meaning.kind)
        if meaning.kind == "unspecified":
            assert meaning.rules, f"{call} is unspecified in {reading.documents[0]} and no rule says why"
            assert silent >= set(meaning.rules)
        elif meaning.kind == "illegal":
            assert meaning.rules, f"{call} is illegal in {reading.documents[0]} and no rule says why"
            assert meaning.dst is None
        else:
            assert meaning.dst is not None
            assert None not in meaning.dst
            assert meaning.rules == ()
    assert kinds == {"legal", "illegal", "unspecified"}
