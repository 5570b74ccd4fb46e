"""Nothing of an earlier run counts as this one's, and a run that goes on says so."""

import os
import re
import shlex
import signal
from pathlib import Path

import pytest

from conformance.evidence.folder import REPORTS
from conformance.evidence.results import read
from conformance.isolate.backend import isolation_of
from conformance.system.files import lock_folder

from ..builders import Command, CommandOutput, cut_results, interrupt, mini, rewrite
from ..evidence.readers import merge, read_by, remove, verify
from ..isolate.remote_backends import write_acting
from ..pytest_plugin.done import Done


# ── nothing of an earlier run is left to be taken for this one's ──────────────────────────────────
def write_earlier_yes(folder: Path) -> None:
    """A folder with the files of a run that conformed, as far as a hurried reader looks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("results.jsonl", *REPORTS):
        (folder / name).write_text("conforms", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_pytest_that_is_killed_leaves_no_earlier_yes(tmp_path: Path) -> None:
    write_earlier_yes(tmp_path / "out")
    dies = write_acting(tmp_path, "os.kill(os.getppid(), 9)")
    Done(tmp_path, "--conformance-out", "out", adapter=dies).expect(-signal.SIGKILL)
    assert list((tmp_path / "out").iterdir()) == []


def test_two_pytests_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with lock_folder(tmp_path / "out"):
        done = Done(tmp_path, "--conformance-out", "out")
    done.expect(4, "out is in use by another run")


def test_a_merge_that_is_refused_leaves_no_earlier_yes(command: Command, tmp_path: Path) -> None:
    write_earlier_yes(tmp_path / "merged")
    assert command.run("reference", "--shard", "1/2").code == 4
    assert merge(command, command.out).code == 2
    assert list((tmp_path / "merged").iterdir()) == []


@pytest.mark.parametrize("name", ["results.jsonl", "results.jsonl.part", "report.html"])
def test_a_link_in_the_folder_is_replaced(reporting: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").write_text("kept", encoding="utf-8")
    reporting.out.mkdir()
    (reporting.out / name).symlink_to(tmp_path / "elsewhere")
    assert reporting.run("reference").code == 0
    assert (tmp_path / "elsewhere").read_text() == "kept", "not written through"
    assert not (reporting.out / name).is_symlink()


# ── in the suite's own process ────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("backend", "isolation"),
    [
        ("reference", "none"), ("planted:zero-flag-ignored", "none"), ("reference:Mine", "worker"),
        ("reference@cpu", "worker"), ("numpy", "worker"), ("./reference:Mine", "worker"),
        ("reference.py:Mine", "worker"), ("planted.py:Mine", "worker"),
    ],
)  # fmt: skip
def test_only_our_own_backends_run_in_our_process(backend: str, isolation: str) -> None:
    assert isolation_of(backend) == isolation


@pytest.mark.slow
def test_a_verdict_made_in_our_own_process_proves_nothing(command: Command) -> None:
    backend, words = mini("Bent"), ["as run in the suite's own process", "could write its verdict; it proves nothing"]
    command.run(backend, "--isolation", "none").expect(0, text=words)
    assert verify(command).code == 0
    for more in ((), ("static-oneapi",)):
        verify(command, "--conforms", *more).expect(1, text="ran in the suite's own process")
    assert not verify(command, "--json").data["conforms"]
    assert read_by(command, "publish", command.out).code == 2
    for others in ((backend, "--isolation", "worker"), ("reference",)):
        assert command.run(*others).code == 0
        assert verify(command, "--conforms").code == 0


# ── going on ──────────────────────────────────────────────────────────────────────────────────────
def test_an_interrupt_while_reports_are_written(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("conformance.report.write", interrupt)
        said = reporting.run("reference").expect(130)
    words = re.search(r"`conformance (report .*)`", said.err)
    assert words is not None, said.err
    assert not (reporting.out / "report.html").exists()
    told = reporting(*shlex.split(words[1])).expect(0)
    assert "this exit code says only that the reports are written" in told.text
    assert f"written next: conformance verify --suite {reporting.folder} {reporting.out} --conforms" in told.text
    assert all((reporting.out / name).is_file() for name in REPORTS)
    assert reporting("verify", reporting.out, "--suite", reporting.folder, "--conforms").code == 0


def resume(command: Command, rows: int) -> CommandOutput:
    """Run the reference, cut the results off after so many rows, and go on."""
    command.run("reference")
    path = command.out / "results.jsonl"
    cut_results(path, path.read_bytes().splitlines(keepends=True)[: rows + 1])
    return command.run("reference", "--resume", command.out)


def test_a_resumed_run_says_which_rows_it_did_not_see(command: Command) -> None:
    said = resume(command, 50).expect(0)
    evidence = read(command.out / "results.jsonl")
    told = f"50 of {len(evidence.results)} rows are from an earlier run that was interrupted"
    assert told in said.text
    assert [result.resumed for result in evidence.results] == [number < 50 for number in range(len(evidence.results))]
    assert told in verify(command).text
    rewrite(command.out / "results.jsonl", remove("resumed"))
    assert "the footer does not count the resumed rows" in verify(command).out
    assert "20 of" in resume(command, 20).text
