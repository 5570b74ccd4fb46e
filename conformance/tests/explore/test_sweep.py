"""A sweep makes every call of its domain, judges as the suite does, and says the same whoever takes the blocks."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.adapters.broken import AnyNegativeInfers, LastInferWins, StridesIgnored
from conformance.adapters.numpy_reference import NumpyReference
from conformance.certify.journal import Refused, encode, part_of
from conformance.cli import sweep as command_module
from conformance.explore import run_block
from conformance.explore.blocks import Order, blocks_of, ways_of
from conformance.explore.context import Context, Lost
from conformance.explore.run_block import BlockRun
from conformance.explore.sweep_file import FILE, Writer, read, salvage
from conformance.explore.tabulate import FREE, KINDS, lengths, tabulate
from conformance.explore.tally import EMPTY, Tally, add, tally_of
from conformance.explore.write_case import call_case, case_text
from conformance.isolate.distribute import run_here
from conformance.load.cases import with_cases
from conformance.load.folders import spec_folder
from conformance.load.spec import load_spec
from conformance.meaning.clauses import compile_clauses
from conformance.meaning.contract import Contract, contracts
from conformance.meaning.domain import FULL, SMALL, TINY, Domain, calls
from conformance.model import Claims, Expression, Graph, Meaning, Program, Rejected, Spec, Tensor, TimedOut
from conformance.plan.rows import plan_of, row_of
from conformance.run.row import run_row
from conformance.system.files import lock_folder
from conformance.tests.processes import peak_memory
from conformance.tests.small import Cli, Said

PART = part_of(Path(FILE)).name
STATIC = ("--operation", "StaticReshape", "--type", "f32")
Sweep = Callable[..., Said]


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec()


@pytest.fixture
def sweep(cli: Cli) -> Sweep:
    """The command, on a small domain."""

    def run(out: Path, *more: object, backend: str = "broken:first-infer-wins") -> Said:
        return cli("sweep", backend, "--rank", 1, "--max-dim", 2, *STATIC, "--out", out, *more)

    return run


# ── meanings ──────────────────────────────────────────────────────────────────────────────────────
def differences(spec: Spec, domain: Domain) -> list[Any]:
    """Calls whose meaning in the tables is not the contract's."""
    found: list[Any] = []
    sources: dict[str, str] = {}
    for document, contract in contracts(spec).items():
        if contract.source in sources:  # the same rules in other clothes
            continue
        sources[contract.source] = document
        rules = compile_clauses(rule for rule in spec.rules.values() if document in rule.documents)
        for rank, entries in itertools.product(range(domain.ranks + 1), range(domain.entries + 1)):
            src = lengths(0, (domain.longest + 1) ** rank, rank, 0, domain.longest)
            shape = lengths(0, (domain.highest - domain.lowest + 1) ** entries, entries, domain.lowest, domain.highest)
            table = tabulate(rules, src, shape)
            kinds = table.kinds.tolist()
            dst = np.stack([np.zeros_like(table.kinds, np.int64), *table.dst], axis=-1)[..., 1:].tolist()
            for (a, one), (b, two) in itertools.product(
                enumerate(map(tuple, src.T.tolist())), enumerate(map(tuple, shape.T.tolist()))
            ):
                for flag in (False, True):
                    meaning = contract.meaning(one, two, flag)
                    if (kinds[flag][a][b], dst[flag][a][b]) != wanted(meaning, dst[flag][a][b]):
                        found.append((document, one, two, flag, meaning))
    return found


def wanted(meaning: Meaning, any_: list[int]) -> tuple[int, list[int]]:
    """A meaning as the tables have it; of an illegal call dst does not matter."""
    dst = any_ if meaning.dst is None else [FREE if length is None else length for length in meaning.dst]
    return KINDS.index(meaning.kind), dst


def test_the_tables_are_the_contracts_on_every_small_call(spec: Spec) -> None:
    assert differences(spec, SMALL) == []


@pytest.mark.slow
def test_the_tables_are_the_contracts_on_every_call_of_the_domain(spec: Spec) -> None:
    assert differences(spec, FULL) == []


@pytest.mark.parametrize("rule", ["one-infer", "zero-copies", "same-volume", "rank-zero", "zero-literal"])
def test_the_tables_follow_the_rules_and_not_a_copy_of_them(spec: Spec, rule: str) -> None:
    """Without a rule the tables say what the contracts say without it."""
    rest = [each for each in spec.rules.values() if each.id != rule and "static-2021" in each.documents]
    meaning = Contract(rest).meaning
    src, shape = lengths(0, 16, 2, 0, 3), lengths(0, 36, 2, -2, 3)
    table = tabulate(compile_clauses(rest), src, shape)
    whole = contracts(spec)["static-2021"].meaning
    changed = 0
    for a, b, flag in itertools.product(range(16), range(36), (False, True)):
        call = tuple(src.T[a].tolist()), tuple(shape.T[b].tolist()), flag
        assert KINDS[table.kinds[int(flag), a, b]] == meaning(*call).kind
        changed += meaning(*call) != whole(*call)
    assert changed or rule == "rank-zero"


@pytest.mark.parametrize("most", ["2", "3", "len(shape)", "product(src) // 2"])
def test_the_tables_know_the_largest_length(spec: Spec, most: str) -> None:
    """Also of calls with several -1, where the volume has to be split."""
    rest = [each for each in spec.rules.values() if each.id != "one-infer" and "static-2021" in each.documents]
    place = spec.rules["same-volume"].place
    bound = Expression(f"all(n <= {most} for n in dst)", place)
    rules = [*rest, replace(spec.rules["same-volume"], id="longest", ensures=bound)]
    src, shape = lengths(0, 25, 2, 0, 4), lengths(0, 216, 3, -1, 4)
    table = tabulate(compile_clauses(rules), src, shape)
    without, bounded = Contract(rest).meaning, Contract(rules).meaning
    changed = 0
    for a, b in itertools.product(range(25), range(216)):
        call = tuple(src.T[a].tolist()), tuple(shape.T[b].tolist()), False
        assert KINDS[table.kinds[0, a, b]] == bounded(*call).kind, call
        changed += bounded(*call).kind != without(*call).kind
    assert changed > 100


# ── the domain ────────────────────────────────────────────────────────────────────────────────────
class Recording(NumpyReference):  # type: ignore[misc]
    """The reference, with every call that it was asked to make."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def compile(self, graph: Graph) -> Program:
        (node,) = graph.nodes
        assert node.shape is not None
        assert node.special_zero is not None
        assert node.special_zero.values is not None
        self.made.append((graph.src.dims, node.shape.values, node.special_zero.values[0]))
        return super().compile(graph)  # type: ignore[no-any-return]


def swept(spec: Spec, adapter: Any, domain: Domain = TINY, **chosen: Any) -> Tally:
    """A sweep by a backend at hand."""
    chosen = {"operations": ["StaticReshape"], "types": ["f32"], **chosen}
    order = Order("at hand", domain, ways_of(spec, **chosen))
    context = Context(order, adapter)
    total = EMPTY
    for block in blocks_of(domain):
        total = add(total, BlockRun(context, block).tally())
    return total


def test_every_call_of_the_domain_is_made_once(spec: Spec) -> None:
    adapter = Recording()
    total = swept(spec, adapter)
    assert sorted(adapter.made) == sorted(calls(TINY))
    assert total.calls == TINY.size
    assert len({*adapter.made}) == len(adapter.made)


@pytest.mark.parametrize("domain", [TINY, SMALL, FULL, Domain(1, 9, 5, -2, 9)])
def test_blocks_hold_each_call_once(domain: Domain) -> None:
    assert sum(block.calls for block in blocks_of(domain)) == domain.size
    assert list(blocks_of(domain)) == list(blocks_of(domain))


def test_shards_share_the_blocks(tmp_path: Path, sweep: Sweep) -> None:
    parts = []
    for shard in ("1/3", "2/3", "3/3"):
        sweep(tmp_path / shard[0], "--shard", shard, backend="numpy").expect(4)
        parts.append(read(tmp_path / shard[0] / FILE).total)
    assert add(add(parts[0], parts[1]), parts[2]).calls == Domain(1, 2, 2, -2, 2).size
    assert all(part.calls for part in parts)


def test_a_domain_that_cannot_be_counted_is_refused(tmp_path: Path, cli: Cli) -> None:
    cli("sweep", "numpy", "--rank", "40", "--max-dim", "9", "--out", tmp_path).expect(2, err="do not fit 62 bits")


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


class Off(NumpyReference):  # type: ignore[misc]
    """The reference with one thing wrong; `how` says what."""

    def __init__(self, how: str) -> None:
        self.how = how

    def compile(self, graph: Graph) -> Program:
        try:
            return Bent(super().compile(graph), self.how)
        except Rejected:
            if self.how in REFUSALS:
                raise REFUSALS[self.how]() from None
            raise


class Bent:
    """A program that answers, and then does something that it should not."""

    def __init__(self, program: Program, how: str) -> None:
        self.program, self.how = program, how

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
        answer = self.program.run(src, shapes, may_overwrite)
        if self.how in ("src", "guard") and src.dims == (2,):
            src.memory[src.offset if self.how == "src" else 0] ^= 1
        if self.how == "shape" and shapes:
            shapes[0].memory[-1] ^= 1
        if isinstance(answer, Tensor):
            wider = Tensor(answer.type, (*answer.dims, 1), (*answer.strides, 1), answer.memory, 0)
            return wider if self.how == "empty dims" else answer
        return ANSWERS.get(self.how, lambda answer: answer)(answer)


@pytest.mark.parametrize("how", ["src", "guard", "shape", "empty dims", *ANSWERS, *REFUSALS])
def test_the_quick_path_and_the_judge_are_of_one_mind(spec: Spec, how: str) -> None:
    """Every call of a small domain, judged one by one by the suite's own engine, comes to the same counts."""
    domain = Domain(1, 2, 2, -2, 2)
    ways = ways_of(spec, ["StaticReshape", "DynamicReshape-1"], ["f32"])
    total = swept(spec, Off(how), domain, operations=["StaticReshape", "DynamicReshape-1"])
    slow: dict[str, Counter[str]] = {}
    compiled, adapter = contracts(spec), Off(how)
    for way in ways:
        for call in calls(domain):
            case = call_case("x", "same-volume", "f32", call)
            row = row_of(case, spec.operations[way.operation], way.given, way.shape_type, compiled)
            for document, verdict in run_row(row, adapter, False).verdicts.items():
                slow.setdefault(document, Counter())[verdict] += 1
    assert {document: +Counter(counts) for document, counts in total.verdicts.items()} == slow
    assert any(counts["fail"] + counts["error"] for counts in slow.values())
    assert total.failures


def test_what_is_left_out_is_not_claimed_when_refused(spec: Spec) -> None:
    adapter = NumpyReference()
    adapter.claims = Claims(("StaticReshape",), ("type:f16",))
    total = swept(spec, adapter, types=["f16"])
    legal, illegal, unspecified = (total.meanings["static-2021"][kind] for kind in KINDS)
    counts = total.verdicts["static-2021"]
    assert counts["pass"] == legal
    assert counts["not claimed"] == illegal + unspecified - counts["observed"] > illegal
    other = swept(spec, adapter, operations=["DynamicReshape-1"])
    assert set(other.verdicts["dynamic-2021"]) == {"not claimed"}


@pytest.mark.parametrize("layout", ["transposed", "padded", "cropped", "offset", "broadcast", "reversed"])
def test_a_layout_changes_nothing_for_the_reference_and_all_for_who_ignores_strides(spec: Spec, layout: Any) -> None:
    domain = Domain(2, 3, 1, -2, 3)
    assert not swept(spec, NumpyReference(), domain, layouts=[layout]).failures
    failures = swept(spec, StridesIgnored(), domain, layouts=[layout]).failures
    assert failures if layout != "offset" else True
    assert all(rule == "layout-is-no-content" for rule, _ in failures)


def test_the_smallest_example_is_a_case_that_shows_the_failure(spec: Spec, tmp_path: Path) -> None:
    ((rule, diagnosis), failure), *others = swept(spec, LastInferWins()).failures.items()
    assert (rule, diagnosis, others) == ("one-infer", "answered an illegal call", [])
    assert "src: f32[]\n    shape: [-1, -1]\n" in failure.example["case"]
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "new.yaml").write_text("about: Found.\ncases:\n" + failure.example["case"], encoding="utf-8")
    plan = plan_of(with_cases(spec, spec_folder(), tmp_path / "cases"))
    row = next(row for row in plan.rows if row.operation == "StaticReshape")
    assert row.case.rule == "one-infer"
    assert set(run_row(row, LastInferWins(), False).verdicts.values()) == {"fail"}
    assert case_text(row.case, rule, row, f"{diagnosis} {rule}") == failure.example["case"]


# ── the file ──────────────────────────────────────────────────────────────────────────────────────
CHANGES = ("started", "seconds", "header", "footer", "resumed", "digest")
"""What two runs of one sweep may differ in: times, what was resumed, and digests of lines that hold these."""


def lines(path: Path) -> list[Any]:
    keep = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k not in CHANGES} for line in keep]


def test_the_size_is_said_and_the_failures_are_shown_with_a_case(tmp_path: Path, sweep: Sweep) -> None:
    words = "each in 1 way of calling: 248 calls", "one-infer · 8 calls", "shape: [-1, -1]", "exit 1: 8 calls failed"
    assert sweep(tmp_path).expect(1, out=words).out.startswith("the 248 calls with src of rank 0 to 1")


@pytest.mark.slow
def test_a_backend_that_dies_costs_its_own_process_and_is_asked_again_alone(tmp_path: Path, cli: Cli) -> None:
    backend = "conformance.adapters.broken.process:DiesRatherThanRefuse"
    words = ["--rank", "1", "--max-dim", "1", "--entries", "1", "--isolation", "worker"]
    cli("sweep", backend, *words, *STATIC, "--out", tmp_path).expect(1)
    failures = read(tmp_path / FILE).total.failures
    assert {diagnosis for _, diagnosis in failures} == {"crash"}
    assert all("deterministic" in failure.example["detail"] for failure in failures.values())


@pytest.mark.slow
def test_memory_is_the_same_for_a_hundred_times_as_many_calls(tmp_path: Path) -> None:
    def peak(rank: str) -> int:
        words = ("--rank", rank, "--max-dim", "3", "--out", str(tmp_path), "--operation", "StaticReshape")
        return peak_memory([sys.executable, "-m", "conformance", "sweep", "numpy", *words])

    few, many = peak("2"), peak("3")
    assert many < 1.3 * few


def test_the_reference_has_no_failures(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path, backend="numpy").expect(0)
    assert read(tmp_path / FILE).total.failures == {}


@pytest.mark.parametrize("more", [(), pytest.param(("--jobs", "2"), marks=pytest.mark.slow)])
def test_the_same_sweep_writes_the_same_file(tmp_path: Path, sweep: Sweep, more: tuple[str, ...]) -> None:
    assert sweep(tmp_path / "one").code == sweep(tmp_path / "two", *more).code == 1
    assert lines(tmp_path / "one" / FILE) == lines(tmp_path / "two" / FILE)


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_an_interrupted_sweep_is_resumed(tmp_path: Path, sweep: Sweep, kept: int) -> None:
    sweep(tmp_path / "one").expect(1)
    interrupted(tmp_path / "one" / FILE, tmp_path / "two", kept)
    resumed = sweep(tmp_path / "two", "--resume").expect(1)
    assert lines(tmp_path / "one" / FILE) == lines(tmp_path / "two" / FILE)
    footer = read(tmp_path / "two" / FILE).footer
    assert footer["resumed"] == kept - 1
    words = f"{kept - 1} of {footer['blocks']} blocks are from an interrupted sweep"
    assert (words in resumed.out) == (kept > 1)
    assert os.listdir(tmp_path / "two") == [FILE]


def interrupted(whole: Path, folder: Path, kept: int) -> None:
    """Put what a sweep leaves that was interrupted after so many lines into a folder."""
    text = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    folder.mkdir()
    (folder / PART).write_text("".join(text[:kept]) + text[kept][:20], encoding="utf-8")


def test_a_block_that_is_resumed_twice_stays_marked(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path / "one").expect(1)
    interrupted(tmp_path / "one" / FILE, tmp_path / "two", 4)
    sweep(tmp_path / "two", "--resume").expect(1)
    interrupted(tmp_path / "two" / FILE, tmp_path / "three", 3)
    sweep(tmp_path / "three", "--resume").expect(1)
    marks = [json.loads(line).get("resumed") for line in (tmp_path / "three" / FILE).read_text().splitlines()]
    assert marks == [None, True, True, *[False] * (len(marks) - 4), 2]


def test_another_sweep_is_not_resumed(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path / "one").expect(1)
    sweep(tmp_path / "one", "--resume").expect(2, err="the sweep ended")
    assert read(tmp_path / "one" / FILE).total.failures
    interrupted(tmp_path / "one" / FILE, tmp_path / "two", 3)
    sweep(tmp_path / "two", "--resume", backend="numpy").expect(2, err="begin a new sweep")
    assert (tmp_path / "two" / PART).exists()


def test_a_block_without_the_calls_that_are_due_is_not_resumed(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path / "one").expect(1)
    interrupted(tmp_path / "one" / FILE, tmp_path / "two", 4)
    part = tmp_path / "two" / PART
    head, first, second, *_ = part.read_text(encoding="utf-8").splitlines(keepends=True)
    for text in (head + second, head + first + first):
        part.write_text(text, encoding="utf-8")
        sweep(tmp_path / "two", "--resume").expect(2, err="does not have the calls that are due")


# ── what lies in the folder ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_results_of_an_earlier_sweep_do_not_outlive_one_that_cannot_start(
    tmp_path: Path, sweep: Sweep, more: tuple[str, ...]
) -> None:
    sweep(tmp_path, backend="numpy").expect(0)
    (tmp_path / PART).write_text((tmp_path / FILE).read_text(encoding="utf-8"), encoding="utf-8")
    sweep(tmp_path, *more, backend="nowhere.at_all:Backend").expect(3, lines=1)
    assert os.listdir(tmp_path) == [PART] * len(more)


@pytest.mark.parametrize("name", [FILE, PART, f"{FILE}.new"])
def test_a_symbolic_link_is_replaced_and_not_written_through(tmp_path: Path, sweep: Sweep, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "out" / name).symlink_to(tmp_path / "mine")
    sweep(tmp_path / "out").expect(1)
    assert (tmp_path / "mine").read_text() == "kept"
    assert os.listdir(tmp_path / "out") == [FILE]
    assert not (tmp_path / "out" / FILE).is_symlink()


def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path, backend="numpy").expect(0)
    with lock_folder(tmp_path, "a sweep of mine"):
        sweep(tmp_path).expect(2, lines=1, err=f"is in use by process {os.getpid()}, a sweep of mine")
    assert read(tmp_path / FILE).header["backend"]["adapter"] == "numpy"


MEDDLING = """
import os
from pathlib import Path
from conformance.adapters.numpy_reference import NumpyReference
class Meddling(NumpyReference):
    def compile(self, graph):
        part = Path({part!r})
        if part.exists() and graph.src.dims == (2,):
            {act}
        return super().compile(graph)
"""


@pytest.mark.parametrize(
    "act",
    [
        "file = part.open('r+b'); file.seek(30); file.write(b'x'); file.close()",
        "text = part.read_bytes(); part.unlink(); part.write_bytes(text)",
        "part.unlink()",
        "part.unlink(); part.mkdir()",
        "part.unlink(); part.symlink_to('/dev/zero')",
        "file = part.open('r+b'); file.seek(1 << 20); file.write(b'x'); file.close()",
    ],
)
def test_a_file_that_the_backend_changes_is_no_result(tmp_path: Path, sweep: Sweep, act: str) -> None:
    source = MEDDLING.format(part=str(tmp_path / "out" / PART), act=act.replace("; ", f"\n{' ' * 12}"))
    (tmp_path / "meddling.py").write_text(source, encoding="utf-8")
    words = "sweep.jsonl was changed while the sweep wrote it; no verdict holds, sweep again"
    sweep(tmp_path / "out", backend=f"{tmp_path / 'meddling.py'}:Meddling").expect(5, lines=1, err=words)
    assert not (tmp_path / "out" / FILE).is_file()


# ── reading ───────────────────────────────────────────────────────────────────────────────────────
def test_a_file_that_was_cut_or_changed_is_refused(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path).expect(1)
    text = (tmp_path / FILE).read_text(encoding="utf-8")
    assert read(tmp_path / FILE).total.failures
    for changed, words in (
        (text[:-5], "the line is cut off: the sweep did not end; sweep again"),
        ("".join(text.splitlines(keepends=True)[:-1]), "no footer"),
        ("", "is empty; sweep again"),
        (text.replace('"resumed":false,"calls":2,', '"resumed":false,"calls":3,', 1), "the blocks are not those"),
        (text.replace('"shard":null', '"shard":"1/2"', 1), "the header is not the one"),
        (text.replace('"refuses-everything":', '"refuses-everything":1', 1), "the footer is not as it was written"),
        (text.replace('"seconds":', '"seconds":1', 1), "the footer is not as it was written"),
        (text + text, 'a "footer" among the blocks; two files are mixed'),
    ):
        (tmp_path / FILE).write_text(changed, encoding="utf-8")
        with pytest.raises(Refused, match=words):
            read(tmp_path / FILE)
    with pytest.raises(Refused, match="cannot be read"):
        salvage(tmp_path / "none.jsonl", {}, ())


WRONG = [
    (0, ("domain", "ranks"), -1),
    (0, ("ways", 0, "layout"), "any"),
    (0, ("claims", "operations"), "all"),
    (0, ("suite", "digest"), "0"),
    (0, ("calls",), True),
    (0, ("more",), 1),
    (1, ("calls",), -2),
    (1, ("calls",), 2.0),
    (1, ("calls",), 1 << 64),
    (1, ("resumed",), 1),
    (1, ("meanings", "static-2021"), []),
    (1, ("meanings", "static-2021", "legal"), -3),
    (1, ("verdicts", "static-2021", "passed"), 1),
    (1, ("failures",), {}),
    (1, ("failures",), [{"rule": "one-infer"}]),
    (-2, ("failures", 0, "size", 2), 1),
    (-2, ("failures", 0, "calls"), None),
    (-2, ("failures", 0, "verdicts"), {"static-2021": []}),
    (-1, ("canaries", "refuses-everything"), -3),
    (-1, ("canaries",), None),
    (-1, ("seconds",), float("nan")),
    (-1, ("seconds",), "1"),
    (-1, ("digest",), 7),
]


@pytest.mark.parametrize(("number", "keys", "value"), WRONG)
def test_a_field_of_the_wrong_type_is_refused_with_its_place(
    tmp_path: Path, sweep: Sweep, number: int, keys: tuple[Any, ...], value: Any
) -> None:
    sweep(tmp_path).expect(1)
    records = [json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines()]
    inner = records[number]
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    if number == -1:
        rest = {key: value for key, value in records[-1].items() if key != "footer"}
        records[-1]["footer"] = hashlib.sha256(encode(rest).encode()).hexdigest()
    (tmp_path / FILE).write_text("".join(f"{encode(each)}\n" for each in records), encoding="utf-8")
    place = f"{FILE}:{number + 1 if number >= 0 else len(records) + 1 + number}: "
    with pytest.raises(Refused, match=place) as refused:
        read(tmp_path / FILE)
    assert "\n" not in str(refused.value)


def test_what_nobody_could_read_is_refused_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / FILE
    for text, words in (
        (b"[" * 100_000 + b"\n", "1: is no result of a sweep"),
        (b'{"record":' * 100_000 + b"\n", "1: is no result of a sweep"),
        (b"\xff\n", "1: is not UTF-8"),
        (b'{"record":"block"}\n', "1: is no header of reshape-conformance-sweep-3"),
        (b'{"record":"header","format":"reshape-conformance-sweep-1"}\n', "reads reshape-conformance-sweep-3"),
    ):  # fmt: skip
        path.write_bytes(text)
        with pytest.raises(Refused, match=words):
            read(path)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Refused, match="1: the line has more than 16,777,216 bytes"):
        read(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Refused, match="not a regular file"):
        read(path)


def test_a_file_that_lacks_blocks_is_refused_though_its_footer_fits(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path).expect(1)
    header, *blocks, _ = (json.loads(line) for line in (tmp_path / FILE).read_text(encoding="utf-8").splitlines())
    writer = Writer(tmp_path, header, [tally_of(block) for block in blocks[:-1]])
    writer.close(1.0, {"planted": 1})
    with pytest.raises(Refused, match="calls, and its header says 248"):
        read(tmp_path / FILE)


def test_blocks_that_were_taken_in_part_are_no_sweep(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(*given: Any) -> Tally:
        whole = run_block.run_block(*given)
        return whole._replace(calls=whole.calls - 1)

    monkeypatch.setattr(command_module, "_distribute", lambda *given: partial(run_here, partial(fewer, given[1])))
    sweep(tmp_path).expect(3, err="a worker made 1 calls of a block of 2")
    assert not (tmp_path / FILE).exists()


# ── a backend that does not answer ────────────────────────────────────────────────────────────────
class Late(NumpyReference):  # type: ignore[misc]
    """The reference, which does not answer the calls that `late` picks by their number."""

    def __init__(self, late: Callable[[int], bool]) -> None:
        self.late, self.made = late, 0

    def compile(self, graph: Graph) -> Program:
        self.made += 1
        if self.late(self.made):
            raise TimedOut("no answer within 20 s")
        return super().compile(graph)  # type: ignore[no-any-return]


def test_a_backend_that_hangs_on_every_call_or_again_and_again_is_given_up(spec: Spec) -> None:
    adapter = Late(lambda number: number > 30)
    with pytest.raises(Lost, match=r"to 10 calls in a row, the last of them StaticReshape f32 src \["):
        swept(spec, adapter, SMALL)
    assert adapter.made == 40
    with pytest.raises(Lost, match="to 50 calls of a block, the last of them"):
        swept(spec, Late(lambda number: bool(number % 2)), SMALL)


def test_a_backend_that_hangs_now_and_then_is_swept_to_the_end(spec: Spec) -> None:
    total = swept(spec, Late(lambda number: number % 400 < 9), Domain(1, 3, 3, -2, 3))
    assert total.calls == Domain(1, 3, 3, -2, 3).size
    assert {diagnosis for _, diagnosis in total.failures} == {"timeout"}


def test_the_command_ends_when_a_backend_hangs_and_what_was_done_can_be_resumed(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_block, "_IN_A_ROW", 2)
    source = "import time\n" + MEDDLING.format(part=str(tmp_path / "out" / PART), act="time.sleep(60)")
    (tmp_path / "hanging.py").write_text(source, encoding="utf-8")
    backend = f"{tmp_path / 'hanging.py'}:Meddling"
    words = "no answer within 0.5 s to 2 calls in a row, the last of them StaticReshape f32 src [2], shape []"
    sweep(tmp_path / "out", "--timeout", "0.5", backend=backend).expect(3, lines=1, err=words)
    kept = (tmp_path / "out" / PART).read_text(encoding="utf-8").splitlines()
    assert len(kept) > 1
    (tmp_path / "hanging.py").write_text(source.replace("time.sleep(60)", "pass"), encoding="utf-8")
    sweep(tmp_path / "out", "--timeout", "0.5", "--resume", backend=backend).expect(0)
    assert read(tmp_path / "out" / FILE).footer["resumed"] == len(kept) - 1


def test_parts_join_in_any_order(spec: Spec) -> None:
    order = Order("at hand", TINY, ways_of(spec, ["StaticReshape"], ["f32"]))
    context = Context(order, AnyNegativeInfers())
    parts = [BlockRun(context, block).tally() for block in blocks_of(TINY)]
    forth, back = EMPTY, EMPTY
    for one, other in zip(parts, reversed(parts), strict=True):
        forth, back = add(forth, one), add(back, other)
    assert forth == back
