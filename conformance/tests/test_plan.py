"""What the rows of a plan mean: chains, declarations, and which facets a row needs."""

from __future__ import annotations

import pytest

from conformance.contract import Contract, contracts
from conformance.diagnose import wrong_dims
from conformance.load import load_spec
from conformance.load_cases import load_suite
from conformance.model import Form, Meaning
from conformance.plan import meaning_of, plan_of

F64 = Form("f64", "f64", "s64")


@pytest.fixture(scope="module")
def contract() -> Contract:
    return contracts(load_spec())["static-2021"]


def chain(
    contract: Contract, src: tuple[int, ...], *links: tuple[tuple[int, ...], bool], form: Form | None = None
) -> Meaning:
    return meaning_of(contract, src, tuple(shape for shape, _ in links), tuple(zero for _, zero in links), form)


@pytest.mark.parametrize(
    ("src", "links", "kind", "dst", "rule"),
    [
        ((2, 3), [((3, 2), False), ((6,), False)], "legal", (6,), None),
        ((2, 3), [((2, 3, 0), True), ((-1, -1), False)], "illegal", None, "one-infer"),
        ((2, 3), [((2, 3, 0), True), ((7, -2), False)], "illegal", None, "lower-bound"),
        ((2, 3), [((2, 3, 0), True), ((5,), False)], "illegal", None, "same-volume"),
        ((2, 3), [((2, 3, 0), True), ((6,), False)], "unspecified", (6,), "zero-past-rank"),
        ((0, 3), [((0, -1), True), ((1,), False)], "illegal", None, "same-volume"),
        ((0, 3), [((0, -1), True), ((0,), False)], "unspecified", (0,), "infer-undetermined"),
        ((0, 3), [((0, -1), True), ((0, 0), True)], "unspecified", None, "infer-undetermined"),
        ((0, 3), [((0, -1), True), ((0, 0, -1, -1), True)], "illegal", None, "one-infer"),
    ],
)
def test_what_is_open_in_one_node_excuses_nothing_in_the_next(
    contract: Contract,
    src: tuple[int, ...],
    links: list[tuple[tuple[int, ...], bool]],
    kind: str,
    dst: tuple[int, ...] | None,
    rule: str | None,
) -> None:
    meaning = chain(contract, src, *links)
    assert (meaning.kind, meaning.dst) == (kind, dst)
    assert rule is None or rule in meaning.rules


def test_an_unlisted_type_leaves_dst_of_a_chain_known(contract: Contract) -> None:
    meaning = chain(contract, (2, 3), ((3, 2), False), ((6, 1), False), form=F64)
    assert meaning == Meaning("unspecified", (6, 1), ("types-listed",))
    assert chain(contract, (2, 3), ((6,), False), ((5,), False), form=F64).kind == "illegal"


def test_the_answer_of_an_open_call_is_held_to_what_was_declared(contract: Contract) -> None:
    form = Form("f32", "f32", "s64", declared=(0, 4))
    meaning = contract.meaning((0, 3), (0, -1), True, form)
    assert meaning == Meaning("unspecified", (0, 4), ("infer-undetermined",))
    assert wrong_dims((0, 4), meaning, (0, 3)) is None
    assert wrong_dims((0, 7), meaning, (0, 3)) is not None


def test_a_copied_length_counts_towards_what_is_too_long_to_demand(contract: Contract) -> None:
    assert contract.meaning((0, 65536), (0, 0, 65536), True).rules == ("huge-on-empty",)
    assert contract.meaning((0, 65536), (0, 0, 32767), True).kind == "legal"


def test_only_a_program_whose_ranks_change_needs_the_unknown_rank() -> None:
    rows = plan_of(load_suite()).rows
    needing = {row.id for row in rows if "unknown-rank" in row.facets}
    assert "the-shape-changes[Reshape-1-f32-s64-runtime]" not in needing
    assert "ranks-of-src-alternate[Reshape-1-f32-s64-runtime]" in needing
    assert not any("StaticReshape" in row or "constant" in row for row in needing)
