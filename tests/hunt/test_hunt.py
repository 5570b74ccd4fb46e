"""Hunts: they find planted backends, shrink a failure to a case that people can paste, and repeat with a seed."""

import math
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.reference import Reference
from conformance.adapter import load_adapter
from conformance.hunt.hunt import Counterexample, HuntResult, hunt
from conformance.hunt.shrink import shrink, smaller_cases
from conformance.isolate.backend import use_backend
from conformance.isolate.process.orphans import find_marked_pids
from conformance.load.cases import with_cases
from conformance.meaning.contract import contracts
from conformance.model import Case, Crashed, Graph, Layout, Program, Rejected, TimedOut
from conformance.plan.memory import TensorSpec, lay_out
from conformance.plan.rows import Row, plan_of, rows_of
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import planted_backends
from conformance.system.exit_codes import INCOMPLETE

from ..builders import Cli, mini, some_exhaustive, spec
from ..draw.test_cases import draw_cases
from ..isolate.remote_backends import write_acting
from ..processes import wait

PLANTED = planted_backends()
FOUND_SOONER = ("accepts-everything", "zero-flag-ignored", "answers-from-memory", "counts-in-64-bits",
        "strides-ignored", "quiets-nan", "lengths-in-16-bits", "declaration-not-read")  # fmt: skip
"""Planted backends that a hunt finds within 3000 examples."""


def found_by(hunted: HuntResult) -> Counterexample:
    assert hunted.counterexample is not None, f"nothing was found in {hunted.examples} examples"
    return hunted.counterexample


def paste_row(counterexample: Counterexample, folder: Path) -> Row:
    """Write a counterexample into a case file, and read its row."""
    (folder / "cases").mkdir()
    text = f"about: Found.\ncases:\n{counterexample.text}"
    (folder / "cases" / "found.yaml").write_text(text, encoding="utf-8")
    found = counterexample.row
    rows = plan_of(with_cases(spec(), folder)).rows
    return next(row for row in rows if row.id.partition("[")[2] == found.id.partition("[")[2])


def find(name: str, examples: int, folder: Path) -> HuntResult:
    """Hunt a planted backend. Assert that it alone fails the counterexample, also after this was written and read."""
    hunted = hunt(PLANTED[name](), spec(), examples)
    counterexample = found_by(hunted)
    again = paste_row(counterexample, folder)
    (result,) = run_rows([again], PLANTED[name]())
    assert result.is_failure, f"{name}: what was pasted does not fail:\n{counterexample.text}"
    (result,) = run_rows([again], load_adapter("reference"))
    assert not result.is_failure, f"the reference fails what was pasted:\n{counterexample.text}"
    return hunted


@pytest.mark.slow
@pytest.mark.parametrize("name", some_exhaustive(FOUND_SOONER))
def test_a_planted_backend_within_3000_examples(name: str, tmp_path: Path) -> None:
    find(name, 3000, tmp_path)


OF_MILLIONS = (
    "inferred-in-f32", "divides-in-f32", "millions-not-supported", "indexed-in-20-bits", "subtracts-logarithms",
    "counts-f32-elements-in-f32", "compares-logarithms-for-f16", "elements-of-four-bytes-indexed-in-f32",
)  # fmt: skip
"""They are wrong only with more elements than a hunt has time for. Cases find them."""
BY_COINCIDENCE = (
    "divides-by-a-product-that-wraps", "digits-are-the-key", "lengths-in-a-row-are-the-key", "a-weak-hash-is-the-key",
    "calls-of-equal-hash-are-equal", "strides-frozen-at-the-first-call", "constant-after-three-calls",
    "a-fork-is-cached-as-a-chain", "the-flag-of-the-first-node-is-the-key", "channel-shuffles-are-fused",
)  # fmt: skip
"""They are wrong only after a coincidence that is too rare for a hunt. Cases find them."""
AFTER_MANY_CALLS = (
    "thirty-two-buffers-in-turn", "worn-out-after-a-hundred-calls", "programs-are-numbered-in-six-bits",
    "trusts-a-program-after-many-shapes", "eight-buffers-in-turn", "full-cache-keeps-an-old-answer",
    "programs-are-numbered-in-ten-bits", "calls-counted-in-16-bits", "constant-after-a-thousand-calls",
    "specialised-for-a-volume",
)  # fmt: skip
"""They are wrong only after more calls than an example has. Cases and `run --drawn-rows` find them."""
NOT_DRAWN = (
    "entries-of-shape-side-by-side", "nodes-before-the-last-are-believed", "declarations-of-middle-nodes-not-read",
    "a-shared-shape-counts-once", "shapes-go-by-the-number-of-the-node", "all-shapes-have-the-first-type",
    "one-type-for-all-threads", "the-address-of-shape-is-the-key", "a-deleted-program-takes-the-plan-along",
    "pool-is-gone-after-a-second", "thirty-two-nodes-at-most", "branches-before-the-last-are-dropped",
    "the-first-rank-stays", "eight-buffers-for-all-threads",
)  # fmt: skip
"""Hunts draw no shape with entries apart or where another lay, no form and no declared dims of a node before the last,
at most five nodes, with two at most that share a shape and all shapes of one kind, no three nodes that take src, no
sources of several ranks for one constant shape, at most four threads, of one type, no program that is deleted, and no
pause. Cases find them."""


SLOW_TO_SHRINK = ("one-buffer-for-all-threads",)
"""Each of a thousand smaller cases has to be called by several threads, again and again."""


def backends_to_find() -> list[Any]:
    """List the planted backends that a hunt finds later. CI tries the first of every fourth rule: hunts take long."""
    rules, found = {PLANTED[name].breaks for name in FOUND_SOONER}, []
    for name in PLANTED:
        if name not in (*FOUND_SOONER, *OF_MILLIONS, *BY_COINCIDENCE, *AFTER_MANY_CALLS, *NOT_DRAWN):
            first = PLANTED[name].breaks not in rules and name not in SLOW_TO_SHRINK
            rules.add(PLANTED[name].breaks)
            found.append(pytest.param(name, marks=() if first and len(rules) % 4 == 1 else pytest.mark.exhaustive))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", backends_to_find())
def test_every_planted_backend_within_20000_examples(name: str, tmp_path: Path) -> None:
    hunted = find(name, 20_000, tmp_path)
    print(f"{name:<40} {hunted.examples:>6,} examples  {found_by(hunted).rule}")


@pytest.mark.slow
def test_the_reference_is_not_caught() -> None:
    found = hunt(load_adapter("reference"), spec(), 400)
    assert found[:3] == HuntResult(400, None)[:3]
    assert found.right > 400, "a case has several rows"


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
    text = found_by(hunt(PLANTED[name](), spec(), 3000)).text
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
    found = found_by(hunt(PLANTED["never-again-after-a-rejection"](), spec(), 3000))
    assert found.rule == "each-call-alone"
    assert found.text.count("\n      - {src: ") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["declaration-not-read", pytest.param("answers-from-memory", marks=pytest.mark.exhaustive)]
)
def test_the_same_seed_finds_the_same(name: str) -> None:
    first, second = (hunt(PLANTED[name](), spec(), 3000, 3) for _ in range(2))  # of seed 5 threads race
    assert (first.examples, found_by(first).text) == (second.examples, found_by(second).text)


@pytest.mark.slow
def test_other_seeds_try_other_calls() -> None:
    first, *others = (hunt(PLANTED["zero-flag-ignored"](), spec(), 3000, seed).examples for seed in range(2))
    assert [first] != others


class Moody(Reference):
    """Fails the hundredth call, whatever it is, and never again."""

    calls = 0

    def compile(self, graph: Graph) -> Program:
        self.calls += 1
        if self.calls == 100:
            raise ZeroDivisionError("a bad day")
        return super().compile(graph)


def test_a_failure_that_does_not_occur_again() -> None:
    hunted = hunt(Moody(), spec(), 400)
    assert found_by(hunted)
    assert not hunted.steady


KEEPS = """
import numpy as np
from conformance.adapters.reference import Reference

class Keeps(Reference):
    calls = 0
    def copy_elements(self, src, dst, may_overwrite):
        self.calls += 1
        answer = super().copy_elements(src, dst, may_overwrite)
        return np.zeros_like(answer) if self.calls > 60 and isinstance(answer, np.ndarray) else answer
"""


def test_a_failure_of_earlier_calls_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "keeps.py").write_text(KEEPS, encoding="utf-8")
    with use_backend(f"{tmp_path / 'keeps.py'}:Keeps", "worker") as adapter:
        hunted = hunt(adapter, spec(), 400)
    assert found_by(hunted)
    assert not hunted.steady


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
    backend = WithoutInference()
    backend.error = error
    assert found_by(hunt(backend, spec(), 400, operations=["StaticReshape"])).rule == "infer-keeps-count"


@pytest.mark.parametrize(("name", "seed"), [("a-thousand-lose-one", 0), ("quiets-in-place", 2)])
def test_one_call_that_fails_alone_is_shown_alone(name: str, seed: int) -> None:
    """It fails first in a chain or a sequence, and then goes against another rule."""
    (step,) = found_by(hunt(PLANTED[name](), spec(), 600, seed)).row.case.steps
    assert len(step.shapes) == 1


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


@pytest.mark.slow
def test_steps_with_chains_shrink_together() -> None:
    """The steps of a case share a graph, so no smaller case has steps with chains of several lengths."""
    chained = [case for case in draw_cases(400) if len(case.steps) > 1 and len(case.steps[0].shapes) > 1]
    smaller = [each for case in chained for each in smaller_cases(case)]
    assert min(len(each.steps[0].shapes) for each in smaller) == 1
    for row in rows_of(smaller[::35], spec(), contracts(spec())):
        assert len(row.steps) == len(row.case.steps)


def test_the_command_prints_the_case_and_its_meaning(cli: Cli) -> None:
    words = ["hunt", "planted:first-infer-wins", "--examples", "2000", "--operation", "StaticReshape"]
    parts = (
        "  - id: answered-an-illegal-call-one-infer\n    rule: one-infer\n    src: f32[]\n    shape: [-1, -1]\n",
        "static-graph-v0.9: illegal: one-infer",
        "one-infer: At most one entry of shape is -1.",
        "next: conformance explain one-infer\n",
    )
    cli(*words).expect(1, out=parts)
    found = cli(*words, "--json").expect(1).data["found"]
    assert found["rule"] == "one-infer"
    assert found["steady"] is True


def test_the_command_without_a_failure(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    said = cli("hunt", "reference", "--examples", "50", "--type", "f32")
    said.expect(0, out="50 examples of seed 0; --seed 1 tries others", err="conformance: hunting 49 of 50")
    assert list(tmp_path.iterdir()) == [], "it leaves no file"


def test_a_backend_that_claims_nothing_shows_nothing(cli: Cli) -> None:
    said = cli("hunt", mini("LeavesOutEveryType"), "--examples", "20").expect(INCOMPLETE)
    assert "exit 4: the backend claims nothing of 20 examples of seed 0" in said.out


def test_an_unknown_type_is_one_line(cli: Cli) -> None:
    cli("hunt", "reference", "--type", "f23").expect(2, err="unknown type 'f23'; did you mean 'f32'?")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="another kernel tells nobody that a pipe has no writer any more")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_hunt_leaves_no_process(tmp_path: Path, end: signal.Signals) -> None:
    mark, hanging = secrets.token_hex(16), f"Path({str(tmp_path / 'called')!r}).touch(); time.sleep(60)"
    command = [sys.executable, "-m", "conformance", "hunt", write_acting(tmp_path, hanging)]
    with subprocess.Popen(command, env={**os.environ, "MARK": mark, "TMPDIR": str(tmp_path)}) as running:
        wait((tmp_path / "called").exists)
        running.send_signal(end)
    try:
        wait(lambda: not find_marked_pids(mark), 10)
    finally:
        for pid in find_marked_pids(mark):
            os.kill(pid, signal.SIGKILL)
