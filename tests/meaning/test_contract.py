"""Contracts are exact beyond the domain of a search, and every rule changes some call."""

import ast
import itertools
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from conformance.meaning.chains import meaning_of
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import FULL_DOMAIN, SMALL_DOMAIN, TINY_DOMAIN, Domain, calls
from conformance.meaning.expression import CALL_NAMES, ENTRY_NAMES, NUMBER, Invalid, parse
from conformance.model import CallForm, Meaning, Spec
from tests.builders import DOCUMENTS

from .rules import CONTRACTED, FORM, IMPLIED, binding, forms, inferred, literal, rule, volume

LARGEST_LENGTH = 2**63 - 1


# ── what the closed form promises beyond the domain ───────────────────────────────────────────────
@pytest.mark.parametrize(
    ("src", "shape", "want"),
    [
        ((LARGEST_LENGTH,), (-1, 7), (LARGEST_LENGTH // 7, 7)),
        ((LARGEST_LENGTH - 1,), (-1, 7), None),
        ((LARGEST_LENGTH,), (LARGEST_LENGTH, 1), (LARGEST_LENGTH, 1)),
        ((LARGEST_LENGTH,), (LARGEST_LENGTH - 1,), None),
        ((2**62, 3), (-1, 2), (3 * 2**61, 2)),
        ((LARGEST_LENGTH, LARGEST_LENGTH), (-1, LARGEST_LENGTH), (LARGEST_LENGTH, LARGEST_LENGTH)),
        ((LARGEST_LENGTH, LARGEST_LENGTH), (-1, LARGEST_LENGTH - 1), None),
        ((2**63, 2**63, 2**63), (2**126, -1), (2**126, 2**63)),
        ((2**53 + 1,), (2**53,), None),
        ((2**53 + 1,), (-1,), (2**53 + 1,)),
    ],
)  # fmt: skip
def test_lengths_near_two_to_the_sixty_third_are_exact(
    spec: Spec, src: tuple[int, ...], shape: tuple[int, ...], want: tuple[int, ...] | None
) -> None:
    for contract in contracts(spec).values():
        meaning = contract.meaning(src, shape, False)
        assert (meaning.kind, meaning.dst) == (("illegal", None) if want is None else ("legal", want))


def test_rank_sixty_five_is_answered_in_closed_form(spec: Spec) -> None:
    src, shape = (2,) * 65, (0, -1, *(2,) * 63)
    for contract in contracts(spec).values():
        assert contract.meaning(src, shape, True) == Meaning("legal", (2,) * 65, ("rank-limit",))
        assert contract.meaning(src, (3, *(2,) * 64), False).kind == "illegal"
        assert contract.meaning((1,) * 65, (0,) * 60 + (-1,), True).dst == (1,) * 61


def test_time_grows_with_the_rank_and_not_faster(spec: Spec) -> None:
    contract = contracts(spec)["static-graph-v0.9"]

    def took(rank: int) -> float:
        call = ((1,) * rank, (*(0,) * (rank - 1), -1), True)
        best = 9.0
        for _ in range(5):
            start = time.process_time()
            assert contract.meaning(*call).kind == "legal"
            best = min(best, time.process_time() - start)
        return best

    assert took(40_000) < 40 * took(4_000), "ten times the rank takes more than forty times as long"


@cache
def every_so_manieth_call() -> list[Any]:
    """Calls with both flags also in each third of the list, for its length and the step are odd."""
    return list(itertools.islice(calls(FULL_DOMAIN), 0, None, 31))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_silence_never_excuses_a_breach(spec: Spec, document: str) -> None:
    rules = binding(spec, document)
    loud = Contract([each for each in rules if each.level != "silent"])
    mute = Contract([*rules, rule("everything", "silent", when="len(src) >= 0")])
    for src, shape, zero in every_so_manieth_call()[DOCUMENTS.index(document) % 3 :: 3]:
        without = loud.meaning(src, shape, zero)
        with_ = mute.meaning(src, shape, zero)
        if without.kind == "illegal":
            assert with_ == without, f"{(src, shape, zero)} breaks {without.rules}, and silence makes of it {with_}"
        else:
            assert with_.kind == "unspecified", f"{(src, shape, zero)} is {with_} in full silence"


@pytest.mark.parametrize(
    ("src", "shape", "zero", "form", "broken"),
    [
        ((), (2,), False, None, "same-volume"),
        ((2,) * 13, (2,), False, None, "same-volume"),
        ((), (-1, -1), False, None, "one-infer"),
        ((2, 0), (2**40, 3), False, None, "same-volume"),
        ((2,), (3, 0), True, None, "same-volume"),
        ((2,), (2,), False, FORM._replace(src_type="s8"), "declared-type-is-that-of-src"),
        ((2,), (2,), False, FORM._replace(missing_operands=("src",), extra_attributes=("x",)), "operands-required"),
        ((2,), (2,), False, FORM._replace(shape_type="f32"), "shape-is-integer"),
        ((2,), (2,), False, FORM._replace(missing_operands=("dst",)), "output-required"),
        ((2,), (2,), False, FORM._replace(shape_rank=2), "shape-has-one-dimension"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(0, 1, 1)), "declared-output"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(1, None)), "declared-output"),
        ((12,), (6, 0, -1), True, FORM._replace(declared=(6, 2, 2)), "declared-output"),
        ((12,), (6, 0, -1), True, FORM._replace(declared=(None, None, 5)), "declared-output"),
        ((0, 3), (0, -1), True, FORM._replace(declared=(0, -4)), "declared-output"),
    ],
)  # fmt: skip
def test_a_breach_beside_a_silence_is_illegal(
    spec: Spec, src: tuple[int, ...], shape: tuple[int, ...], zero: bool, form: CallForm | None, broken: str
) -> None:
    for contract in contracts(spec).values():
        meaning = contract.meaning(src, shape, zero, form)
        assert meaning.kind == "illegal"
        assert broken in meaning.rules


@pytest.mark.parametrize("document", DOCUMENTS)
def test_an_entry_that_no_rule_gives_a_meaning_is_never_inferred(spec: Spec, document: str) -> None:
    without = contracts(spec, without="lower-bound")[document]
    assert without.meaning((6,), (-2, 3), False) == Meaning("unspecified", (None, 3), ())
    assert without.meaning((7,), (-2, 3), False).kind == "illegal"
    assert without.meaning((6,), (-1, 3), False) == Meaning("legal", (2, 3), ())
    assert contracts(spec, without="infer-keeps-count")[document].meaning((6,), (-1, 3), False).kind == "unspecified"


def test_great_lengths_on_an_empty_tensor_may_be_rejected(spec: Spec) -> None:
    """Also those of an earlier node of a chain; capacity excuses no other volume."""
    contract, great = contracts(spec)["static-graph-v0.9"], (4294967296, 0)
    assert contract.meaning((0, 2), great, False) == Meaning("legal", great, ("huge-on-empty",))
    assert contract.meaning((0, 2), (2147483647, 0), False) == Meaning("legal", (2147483647, 0), ())
    assert contract.meaning((2,), great, False).kind == "illegal"
    chain = meaning_of(contract, (0, 2), (great, (0,)), (False, False), None)
    assert chain == Meaning("legal", (0,), ("huge-on-empty",))


@pytest.mark.parametrize(
    ("when", "may_be_rejected"), [("dst == src", True), ("dst != src", False), ("() != dst", True)]
)
def test_a_capacity_may_compare_dst_with_a_row(when: str, may_be_rejected: bool) -> None:
    contract = Contract([literal(), volume(), rule("same", "capacity", when=when)])
    assert contract.meaning((2, 3), (2, 3), False).rules == ("same",) * may_be_rejected


@pytest.mark.parametrize(
    ("type_", "is_exact", "kind"),
    [("bool", True, "legal"), ("s64", True, "unspecified"), ("s64", False, "illegal"), ("f32", False, "illegal")],
)
def test_an_integer_that_spells_a_flag_exactly_is_unspecified(
    spec: Spec, type_: str, is_exact: bool, kind: str
) -> None:
    form = FORM._replace(special_zero_type=type_, special_zero_is_exact=is_exact)
    assert contracts(spec)["static-graph-v0.9"].meaning((2, 3), (3, 2), False, form).kind == kind


def test_rules_that_contradict_each_other_leave_no_answer() -> None:
    seven, copies = rule("other", where="i == 1", gives="7"), rule("copies", where="d == 5", gives="src[i]")
    contract = Contract([literal(), seven, copies])
    assert contract.meaning((1,), (3, 7), False) == Meaning("legal", (3, 7), ())
    assert contract.meaning((1,), (3, 8), False) == Meaning("illegal", None, ("other",))
    assert contract.meaning((5,), (5,), False) == Meaning("legal", (5,), ())
    assert contract.meaning((4,), (5,), False) == Meaning("illegal", None, ("copies",))
    assert contract.meaning((), (5,), False) == Meaning("legal", (5,), ()), "what cannot be read fixes nothing"
    contract = Contract([rule("minus", where="d == -1", gives="d"), literal()])
    assert contract.meaning((), (-1, 2), False) == Meaning("illegal", None, ("minus",)), "an entry below zero"
    contract = Contract([literal(), volume(), rule("double", ensures="product(dst) == product(src) * 2")])
    assert contract.meaning((3,), (1,), False) == Meaning("illegal", None, ("double",))
    contract = Contract([inferred(), volume(), rule("double", ensures="product(dst) == product(src) * 2")])
    assert contract.meaning((0,), (-1,), False) == Meaning("legal", (0,), ())


@pytest.mark.parametrize(
    ("src", "shape", "want"),
    [
        ((6,), (-1, 2), Meaning("legal", (3, 2), ())),
        ((7,), (-1, 2), Meaning("illegal", None, ("volume",))),
        ((0,), (-1, 2), Meaning("legal", (0, 2), ())),
        ((1,), (-1, -1), Meaning("legal", (1, 1), ())),
        ((2,), (-1, -1), Meaning("unspecified", (None, None), ())),
        ((0,), (-1, -1), Meaning("unspecified", (None, None), ())),
    ],
)  # fmt: skip
def test_free_entries_take_the_quotient_of_the_volumes(
    src: tuple[int, ...], shape: tuple[int, ...], want: Meaning
) -> None:
    assert Contract([literal(), inferred(), volume()]).meaning(src, shape, False) == want


# ── every rule counts ─────────────────────────────────────────────────────────────────────────────
EXTREMES: list[tuple[tuple[int, ...], tuple[int, ...], bool]] = [
    ((1,) * 13, (1,), False), ((1,), (1,) * 13, False), ((0, 2**31), (0,), False), ((0,), (0, 2**31), False),
    ((2, 3, 4), (3, 2, 0), True),
]  # fmt: skip


def candidates(domain: Any) -> Iterator[tuple[Any, ...]]:
    """Small calls in every form, calls of a domain as they are, and some beyond it."""
    for call, form in itertools.product(itertools.chain(calls(TINY_DOMAIN), EXTREMES), forms()):
        yield (*call, form)
    for call in itertools.chain(calls(domain), EXTREMES):
        yield (*call, None)


def witness(spec: Spec, name: str, domain: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Find a document, and a call that means something else there when a rule is deleted."""
    whole, partial = contracts(spec), contracts(spec, without=name)
    seen = set()
    for document in spec.documents:
        pair = (whole[document].source, partial[document].source)
        if document not in spec.rules[name].documents or pair in seen:
            continue
        seen.add(pair)
        for call in candidates(domain):
            if due(whole[document].meaning(*call)) != due(partial[document].meaning(*call)):
                return document, call
    return None


def due(meaning: Meaning) -> tuple[Any, ...]:
    """Return what a backend has to do, and whether it may reject a legal call."""
    return meaning.kind, meaning.dst, meaning.kind == "legal" and bool(meaning.rules)


@pytest.mark.parametrize("name", [name for name in CONTRACTED if name not in IMPLIED])
def test_a_rule_with_a_contract_is_witnessed_by_a_call(spec: Spec, name: str) -> None:
    assert witness(spec, name, SMALL_DOMAIN), f"no call needs {name!r}: mark it implied, or delete it"


@pytest.mark.parametrize(
    "domain", [SMALL_DOMAIN, pytest.param(FULL_DOMAIN, marks=[pytest.mark.slow, pytest.mark.exhaustive])]
)
@pytest.mark.parametrize("name", IMPLIED)
def test_an_implied_rule_changes_no_call(spec: Spec, name: str, domain: Domain) -> None:
    assert witness(spec, name, domain) is None, "the rule counts, so it is not implied"


def test_only_rules_with_a_contract_are_marked_implied(spec: Spec) -> None:
    assert [name for name, each in spec.rules.items() if each.implied and not each.has_contract] == []


def test_documents_with_equal_rules_and_types_share_a_contract(spec: Spec) -> None:
    known = contracts(spec)
    assert known["static-graph-v0.9"] is known["static-spec-v0.9"]
    assert known["static-oneapi"] is not known["static-graph-v0.9"]


def test_only_an_expression_on_entries_may_use_d_and_i() -> None:
    assert isinstance(parse("d", CALL_NAMES | ENTRY_NAMES, NUMBER), ast.Name)
    with pytest.raises(Invalid, match="where a number is wanted"):
        parse("special_zero", CALL_NAMES, NUMBER)
    with pytest.raises(Invalid, match="unknown name 'i'"):
        parse("i", CALL_NAMES, NUMBER)
    with pytest.raises(Invalid, match="hides the name 'd'"):
        parse("any(d == 1 for d in shape)", CALL_NAMES | ENTRY_NAMES)


def test_each_entry_names_the_rule_that_gives_its_length(spec: Spec) -> None:
    entries = contracts(spec)["static-oneapi"].entries
    copied, literal, inferred = ("zero-copies", 2, 0), ("literal-lengths", 6, None), ("infer-keeps-count", None, None)
    assert entries((2, 3), (0, 6, -1), True) == (copied, literal, inferred)
    assert entries((2, 3), (0,), False) == (("zero-literal", 0, None),)
    assert entries((6,), (6, 0), True)[1] == ("zero-copies", None, 1), "past the rank of src"


def test_the_lengths_of_entries_are_those_of_the_answer(spec: Spec) -> None:
    for contract in set(contracts(spec).values()):
        for src, shape, special_zero in calls(TINY_DOMAIN):
            meaning = contract.meaning(src, shape, special_zero)
            if meaning.kind == "legal" and meaning.dst is not None:
                entries = contract.entries(src, shape, special_zero)
                assert len(entries) == len(meaning.dst)
                assert all(entry.length in (None, length) for entry, length in zip(entries, meaning.dst, strict=True))
