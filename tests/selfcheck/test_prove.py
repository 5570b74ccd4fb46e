"""The proof for all lengths holds, and a mistake on either side ends it with a call that shows the mistake."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.adapters import reference
from conformance.load.spec import load_spec
from conformance.meaning.compiled_rules import compile_rules
from conformance.meaning.contract import contracts
from conformance.selfcheck.mutants import EQUIVALENTS, reference_mutants
from conformance.selfcheck.mutate_source import Mutant
from conformance.selfcheck.prove import answers_of, answers_of_reference, compare, prove, side_of
from tests.builders import Cli

SPEC = load_spec(None)
COMPILED = contracts(SPEC)
DECIDING = ("decide", "infer_lengths", "known_lengths")
MUTANTS = [
    each for each in reference_mutants()
    if each.function in DECIDING and each.name not in EQUIVALENTS and not each.text.startswith("return")
]  # fmt: skip
"""Those that may change an answer; what is returned last has been decided, up to the name of a rule."""


def test_the_reference_decides_as_each_document_for_all_lengths() -> None:
    proofs = dict(prove(SPEC, reference.decide, 2))
    assert [proofs[document].differences for document in SPEC.documents] == [()] * 5
    found = {name: proof.differences for name, proof in proofs.items() if proof.differences}
    assert {(name.split()[0], name.split()[2]) for name in found} == {
        (one, other) for one in ("static-oneapi", "static-graph-v0.9", "static-spec-v0.9")
        for other in ("static-graph-v0.9", "static-spec-v0.9", "dynamic-spec-v0.9", "reshape-spec-v0.7")
        if (one == "static-oneapi") != (other[0] != "s") and one != other
    }  # fmt: skip
    for (difference,) in found.values():
        assert (difference.call or ())[:2] == ((0,), (-1, 0))
        assert {difference.one, difference.other} == {"illegal", "unspecified"}


@pytest.mark.parametrize(
    "rule",
    [
        rule.id for rule in SPEC.rules.values()
        if "static-graph-v0.9" in rule.documents and not rule.implied and rule.level != "capacity"
        and any(not each.of_form for kind in compile_rules([rule]) for each in kind)
    ],
)  # fmt: skip
def test_a_contract_without_a_rule_differs_by_a_call(rule: str) -> None:
    whole, lacking = (each["static-graph-v0.9"] for each in (COMPILED, contracts(SPEC, without=rule)))
    proof = compare(side_of(whole), side_of(lacking), 2)
    shown = [(each.one, each.other, each.call) for each in proof.differences if each.call is not None]
    assert shown
    for one, other, call in shown:
        assert (whole.meaning(*call).kind, lacking.meaning(*call).kind) == (one, other)


def test_the_command_says_what_is_proved(cli: Cli) -> None:
    said = cli("check", "--prove", "1").expect(0).text
    assert "static-oneapi: the reference answers as it says" in said
    assert (
        "proved: the reference answers as each document says, for all lengths, with up to 1 in src and in shape" in said
    )
    assert json.loads(cli("check", "--prove", "1", "--json").expect(0).out)["ok"] is True
    assert "--prove 9: write a rank from 1 to 4" in cli("check", "--prove", "9").expect(2).err
    assert "--mutants checks nothing else" in cli("check", "--prove", "--mutants", "x").expect(2).err


def test_a_way_that_is_not_decided_fails_the_proof() -> None:
    def adds_lengths(src: Sequence[Any], shape: Sequence[Any], flag: bool) -> tuple[str, Any, tuple[str, ...]]:
        return ("legal" if sum(src) > 3 else "illegal"), None, ()

    found = compare(adds_lengths, adds_lengths, 2).differences
    assert {(each.one, each.other, each.call) for each in found} == {("not decided", "not decided", None)}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_reference_differs_by_a_call(mutant: Mutant) -> None:
    module = mutant.module()

    def decide(*call: Any) -> Any:
        try:
            return module.decide(*call)
        except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            return (str(error),), None

    for document, may_meet in (("static-graph-v0.9", False), ("dynamic-spec-v0.9", True)):
        sides = answers_of(COMPILED[document]), answers_of_reference(decide, may_meet)
        if any(difference.call for difference in compare(*sides, 3, first_only=True).differences):
            return
    pytest.fail("no call shows the mutant")
