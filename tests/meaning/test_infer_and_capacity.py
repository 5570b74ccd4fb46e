"""A separate rule gives -1 its length, and capacity excuses a rejection but no wrong answer."""

import pytest

from conformance.load.spec import load_spec
from conformance.meaning.chains import meaning_of
from conformance.meaning.contract import contracts
from conformance.model import CallForm, Meaning

SPEC = load_spec()
WHOLE = contracts(SPEC)
STATIC = WHOLE["static-graph-v0.9"]


@pytest.mark.parametrize("document", SPEC.documents)
def test_an_entry_that_no_rule_gives_a_meaning_is_never_inferred(document: str) -> None:
    without = contracts(SPEC, without="lower-bound")[document]
    assert without.meaning((6,), (-2, 3), False) == Meaning("unspecified", (None, 3), ())
    assert without.meaning((7,), (-2, 3), False).kind == "illegal"
    assert without.meaning((6,), (-1, 3), False) == Meaning("legal", (2, 3), ())


@pytest.mark.parametrize("document", SPEC.documents)
def test_minus_one_is_not_inferred_without_its_rule(document: str) -> None:
    without = contracts(SPEC, without="infer-keeps-count")[document]
    assert without.meaning((6,), (-1, 3), False).kind == "unspecified"


def test_great_lengths_on_an_empty_tensor_are_legal() -> None:
    assert STATIC.meaning((0, 2), (4294967296, 0), False) == Meaning("legal", (4294967296, 0), ("huge-on-empty",))
    assert STATIC.meaning((0, 2), (2147483647, 0), False) == Meaning("legal", (2147483647, 0), ())
    assert STATIC.meaning((2,), (4294967296, 0), False).kind == "illegal"


def test_a_chain_keeps_the_capacity_of_each_node() -> None:
    chain = ((4294967296, 0), (0,))
    assert meaning_of(STATIC, (0, 2), chain, (False, False), None) == Meaning("legal", (0,), ("huge-on-empty",))


@pytest.mark.parametrize(
    ("type_", "is_exact", "kind"),
    [("bool", True, "legal"), ("s64", True, "unspecified"), ("s64", False, "illegal"), ("f32", False, "illegal")],
)
def test_an_integer_that_spells_a_flag_exactly_is_unspecified(type_: str, is_exact: bool, kind: str) -> None:
    form = CallForm("f32", "f32", "s64", special_zero_type=type_, special_zero_is_exact=is_exact)
    assert STATIC.meaning((2, 3), (3, 2), False, form).kind == kind
