"""A decision about a call with unknown parts holds for every value of those parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest

from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.meaning.partial import Length, Lengths, PartialCall, PartialContract, PartialMeaning
from conformance.model import Form

SPEC = load_spec(None)
COMPILED = contracts(SPEC)
FORM = Form("f32", "f32", "s64")


def contract_of(document: str) -> PartialContract:
    operation = SPEC.operations[SPEC.documents[document].operation]
    rules = [rule for rule in SPEC.rules.values() if document in rule.documents]
    return PartialContract(rules, COMPILED[document], operation.types, operation.shape_types)


def decide(src: Lengths | None, shape: Lengths | None, zero: bool | None = True, form: Form = FORM) -> PartialMeaning:
    return contract_of("static-graph-v0.9").decide(PartialCall(src, shape, zero, form))


def kind(result: PartialMeaning) -> str | None:
    return result.meaning.kind if result.meaning else None


def rows(values: tuple[Length, ...], most: int) -> Iterator[Lengths]:
    return itertools.chain.from_iterable(itertools.product(values, repeat=rank) for rank in range(most + 1))


def completions(row: Lengths, unknown: tuple[int, ...], name: int) -> Iterator[tuple[int, ...]]:
    choices = [(n,) if isinstance(n, int) else (name,) if isinstance(n, str) else unknown for n in row]
    return itertools.product(*choices)


def count_decided(document: str, src: Iterable[Lengths], shapes: Iterable[Lengths]) -> int:
    """Compare each decision about partly known calls with the meanings of all completions; return their number."""
    contract, whole = contract_of(document), COMPILED[document].meaning
    decided = 0
    for call in (PartialCall(*each, FORM) for each in itertools.product(src, shapes, (True, False, None))):
        meaning = contract.decide(call).meaning
        if meaning is None or not call.missing or call.src is None or call.shape is None:
            continue
        decided += 1
        zeros = (True, False) if call.special_zero is None else (call.special_zero,)
        for name in (1, 2, 3):
            rows = completions(call.src, (1, 2, 3), name), completions(call.shape, (-2, -1, 0, 1, 2, 3), name)
            for full in itertools.product(*rows, zeros):
                assert whole(*full, FORM).kind == meaning.kind, (call, full)
    return decided


def test_a_decision_holds_for_every_completion_of_a_few_calls() -> None:
    assert count_decided("static-graph-v0.9", rows((2, None, "b"), 2), rows((-1, 0, 2, "b"), 2)) > 150


@pytest.mark.slow
@pytest.mark.parametrize("document", ["static-graph-v0.9", "static-oneapi"])
def test_a_decision_holds_for_every_completion(document: str) -> None:
    assert count_decided(document, rows((1, 2, None, "b"), 2), rows((-2, -1, 0, 2, None, "b"), 2)) > 900


def test_lengths_with_one_name_cancel() -> None:
    assert decide(("batch", 256, 6, 6), (0, 9216)).dst == ("batch", 9216)
    assert decide(("batch", 3, 4), (-1, 12)).dst == ("batch", 12)
    assert decide(("batch", 3, 4), ("batch", -1)).dst == ("batch", 12)
    assert decide(("batch", "time", 4), (-1,)).dst == ("4*batch*time",)
    assert kind(decide(("batch", 256, 6, 6), (1, 9216))) is None


def test_what_no_length_can_mend_is_illegal() -> None:
    assert kind(decide(("batch", 3), (7,))) == "illegal"
    assert kind(decide(("batch", 5), (0, 7))) == "illegal"
    assert kind(decide((None, 5), (-1, -1))) == "illegal"
    assert kind(decide(None, (-2,))) == "illegal"
    assert kind(decide(None, (2, 3))) is None


def test_without_a_volume_rule_another_volume_is_legal() -> None:
    rules = [rule for rule in SPEC.rules.values() if "static-graph-v0.9" in rule.documents and rule.id != "same-volume"]
    contract = PartialContract(rules, COMPILED["static-graph-v0.9"], ("f32",), ("s64",))
    assert contract.decide(PartialCall(("batch", 3), (7,), True, FORM)).dst == (7,)
    assert kind(contract.decide(PartialCall(("batch", 3), (7,), True, FORM))) == "legal"
    assert kind(contract.decide(PartialCall(("batch", 3), (-1,), True, FORM))) is None


def test_a_type_that_is_not_known_leaves_a_call_undecided() -> None:
    assert kind(decide((2, 3), (6,), form=FORM._replace(src_type="", dst_type=""))) is None
    assert kind(decide((2, 3), (-1, -1), form=FORM._replace(src_type="", dst_type=""))) == "illegal"


def test_contradictory_declared_dims_are_illegal() -> None:
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(None, 3, 2)))) == "illegal"
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(None, None, 3)))) == "legal"
    assert kind(decide(("batch", 6), (0, 2, 3), form=FORM._replace(declared=(1, 2, 3)))) is None
    assert kind(decide(("batch", 6), (0, 6), form=FORM._replace(declared=(None, 2, 3)))) == "illegal"
