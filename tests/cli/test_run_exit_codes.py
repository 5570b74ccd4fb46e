"""Every exit code of a run in its order, and claims that are pinned."""

import io
import re
import sys
import time
from contextlib import closing
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest

from conformance.evidence.results import read
from conformance.system.progress import Progress, begin
from conformance.verdict.conclude import conclude_evidence

from ..builders import Command, mini, spare_planted
from ..misbehaving import GIVES_UP
from ..verdict.test_waive import waivers
from .run_output import Screen, never_conforms

# ── exit codes ────────────────────────────────────────────────────────────────────────────────────
USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "operation": (("--operation", "StaticReshap"), "did you mean 'StaticReshape'"),
    "document": (("--document", "static-2O22"), "did you mean 'static-oneapi'"),
    "type": (("--type", "fp16"), "did you mean 'f16'"),
    "requirement": (("--require", "layuot"), "did you mean 'layout'"),
    "no requirement": (("--require", "qqqqqqqqq"), "'qqqqqqqqq'; see `conformance list documents` and, for facets, "),
    "no facet": (("-k", "facet:qqqqqqqqq"), "unknown facet 'qqqqqqqqq'; see `adapters/README.md`"),
    "a bracket": (("-k", "(a or b"), "a bracket is not closed"),
    "nothing to look for": (("-k", ""), "the expression is empty"),
    "and nothing": (("-k", "a and"), "ends too early"),
    "two words": (("-k", "a b"), "'b' is one too many"),
    "a shard past the last": (("--shard", "4/3"), "write --shard 1/3"),
    "jobs in this process": (("--jobs", "2"), "needs processes"),
    "no time": (("--timeout", "-1"), "write --timeout 20"),
    "no such waivers": (("--waivers", "/no/such.yaml"), "/no/such.yaml"),
    "no such run": (("--resume", "/dev/null/run"), "there is no run to resume"),
    "a folder twice": (("--resume", "/dev/null/run", "--out", "x"), "drop --out"),
    "two choices": (("-k", "a", "-k", "b"), "given twice"),
    "a name of two lines": (("--tester", "A\n::error::B"), "is not one line"),
    "a folder of claims": (("--claims", ".."), "..: is a folder; name a file"),
}  # fmt: skip


@pytest.mark.parametrize("what", USAGE)
def test_2_is_for_what_cannot_be_read(command: Command, what: str) -> None:
    typed, said_of_it = USAGE[what]
    assert command.run("reference", *typed).expect(2, err=said_of_it, lines=1).out == ""
    assert not (command.out / "results.jsonl").exists()


def test_2_comes_before_3(command: Command, tmp_path: Path) -> None:
    assert command.run("nmupy", "--type", "fp16").code == 2
    assert command.run("nmupy", "--waivers", waivers(tmp_path, {"expires": "soon"})).code == 2
    assert command.run("nmupy").code == 3


def test_3_leaves_files_that_ci_shows(command: Command) -> None:
    said = command.run("nmupy", "--json").expect(3)
    assert said.data["exit_code"] == 3
    error = ElementTree.parse(command.out / "junit.xml").find(".//error")
    assert error is not None
    for text in (error.text, *said.data["errors"], (command.out / "summary.md").read_text(encoding="utf-8")):
        assert "unknown backend 'nmupy'" in text


def test_1_comes_before_6_and_6_before_4(command: Command, tmp_path: Path) -> None:
    expired = waivers(tmp_path, {"expires": "2020-01-01"})
    assert command.run(mini("Flushes"), "--waivers", expired).code == 1
    assert command.run(mini("Flushes"), "-k", "patterns").code == 1
    assert command.run(mini("Flushes"), "--require", "static-oneapi").code == 1
    stale = waivers(tmp_path, {})
    assert command.run(mini("LeavesOut"), "--waivers", stale, "--require", "layout:reversed").code == 6
    assert command.run(mini("LeavesOut"), "--require", "layout:reversed").code == 4


@pytest.mark.slow
def test_a_part_of_the_rows_says_that_a_waiver_expired(command: Command, tmp_path: Path) -> None:
    words = ("-k", "patterns", "--waivers", waivers(tmp_path, {"expires": "2020-01-01"}))
    command("run", mini("Flushes"), "--suite", command.folder, *words).expect(1, out="expired on 2020-01-01")


def test_shard_1_of_1_says_that_it_is_a_shard(command: Command) -> None:
    said = command.run("reference", "--shard", "1/1", "--json").expect(4)
    assert said.data["why"].startswith("incomplete: shard 1/1 of the rows; `conformance report` joins")
    assert all("; only shard 1/1" in sentence for sentence in said.data["sentences"])


def test_a_good_shard_is_incomplete_and_says_so_on_its_page(reporting: Command) -> None:
    for shard in ("1/2", "2/2"):
        reporting.run("reference", "--shard", shard).expect(4)
        assert "Incomplete" in (reporting.out / "report.html").read_text(encoding="utf-8")


def test_a_shard_that_fails_or_shows_nothing_is_not_0(command: Command) -> None:
    assert command.run(mini("Flushes"), "--shard", "1/1").code == 1
    for backend, shard in ((mini("ClaimsNothing"), "1/1"), ("reference", "9999/9999")):
        command.run(backend, "--shard", shard).expect(4)


def test_a_finished_run_concludes_the_same_again(command: Command) -> None:
    said = command.run("reference")
    again = conclude_evidence(command.plan, read(command.out / "results.jsonl"))
    assert said.last == f"exit {again.exit_code}: {again.why}"


def test_a_process_that_cannot_be_started_again(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run says so, and the other rows are not run."""
    spare_planted(monkeypatch)
    (tmp_path / "program.py").write_text(GIVES_UP, encoding="utf-8")
    backend = f"cmd:{sys.executable} -I -S {tmp_path / 'program.py'} {tmp_path / 'begun'}"
    said = command.run(backend, "--isolation", "none", "--json").expect(1)
    assert read(command.out / "results.jsonl").header["isolation"] == "worker", "it never runs in the suite's process"
    never_conforms(said)
    assert said.data["verdicts"]["not run"] > 100
    assert any("given up after 3 starts that failed" in note for note in said.data["notes"])


# ── pinned claims ─────────────────────────────────────────────────────────────────────────────────
def pinned(folder: Path, text: str) -> Path:
    path = folder / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    return path


EVERY = "operations: [StaticReshape, DynamicReshape-1, Reshape-1]\n"


@pytest.mark.parametrize(
    ("text", "words_"),
    [
        (
            "operations: [StaticReshape]\n",
            "the backend claims DynamicReshape-1, Reshape-1 (add them to operations); the backend does not",
        ),
        (EVERY, "claim layout:reversed (add it to not_claimed); change the file so, or the backend"),
        (EVERY + "not_claimed: [layout:reversed, chain]\n", "the backend claims chain (remove it from not_claimed)"),
        (EVERY.replace("[", "[Other, "), "the backend does not claim Other (remove it from operations); the backend d"),
        (EVERY + "not_claimed: [layout:reversed]\nanswers_special_zero: true\n", "answers_special_zero: false (write"),
    ],
)
def test_claims_that_differ_from_the_pinned_ones_stop_the_run(
    command: Command, tmp_path: Path, text: str, words_: str
) -> None:
    command.run(mini("LeavesOut"), "--claims", pinned(tmp_path, text)).expect(3, err=words_)
    assert not (command.out / "results.jsonl").exists()


def test_claims_as_pinned_run(command: Command, tmp_path: Path) -> None:
    path = pinned(tmp_path, EVERY + "not_claimed: [layout:reversed]\n")
    assert command.run(mini("LeavesOut"), "--claims", path).code == 0
    assert read(command.out / "results.jsonl").header["folders"]["claims"] == str(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "") for text in ("operations: []\n", "not_claimed: [form]\n", "operations: x\n", "- a\n", "a: [", "")),
        (EVERY + "not_claimed:\n  - form\n  - declered\n", "4: not_claimed has 'declered', which is no facet; did "),
        (EVERY + "not_claimed: [zeros]\n", "2: not_claimed has 'zeros', which is no facet; there are type, "),
    ],
)
def test_a_file_of_claims_that_is_none_is_said_with_its_place(
    command: Command, tmp_path: Path, text: str, says: str
) -> None:
    path = pinned(tmp_path, text)
    command.run("reference", "--claims", path).expect(2, err=f"{path}:{says}")


_LEFT = "3 failed, [0-9,.]+/s, about [0-9]+ s left"


@pytest.mark.parametrize(
    ("name", "slow", "rest"),
    [("some-row", 0, f"{_LEFT}, some-row"), ("some-row", 60, _LEFT), ("long-name-" * 5, 0, "long-name-" * 5)],
    ids=["slow", "fast", "slow, with a long name"],
)
def test_progress_on_a_terminal_is_one_line(monkeypatch: pytest.MonkeyPatch, name: str, slow: float, rest: str) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    monkeypatch.setattr("conformance.system.progress.SLOW_SECONDS", slow)
    progress = Progress("running", 200, screen)
    time.sleep(0.01)
    begin(name)
    progress.at(100, 3)
    assert re.fullmatch(rf"\r\x1b\[Krunning 100 of 200, {rest}", screen.getvalue())
    progress.close()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_a_call_that_hangs_does_not_silence_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0.1)
    stream = io.StringIO()
    progress = Progress("running", 10, stream)
    begin("earlier-row")
    begin("some-row")
    other = Thread(target=begin, args=("later-row",))
    other.start()
    other.join()
    end = time.monotonic() + 20
    while "some-row" not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.05)
    progress.close()
    assert "conformance: running 0 of 10, some-row\n" in stream.getvalue()


def test_while_hardly_anything_ends_progress_foretells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.MIN_RATE", 1e12)
    screen = Screen()
    with closing(Progress("running", 200, screen)) as progress:
        progress.at(100, failed=3)
    assert " 100 of 200, 3 failed\r" in screen.getvalue()


@pytest.mark.parametrize(
    ("done", "left"),
    [
        ([100 * second for second in range(60)] + [6000] * 40, "about 3 min left"),  # forty seconds of a slow row
        ([9000 + 10 * second for second in range(60)], "about 41 s left"),  # a run that is resumed begins with a leap
    ],
    ids=["slow", "resumed"],
)
def test_time_left_is_foretold_from_minutes(monkeypatch: pytest.MonkeyPatch, done: list[int], left: str) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    screen = Screen()
    with closing(Progress("running", 10_000 if done[0] else 18_000, screen)) as progress:
        for number in done:
            now[0] += 1
            progress.at(number)
    assert screen.getvalue().endswith(f"{left}\r\x1b[K")
