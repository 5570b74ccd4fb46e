"""The hunt finds what is planted, shrinks it to a case that people can paste, and does the same for the same seed."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import load_adapter
from conformance.cli import main as cli
from conformance.draw.calls import Draw
from conformance.draw.cases import draw_case
from conformance.hunt.filed_rule import is_failure
from conformance.hunt.hunt import HuntResult, Scope, hunt
from conformance.hunt.shrink import shrink, smaller_cases
from conformance.hunt.write_case import case_text
from conformance.isolate.process.orphans import find_marked_pids
from conformance.load.cases import with_cases
from conformance.load.folders import spec_folder
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Case, Claims, Layout, Spec
from conformance.plan.memory import TensorSpec, image_of
from conformance.plan.rows import Row, plan_of, rows_of
from conformance.run.row import run
from conformance.selfcheck.mutants import broken_backends

BROKEN = broken_backends()
ENOUGH = 20_000
"""Examples within which each planted backend is found."""
SOON = ("accepts-everything", "zero-flag-ignored", "answers-from-memory", "counts-in-64-bits",
        "strides-ignored", "one-nan", "lengths-in-16-bits", "declaration-not-read")  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec()


@pytest.fixture(scope="module")
def scope(spec: Spec) -> Scope:
    return Scope(spec)


def row_pasted(hunted: HuntResult, spec: Spec, folder: Path) -> Row:
    """The row that was found, read from a case file into which its text was pasted."""
    assert hunted.counterexample is not None
    (folder / "cases").mkdir()
    text = f"about: Found.\ncases:\n{hunted.counterexample.text}"
    (folder / "cases" / "found.yaml").write_text(text, encoding="utf-8")
    found = hunted.counterexample.row
    rows = plan_of(with_cases(spec, spec_folder(), folder / "cases")).rows
    same = [r for r in rows if (r.operation, r.given, r.shape_type) == (found.operation, found.given, found.shape_type)]
    return next(row for row in same if row.type == found.type)


# ── what is found ─────────────────────────────────────────────────────────────────────────────────


def found(name: str, spec: Spec, examples: int, folder: Path) -> HuntResult:
    """What the hunt makes of a planted backend, with the text pasted into a case file and run again."""
    hunted = hunt(BROKEN[name](), Scope(spec), examples)
    assert hunted.counterexample is not None, f"{name} was not found in {examples} examples"
    again = row_pasted(hunted, spec, folder)
    (result,) = run([again], BROKEN[name]())
    assert is_failure(result), f"{name}: what was pasted does not fail:\n{hunted.counterexample.text}"
    (result,) = run([again], load_adapter("reference"))
    assert not is_failure(result), f"the reference fails what was pasted:\n{hunted.counterexample.text}"
    return hunted


@pytest.mark.parametrize("name", SOON)
def test_a_planted_backend_is_soon_found(name: str, spec: Spec, tmp_path: Path) -> None:
    found(name, spec, 3000, tmp_path)


OF_MILLIONS = ("counts-in-f32", "inferred-in-f32", "divides-in-f32", "millions-not-supported", "indexed-in-20-bits")
"""Wrong only with more elements than a hunt has time for; the suite's own cases find them."""
BY_COINCIDENCE = (
    "divides-by-a-product-that-wraps", "digits-are-the-key", "lengths-in-a-row-are-the-key", "a-weak-hash-is-the-key",
)  # fmt: skip
"""Wrong only where two calls in a row, or a product, coincide as chance hardly makes them; cases find these too."""
AFTER_MANY_CALLS = (
    "thirty-two-buffers-in-turn", "worn-out-after-a-hundred-calls", "programs-are-numbered-in-six-bits",
    "trusts-a-program-after-many-shapes",
)  # fmt: skip
"""Wrong only after more calls than an example has; the long sequences of cases and of `run --hunt` find them."""


NOT_DRAWN = ("entries-of-shape-side-by-side",)
"""Hunts draw no shape whose entries lie apart; cases find these."""


def found_by_chance() -> list[Any]:
    """The planted backends that a hunt can find. Only the first of each rule is tried in CI: a hunt takes long."""
    rules, found = set[str](), []
    for name in BROKEN:
        if name not in (*OF_MILLIONS, *BY_COINCIDENCE, *AFTER_MANY_CALLS, *NOT_DRAWN):
            first = BROKEN[name].breaks not in rules
            rules.add(BROKEN[name].breaks)
            found.append(pytest.param(name, marks=() if first else pytest.mark.exhaustive))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", found_by_chance())
def test_every_planted_backend_is_found(name: str, spec: Spec, tmp_path: Path) -> None:
    hunted = found(name, spec, ENOUGH, tmp_path)
    assert hunted.counterexample is not None
    print(f"{name:<40} {hunted.examples:>6,} examples  {hunted.counterexample.rule}")


def test_the_reference_is_not_caught(scope: Scope) -> None:
    assert hunt(load_adapter("reference"), scope, 400) == HuntResult(400, None)


# ── what it looks like ────────────────────────────────────────────────────────────────────────────

SMALLEST: Mapping[str, Sequence[tuple[str, str]]] = {
    "last-infer-wins": [("[]", "[-1, -1]")],
    "any-negative-infers": [("[]", "[-2]")],
    "counts-in-32-bits": [("[]", "[4294967297]"), ("[0]", "[4294967296]")],
    "divisibility-unchecked": [("[]", "[-1, 2]"), ("[]", "[2, -1]")],
}
"""The call, or one of several that are as small."""


@pytest.mark.parametrize("name", SMALLEST)
def test_what_is_found_is_small(name: str, scope: Scope) -> None:
    hunted = hunt(BROKEN[name](), scope, 3000)
    assert hunted.counterexample is not None
    calls = (f"{src}\n    shape: {shape}\n    special_zero: false\n" for src, shape in SMALLEST[name])
    text = hunted.counterexample.text
    assert any(f"{call}    expect: reject\n" in text for call in calls), text


@pytest.mark.parametrize(("src", "layout"), [((0, 2**40), "dense"), ((0, 70_000), "far")])
def test_no_src_that_fits_into_no_memory_is_tried(src: tuple[int, ...], layout: Layout) -> None:
    case = next(case for case in invented(2000) if case.steps[0].src.count(0) == 1)
    huge = replace(case, steps=(replace(case.steps[0], src=src, layout=layout),))
    tried: list[Case] = []
    shrink(huge, tried.append, None)
    assert tried
    for case in tried:
        step = case.steps[0]
        assert 0 in step.src or len(image_of(TensorSpec("s8", step.src, step.layout)).before) < 2**21


def test_a_sequence_is_found_where_one_call_is_not_enough(scope: Scope) -> None:
    hunted = hunt(BROKEN["never-again-after-a-refusal"](), scope, 3000)
    assert hunted.counterexample is not None
    assert hunted.counterexample.rule == "each-call-alone"
    assert hunted.counterexample.text.count("\n      - {src: ") == 2


@pytest.mark.parametrize("name", ["last-infer-wins", "each-call-alone"])
def test_the_same_seed_finds_the_same(name: str, scope: Scope) -> None:
    planted = BROKEN.get(name, BROKEN["answers-from-memory"])
    first, second = (hunt(planted(), scope, 3000, 5) for _ in range(2))
    assert first.counterexample is not None
    assert second.counterexample is not None
    assert (first.examples, first.counterexample.text) == (second.examples, second.counterexample.text)


def test_other_seeds_try_other_calls(scope: Scope) -> None:
    first, *others = (hunt(BROKEN["chains-fused"](), scope, 3000, seed).examples for seed in range(2))
    assert [first] != others


class Moody:
    """Fails the hundredth call, whatever it is, and never again."""

    name = "moody"
    claims = Claims(("StaticReshape", "DynamicReshape-1", "Reshape-1"))

    def __init__(self) -> None:
        self.reference, self.calls = load_adapter("reference"), 0

    @property
    def identity(self) -> Any:
        return self.reference.identity

    def compile(self, graph: Any) -> Any:
        self.calls += 1
        if self.calls == 100:
            raise ZeroDivisionError("a bad day")
        return self.reference.compile(graph)


def test_a_failure_that_does_not_come_again_is_told_as_that(scope: Scope) -> None:
    hunted = hunt(Moody(), scope, 400)
    assert hunted.counterexample is not None
    assert not hunted.steady


# ── what is tried ─────────────────────────────────────────────────────────────────────────────────


def invented(number: int) -> list[Case]:
    return [draw_case(Draw(f"cases {each}"), ["f32", "bf16", "f16"]) for each in range(number)]


def test_all_kinds_of_calls_are_tried(spec: Spec) -> None:
    """Legal, illegal and unspecified ones, of every facet, with lengths around the powers of two that matter."""
    kinds: Counter[str] = Counter()
    facets: Counter[str] = Counter()
    lengths: set[int] = set()
    rules: Counter[str] = Counter()
    compiled = contracts(spec)
    for case in invented(2000):
        for step in case.steps:
            lengths |= {*step.src, *(abs(entry) for shape in step.shapes for entry in shape)}
        rows = list(rows_of([case], spec, compiled))
        facets.update(facet.partition(":")[0] for row in rows for facet in row.facets)
        for row in {row.operation: row for row in rows}.values():  # the other ways to call it mean the same
            for task in row.steps:
                meanings = [judged.meaning for judged in task.meanings]
                kinds.update("open" if each.kind == "legal" and each.rules else each.kind for each in meanings)
                rules.update(rule for judged in task.meanings for rule in judged.meaning.rules)
    total = sum(kinds.values())
    kinds["open"] += kinds["unspecified"]  # calls that may be rejected without a verdict against the backend
    assert all(kinds[kind] > total / 30 for kind in ("legal", "illegal", "open")), kinds
    assert {"type", "shape-type", "runtime-shape", "layout", "in-place", "chain", "declared", "form", "rank"} <= set(
        facets
    )
    for power in (15, 16, 31, 32, 62):
        assert {2**power - 1, 2**power, 2**power + 1} & lengths, f"2^{power}"
    assert 2**63 - 1 in lengths
    with_contract = {rule.id for rule in spec.rules.values() if rule.requires or rule.ensures or rule.when}
    assert not {rule for rule in with_contract if spec.rules[rule].documents} - set(rules) - FEW


FEW = frozenset({"huge-on-empty", "types-listed", "shape-types-listed", "types-demanded-of-reshape"})
"""Rules whose turn does not come in so few examples, or that are about types nobody lists."""


def test_every_case_is_valid_when_it_is_pasted(spec: Spec, tmp_path: Path) -> None:
    """Whatever is invented can be written, read again and lowered to the same calls."""
    compiled = contracts(spec)
    (tmp_path / "cases").mkdir()
    written: list[tuple[str, Row]] = []
    for number, case in enumerate(invented(250)):
        row = next(iter(rows_of([case], spec, compiled)), None)
        if row is not None:
            written.append((case_text(case, "same-volume", row, f"number-{number}"), row))
    text = "about: Invented.\ncases:\n" + "".join(text.replace("number-", "n") for text, _ in written)
    (tmp_path / "cases" / "invented.yaml").write_text(text, encoding="utf-8")
    read = with_cases(spec, spec_folder(), tmp_path / "cases")
    assert len(read.cases) == len(written)
    for (_, row), case in zip(written, read.cases.values(), strict=True):
        again = next(iter(rows_of([case], spec, compiled)))
        assert [task.graph for task in again.steps] == [task.graph for task in row.steps]
        assert [task.shapes for task in again.steps] == [task.shapes for task in row.steps]
        assert [t.source._replace(start=0) for t in again.steps] == [t.source._replace(start=0) for t in row.steps]


def test_lessening_ends() -> None:
    for case in invented(30):
        current, steps = case, 0
        while (lesser := next(smaller_cases(current), None)) is not None:
            current, steps = lesser, steps + 1
            assert steps < 500, case


# ── two backends ──────────────────────────────────────────────────────────────────────────────────


class Silent:
    """The reference, but for what it answers where no document says anything."""

    claims = Claims(("StaticReshape", "DynamicReshape-1", "Reshape-1"))

    def __init__(self) -> None:
        self.reference = load_adapter("reference")

    @property
    def identity(self) -> Any:
        return self.reference.identity._replace(name="silent")

    def compile(self, graph: Any) -> Any:
        from conformance.model import Rejected

        if graph.src.dims == ():
            raise Rejected("compile", "no scalars")
        return self.reference.compile(graph)


def test_two_backends_part_only_where_the_documents_are_silent(scope: Scope) -> None:
    hunted = hunt(load_adapter("reference"), scope, 2000, other=Silent())
    assert hunted.counterexample is not None
    assert hunted.counterexample.rule == "rank-zero"
    assert hunted.counterexample.difference == "reference: f32[]; silent: refused at compile: no scalars"
    assert hunt(load_adapter("reference"), scope, 300, other=load_adapter("reference")).counterexample is None


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_prints_the_case_with_rule_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hunt", "broken:last-infer-wins", "--examples", "2000", "--operation", "StaticReshape"]
    assert cli.main(words) == 1
    said = capsys.readouterr().out
    for part in (
        "  - id: answered-an-illegal-call-one-infer\n    rule: one-infer\n    src: f32[]\n    shape: [-1, -1]\n",
        "static-graph-v0.9: illegal: one-infer",
        "one-infer: At most one entry of shape is -1.",
    ):
        assert part in said
    assert cli.main([*words, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["found"]["rule"] == "one-infer"
    assert data["found"]["steady"] is True


def test_the_command_says_when_nothing_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hunt", "reference", "--examples", "50", "--type", "f32", "--differential", "reference"]) == 0
    assert "nothing failed in 50 examples of seed 0" in capsys.readouterr().out


def test_the_command_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["hunt", "reference", "--examples", "20"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_type_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hunt", "reference", "--type", "f23"]) == 2
    assert "unknown type 'f23'; did you mean 'f32'?" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="another kernel tells nobody that a pipe has no writer any more")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_hunt_that_is_killed(tmp_path: Path, end: signal.Signals) -> None:
    (tmp_path / "hanging.py").write_text(
        "import time\nfrom pathlib import Path\nfrom conformance.adapters.reference import Reference\n"
        "class Hanging(Reference):\n    def compile(self, graph):\n"
        f"        Path({str(tmp_path / 'called')!r}).touch()\n        time.sleep(60)\n",
        encoding="utf-8",
    )
    mark = secrets.token_hex(16)
    command = [sys.executable, "-m", "conformance", "hunt", f"{tmp_path / 'hanging.py'}:Hanging"]
    with subprocess.Popen(command, env={**os.environ, "MARK": mark, "TMPDIR": str(tmp_path)}) as running:
        within(60, (tmp_path / "called").exists)
        running.send_signal(end)
    try:
        within(10, lambda: not find_marked_pids(mark))
    finally:
        for pid in find_marked_pids(mark):
            os.kill(pid, signal.SIGKILL)


def within(seconds: float, condition: Callable[[], bool]) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last, "it did not come about"
        time.sleep(0.05)
