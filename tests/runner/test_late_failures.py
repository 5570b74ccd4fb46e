"""A failure after the last call loses no run: it is told, the rest is written, and the exit code is the verdict's."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path
from typing import Any, NoReturn

import pytest

from conformance.evidence.folder import REPORTS, RESULTS
from conformance.evidence.results import name_unfinished, read
from conformance.run import judge
from conformance.shrink import smallest_case

from ..builders import Command, interrupt

FAILS_WHEN_DRAWN = "planted:eight-buffers-in-turn"
"""It passes the few cases."""


def fail(*_: Any, **__: Any) -> NoReturn:
    raise ZeroDivisionError("planted\nin two lines")


@pytest.fixture(autouse=True)
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.cli.request.count_drawn_rows", lambda *_: 60)


def verify(command: Command) -> int:
    return command("verify", command.out, "--suite", command.folder).code


def test_results_that_cannot_be_renamed_are_kept(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are on the disk before the rename, so that no power cut leaves a part under the name of the whole."""
    synced = list[int]()

    def refuse(old: Path, new: Path) -> NoReturn:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(old))

    monkeypatch.setattr("os.replace", refuse)
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    part = name_unfinished(command.out / RESULTS)
    said = command.run("reference").expect(2, lines=1).err
    why = f"cannot be renamed to {RESULTS}: Operation not permitted; rename it"
    assert said == f"conformance: {part}: is whole, but {why}\n"
    monkeypatch.undo()
    assert synced == [part.stat().st_ino]
    part.rename(command.out / RESULTS)
    assert verify(command) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_name_of_the_file(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.fdopen(os.open("/dev/full", os.O_RDWR), "w+b")
    monkeypatch.setattr("conformance.evidence.writer.create", lambda *_: full)
    part = name_unfinished(command.out / RESULTS)
    command.run("reference").expect(2, err=f"{part}: No space left on device", lines=1)


# ── cases that are made smaller ───────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_backend_whose_products_wrap_is_reported(reporting: Command) -> None:
    """Drawn row 387 once became a case with a length that its type of shape cannot hold."""
    reporting.run("planted:counts-in-32-bits", "--drawn-rows", "400").expect(1, out="accepts an illegal call", err="")
    evidence = read(reporting.out / RESULTS)
    assert evidence.drawn.failed
    assert not [note for note in evidence.footer["notes"] if "the suite failed" in note]
    assert verify(reporting) == 0


@pytest.mark.slow
def test_a_failure_while_a_case_shrinks_is_a_note(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smallest_case, "shrink", fail)
    said = reporting.run(FAILS_WHEN_DRAWN, "--drawn-rows", "60").expect(1, err="")
    note = "no smaller case is shown: the suite failed with ZeroDivisionError: planted in two lines"
    assert note in said.text
    evidence = read(reporting.out / RESULTS)
    assert any(text.endswith(note) and text.startswith("drawn-0-") for text in evidence.footer["notes"])
    assert evidence.results[-1].smallest_case is not None  # as it was drawn
    assert "steps:" in evidence.results[-1].smallest_case
    assert verify(reporting) == 0


@pytest.mark.slow
def test_a_failing_drawn_row_says_how_to_call_it_alone(reporting: Command) -> None:
    said = reporting.run(FAILS_WHEN_DRAWN, "--drawn-rows", "60").expect(1)
    row = read(reporting.out / RESULTS).results[-1].row
    command = next(line for line in said.out.splitlines() if line.startswith("      conformance run "))
    assert shlex.split(command)[-2:] == ["-k", row]
    assert command.strip() in (reporting.out / "summary.md").read_text(encoding="utf-8")
    reporting.run(FAILS_WHEN_DRAWN, "-k", row).expect(1, out="1 drawn row, 1 failed")


@pytest.mark.slow
def test_a_run_cut_off_while_a_case_shrank_goes_on(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(smallest_case, "shrink", interrupt)
        reporting.run(FAILS_WHEN_DRAWN, "--drawn-rows", "60").expect(130, err="to go on, give --resume")
    assert name_unfinished(reporting.out / RESULTS).exists()
    monkeypatch.setattr(smallest_case, "shrink", fail)
    reporting.run(FAILS_WHEN_DRAWN, "--drawn-rows", "60", "--resume", reporting.out).expect(
        1, out="no smaller case is shown"
    )
    assert read(reporting.out / RESULTS).footer["resumed"] > 100
    assert all((reporting.out / name).is_file() for name in REPORTS)


@pytest.mark.slow
def test_a_failure_while_the_run_is_judged_or_concluded(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(judge, "judge", fail)
        with pytest.raises(ZeroDivisionError):
            reporting.run("reference")
    assert not (reporting.out / RESULTS).exists()
    monkeypatch.setattr("conformance.cli.run.conclude_run", fail)
    monkeypatch.setattr("conformance.shrink.smallest_case.MAX_CALLS", 100)
    said = reporting.run("reference").expect(5, err="no verdict is shown: the suite failed with ZeroDivisionError")
    assert "the results are whole; `conformance report" in said.err
    assert "Traceback" not in said.err
    certify = ("certify", FAILS_WHEN_DRAWN, "--suite", reporting.folder, "--out", reporting.out)
    reporting(*certify).expect(5, err="no verdict is shown: the suite failed with ZeroDivisionError")
    assert not (reporting.out / "statement.json").exists()


# ── reports ───────────────────────────────────────────────────────────────────────────────────────


def test_a_report_that_fails_alone(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("conformance.report.report_page.render", fail)
        said = reporting.run("reference")
    reason = "report.html is not written: the suite failed with ZeroDivisionError: planted in two lines"
    said.expect(0, err=[reason, "the results are whole; `conformance report"], lines=2)
    assert {each for each in REPORTS if (reporting.out / each).is_file()} == {*REPORTS} - {"report.html"}
    assert "report: " not in said.out
    assert reporting("report", reporting.out, "--suite", reporting.folder).code == 0
    assert (reporting.out / "report.html").is_file()
    assert verify(reporting) == 0


@pytest.mark.parametrize(("backend", "code"), [("reference", 0), ("planted:zero-flag-ignored", 1)])
def test_a_report_for_which_no_room_is_left_keeps_the_verdict(
    reporting: Command, monkeypatch: pytest.MonkeyPatch, backend: str, code: int
) -> None:
    def fill(path: Path, text: str) -> None:
        if path.name == "junit.xml":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        path.write_text(text, encoding="utf-8")

    monkeypatch.setattr("conformance.report.replace_text", fill)
    reporting.run(backend).expect(code, err="conformance: junit.xml is not written: No space left on device\n", lines=2)
    assert {path.name for path in reporting.out.iterdir()} == {RESULTS, *REPORTS} - {"junit.xml"}


def test_reports_that_all_fail_are_each_told(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.report.judged_run.JudgedRun.with_drawn", property(fail))
    reasons = [f"{name} is not written: the suite failed" for name in REPORTS]
    reporting.run("reference").expect(0, err=reasons, lines=len(REPORTS) + 1)
    assert (reporting.out / RESULTS).is_file()
    said = reporting("report", reporting.out, "--suite", reporting.folder).expect(2, err="badge.svg is not written")
    assert "wrote" not in said.out


@pytest.mark.parametrize(("words", "stage"), [((), "show"), (("--json",), "data_of")])
def test_a_summary_that_fails_keeps_the_verdict(
    reporting: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], stage: str
) -> None:
    monkeypatch.setattr(f"conformance.cli.run.{stage}", fail)
    said = reporting.run("reference", *words).expect(0, err="exit 0: the whole target conforms", lines=1)
    assert "no more of it is shown: the suite failed with ZeroDivisionError" in said.err
    assert all((reporting.out / name).is_file() for name in REPORTS)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_certificate_is_made_without_a_page_that_fails(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.report.junit.render", fail)
    monkeypatch.setattr("conformance.certificate.page.draw_badge", fail)
    said = reporting("certify", FAILS_WHEN_DRAWN, "--suite", reporting.folder, "--out", reporting.out).expect(1)
    for name in ("junit.xml", "certificate.svg"):
        assert f"{name} is not written: the suite failed with ZeroDivisionError: planted" in said.err
    assert (reporting.out / "report.html").is_file()
    assert (reporting.out / "certificate.html").is_file()
    monkeypatch.setattr("conformance.certificate.page.render_page", fail)
    said = reporting("certify", FAILS_WHEN_DRAWN, "--suite", reporting.folder, "--out", reporting.out).expect(1)
    assert "/statement.json (" in said.out
    assert "/certificate.html (" not in said.out
