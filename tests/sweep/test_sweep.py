"""A sweep makes every call of its domain, judges as the suite does, and says the same whoever takes the blocks."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import node_calls
from conformance.adapters.planted import FirstInferWins, RejectsEverything, StridesIgnored
from conformance.adapters.reference import Reference
from conformance.load.cases import with_cases
from conformance.meaning.contract import contracts
from conformance.meaning.domain import FULL_DOMAIN, SMALL_DOMAIN, TINY_DOMAIN, Domain, calls
from conformance.model import Claims, Graph, Program, Rejected, Spec, Tensor
from conformance.plan.rows import Row, plan_of, row_of
from conformance.run.row import run_row
from conformance.shrink.write_case import make_case_of_call, write_case_text
from conformance.sweep.blocks import blocks_of, list_variants
from conformance.sweep.tally import KINDS
from tests.builders import ROOT, Cli, write_suite
from tests.miniatures import Bent

from .sweeps import swept

ADDED = ROOT / "examples" / "operation"


# ── the domain ────────────────────────────────────────────────────────────────────────────────────
class Recording(Reference):  # type: ignore[misc]
    """The reference, with every call that it was asked to make."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def compile(self, graph: Graph) -> Program:
        (call,) = node_calls(graph.nodes, ())
        self.made.append((graph.src.dims, call.shape, call.special_zero))
        return super().compile(graph)  # type: ignore[no-any-return]


def test_every_call_of_the_domain_is_made_once(spec: Spec) -> None:
    adapter = Recording()
    total = swept(spec, adapter)
    assert sorted(adapter.made) == sorted(calls(TINY_DOMAIN))
    assert total.calls == TINY_DOMAIN.size
    assert len({*adapter.made}) == len(adapter.made)


@pytest.mark.parametrize("domain", [TINY_DOMAIN, SMALL_DOMAIN, FULL_DOMAIN, Domain(1, 9, 5, -2, 9)])
def test_blocks_hold_each_call_once(domain: Domain) -> None:
    assert sum(block.calls for block in blocks_of(domain)) == domain.size
    assert list(blocks_of(domain)) == list(blocks_of(domain))


@pytest.mark.skipif(not ADDED.is_dir(), reason="the examples stay in the clone")
@pytest.mark.parametrize("types", [("bf16",), ("f32", "bf16")])
def test_a_type_that_the_operation_lacks_is_refused(tmp_path: Path, cli: Cli, types: tuple[str, ...]) -> None:
    """A sweep of no call seemed to miss its planted backends, and one of another type to show this one."""
    words = ("sweep", "reference", "--rank", 0, "--max-dim", 1, "--suite", ADDED)
    named = (word for type_ in types for word in ("--type", type_))
    out = ("--operation", "AcmeReshape-1", *named, "--out", tmp_path)
    cli(*words, *out).expect(2, lines=1, err="bf16 would be in no call")


@pytest.mark.parametrize("rank", [40, 10**9])
def test_a_domain_that_cannot_be_counted_is_refused(tmp_path: Path, cli: Cli, rank: int) -> None:
    cli("sweep", "reference", "--rank", rank, "--max-dim", 9, "--out", tmp_path).expect(2, err="do not fit 62 bits")


# ── judging ───────────────────────────────────────────────────────────────────────────────────────
REFUSALS: dict[str, Callable[[], Exception]] = {
    "stage": lambda: Rejected("anywhere", "no"),
    "message": lambda: Rejected("compile", 7),  # type: ignore[arg-type]
    "exception": ZeroDivisionError,
}
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "type": lambda answer: answer.view("i4"),
    "bits": lambda answer: (answer.view("u4") ^ 1).view("f4"),
    "dims": lambda answer: answer.reshape((*answer.shape, 1)),
    "big": lambda answer: answer.astype(">f4"),
    "no tensor": lambda answer: "nothing",
}


class Off(Bent):
    """The reference with one thing wrong, beside its answers or in them; `how` says what."""

    def __init__(self, how: str) -> None:
        self.how = how

    def compile(self, graph: Graph) -> Program:
        try:
            return super().compile(graph)
        except Rejected:
            if self.how in REFUSALS:
                raise REFUSALS[self.how]() from None
            raise

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if self.how in ("src", "guard") and src.dims == (2,):
            src.memory[src.offset if self.how == "src" else 0] ^= 1
        if self.how == "shape" and shapes:
            shapes[0].memory[-1] ^= 1
        if isinstance(answer, Tensor):
            wider = Tensor(answer.type, (*answer.dims, 1), (*answer.strides, 1), answer.memory, 0)
            return wider if self.how == "empty dims" else answer
        return ANSWERS.get(self.how, lambda answer: answer)(answer)


JUDGED = Domain(1, 2, 2, -2, 2)


@pytest.fixture(scope="module")
def judged(spec: Spec) -> list[Row]:
    """Every call of a small domain as a row of a case."""
    ways, compiled = list_variants(spec, ["StaticReshape", "DynamicReshape-1"], ["f32"]), contracts(spec)
    cases = [make_case_of_call("x", "same-volume", "f32", call) for call in calls(JUDGED)]
    return [
        row_of(case, spec.operations[way.operation], way.shape_passed_as, way.shape_type, compiled)
        for way in ways
        for case in cases
    ]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["src", "guard", "shape", "empty dims", *ANSWERS, *REFUSALS])
def test_the_loop_of_a_sweep_agrees_with_the_judge(spec: Spec, judged: list[Row], how: str) -> None:
    """Every call of a small domain, judged one by one by the suite's own engine, comes to the same counts."""
    total = swept(spec, Off(how), JUDGED, operations=["StaticReshape", "DynamicReshape-1"])
    slow: dict[str, Counter[str]] = {}
    adapter = Off(how)
    for row in judged:
        for document, verdict in run_row(row, adapter).verdicts.items():
            slow.setdefault(document, Counter())[verdict] += 1
    assert {document: +Counter(counts) for document, counts in total.verdicts.items()} == slow
    assert any(counts["fail"] + counts["error"] for counts in slow.values())
    assert total.failures


def test_what_is_left_out_is_not_claimed_when_refused(spec: Spec) -> None:
    adapter = Reference()
    adapter.claims = Claims(("StaticReshape",), ("rank:1",))
    total = swept(spec, adapter, types=["f16"])
    legal, illegal, unspecified = (total.meanings["static-graph-v0.9"][kind] for kind in KINDS)
    counts = total.verdicts["static-graph-v0.9"]
    assert counts["pass"] == legal
    assert counts["not claimed"] == illegal + unspecified - counts["observed"] > illegal
    other = swept(spec, adapter, operations=["DynamicReshape-1"])
    assert set(other.verdicts["dynamic-spec-v0.9"]) == {"not claimed"}


def test_nothing_of_a_type_that_is_left_out_is_claimed(spec: Spec) -> None:
    adapter = Reference()
    adapter.claims = Claims(("StaticReshape",), ("type:f16",))
    assert {verdict for counts in swept(spec, adapter, types=["f16"]).verdicts.values() for verdict in counts} == {
        "not claimed"
    }


def test_a_shape_that_arrives_has_a_rank_of_its_own(spec: Spec) -> None:
    adapter = RejectsEverything()
    adapter.claims = Claims(("DynamicReshape-1",), ("rank:1",))
    verdicts = swept(spec, adapter, Domain(0, 1, 0, -2, 1), operations=["DynamicReshape-1"]).verdicts
    assert {verdict for counts in verdicts.values() for verdict, number in counts.items() if number} == {"not claimed"}


@pytest.mark.parametrize("layout", ["transposed", "padded", "cropped", "offset", "broadcast", "reversed"])
def test_a_layout_matters_only_if_strides_are_ignored(spec: Spec, layout: Any) -> None:
    domain = Domain(2, 3, 1, -2, 3)
    assert not swept(spec, Reference(), domain, layouts=[layout]).failures
    failures = swept(spec, StridesIgnored(), domain, layouts=[layout]).failures
    assert failures if layout != "offset" else True
    assert all(rule == "layout-is-no-content" for rule, _ in failures)


def test_the_smallest_example_is_a_case_that_shows_the_failure(spec: Spec, tmp_path: Path) -> None:
    ((rule, diagnosis), failure), *others = swept(spec, FirstInferWins()).failures.items()
    assert (rule, diagnosis, others) == ("one-infer", "answered an illegal call", [])
    assert "src: f32[]\n    shape: [-1, -1]\n" in failure.example["case"]
    plan = plan_of(with_cases(spec, write_suite(tmp_path, "about: Found.\ncases:\n" + failure.example["case"])))
    row = next(row for row in plan.rows if row.operation == "StaticReshape")
    assert row.case.rule == "one-infer"
    assert set(run_row(row, FirstInferWins()).verdicts.values()) == {"fail"}
    assert write_case_text(row, rule, f"{diagnosis} {rule}") == failure.example["case"]
