"""The file of a sweep, and what lies in its folder."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.sweep.sweep_file import FILE
from conformance.system.files import lock_folder
from tests.builders import Cli
from tests.processes import peak_memory

from .sweeps import PART, STATIC, Sweep, read, write_meddling

# ── the file ──────────────────────────────────────────────────────────────────────────────────────
MINE = "from conformance.adapters.reference import Reference\nclass Mine(Reference):\n"
CHANGES = ("started", "seconds", "header", "footer", "resumed", "digest")
"""What two runs of one sweep may differ in: times, what was resumed, and digests of lines that hold these."""


def lines(path: Path) -> list[Any]:
    keep = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k not in CHANGES} for line in keep]


def test_the_size_is_said_and_the_failures_are_shown_with_a_case(tmp_path: Path, sweep: Sweep) -> None:
    words = "each in 1 way of calling: 248 calls", "one-infer · 8 calls", "shape: [-1, -1]", "exit 1: 8 calls failed"
    assert sweep(tmp_path).expect(1, out=words).out.startswith("the 248 calls with src of rank 0 to 1")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_crash_is_tried_again_in_a_new_process(tmp_path: Path, cli: Cli) -> None:
    backend = "conformance.adapters.planted.process:DiesRatherThanReject"
    words = ["--rank", "1", "--max-dim", "1", "--isolation", "worker"]
    cli("sweep", backend, *words, *STATIC, "--out", tmp_path).expect(1)
    failures = read(tmp_path / FILE).total.failures
    assert {diagnosis for _, diagnosis in failures} == {"crash"}
    assert all("deterministic" in failure.example["detail"] for failure in failures.values())


@pytest.mark.slow
@pytest.mark.exhaustive
def test_memory_is_the_same_for_a_hundred_times_as_many_calls(tmp_path: Path) -> None:
    def peak(rank: str) -> int:
        words = ("--rank", rank, "--max-dim", "3", "--out", str(tmp_path), "--operation", "StaticReshape")
        return peak_memory([sys.executable, "-m", "conformance", "sweep", "reference", *words])

    few, many = peak("2"), peak("3")
    assert many < 1.3 * few


def test_the_reference_has_no_failures(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path, backend="reference").expect(0)
    assert read(tmp_path / FILE).total.failures == {}


@pytest.mark.parametrize("more", [(), pytest.param(("--jobs", "2"), marks=pytest.mark.slow)])
def test_the_same_sweep_writes_the_same_file(tmp_path: Path, sweep: Sweep, more: tuple[str, ...]) -> None:
    assert sweep(tmp_path / "one").code == sweep(tmp_path / "two", *more).code == 1
    assert lines(tmp_path / "one" / FILE) == lines(tmp_path / "two" / FILE)


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_an_interrupted_sweep_is_resumed(tmp_path: Path, sweep: Sweep, kept: int) -> None:
    interrupted(sweep, tmp_path, kept)
    resumed = sweep(tmp_path / "two", "--resume").expect(1)
    assert lines(tmp_path / "one" / FILE) == lines(tmp_path / "two" / FILE)
    footer = read(tmp_path / "two" / FILE).footer
    assert footer["resumed"] == kept - 1
    words = f"{kept - 1} of {footer['blocks']} blocks are from an interrupted sweep"
    assert (words in resumed.out) == (kept > 1)
    assert os.listdir(tmp_path / "two") == [FILE]


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.cli.sweep._run_rest", interrupt)
    said = sweep(tmp_path / "one").expect(130)
    assert said.err == "conformance: interrupted; to go on, add --resume to the same command\n"
    monkeypatch.undo()
    sweep(tmp_path / "one", "--resume").expect(1)


def interrupted(sweep: Sweep, folder: Path, kept: int) -> None:
    """Sweep into a folder `one`, and put what is left after an interruption after so many lines into `two`."""
    sweep(folder / "one").expect(1)
    interrupt(folder / "one" / FILE, folder / "two", kept)


def interrupt(whole: Path, folder: Path, kept: int) -> None:
    text = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    folder.mkdir()
    (folder / PART).write_text("".join(text[:kept]) + text[kept][:20], encoding="utf-8")


def test_a_block_that_is_resumed_twice_stays_marked(tmp_path: Path, sweep: Sweep) -> None:
    interrupted(sweep, tmp_path, 4)
    sweep(tmp_path / "two", "--resume").expect(1)
    interrupt(tmp_path / "two" / FILE, tmp_path / "three", 3)
    sweep(tmp_path / "three", "--resume").expect(1)
    marks = [json.loads(line).get("resumed") for line in (tmp_path / "three" / FILE).read_text().splitlines()]
    assert marks == [None, True, True, *[False] * (len(marks) - 4), 2]


def test_another_sweep_is_not_resumed(tmp_path: Path, sweep: Sweep) -> None:
    interrupted(sweep, tmp_path, 3)
    sweep(tmp_path / "one", "--resume").expect(2, err="the sweep ended")
    assert read(tmp_path / "one" / FILE).total.failures
    sweep(tmp_path / "two", "--resume", backend="reference").expect(2, err="begin a new sweep")
    assert (tmp_path / "two" / PART).exists()


def test_a_sweep_of_another_file_is_not_resumed(tmp_path: Path, cli: Cli) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MINE + "    pass\n", encoding="utf-8")
    words = ("sweep", f"{mine}:Mine", "--rank", 1, "--max-dim", 2, *STATIC, "--out", tmp_path / "out")
    cli(*words).expect(0)
    (tmp_path / "out" / FILE).rename(tmp_path / "out" / PART)
    mine.write_text(mine.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    cli(*words, "--resume").expect(2, err="begin a new sweep")


def test_a_type_that_was_asked_for_and_is_not_claimed(tmp_path: Path, cli: Cli) -> None:
    text = f"{MINE}    claims = Reference.claims._replace(not_claimed=('type:f16',))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    words = ("sweep", f"{tmp_path / 'mine.py'}:Mine", "--rank", 1, "--max-dim", 1, "--out", tmp_path / "out")
    cli(*words, "--operation", "StaticReshape", "--type", "f16").expect(4)
    cli(*words, "--operation", "StaticReshape", "--type", "f16", "--type", "f32").expect(4, out="does not claim f16")


def test_a_block_without_the_calls_that_are_due_is_not_resumed(tmp_path: Path, sweep: Sweep) -> None:
    interrupted(sweep, tmp_path, 4)
    part = tmp_path / "two" / PART
    head, first, second, *_ = part.read_text(encoding="utf-8").splitlines(keepends=True)
    for text in (head + second, head + first + first):
        part.write_text(text, encoding="utf-8")
        sweep(tmp_path / "two", "--resume").expect(2, err="does not have the calls that are due")


# ── what lies in the folder ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("more", [(), ("--isolation", "none"), ("--isolation", "none", "--resume")])
def test_a_sweep_that_cannot_start_removes_old_results(tmp_path: Path, sweep: Sweep, more: tuple[str, ...]) -> None:
    sweep(tmp_path, backend="reference").expect(0)
    (tmp_path / PART).write_text((tmp_path / FILE).read_text(encoding="utf-8"), encoding="utf-8")
    sweep(tmp_path, *more, backend="nowhere.at_all:Backend").expect(3, lines=1)
    assert os.listdir(tmp_path) == [PART] * ("--resume" in more)


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
    sweep(tmp_path, backend="reference").expect(0)
    with lock_folder(tmp_path, "a sweep of mine"):
        sweep(tmp_path).expect(2, lines=1, err=f"is in use by process {os.getpid()}, a sweep of mine")
    assert read(tmp_path / FILE).header["backend"]["adapter"] == "reference"


@pytest.mark.parametrize(
    ("isolation", "act"),
    [
        ("worker", "file = part.open('r+b'); file.seek(30); file.write(b'x'); file.close()"),
        ("none", "text = part.read_bytes(); part.unlink(); part.write_bytes(text)"),
        ("none", "part.unlink()"),
        ("none", "part.unlink(); part.mkdir()"),
        ("none", "part.unlink(); part.symlink_to('/dev/zero')"),
        ("none", "file = part.open('r+b'); file.seek(1 << 20); file.write(b'x'); file.close()"),
    ],
)
def test_a_file_that_the_backend_changes_is_no_result(tmp_path: Path, sweep: Sweep, isolation: str, act: str) -> None:
    words = "sweep.jsonl was changed while the sweep wrote it; no verdict holds, sweep again"
    backend = write_meddling(tmp_path, tmp_path / "out" / PART, act)
    sweep(tmp_path / "out", "--isolation", isolation, backend=backend).expect(5, lines=1, err=words)
    assert not (tmp_path / "out" / FILE).is_file()
