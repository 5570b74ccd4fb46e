"""Read the file of a sweep; sweep a backend that does not answer."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.adapters.planted import AnyNegativeInfers
from conformance.adapters.reference import Reference
from conformance.cli import sweep as command_module
from conformance.cli.main import main
from conformance.evidence.journal import InvalidEvidence, encode
from conformance.meaning.domain import SMALL_DOMAIN, TINY_DOMAIN, Domain
from conformance.model import Graph, Program, Spec, TimedOut
from conformance.sweep import run_block
from conformance.sweep.blocks import SweepRequest, blocks_of, list_variants
from conformance.sweep.context import BackendLost, SweepContext
from conformance.sweep.run_block import BlockRun
from conformance.sweep.sweep_file import FILE, salvage
from conformance.sweep.tally import EMPTY, Tally, add

from ..misbehaving import GIVES_UP
from .sweeps import PART, STATIC, Sweep, read, swept, write_meddling

# ── reading ───────────────────────────────────────────────────────────────────────────────────────
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
    (1, ("meanings", "static-graph-v0.9"), []),
    (1, ("meanings", "static-graph-v0.9", "legal"), -3),
    (1, ("verdicts", "static-graph-v0.9", "passed"), 1),
    (1, ("failures",), {}),
    (1, ("failures",), [{"rule": "one-infer"}]),
    (-2, ("failures", 0, "size", 2), 1),
    (-2, ("failures", 0, "calls"), None),
    (-2, ("failures", 0, "verdicts"), {"static-graph-v0.9": []}),
    (-1, ("planted", "rejects-everything"), -3),
    (-1, ("planted",), None),
    (-1, ("seconds",), float("nan")),
    (-1, ("seconds",), "1"),
    (-1, ("digest",), 7),
]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a sweep that found failures."""
    folder = tmp_path_factory.mktemp("sweep")
    words = ["sweep", "planted:first-infer-wins", "--rank", "1", "--max-dim", "2", *STATIC, "--out", str(folder)]
    assert main(words) == 1
    return (folder / FILE).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("number", "keys", "value"), WRONG)
def test_a_field_of_the_wrong_type_is_refused_with_its_place(
    tmp_path: Path, lines: list[str], number: int, keys: tuple[Any, ...], value: Any
) -> None:
    records = [json.loads(line) for line in lines]
    inner = records[number]
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (tmp_path / PART).write_text("".join(f"{encode(each)}\n" for each in records), encoding="utf-8")
    place = f"{PART}:{number + 1 if number >= 0 else len(records) + 1 + number}: "
    due = [record["calls"] for record in map(json.loads, lines[1:-1])]
    with pytest.raises(InvalidEvidence, match=place) as refused:
        salvage(tmp_path / FILE, json.loads(lines[0]), due)
    assert "\n" not in str(refused.value)


def test_what_nobody_could_read_is_refused_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / PART
    for text, words in (
        (b"[" * 100_000 + b"\n", "1: is no result of a sweep"),
        (b'{"record":' * 100_000 + b"\n", "1: is no result of a sweep"),
        (b"\xff\n", "1: is not UTF-8"),
        (b'{"record":"block"}\n', "1: is no header of reshape-conformance-sweep-6"),
        (b'{"record":"header","format":"reshape-conformance-sweep-1"}\n', "reads reshape-conformance-sweep-6"),
    ):  # fmt: skip
        path.write_bytes(text)
        with pytest.raises(InvalidEvidence, match=words):
            salvage(tmp_path / FILE, {}, ())
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert salvage(tmp_path / FILE, {}, ()) == [], "a first line that was not written whole"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InvalidEvidence, match="not a regular file"):
        salvage(tmp_path / FILE, {}, ())


def test_blocks_that_were_taken_in_part_are_no_sweep(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(*given: Any, who: Any = None) -> Tally:
        whole = run_block.run_block(given[0], given[1], who)
        return whole._replace(calls=whole.calls - 1)

    monkeypatch.setattr(command_module, "run_block", fewer)
    sweep(tmp_path).expect(3, err="a worker made 1 calls of a block of 2")
    assert not (tmp_path / FILE).exists()


# ── a backend that does not answer ────────────────────────────────────────────────────────────────
class Late(Reference):  # type: ignore[misc]
    """The reference, which does not answer the calls that `late` picks by their number."""

    def __init__(self, late: Callable[[int], bool]) -> None:
        self.late, self.made = late, 0

    def compile(self, graph: Graph) -> Program:
        self.made += 1
        if self.late(self.made):
            raise TimedOut("no answer within 20 s")
        return super().compile(graph)  # type: ignore[no-any-return]


def test_a_backend_that_hangs_often_is_given_up(spec: Spec) -> None:
    adapter = Late(lambda number: number > 30)
    with pytest.raises(BackendLost, match=r"to 10 calls in a row, the last of them StaticReshape f32 src \["):
        swept(spec, adapter, SMALL_DOMAIN)
    assert adapter.made == 40
    with pytest.raises(BackendLost, match="to 50 calls of a block, the last of them"):
        swept(spec, Late(lambda number: bool(number % 2)), SMALL_DOMAIN)


def test_a_backend_that_hangs_now_and_then_is_swept_to_the_end(spec: Spec) -> None:
    total = swept(spec, Late(lambda number: number % 400 < 9), Domain(1, 3, 3, -2, 3))
    assert total.calls == Domain(1, 3, 3, -2, 3).size
    assert {diagnosis for _, diagnosis in total.failures} == {"timeout"}


def test_a_program_that_cannot_be_started_again_ends_the_sweep(tmp_path: Path, sweep: Sweep) -> None:
    program = tmp_path / "program.py"
    program.write_text(GIVES_UP, encoding="utf-8")
    backend = f"cmd:{sys.executable} -I -S {program} {tmp_path / 'begun'}"
    sweep(tmp_path / "out", backend=backend).expect(3, lines=1, err="the backend was given up after 3 starts")


@pytest.mark.slow
def test_a_sweep_with_a_hanging_backend_ends_and_resumes(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_block, "_MAX_LATE_IN_A_ROW", 2)
    (busy := tmp_path / "busy").touch()  # a mended backend would be another one, which is not resumed
    backend = write_meddling(tmp_path, tmp_path / "out" / PART, f"time.sleep(60 * Path({str(busy)!r}).exists())")
    words = "no answer within 0.5 s to 2 calls in a row, the last of them StaticReshape f32 src [2], shape []"
    sweep(tmp_path / "out", "--timeout", "0.5", backend=backend).expect(3, lines=1, err=words)
    kept = (tmp_path / "out" / PART).read_text(encoding="utf-8").splitlines()
    assert len(kept) > 1
    busy.unlink()
    sweep(tmp_path / "out", "--timeout", "0.5", "--resume", backend=backend).expect(0)
    assert read(tmp_path / "out" / FILE).footer["resumed"] == len(kept) - 1


def test_parts_join_in_any_order(spec: Spec) -> None:
    request = SweepRequest("at hand", TINY_DOMAIN, list_variants(spec, ["StaticReshape"], ["f32"]))
    context = SweepContext(request, AnyNegativeInfers())
    parts = [BlockRun(context, block).tally() for block in blocks_of(TINY_DOMAIN)]
    forth, back = EMPTY, EMPTY
    for one, other in zip(parts, reversed(parts), strict=True):
        forth, back = add(forth, one), add(back, other)
    assert forth == back
