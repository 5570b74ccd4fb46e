"""Nothing of an earlier run is taken for this one, and a run that goes on says so."""

from __future__ import annotations

import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.folder import REPORTS
from conformance.evidence.results import part_of, read
from conformance.isolate.backend import isolation_of
from conformance.system.files import lock_folder

from ..builders import Command, CommandOutput, mini, rewrite, write_cases
from ..evidence.readers import merge, read_by, reading, remove, verify
from ..pytest_plugin.done import SUITE, Done

__all__ = ["reading"]


# ── nothing of an earlier run is left to be taken for this one's ──────────────────────────────────
def conforming(folder: Path) -> None:
    """A folder with the files of a run that conformed, as far as a hurried reader looks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("results.jsonl", *REPORTS):
        (folder / name).write_text("conforms", encoding="utf-8")


def test_a_session_of_pytest_that_cannot_start_leaves_no_earlier_yes(tmp_path: Path) -> None:
    conforming(tmp_path / "out")
    write_cases(tmp_path)
    Done(tmp_path, *SUITE, "--conformance-out", "out", adapter="no-such-backend").expect(4)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_session_of_pytest_that_is_killed_leaves_no_earlier_yes(tmp_path: Path) -> None:
    conforming(tmp_path / "out")
    text = "import os\nfrom conformance.adapters.reference import Reference\nclass Dies(Reference):\n"
    text += "    def compile(self, graph):\n        os.kill(os.getppid(), 9)\n"
    (tmp_path / "dies.py").write_text(text, encoding="utf-8")
    Done(tmp_path, "--conformance-out", "out", adapter="./dies.py:Dies").expect(-signal.SIGKILL)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".conformance-lock"]


def test_two_sessions_of_pytest_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "out", "pytest --adapter other"):
        done = Done(tmp_path, "--conformance-out", "out")
    assert done.code == 4
    done.says("out is in use by process", "pytest --adapter other")


def test_a_merge_that_is_refused_leaves_no_earlier_yes(command: Command, tmp_path: Path) -> None:
    conforming(tmp_path / "merged")
    assert command.run("reference", "--shard", "1/2").code == 4
    assert merge(command, command.out).code == 2
    assert list((tmp_path / "merged").iterdir()) == []


@pytest.mark.parametrize("name", ["results.jsonl", "results.jsonl.part", "report.html"])
def test_a_link_in_the_folder_is_replaced_and_not_written_through(
    reporting: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "elsewhere").write_text("kept", encoding="utf-8")
    reporting.out.mkdir()
    (reporting.out / name).symlink_to(tmp_path / "elsewhere")
    assert reporting.run("reference").code == 0
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert not (reporting.out / name).is_symlink()


# ── in the suite's own process ────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("backend", "isolation"),
    [
        ("reference", "none"), ("broken:zero-flag-ignored", "none"), ("reference:Mine", "worker"),
        ("reference@cpu", "worker"), ("numpy", "worker"), ("./reference:Mine", "worker"),
        ("reference.py:Mine", "worker"), ("broken.py:Mine", "worker"),
    ],
)  # fmt: skip
def test_only_our_own_backends_run_in_process_unless_somebody_asks(backend: str, isolation: str) -> None:
    assert isolation_of(backend) == isolation


def test_a_verdict_made_in_process_says_so_and_shows_nothing_to_others(reading: Command) -> None:
    reading.run(mini("Bent"), "--isolation", "none").expect(
        0, text=["as run in the suite's own process", "could write its verdict; it proves nothing"]
    )
    assert verify(reading).code == 0
    for more in ((), ("static-oneapi",)):
        told = verify(reading, "--conforms", *more).expect(1)
        assert "ran in the suite's own process" in told.text
    assert not verify(reading, "--json").data["conforms"]
    assert read_by(reading, "publish", reading.out).code == 2


def test_a_verdict_made_in_a_worker_or_by_our_own_backend_is_taken(reading: Command) -> None:
    for words in ((mini("Bent"), "--isolation", "worker"), ("reference",)):
        assert reading.run(*words).code == 0
        assert verify(reading, "--conforms").code == 0


# ── going on ──────────────────────────────────────────────────────────────────────────────────────
def test_an_interrupt_while_reports_are_written_names_the_command_that_writes_them(
    reporting: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("conformance.report.write", interrupt)
        said = reporting.run("reference")
    assert said.code == 130
    words = re.search(r"`conformance (report .*)`", said.err)
    assert words is not None, said.err
    assert not (reporting.out / "report.html").exists()
    told = reporting(*shlex.split(words[1]), "--cases", reporting.cases).expect(0)
    assert "this exit code says only that the reports are written" in told.text
    assert all((reporting.out / name).is_file() for name in REPORTS)
    assert reporting("verify", reporting.out, "--cases", reporting.cases, "--conforms").code == 0


def resumed(command: Command, rows: int) -> CommandOutput:
    """A run of numpy that goes on after so many rows of an earlier one."""
    command.run("reference")
    path = command.out / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    part_of(path).write_bytes(b"".join(lines[: rows + 1]))
    return command.run("reference", "--resume", command.out)


def test_a_resumed_run_says_which_rows_it_did_not_see(command: Command) -> None:
    said = resumed(command, 50).expect(0)
    evidence = read(command.out / "results.jsonl")
    told = f"50 of {len(evidence.results)} rows are from an earlier run that was interrupted"
    assert told in said.text
    assert [result.resumed for result in evidence.results] == [number < 50 for number in range(len(evidence.results))]
    assert told in command("verify", command.out, "--cases", command.cases).text
    again = resumed(command, 20)
    assert "20 of" in again.text


def test_the_mark_of_a_resumed_row_cannot_be_rubbed_out(reading: Command) -> None:
    resumed(reading, 50)
    rewrite(reading.out / "results.jsonl", remove("resumed"))
    assert "the footer does not count the resumed rows" in verify(reading).out
