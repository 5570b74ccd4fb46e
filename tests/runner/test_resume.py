"""A run that was killed can be finished."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import report
from conformance.evidence import results as evidence_module
from conformance.evidence.results import InvalidEvidence, Target, name_unfinished, read
from conformance.isolate.backend import run_in_isolation
from conformance.model import NOT_CALLED
from conformance.plan.rows import Row
from conformance.report.judged_run import conclude_run
from conformance.runner.run_suite import RunRequest, run_suite
from conformance.verdict.rejudge import read_and_judge_part

from .. import builders
from ..builders import Command, cut_results, mini
from ..evidence.readers import lines_of, path, rows_in, write
from ..isolate.remote_backends import write_acting
from ..processes import wait

__all__ = ["path"]


def test_what_is_left_of_a_run_is_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    header = write(path, close=False)
    left = name_unfinished(path)
    whole = left.read_bytes()
    write(tmp_path / "ended" / "results.jsonl")
    footer = lines_of(tmp_path / "ended" / "results.jsonl")[-1]  # as if killed before the file got its name
    some = ((whole, 8), (whole[:-3], 7), (whole + b"\xff", 8), (whole + footer, 8), (whole[:10], 0), (b"", 0))
    for content, rows in some:
        left.write_bytes(content)
        found = evidence_module.salvage(path, header)
        assert len(found) == rows
        assert all(result.resumed for result in found)


@pytest.mark.parametrize(
    "key", ["backend", "claims", "target", "suite", "environment", "isolation", "limits", "waivers"]
)
def test_a_run_of_something_else_is_not_gone_on_with(tmp_path: Path, key: str) -> None:
    path = tmp_path / "results.jsonl"
    header = write(path, close=False)
    with pytest.raises(InvalidEvidence, match=f"{key}.* was .* and is .*; begin a new run"):
        evidence_module.salvage(path, {**header, key: {"other": 1}})
    assert evidence_module.salvage(path, {**header, "started": "later"})
    with pytest.raises(InvalidEvidence, match=r"target was .* and is null; begin a new run"):
        evidence_module.salvage(path, {name: value for name, value in header.items() if name != "target"})


def test_a_run_that_ended_is_not_resumed(command: Command) -> None:
    command.run("reference")
    command.run("reference", "--resume", command.out).expect(2, err="the run ended; there is nothing to resume")
    path = command.out / "results.jsonl"
    assert len(read(path).results) > 300
    lines = lines_of(path)
    cut_results(path, [lines[0], lines[2], lines[1]])
    command.run("reference", "--resume", command.out).expect(2, err="is not where the suite has it; begin a new run")


def test_an_unfinished_run_is_named_as_such(command: Command) -> None:
    """Not as a missing file, by the commands that need a whole run."""
    command.run("reference")
    path = command.out / "results.jsonl"
    cut_results(path, lines_of(path)[:-1])
    out, suite = command.out, ("--suite", command.folder)
    for words in (("diff", out, out), ("run", "reference", "--lf", out), ("report", out, out, "--out", out / "whole")):
        command(*words, *suite).expect(2, err=f"{path}.part: has no footer: the run did not end")
    said = command("verify", out, *suite).expect(1)
    assert said.out.endswith("one thing does not follow from the evidence; do not rely on this report\n")


OF_ALL = "exit 4: incomplete: the run was interrupted after ([0-9]+) of \\1 rows"
INTERRUPTED = {
    "failing": (mini("Flushes"), (), slice(0, -9), "fails?: .*; incomplete: the run was interrupted after [0-9]+ of"),
    "whole": ("reference", (), slice(0, -1), OF_ALL),
    "of a type": ("reference", ("--type", "f16"), slice(0, -1), OF_ALL),
    "a header": ("reference", (), slice(0, 1), "exit 4: incomplete: the run was interrupted after 0 of"),
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_a_report_shows_the_rows_of_an_interrupted_run(command: Command, name: str) -> None:
    backend, options, kept, why = INTERRUPTED[name]
    command.run(backend, *options)
    path = command.out / "results.jsonl"
    cut_results(path, lines_of(path)[kept])
    again = f"run the command of that run with --resume {command.out} instead of --out"
    assert re.search(why, command("report", command.out, "--suite", command.folder).expect(0, text=again).text)
    evidence = read_and_judge_part(path, command.plan)
    texts = report.render_reports(conclude_run(command.plan, evidence))
    for text in (texts["report.html"], texts["summary.md"]):
        assert "the run was interrupted after" in text
        assert "conforms to static-oneapi" not in text
        assert not builders.conforming(text)
    assert ("wrong answer: " in texts["summary.md"]) == (name == "failing")
    digest = hashlib.sha256(name_unfinished(path).read_bytes()).hexdigest()
    assert f"SHA-256 of `results.jsonl.part` `{digest}`.\n" in texts["summary.md"], "there is no results.jsonl"
    assert texts["summary.md"].endswith("; it did not end.\n")
    number = len(lines_of(name_unfinished(path))) - 1
    words = f"the run did not end, after {number} rows"
    command("verify", command.out, "--suite", command.folder).expect(1, text=words)


def test_a_report_refuses_a_row_that_was_changed(command: Command) -> None:
    command.run(mini("Flushes"))
    path = command.out / "results.jsonl"
    lines = [line.replace(b'"fail"', b'"pass"') for line in lines_of(path)]
    cut_results(path, lines[:-1])
    command("report", command.out, "--suite", command.folder).expect(2, err="the file was changed")


@pytest.mark.slow
def test_a_run_gone_on_with_comes_to_the_same(command: Command) -> None:
    whole = command.run(mini("Flushes"))
    path = command.out / "results.jsonl"
    rows, lines = rows_in(path), lines_of(path)
    for kept in (0, 1, 2, 77, 200, -1):
        cut_results(path, [*lines[:kept], lines[kept][: 30 if kept else 0]])
        assert command.run(mini("Flushes"), "--resume", command.out).last == whole.last, kept
        assert rows_in(path) == rows, kept


def note_lists(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the length of each list of rows that a run calls."""
    seen: list[int] = []

    def counted(rows: list[Row], *more: Any) -> Any:
        seen.append(len(rows))
        return run_in_isolation(rows, *more)

    monkeypatch.setattr("conformance.isolate.backend.run_in_isolation", counted)
    return seen


def test_what_was_done_is_not_done_again(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command.run("reference")
    path = command.out / "results.jsonl"
    lines = lines_of(path)
    cut_results(path, lines[:101])
    seen = note_lists(monkeypatch)
    assert command.run("reference", "--resume", command.out).code == 0
    assert sum(seen) == len(lines) - 2 - 100


def test_rows_with_many_elements_are_kept_as_they_end(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take minutes, so that an interrupted run with --jobs must not lose them."""
    monkeypatch.setattr("conformance.runner.run_suite.has_many_elements", lambda case: True)
    seen = note_lists(monkeypatch)

    def interrupt(ran: int, failed: int) -> None:
        if ran == 40:
            raise KeyboardInterrupt

    request = RunRequest("reference", command.plan, Target(), jobs=2)
    with pytest.raises(KeyboardInterrupt):
        run_suite(request, lambda header: command.out, interrupt)
    assert 40 <= sum(seen) < len(request.plan.rows) / 2


def test_maxfail_keeps_what_was_done(command: Command) -> None:
    """The interrupted run called rows after the first that failed, as it was made without --maxfail."""
    command.run(mini("Flushes"))
    path = command.out / "results.jsonl"
    lines = lines_of(path)
    cut_results(path, lines[:-20])
    said = command.run(mini("Flushes"), "--resume", command.out, "--maxfail", "1").expect(1)
    done = read(path).results[: len(lines) - 21]
    assert sum(result.is_failure for result in done) > 1
    assert {result.was_called for result in done} == {True}
    assert not any(result.was_called for result in read(path).results[len(done) :])
    assert "no row was called after 1 failed, as --maxfail asks" in said.text


def test_the_time_of_a_row_is_in_the_evidence(command: Command, tmp_path: Path) -> None:
    command.run(write_acting(tmp_path, "time.sleep(0.02)"), "--type", "f32", "--operation", "StaticReshape")
    results = read(command.out / "results.jsonl").results
    assert all(result.milliseconds >= 20 for result in results if result.outcomes != NOT_CALLED)
    assert not any(result.milliseconds for result in results if result.outcomes == NOT_CALLED)


def test_a_killed_process_of_its_own_leaves_a_refused_file(tmp_path: Path) -> None:
    slowed = write_acting(tmp_path, "time.sleep(0.02)")
    words = [sys.executable, "-m", "conformance", "run", slowed, "--isolation", "none"]
    words += ["--suite", str(builders.write_suite(tmp_path)), "--out", str(tmp_path / "out")]
    child = subprocess.Popen(words, cwd=builders.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = tmp_path / "out" / "results.jsonl"
    part = name_unfinished(path)
    wait(lambda: part.exists() and part.stat().st_size > 0)
    child.kill()
    child.wait()
    assert not path.exists()
    with pytest.raises(InvalidEvidence, match="the run did not end"):
        read(part)
