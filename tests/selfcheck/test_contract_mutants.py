"""A change to an expression of a rule ends the proof with a call, in every document that has the rule."""

import dataclasses
from collections.abc import Iterator
from itertools import product

import pytest

from conformance.adapters import reference
from conformance.load.spec import load_spec
from conformance.meaning.compiled_rules import compile_rules
from conformance.meaning.contract import Contract, contracts, group_documents
from conformance.meaning.domain import SMALL_DOMAIN, TINY_DOMAIN, calls, list_calls_at_limits
from conformance.model import CallForm, Malformed, Rule, Spec
from conformance.selfcheck.mutate_source import mutants
from conformance.selfcheck.prove import (
    Side,
    compare,
    make_side_of_reference,
    make_side_with_capacities,
    side_of,
    zero_may_meet_infer,
)
from tests.builders import some_exhaustive
from tests.meaning.rules import forms

SPEC = load_spec(None)
GROUPS = group_documents(contracts(SPEC))
RULES = [rule for rule in SPEC.rules.values() if rule.has_contract]
OF_FORM = {rule.id for rule in RULES if any(each.of_form for kind in compile_rules([rule]) for each in kind)}
"""Rules about the form of a call. The reference has no part in these, nor in capacities: the contracts are compared."""


_UNSPECIFIED = "no dst follows from the volume if both are 0, so that the call is unspecified without this rule"
EQUIVALENTS = {
    "infer-undetermined.when: `product(src) == 0` dropped": "where the volume is not 0, a 0 in dst is illegal",
    "infer-undetermined.when: 1 became 2": _UNSPECIFIED,
    "infer-undetermined.when: == became !=": _UNSPECIFIED,
    "infer-undetermined.when: 0 became 1": _UNSPECIFIED,
    "infer-undetermined.when: or became and": _UNSPECIFIED,
    "infer-undetermined.when: `not special_zero` dropped": _UNSPECIFIED,
    "infer-undetermined.when: `i < len(src) and src[i] == 0` dropped": _UNSPECIFIED,
    "huge-on-empty.when: 0 became 1 (2)": "a length of 1 changes no product",
    "huge-on-empty.when: 0 became 1 (3)": "a length of 1 changes no product",
    "attributes-required.requires: 'shape' became 'shape~'": "in StaticReshape, shape-attribute-required says it too",
    "operands-required.requires: 'dst' became 'dst~'": "output-required says it too",
    "reshape-takes-two-inputs.requires: 'input' became 'input~'": "operands-as-listed says it too",
}
"""Changes that no call shows in some document, each with the reason."""


def changes(rule: Rule) -> Iterator[tuple[str, Spec]]:
    """The specification without a rule, and with each change to one of its expressions that the language allows."""
    if not rule.implied:
        rest = {each.id: each for each in SPEC.rules.values() if each is not rule and not each.implied}
        yield f"{rule.id} deleted", dataclasses.replace(SPEC, rules=rest)
    for key in ("requires", "when", "where", "gives", "ensures"):
        expression = getattr(rule, key)
        for mutant in mutants(expression.text) if expression else ():
            changed = dataclasses.replace(rule, **{key: expression._replace(text=mutant.source)})
            spec = dataclasses.replace(SPEC, rules={**SPEC.rules, rule.id: changed})
            try:
                contracts(spec)
            except Malformed:
                continue
            yield f"{rule.id}.{key}: {mutant.change}", spec


def with_form(contract: Contract, form: CallForm) -> Side:
    return lambda *call: contract.meaning(*call, form)[:3]


def sides(rule: Rule, changed: Spec) -> Iterator[tuple[str, list[tuple[Side, Side]]]]:
    """By document, what the proof compares to see a change, in one of those with equal contracts."""
    compiled = contracts(changed)
    for contract, (document, *_) in GROUPS.items():
        if document not in rule.documents:
            continue
        other = compiled[document]
        if rule.id in OF_FORM:
            of_document = forms(SPEC.operations[SPEC.documents[document].operation])
            yield document, [(with_form(contract, form), with_form(other, form)) for form in of_document]
        elif rule.level == "capacity":
            yield document, [(make_side_with_capacities(contract), make_side_with_capacities(other))]
        else:
            decided = make_side_of_reference(reference.decide, zero_may_meet_infer(SPEC, document))
            yield document, [(side_of(other), decided)]


def differ(one: Side, other: Side, call: tuple[tuple[int, ...], tuple[int, ...], bool]) -> bool:
    return one(*call)[:2] != other(*call)[:2]


def is_refuted(rule: Rule, pairs: list[tuple[Side, Side]]) -> bool:
    """Whether a call beyond the ranks of the proof shows that two sides differ, or else the proof, which is slower."""
    if rule.level == "capacity" and any(differ(*pairs[0], call) for call in list_calls_at_limits()):
        return True
    for one, other in pairs:
        found = compare(one, other, 1 if rule.id in OF_FORM else 2, first_only=True).differences
        if any(each.call and differ(one, other, each.call[:3]) for each in found):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("rule_id", some_exhaustive(rule.id for rule in RULES))
def test_each_change_of_a_rule_is_refuted_by_a_call(rule_id: str) -> None:
    rule = SPEC.rules[rule_id]
    refuted = {
        (name, document): is_refuted(rule, pairs)
        for name, changed in changes(rule) for document, pairs in sides(rule, changed)
    }  # fmt: skip
    assert {name for (name, _), holds in refuted.items() if not holds} == {
        name for name in EQUIVALENTS if name.partition(".")[0] == rule.id
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", some_exhaustive(EQUIVALENTS))
def test_no_small_call_shows_an_equivalent_change(name: str) -> None:
    rule = SPEC.rules[name.partition(".")[0]]
    domain = TINY_DOMAIN if rule.id in OF_FORM else SMALL_DOMAIN
    for document, pairs in sides(rule, dict(changes(rule))[name]):
        shown = any(differ(*pair, call) for pair, call in product(pairs, calls(domain)))
        has_attribute = document in SPEC.rules["shape-attribute-required"].documents
        assert shown == (name.startswith("attributes-required") and not has_attribute)
