"""Shrinking: it ends, in few steps, and gives a case that people can paste and that fails again."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.reference import Reference
from conformance.adapter import load_adapter
from conformance.draw.rows import RowDrawer, count_drawn_rows
from conformance.load.cases import with_cases
from conformance.meaning.contract import contracts
from conformance.model import Adapter, Case, Claims, Crashed, Graph, Layout, Program, Rejected, TimedOut
from conformance.plan.memory import TensorSpec, lay_out
from conformance.plan.rows import plan_of, rows_of
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import planted_backends
from conformance.shrink.smaller_cases import shrink, smaller_cases
from conformance.shrink.smallest_case import find_smallest
from conformance.shrink.write_case import find_rule_against, make_case_of_call

from ..builders import some_exhaustive, spec, write_suite
from ..draw.test_cases import draw_cases

PLANTED = planted_backends()
RANDOM_ROWS = 3000
"""The random rows after those of combinations in which a planted backend fails."""


def smallest_case(backend: Adapter) -> str:
    """Return the smallest case of the first random row that a backend fails."""
    claims, first = Claims(tuple(spec().operations)), count_drawn_rows()
    drawer = RowDrawer(spec(), claims)
    for number in range(first, first + RANDOM_ROWS):
        row = drawer.row(0, number)
        assert row is not None
        (result,) = run_rows([row], backend, claims)
        if result.is_failure:
            return str(find_smallest(row, result, backend, claims, open_another=type(backend)).smallest_case)
    raise AssertionError("no row failed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    some_exhaustive(
        ("accepts-everything", "zero-flag-ignored", "answers-from-memory", "counts-in-64-bits", "strides-ignored",
         "quiets-nan", "lengths-in-16-bits", "declaration-not-read")
    ),
)  # fmt: skip
def test_a_pasted_case_fails_again(name: str, tmp_path: Path) -> None:
    text = smallest_case(PLANTED[name]())
    rows = plan_of(with_cases(spec(), write_suite(tmp_path, f"about: Found.\ncases:\n{text}"))).rows
    assert any(result.is_failure for result in run_rows(rows, PLANTED[name]())), text
    assert not any(result.is_failure for result in run_rows(rows, load_adapter("reference"))), text


SMALLEST: Mapping[str, Sequence[tuple[str, str]]] = {
    "first-infer-wins": [("[]", "[-1, -1]")],
    "any-negative-infers": [("[]", "[-2]")],
    "counts-in-32-bits": [("[]", "[4294967297]"), ("[0]", "[4294967296]"), ("[]", "[38654705665]")],
    "divisibility-unchecked": [("[]", "[-1, 2]"), ("[]", "[2, -1]")],
}
"""The call, or one of several that are as small."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_failing_call(name: str) -> None:
    text = smallest_case(PLANTED[name]())
    calls = (f"{src}\n    shape: {shape}\n    special_zero: false\n" for src, shape in SMALLEST[name])
    assert any(f"{call}    expect: reject\n" in text for call in calls), text


@pytest.mark.slow
@pytest.mark.parametrize(("src", "layout"), [((0, 2**40), "dense"), ((0, 70_000), "far"), ((0, 2**62, 2), "dense")])
def test_shrinking_keeps_src_small_enough(src: tuple[int, ...], layout: Layout) -> None:
    case = next(case for case in draw_cases(2000) if case.steps[0].src.count(0) == 1)
    huge = replace(case, steps=(replace(case.steps[0], src=src, layout=layout),))
    tried: list[Case] = []
    shrink(huge, tried.append, None)
    assert tried
    for case in tried:
        step = case.steps[0]
        assert max((*step.src, *step.shapes[0])) < 2**63
        assert 0 in step.src or len(lay_out(TensorSpec("s8", step.src, step.layout)).before) < 2**21


@pytest.mark.parametrize("limit", [60_000, 65_536])
def test_a_limit_is_found_in_few_steps(limit: int) -> None:
    case = next(case for case in draw_cases(2000) if len(case.steps) == 1)
    src, tried = (70_001,), list[int]()

    def fails(smaller: Case) -> int | None:
        tried.append(math.prod(smaller.steps[0].src))
        return tried[-1] if tried[-1] > limit else None

    large = replace(case, steps=(replace(case.steps[0], src=src, shapes=((-1,),), bits=None),))
    assert shrink(large, fails, 0) == limit + 1
    assert len(tried) < 1000


@pytest.mark.slow
def test_a_failure_that_needs_two_calls() -> None:
    text = smallest_case(PLANTED["never-again-after-a-rejection"]())
    assert "rule: each-call-alone\n" in text
    assert text.count("\n      - {src: ") == 2


class WithoutInference(Reference):
    """Raises an error on each legal call with a -1."""

    error: BaseException

    def compile(self, graph: Graph) -> Program:
        program = super().compile(graph)
        if any(node.shape and -1 in (node.shape.values or ()) for node in graph.nodes):
            raise self.error
        return program


@pytest.mark.parametrize("error", [Crashed("dead"), TimedOut("late"), Rejected("compile", "no"), ValueError("adapter")])
def test_no_answer_goes_against_what_a_call_is_about(error: BaseException) -> None:
    """The case is filed under the rule of its -1, however the call ended."""
    case = make_case_of_call("infers", "same-volume", "f32", ((2, 3), (-1,), False))
    row = next(rows_of([case], spec(), contracts(spec())))
    (result,) = run_rows([row], type("Raises", (WithoutInference,), {"error": error})())
    assert find_rule_against(row, result) == "infer-keeps-count"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a-thousand-lose-one", "quiets-in-place"])
def test_one_call_that_fails_alone_is_shown_alone(name: str) -> None:
    """It fails first in a chain or a sequence, and then goes against another rule."""
    text = smallest_case(PLANTED[name]())
    assert not any(f"{key}:" in text for key in ("steps", "chain"))


class InfersOnEmpty(Reference):
    """Answers src if it is empty and an entry is -1."""

    def compile(self, graph: Graph) -> Program:
        try:
            return super().compile(graph)
        except Rejected:
            node = graph.nodes[0]
            if 0 not in (graph.src.dims or ()) or node.shape is None or -1 not in (node.shape.values or ()):
                raise
            plain = node._replace(shape=node.shape._replace(values=graph.src.dims))
            return super().compile(graph._replace(nodes=(plain,)))


def test_a_smaller_case_fails_in_the_same_documents() -> None:
    """Without one -1 the call is unspecified in the document in force, and the failure was filed under a finding."""
    case = make_case_of_call("infers", "same-volume", "f32", ((0,), (-1, 0, -1), False))
    row = next(row for row in rows_of([case], spec(), contracts(spec())) if row.operation == "StaticReshape")
    claims = Claims(tuple(spec().operations))
    (result,) = run_rows([row], InfersOnEmpty(), claims)
    assert {*result.verdicts.values()} == {"fail"}
    text = str(find_smallest(row, result, InfersOnEmpty(), claims, open_another=InfersOnEmpty).smallest_case)
    assert "rule: one-infer\n" in text


def test_shrinking_ends() -> None:
    for case in draw_cases(30):
        current, steps = case, 0
        while (lesser := next(smaller_cases(current), None)) is not None:
            current, steps = lesser, steps + 1
            assert steps < 500, case


def test_a_smaller_case_passes_the_check_of_cases() -> None:
    """A node that is left alone shares nothing, and has no constant node beside it."""
    chain = [case for case in draw_cases(400) if len(case.steps[0].shapes) == 2]
    lone = [step for case in chain for each in smaller_cases(case) for step in each.steps if len(step.shapes) == 1]
    assert len(lone) > 40
    assert {(step.shared_src, step.shared_shape, step.constant_nodes) for step in lone} == {(False, False, "none")}
    assert any(step.shared_shape for case in chain for step in case.steps)


def test_a_node_is_tried_alone_on_what_it_takes() -> None:
    """A zero of it may copy a length that src does not have."""
    steps = ((case, case.steps[0]) for case in draw_cases(400) if len(case.steps) == 1)
    chain, step = next(
        (case, step)
        for case, step in steps
        if len(step.shapes) == 2 and not step.shared_src and min(step.shapes[0]) > 0 and step.shapes[0] != step.src
    )
    alone = step.shapes[0], step.shapes[1:]
    assert any((each.steps[0].src, each.steps[0].shapes) == alone for each in smaller_cases(chain))


@pytest.mark.slow
def test_steps_with_chains_shrink_together() -> None:
    """The steps of a case share a graph, so no smaller case has steps with chains of several lengths."""
    chained = [case for case in draw_cases(400) if len(case.steps) > 1 and len(case.steps[0].shapes) > 1]
    smaller = [each for case in chained for each in smaller_cases(case)]
    assert min(len(each.steps[0].shapes) for each in smaller) == 1
    for row in rows_of(smaller[::35], spec(), contracts(spec())):
        assert len(row.steps) == len(row.case.steps)
