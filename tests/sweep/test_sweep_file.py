"""The file of a sweep, and what lies in its folder."""

import os
import sys
from pathlib import Path

import pytest

from conformance.sweep.sweep_file import SWEEP_FILE
from conformance.system.files import lock_folder
from tests.builders import Cli
from tests.processes import peak_memory

from ..isolate.remote_backends import write_acting
from .sweeps import STATIC, Sweep, read

# ── the file ──────────────────────────────────────────────────────────────────────────────────────
MINE = "from conformance.adapters.reference import Reference\nclass Mine(Reference):\n"


def test_the_size_is_said_and_the_failures_are_shown_with_a_case(tmp_path: Path, sweep: Sweep) -> None:
    words = "each in 1 way of calling: 248 calls", "one-infer · 8 calls", "shape: [-1, -1]", "exit 1: 8 calls failed"
    out = sweep(tmp_path).expect(1, out=words).out
    assert out.startswith("the 248 calls with src of rank 0 to 1")
    assert out.endswith("next: conformance explain one-infer\n")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_crash_is_tried_again_in_a_new_process(tmp_path: Path, cli: Cli) -> None:
    backend = "conformance.adapters.planted.process:DiesRatherThanReject"
    words = ["--rank", "1", "--max-dim", "1", "--isolation", "worker"]
    cli("sweep", backend, *words, *STATIC, "--out", tmp_path).expect(1)
    failures = read(tmp_path)["failures"]
    assert {failure["diagnosis"] for failure in failures} == {"crash"}
    assert all("deterministic" in failure["detail"] for failure in failures)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_memory_is_the_same_for_a_hundred_times_as_many_calls(tmp_path: Path) -> None:
    def peak(rank: str) -> int:
        words = ("--rank", rank, "--max-dim", "3", "--out", str(tmp_path), "--operation", "StaticReshape")
        return peak_memory([sys.executable, "-m", "conformance", "sweep", "reference", *words])

    few, many = peak("2"), peak("3")
    assert many < 1.3 * few


def test_the_reference_has_no_failures(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path, backend="reference").expect(0, out="next: conformance run reference\n")
    assert read(tmp_path)["failures"] == []


@pytest.mark.parametrize("more", [(), pytest.param(("--jobs", "2"), marks=pytest.mark.slow)])
def test_the_same_sweep_writes_the_same_file(tmp_path: Path, sweep: Sweep, more: tuple[str, ...]) -> None:
    assert sweep(tmp_path / "one").code == sweep(tmp_path / "two", *more).code == 1
    one, two = (read(tmp_path / name) for name in ("one", "two"))
    assert one["failures"]
    times = dict.fromkeys(("started", "seconds"))
    assert one | times == two | times


@pytest.mark.slow
def test_a_type_that_was_asked_for_and_is_not_claimed(tmp_path: Path, cli: Cli) -> None:
    text = f"{MINE}    claims = Reference.claims._replace(not_claimed=('type:f16',))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    words = ("sweep", f"{tmp_path / 'mine.py'}:Mine", "--rank", 1, "--max-dim", 1, "--out", tmp_path / "out")
    cli(*words, "--operation", "StaticReshape", "--type", "f16").expect(4)
    cli(*words, "--operation", "StaticReshape", "--type", "f16", "--type", "f32").expect(4, out="does not claim f16")


def test_the_user_names_a_layout_that_nobody_claims(tmp_path: Path, sweep: Sweep) -> None:
    text = f"{MINE}    claims = Reference.claims._replace(not_claimed=('layout:transposed',))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    mine, layouts = f"{tmp_path / 'mine.py'}:Mine", ("--layout", "dense", "--layout", "padded", "--layout", "dense")
    said = sweep(tmp_path / "out", "--isolation", "none", *layouts, backend=mine)
    said.expect(0, out=("each in 2 ways of calling", "exit 0: every call went as the documents say"))
    said = sweep(tmp_path / "out", "--isolation", "none", *layouts, "--layout", "transposed", backend=mine)
    said.expect(4, out="the backend does not claim transposed\n")


@pytest.mark.parametrize(
    ("wrong", "said", "command"),
    [
        ("True", "exit 1: 248 calls met an error of the adapter, so nothing is known of the", "check-adapter"),
        ("graph.src.dims == (1,)", "exit 1: 38 calls failed; 62 calls met an error of the adapter, so", "explain"),
    ],
)
def test_an_error_of_the_adapter_is_no_failure_of_the_backend(
    wrong: str, said: str, command: str, tmp_path: Path, sweep: Sweep
) -> None:
    text = f"""
    def compile(self, graph):
        if {wrong}:
            raise ZeroDivisionError
        raise Rejected("compile", "no")
"""
    (tmp_path / "mine.py").write_text(f"from conformance.model import Rejected\n{MINE}{text}", encoding="utf-8")
    mine = f"{tmp_path / 'mine.py'}:Mine"
    sweep(tmp_path / "out", "--isolation", "none", backend=mine).expect(1, out=(said, f"next: conformance {command} "))


def test_what_is_not_claimed_did_not_go_as_the_documents_say(tmp_path: Path, cli: Cli) -> None:
    text = f"{MINE}    claims = Reference.claims._replace(operations=('StaticReshape',))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    words = ("sweep", f"{tmp_path / 'mine.py'}:Mine", "--isolation", "none", "--rank", 1, "--max-dim", 1)
    said = "each in 6 ways of calling: 756 calls", "\n126 calls in ", "every call that the backend claims went as the "
    cli(*words, "--type", "f32", "--out", tmp_path / "out").expect(0, out=said)


# ── what lies in the folder ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("more", [(), ("--isolation", "none")])
def test_a_sweep_that_cannot_start_removes_old_results(tmp_path: Path, sweep: Sweep, more: tuple[str, ...]) -> None:
    sweep(tmp_path, backend="reference").expect(0)
    sweep(tmp_path, *more, backend="nowhere.at_all:Backend").expect(3, lines=1)
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_is_replaced_and_not_written_through(tmp_path: Path, sweep: Sweep) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("kept")
    (tmp_path / "out" / SWEEP_FILE).symlink_to(tmp_path / "mine")
    sweep(tmp_path / "out").expect(1)
    assert (tmp_path / "mine").read_text() == "kept"
    assert os.listdir(tmp_path / "out") == [SWEEP_FILE]
    assert not (tmp_path / "out" / SWEEP_FILE).is_symlink()


def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path, sweep: Sweep) -> None:
    sweep(tmp_path, backend="reference").expect(0)
    with lock_folder(tmp_path):
        sweep(tmp_path).expect(2, lines=1, err="is in use by another run")
    assert read(tmp_path)["backend"]["adapter"] == "reference"


def test_a_note_is_no_part_of_the_json(tmp_path: Path, sweep: Sweep) -> None:
    backend = write_acting(tmp_path, "os.chdir('/')")
    said = sweep(tmp_path / "out", "--isolation", "none", "--json", backend=backend).expect(
        0, err="changed the working"
    )
    assert said.data["exit_code"] == 0


@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_a_file_that_the_backend_writes_is_replaced(tmp_path: Path, sweep: Sweep, isolation: str) -> None:
    file = tmp_path / "out" / SWEEP_FILE
    backend = write_acting(tmp_path, "file.write_text('mine')", f"file = Path({str(file)!r})")
    sweep(tmp_path / "out", "--isolation", isolation, backend=backend).expect(0)
    assert read(tmp_path / "out")["backend"]["adapter"] == backend
