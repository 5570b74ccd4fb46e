"""Declared strides of dst: the graph has them in bytes, the reference follows them, and some overlap."""

import numpy as np
import pytest

from adapters.reference import Reference
from conformance.adapter import load_adapter
from conformance.model import Crashed, Graph, Program, Tensor
from conformance.plan.rows import Plan, Row
from conformance.run.row import run_rows
from conformance.verdict.blame import Blamer
from conformance.verdict.rejudge import find_contradictions

from ..builders import Cli, bundled_plan, bundled_rows, spec
from ..miniatures import Ran


def row(case: str, type_: str = "f32") -> Row:
    return bundled_rows()[f"{case}[StaticReshape-{type_}]"]


@pytest.mark.parametrize(("type_", "width"), [("f32", 4), ("bf16", 2)])
def test_a_graph_has_the_strides_of_dst_in_bytes(type_: str, width: int) -> None:
    (step,) = row("dst-columns-lie-together", type_).steps
    declared = step.graph.nodes[-1].result
    assert declared is not None
    assert declared.strides == (width, 3 * width)


def test_the_reference_answers_at_declared_strides() -> None:
    (step,) = row("dst-rows-have-a-gap").steps
    answer = load_adapter("reference").compile(step.graph).run(step.src.tensor, (), False)
    assert isinstance(answer, Tensor)
    assert answer.strides == (36, 4)
    assert answer.array().tobytes() == step.src.elements


def test_only_strides_that_overlap_are_unspecified() -> None:
    kinds = {
        each.case.id: {judged.meaning.kind for judged in each.steps[0].meanings}
        for each in bundled_plan().rows
        if each.case.dst_strides and each.case.rule in ("layout-is-no-content", "strides-of-dst-overlap")
    }  # fmt: skip
    assert {case for case, kind in kinds.items() if kind == {"unspecified"}} == {*SHARED, WOVEN}
    assert all(kind in ({"legal"}, {"unspecified"}) for kind in kinds.values())


SHARED = ("rows-of-dst-in-one-place", "all-of-dst-in-one-place", "rows-of-dst-overlap-by-one", "equal-strides-of-dst")
"""Cases with strides that put two elements of dst in one place."""
WOVEN = "dimensions-of-dst-weave"


class LiesElsewhere(Reference):
    """Takes every declaration, and answers densely."""

    def compile(self, graph: Graph) -> Program:
        return super().compile(graph._replace(nodes=tuple(node._replace(result=None) for node in graph.nodes)))


def test_an_answer_with_other_strides_than_declared() -> None:
    results = run_rows([row("dst-columns-lie-together"), row("all-of-dst-in-one-place"), row(WOVEN)], LiesElsewhere())
    assert [set(result.verdicts.values()) for result in results] == [{"pass"}, {"observed"}, {"observed"}]


class Overlaps(LiesElsewhere):
    """Answers at the declared strides, so that elements overlap, and then spoils something."""

    def __init__(self, spoils: str = "nothing") -> None:
        self.spoils = spoils

    def compile(self, graph: Graph) -> Program:
        declared, program = graph.nodes[-1].result, super().compile(graph)
        assert declared is not None
        strides = declared.strides or ()

        def run(src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
            dense = program.run(src, shapes, may_overwrite)
            assert isinstance(dense, np.ndarray)
            answer = Tensor(src.type, dense.shape, strides, bytearray(99), 0)
            answer.array()[...] = dense
            if self.spoils == "dims":
                return Tensor(src.type, (1, *dense.shape), (0, *strides), answer.memory, 0)
            for what, tensor, at in (("answer", answer, 0), ("src", src, src.offset), ("memory beside src", src, 0)):
                tensor.memory[at] ^= what == self.spoils
            return answer

        return Ran(run)


class Raises(Reference):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def compile(self, graph: Graph) -> Program:
        raise self.error


@pytest.mark.parametrize("case", SHARED)
@pytest.mark.parametrize(
    ("backend", "verdict"),
    [
        (Reference(), "observed"), (Overlaps(), "observed"), (LiesElsewhere(), "observed"),
        (Overlaps("answer"), "observed"), (Overlaps("dims"), "observed"), (Overlaps("src"), "fail"),
        (Overlaps("memory beside src"), "fail"), (Raises(Crashed("SIGSEGV")), "fail"),
        (Raises(KeyError("declared")), "error"),
    ],
)  # fmt: skip
def test_answers_to_strides_that_overlap(case: str, backend: Reference, verdict: str) -> None:
    each = row(case)
    (result,) = run_rows([each], backend)
    assert set(result.verdicts.values()) == {verdict}, result
    header = {"claims": backend.claims.to_json(), "waivers": ()}
    plan = Plan(bundled_plan().suite, (each,))
    assert not [*find_contradictions(plan, {each.id: result}, header)]  # also where the evidence is judged again


def test_explain_on_strides_that_overlap(cli: Cli) -> None:
    cli("explain", SHARED[0]).expect(0, out="strides-of-dst-overlap; nothing is known of dst")
    cli("explain", WOVEN).expect(0, out="strides-of-dst-overlap; if answered, [2, 3]")


@pytest.mark.parametrize(("backend", "verdict"), [(Overlaps(), "observed"), (Overlaps("answer"), "fail")])
def test_answers_with_woven_dimensions(backend: Reference, verdict: str) -> None:
    woven = row(WOVEN)
    (result,) = run_rows([woven], backend)
    assert set(result.verdicts.values()) == {verdict}
    blamer = Blamer(spec().rules)
    blamed = [blamer.blame(woven, result, document) for document in woven.documents]
    assert {each.blame for each in blamed if each} == ({"breaks only our ruling"} if verdict == "fail" else set())
