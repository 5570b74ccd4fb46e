"""The proof for all lengths holds, and a mistake on either side ends it with a call that shows the mistake."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.adapters import reference
from conformance.load.spec import load_spec
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import SMALL_DOMAIN, calls
from conformance.selfcheck.mutants import EQUIVALENTS, list_mutants
from conformance.selfcheck.mutate_source import Mutant
from conformance.selfcheck.prove import compare, make_side_of_reference, prove, side_of
from tests.builders import Cli
from tests.meaning.rules import literal, rule, volume

SPEC = load_spec(None)
COMPILED = contracts(SPEC)
DECIDING = ("decide", "infer_lengths", "known_lengths")
MUTANTS = [each for each in list_mutants() if each.function in DECIDING and each.name not in EQUIVALENTS]
_NAMING_LINES = (
    'return None, "zero-empties" if 0 in shape and not special_zero else "same-volume"',
    'return dst, "zero-past-rank" if past_rank else "infer-undetermined"',
)
NAMING = [
    each for each in MUTANTS
    if each.change.endswith("~'") or each.text in _NAMING_LINES
    or each.name.endswith("shape[len(src) :]) · `special_zero` dropped")
]  # fmt: skip
"""Those that change only which rule is named, where one is."""


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_command_says_what_is_proved(cli: Cli) -> None:
    said = cli("check", "--prove", "1").expect(0).text
    assert "static-oneapi: the reference answers as it says" in said
    assert (
        "proved: the reference answers as each document says, for all lengths, with up to 1 in src and in shape" in said
    )
    assert json.loads(cli("check", "--prove", "1", "--json").expect(0).out)["ok"] is True
    assert "--prove 9: write a rank from 1 to 4" in cli("check", "--prove", "9").expect(2).err
    assert "--mutants checks nothing else" in cli("check", "--prove", "--mutants", "x").expect(2).err


def test_a_rule_that_compares_a_whole_shape_makes_a_difference() -> None:
    other = rule("other", requires="shape != (1,)")
    one, two = side_of(Contract([literal(), volume()])), side_of(Contract([literal(), volume(), other]))
    (found,) = compare(one, two, 1).differences
    assert (found.one, found.other, found.call) == ("legal", "illegal", ((), (1,), False, None))


def test_a_way_that_is_not_decided_fails_the_proof() -> None:
    def adds_lengths(src: Sequence[Any], shape: Sequence[Any], flag: bool) -> tuple[str, Any, tuple[str, ...]]:
        return ("legal" if sum(src) > 3 else "illegal"), None, ()

    found = compare(adds_lengths, adds_lengths, 2).differences
    assert {(each.one, each.other, each.call) for each in found} == {("not decided", "not decided", None)}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each not in NAMING], ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_reference_differs_by_a_call(mutant: Mutant) -> None:
    module = mutant.module()

    def decide(*call: Any) -> Any:
        try:
            return module.decide(*call)
        except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as error:
            return (str(error),), None

    for document, may_meet in (("static-graph-v0.9", False), ("dynamic-spec-v0.9", True)):
        sides = side_of(COMPILED[document]), make_side_of_reference(decide, may_meet)
        if any(difference.call for difference in compare(*sides, 3, first_only=True).differences):
            return
    pytest.fail("no call shows the mutant")


@pytest.mark.slow
def test_a_mutant_that_names_another_rule_changes_nothing_else() -> None:
    sides = [
        (each.name, make_side_of_reference(each.module().decide, may_meet))
        for each in NAMING
        for may_meet in (False, True)
    ]
    right = [make_side_of_reference(reference.decide, may_meet) for may_meet in (False, True)]
    for call in calls(SMALL_DOMAIN):
        known = [side(*call)[:2] for side in right]
        assert [name for (name, side), wanted in zip(sides, itertools.cycle(known)) if side(*call)[:2] != wanted] == []
