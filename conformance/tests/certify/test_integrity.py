"""A yes comes from what a run wrote and from nothing else: not from a file in its place, nor from rows made up."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.evidence import part_of, read
from conformance.certify.folder import REPORTS
from conformance.isolate.backend import isolation_of
from conformance.isolate.process_memory import MemoryReader
from conformance.system.files import lock_folder

from .. import small
from ..forged import Records, count, flatter, mutations, put, rewrite, signed
from ..processes import run_command
from ..pytest_plugin.done import Done
from ..small import Command, Said, command, mini, plan_once, reporting, suite

__all__ = ["command", "reporting"]
READERS = ("verify", "report", "compare", "diff", "publish")


@pytest.fixture
def reading(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, for which every reader of evidence has the few cases at hand."""
    for module in READERS:
        monkeypatch.setattr(f"conformance.cli.{module}.load_plan", lambda args: plan_once(suite(args.spec, args.cases)))
    return command


_MADE: dict[str, bytes] = {}


def made(command: Command, backend: str = "numpy") -> Path:
    """The results of a run of the few cases, made once in a process and copied into the folder of the command."""
    path = command.out / "results.jsonl"
    if backend not in _MADE:
        command.run(backend, *(() if backend == "numpy" else ("--isolation", "worker")))
        _MADE[backend] = path.read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_MADE[backend])
    return path


FLUSHES = mini("Flushes")


def read_by(command: Command, reader: str, folder: Path) -> Said:
    """One of the commands that read evidence, on a folder."""
    words: dict[str, list[object]] = {
        "verify": [folder], "report": [folder], "compare": [folder, "--out", command.folder / "compare.html"],
        "diff": [folder, folder], "publish": ["--results", folder, "--out", command.folder / "reports"],
    }  # fmt: skip
    return command(reader, *words[reader], "--cases", command.cases)


def verify(command: Command, *words: object) -> Said:
    return command("verify", command.out, "--cases", command.cases, *words)


# ── only what the run wrote ───────────────────────────────────────────────────────────────────────
MEDDLES = """
import os
from pathlib import Path
from conformance.adapters.numpy_reference import NumpyReference
from conformance.model import Identity
import numpy as np

OUT, FORGED = Path({out!r}), Path({forged!r})
NAME = OUT / "results.jsonl"
PART = OUT / "results.jsonl.part"

class Mine(NumpyReference):
    identity = Identity("mine", "1")
    calls = 0
    def copy_elements(self, src, dst, may_overwrite):
        Mine.calls += 1
        if Mine.calls == 40:
            {act}
        return np.zeros_like(super().copy_elements(src, dst, may_overwrite))
"""
ACTS = {
    "a forged file under the final name": ("NAME.write_bytes(FORGED.read_bytes())", 1),
    "a forged file renamed into the place of the unfinished one": (
        "(OUT / 'x').write_bytes(FORGED.read_bytes()); os.replace(OUT / 'x', PART)", 5,
    ),
    "a forged file written over the unfinished one": ("PART.write_bytes(FORGED.read_bytes())", 5),
    "the unfinished file removed": ("PART.unlink()", 5),
    "a link in place of the unfinished file": ("PART.unlink(); PART.symlink_to(FORGED)", 5),
    "a folder under the final name": ("NAME.mkdir()", 5),
}  # fmt: skip


@pytest.mark.parametrize("what", ACTS)
def test_a_backend_that_puts_forged_evidence_into_the_folder_gets_no_yes(
    command: Command, tmp_path: Path, what: str
) -> None:
    act, code = ACTS[what]
    forged = tmp_path / "forged"
    assert command.run("numpy", out=forged).code == 0
    out = tmp_path / "out"
    text = MEDDLES.format(out=str(out), forged=str(forged / "results.jsonl"), act=act)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    said = command.run(f"{tmp_path / 'mine.py'}:Mine", "--isolation", "worker", out=out).expect(code)
    if code == 5:
        assert "was changed while the run wrote it; no verdict holds, run again" in said.err
        assert not (out / "results.jsonl").is_file()
    else:
        assert read(out / "results.jsonl").header["backend"]["name"] == "mine"
    assert "the whole target conforms" not in said.out


def test_a_backend_that_hides_modules_in_the_working_directory_gets_no_yes(tmp_path: Path) -> None:
    """The suite imports some of its own modules only once the backend has run."""
    planted = "import os\nprint('exit 0: the whole target conforms', flush=True)\nos._exit(0)\n"
    text = "from conformance.adapters.numpy_reference import NumpyReference\nimport numpy as np\n"
    text += f"for name in ('html', 'heapq', 'xml', 'difflib'):\n    open(name + '.py', 'w').write({planted!r})\n"
    text += "class Zeros(NumpyReference):\n    def copy_elements(self, *given):\n"
    text += "        return np.zeros_like(super().copy_elements(*given))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    (tmp_path / "here").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(small.ROOT)}
    words = "run", "../mine.py:Zeros", "--type", "f32", "--hunt", "0", "--cases", small.cases(tmp_path)
    done = run_command(*words, cwd=tmp_path / "here", env=environment)
    assert (tmp_path / "here" / "html.py").is_file()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "does not conform" in done.stdout


def test_a_backend_of_pytest_that_waits_for_the_reports_cannot_replace_them(command: Command, tmp_path: Path) -> None:
    command.run("numpy", out=tmp_path / "good")
    text = f"""
import os, shutil, threading, time
from pathlib import Path
from conformance.adapters.numpy_reference import NumpyReference
import numpy as np
OUT, GOOD = Path({str(tmp_path / "out")!r}), Path({str(tmp_path / "good")!r})
def replace():
    while not (OUT / "results.jsonl").exists():
        time.sleep(0.001)
    shutil.copy(GOOD / "results.jsonl", OUT / "results.jsonl")
threading.Thread(target=replace, daemon=True).start()
class Zeros(NumpyReference):
    def copy_elements(self, *given):
        return np.zeros_like(super().copy_elements(*given))
"""
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    done = Done(
        tmp_path, "-q", "--tb=no", f"--conformance-cases={command.cases}", "--conformance-out=out",
        adapter="./mine.py:Zeros",
    )  # fmt: skip
    assert done.code == 1
    assert read(tmp_path / "out" / "results.jsonl").footer["verdicts"]["fail"] > 0


PATCHES = {
    "what the call wrote into src": (
        "run = Server.run\ndef quiet(self, request):\n    record, sent = run(self, request)\n"
        "    kept = len(sent) - len(record.pop('wrote', ()))\n    return record, sent[:kept]\nServer.run = quiet\n",
        "SpoilsSrc", "src changed",
    ),
    "that an earlier answer changed": (
        "Server.add_changed_answers = lambda *_: None\n", "ReusesItsAnswer", "answer changed later",
    ),
    "nothing": ("", "SpoilsSrc", "src changed"),
}  # fmt: skip


@pytest.mark.skipif(
    MemoryReader(os.getpid()).read([(id(0), 8)]) is None, reason="the kernel lets nobody read other processes"
)
@pytest.mark.parametrize("what", PATCHES)
def test_a_backend_that_makes_its_worker_keep_silent_is_seen_all_the_same(
    command: Command, tmp_path: Path, what: str
) -> None:
    patch, name, fault = PATCHES[what]
    text = f"from conformance.isolate.worker import Server\nfrom conformance.tests.miniatures import {name}\n{patch}"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    command.run(f"{tmp_path / 'mine.py'}:{name}", "--isolation", "worker").expect(1, text=fault)
    honest = {result.row: result.diagnosis for result in read(command.out / "results.jsonl").results}
    command.run(mini(name), "--isolation", "none")
    assert honest == {result.row: result.diagnosis for result in read(command.out / "results.jsonl").results}


def test_a_second_run_in_the_same_folder_is_told_who_holds_it(command: Command) -> None:
    with lock_folder(command.out, "conformance run slow"):
        said = command.run("numpy")
    assert said.code == 2
    assert re.search(r"out is in use by process \d+, conformance run slow, since ", said.err)
    assert "name another folder" in said.err
    assert not (command.out / "results.jsonl").exists()
    assert command.run("numpy").code == 0


@pytest.mark.slow
def test_two_runs_that_share_a_folder_never_tell_each_others_verdict(tmp_path: Path) -> None:
    cases, out = small.cases(tmp_path), tmp_path / "out"

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "conformance", "run", *words, "--cases", str(cases), "--out", str(out)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=small.ROOT)

    for _ in range(3):
        runs = {name: start(name) for name in ("broken:accepts-everything", "numpy")}
        for name, running in runs.items():
            said, wrong = running.communicate(timeout=120)
            if running.returncode == 2:
                assert "is in use by process" in wrong
            else:
                assert running.returncode == (0 if name == "numpy" else 1), said + wrong
                assert said.startswith(name)


# ── every reader judges again ─────────────────────────────────────────────────────────────────────
def zero_contents(records: Records) -> None:
    for record in records[1:-1]:
        if "content" in record:
            record["content"] = ["0" * 16 for _ in record["content"]]


def remove(key: str) -> Callable[[Records], None]:
    """Remove a key from every row."""

    def change(records: Records) -> None:
        for record in records[1:-1]:
            record.pop(key, None)

    return change


def impersonate(command: Command, backend: str, *keys: str) -> Callable[[Records], None]:
    """Give a run the header and the counts of another backend's run."""
    header, *_, footer = (json.loads(line) for line in made(command, backend).read_text(encoding="utf-8").splitlines())

    def change(records: Records) -> None:
        records[0] |= {key: header[key] for key in ("backend", *keys)} | {"isolation": "worker"}
        records[-1]["canaries"] = footer["canaries"]

    return change


@pytest.mark.parametrize("reader", READERS)
def test_evidence_whose_verdicts_were_rewritten_is_refused_by_every_reader(reading: Command, reader: str) -> None:
    path = made(reading, FLUSHES)
    assert read_by(reading, reader, reading.out).code == 0
    rewrite(path, flatter)
    said = read_by(reading, reader, reading.out).expect(1 if reader == "verify" else 2)
    told = said.out if reader == "verify" else said.err
    assert re.search(r"pass in static-20\d\d, where “\w+” makes it (observed|fail)", told)


@pytest.mark.parametrize("reader", READERS)
def test_evidence_of_answers_with_other_bytes_is_refused_by_every_reader(reading: Command, reader: str) -> None:
    rewrite(made(reading), zero_contents)
    said = read_by(reading, reader, reading.out).expect(1 if reader == "verify" else 2)
    assert "pass in static-20" in said.out + said.err


@pytest.mark.parametrize("reader", READERS)
def test_evidence_of_an_older_format_is_told_from_damaged_evidence(reading: Command, reader: str) -> None:
    rewrite(made(reading), lambda records: records[0].update(format="reshape-conformance-results-1"))
    said = read_by(reading, reader, reading.out).expect(2)
    assert 'is in the format "reshape-conformance-results-1", as suite "0.1.0" wrote it' in said.err
    assert "read it with that version, or run again" in said.err


def test_a_row_with_right_dims_and_no_content_is_refused(reading: Command) -> None:
    rewrite(made(reading), remove("content"))
    verify(reading).expect(1, out="a step that came to “tensor” has the content None")


def test_the_verdicts_of_another_suite_are_compared_and_said_not_to_be_judged(reading: Command) -> None:
    reading.run("numpy")

    rewrite(reading.out / "results.jsonl", lambda records: records[0]["suite"].update(digest="0" * 64))
    read_by(reading, "diff", reading.out).expect(0, text="of another suite, not judged again")


# ── what a damaged file comes to ──────────────────────────────────────────────────────────────────
def one_line(said: Said) -> bool:
    return said.err.count("\n") == 1 and said.err.startswith("conformance: ")


@pytest.mark.parametrize("reader", [*READERS, "merge"])
def test_no_field_of_the_evidence_that_somebody_changed_is_a_traceback(reading: Command, reader: str) -> None:
    """A twentieth of the changes for each reader, drawn by its name."""
    reading.run("numpy", *(("--shard", "1/1") if reader == "merge" else ()))
    path, folder = reading.out / "results.jsonl", reading.folder / "changed"
    folder.mkdir()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    several = next(number for number, record in enumerate(lines) if "step" in record)
    places = [(at, *each) for at in (0, 1, several, len(lines) - 1) for each in mutations(lines[at])]
    assert len(places) > 1000
    for at, where, value in random.Random(reader).sample(places, len(places) // 20):
        records = copy.deepcopy(lines)
        put(records[at], where, value)
        (folder / "results.jsonl").write_bytes(signed(records))
        said = merge(reading, folder) if reader == "merge" else read_by(reading, reader, folder)
        assert said.code in (0, 1, 2, 4, 6), (where, value, said)
        assert said.code != 2 or one_line(said), (where, value, said)


def merge(command: Command, *folders: Path) -> Said:
    return command("merge", *folders, "--cases", command.cases, "--out", command.folder / "merged")


def removed(path: Path) -> Path:
    path.unlink()
    return path


WAIVER = {"number": 1, "place": "w.yaml:2", "reason": "x", "link": "x", "owner": "x", "expires": "2099-01-01"}
ODD: dict[str, Callable[[Records], object]] = {
    "seconds past any float": lambda records: records[-1].update(seconds=10**400),
    "seconds that no page can count": lambda records: records[-1].update(seconds=1.7e308),
    "seconds below zero": lambda records: records[-1].update(seconds=-1),
    "a day that is none": lambda records: records[0].update(started="9999-99-99T99:99:99Z"),
    "digits of another script": lambda records: records[0].update(started="٢٠٢٦-01-02T03:04:05+00:00"),
    "a waiver of nothing": lambda records: records[0].update(waivers=[WAIVER]),
    "a waiver of everything": lambda records: records[0].update(waivers=[{**WAIVER, "case": "*"}]),
    "a waiver of no day": lambda records: records[0].update(waivers=[{**WAIVER, "case": "x", "expires": "2026-13-13"}]),
    "counts of other rows": lambda records: records[-1]["verdicts"].update({"pass": 1}),
    "half of a character": lambda records: next(
        record for record in records if "diagnosis" in record
    ).update(diagnosis="\ud800 | b\n<!-- /counts -->"),
    "a planted backend forgotten": lambda records: records[-1]["canaries"].pop("DiesRatherThanRefuse"),
}  # fmt: skip


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("reader", READERS)
def test_evidence_that_no_run_writes_is_refused_or_shown_without_harm(reading: Command, reader: str, what: str) -> None:
    """A run of a backend that fails a little; the index of what is published can still be made afterwards."""
    rewrite(made(reading, FLUSHES), ODD[what])
    said = read_by(reading, reader, reading.out)
    assert said.code in (0, 1, 2)
    assert said.code != 2 or one_line(said), said
    if what not in ("half of a character", "a planted backend forgotten"):
        assert said.code == (1 if reader == "verify" else 2)
    if reader == "publish":
        reports = reading.folder / "reports"
        reports.mkdir(exist_ok=True)
        (reports / "README.md").write_text("<!-- counts -->\n<!-- /counts -->\nthe end\n", encoding="utf-8")
        again = reading("publish", "--index", "--out", reports, "--cases", reading.cases)
        assert again.code in (0, 1)
        assert (reports / "README.md").read_text(encoding="utf-8").count("<!-- /counts -->\n") == 1


def test_a_run_without_the_planted_backend_that_dies_shows_nothing(reading: Command) -> None:
    reading.run(mini("Bent"), "--isolation", "worker")
    assert verify(reading, "--conforms").code == 0
    rewrite(reading.out / "results.jsonl", ODD["a planted backend forgotten"])
    assert verify(reading, "--conforms").code == 1


def test_rows_waived_by_a_waiver_that_had_expired_are_refused(reading: Command) -> None:
    def waive(records: Records) -> None:
        records[0]["waivers"] = [{**WAIVER, "rule": "same-content", "expires": "2020-01-01"}]
        for record in records[1:-1]:
            if "diagnosis" in record:
                record["verdicts"] = {d: "waived" if v == "fail" else v for d, v in record["verdicts"].items()}
                record["waiver"] = 1
        count(records)

    rewrite(made(reading, FLUSHES), waive)
    assert "which had expired when the run began" in verify(reading).text


def test_a_page_that_unpacks_to_more_than_a_run_writes_is_refused(
    reporting: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting.run("numpy")
    monkeypatch.setattr("conformance.report.embedded.MOST", 1000)
    said = reporting("verify", reporting.out / "report.html", "--cases", reporting.cases).expect(2)
    assert "comes to more than 1,000 bytes" in said.err


def test_a_folder_with_packed_and_plain_results_says_that_it_has_both(reading: Command) -> None:
    reading.run("numpy")
    (reading.out / "results.jsonl.gz").write_bytes(b"")
    verify(reading).expect(2, err="holds both results.jsonl and results.jsonl.gz")


DEEP = "[" * 100_000
HUGE = "1" * 100_000
UNREADABLE: dict[str, Callable[[Path], object]] = {
    "JSON nested 100,000 deep": lambda path: path.write_text(f'{{"record":"header","suite":{DEEP}\n'),
    "a row nested 100,000 deep": lambda path: path.write_text(f'{path.read_text()}{{"record":"row","row":{DEEP}\n'),
    "a number of 100,000 digits": lambda path: path.write_text(f'{{"record":"header","suite":{HUGE}}}\n'),
    "a pipe": lambda path: os.mkfifo(removed(path)),
    "a device": lambda path: removed(path).symlink_to("/dev/zero"),
    "a folder": lambda path: removed(path).mkdir(),
    "a file of a terabyte": lambda path: os.truncate(path, 1 << 40),
    "nothing": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("reader", [*READERS, "merge"])
def test_what_nobody_could_read_is_one_line(reading: Command, reader: str, what: str) -> None:
    reading.run("numpy", *(("--shard", "1/1") if reader == "merge" else ()))
    UNREADABLE[what](reading.out / "results.jsonl")
    said = merge(reading, reading.out) if reader == "merge" else read_by(reading, reader, reading.out)
    if reader == "verify" and said.code == 1:
        assert "do not rely on this report" in said.out
    else:
        assert said.code == 2
        assert one_line(said), said


def test_a_page_in_which_nothing_can_be_read_is_one_line(reading: Command, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(f'<script type="application/json" id="evidence">{DEEP}</script>', encoding="utf-8")
    said = reading("verify", page, "--cases", reading.cases).expect(2)
    assert one_line(said)


def test_a_packed_file_that_unpacks_to_more_than_a_run_writes_is_refused(
    reading: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading.run("numpy")
    assert read_by(reading, "publish", reading.out).code == 0
    (folder,) = (reading.folder / "reports").glob("numpy-*")
    packed = (folder / "results.jsonl.gz").stat().st_size
    monkeypatch.setattr("conformance.certify.evidence.MOST", packed)
    read_by(reading, "verify", folder).expect(2, err=f"unpacks to more than {packed:,} bytes")


# ── the footer ────────────────────────────────────────────────────────────────────────────────────
EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a note removed": lambda footer: footer["notes"].pop(),
    "a planted count": lambda footer: footer["canaries"].update(AcceptsEverything=4),
    "the seconds": lambda footer: footer.update(seconds=0.5),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_footer_that_was_edited_is_refused(reading: Command, what: str) -> None:
    reading.run("broken:accepts-everything")
    path = reading.out / "results.jsonl"
    rewrite(path, lambda records: records[-1].update(notes=["the process died of SIGSEGV"]))
    for name in REPORTS:
        (reading.out / name).unlink(missing_ok=True)
    assert verify(reading).code == 0
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    footer = json.loads(lines[-1])
    EDITS[what](footer)
    path.write_text("".join([*lines[:-1], json.dumps(footer, separators=(",", ":")) + "\n"]), encoding="utf-8")
    verify(reading).expect(1, out="the footer is not as it was written; the file was changed")


def test_no_count_of_planted_failures_is_below_zero(reading: Command) -> None:
    rewrite(made(reading), lambda records: records[-1]["canaries"].update(AcceptsEverything=-3))
    assert "canaries.AcceptsEverything in the footer is -3" in verify(reading).out


# ── nothing of an earlier run is left to be taken for this one's ──────────────────────────────────
def conforming(folder: Path) -> None:
    """A folder with the files of a run that conformed, as far as a hurried reader looks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("results.jsonl", *REPORTS):
        (folder / name).write_text("conforms", encoding="utf-8")


def test_a_session_of_pytest_that_cannot_start_leaves_no_earlier_yes(tmp_path: Path) -> None:
    conforming(tmp_path / "out")
    Done(tmp_path, "--conformance-out", "out", adapter="no-such-backend").expect(4)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_session_of_pytest_that_is_killed_leaves_no_earlier_yes(tmp_path: Path) -> None:
    conforming(tmp_path / "out")
    text = "import os\nfrom conformance.adapters.numpy_reference import NumpyReference\nclass Dies(NumpyReference):\n"
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
    assert command.run("numpy", "--shard", "1/2").code == 4
    assert merge(command, command.out).code == 2
    assert list((tmp_path / "merged").iterdir()) == []


@pytest.mark.parametrize("name", ["results.jsonl", "results.jsonl.part", "report.html"])
def test_a_link_in_the_folder_is_replaced_and_not_written_through(
    reporting: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "elsewhere").write_text("kept", encoding="utf-8")
    reporting.out.mkdir()
    (reporting.out / name).symlink_to(tmp_path / "elsewhere")
    assert reporting.run("numpy").code == 0
    assert (tmp_path / "elsewhere").read_text() == "kept"
    assert not (reporting.out / name).is_symlink()


# ── in the suite's own process ────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("backend", "isolation"),
    [
        ("numpy", "none"), ("broken:zero-flag-ignored", "none"), ("numpy:Mine", "worker"), ("broken.py:Mine", "worker"),
        ("numpy@cpu", "worker"), ("numpy-raw", "worker"), ("./numpy:Mine", "worker"), ("numpy.py:Mine", "worker"),
    ],
)  # fmt: skip
def test_only_our_own_backends_run_in_process_unless_somebody_asks(backend: str, isolation: str) -> None:
    assert isolation_of(backend) == isolation


def test_a_verdict_made_in_process_says_so_and_shows_nothing_to_others(reading: Command) -> None:
    reading.run(mini("Bent"), "--isolation", "none").expect(
        0, text=["as run in the suite's own process", "could write its verdict; it proves nothing"]
    )
    assert verify(reading).code == 0
    for more in ((), ("static-2022",)):
        told = verify(reading, "--conforms", *more).expect(1)
        assert "ran in the suite's own process" in told.text
    assert not verify(reading, "--json").data["conforms"]
    assert read_by(reading, "publish", reading.out).code == 2


def test_a_verdict_made_in_a_worker_or_by_our_own_backend_is_taken(reading: Command) -> None:
    for words in ((mini("Bent"), "--isolation", "worker"), ("numpy",)):
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
        said = reporting.run("numpy")
    assert said.code == 130
    words = re.search(r"`conformance (report .*)`", said.err)
    assert words is not None, said.err
    assert not (reporting.out / "report.html").exists()
    told = reporting(*shlex.split(words[1]), "--cases", reporting.cases).expect(0)
    assert "this exit code says only that the reports are written" in told.text
    assert all((reporting.out / name).is_file() for name in REPORTS)
    assert reporting("verify", reporting.out, "--cases", reporting.cases, "--conforms").code == 0


def resumed(command: Command, rows: int) -> Said:
    """A run of numpy that goes on after so many rows of an earlier one."""
    command.run("numpy")
    path = command.out / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    part_of(path).write_bytes(b"".join(lines[: rows + 1]))
    return command.run("numpy", "--resume", command.out)


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


# ── what verify can say, and what it cannot ───────────────────────────────────────────────────────
def test_verify_says_that_it_does_not_know_who_wrote_the_evidence(reading: Command) -> None:
    reading.run("numpy")
    assert "wrote by: unknown" in verify(reading).out
    data = verify(reading, "--json").data
    assert data["written_by"] == "unknown"
    assert data["conforms"] is True
    assert data["repeated"] is None


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--require", "bf16", "--require", "layout:reversed"), 0, ""),
        (("--require", "type"), 1, "--require type: incomplete: required and not shown: type"),
        (("--require", "reshape-2020", "--require", "f16"), 1, "required and not shown: reshape-2020"),
        (("--require", "no-such"), 2, "unknown requirement"),
    ],
)
def test_verify_demands_what_run_would_have_demanded(
    reading: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, told: str
) -> None:
    reading.run(mini("LeavesOutOneType"), "--isolation", "worker")
    said = verify(reading, *words).expect(code)
    assert told in f"{said.text} {said.err}"


def test_verify_holds_the_claims_against_those_that_are_pinned(reading: Command, tmp_path: Path) -> None:
    reading.run(mini("LeavesOutOneType"), "--isolation", "worker")
    claims = read(reading.out / "results.jsonl").header["claims"]
    path = tmp_path / "claims.yaml"
    path.write_text(json.dumps(claims), encoding="utf-8")
    assert verify(reading, "--claims", path).code == 0
    path.write_text(json.dumps({**claims, "leaves_out": []}), encoding="utf-8")
    said = verify(reading, "--claims", path).expect(1)
    assert "leaves_out: type:f16 is claimed and not pinned" in said.text


def test_rows_called_again_come_to_what_true_evidence_says(reading: Command) -> None:
    backend = mini("Bent")
    reading.run(backend, "--isolation", "worker")
    again = ("verify", reading.out, "--cases", reading.cases, "--repeat", "30", "--backend", backend)
    reading(*again).expect(0, text=f"30 rows called again on {backend}: 30 gave what the evidence says")
    repeated = reading(*again, "--json").data["repeated"]
    assert (repeated["backend"], repeated["rows"], repeated["differences"]) == (backend, 30, [])


def test_rows_called_again_show_evidence_that_the_backend_does_not_bear_out(reading: Command) -> None:
    """Rows copied from the reference are sound in themselves; the backend that they are said to be of is wrong."""
    change = impersonate(reading, FLUSHES, "claims")
    rewrite(made(reading), change)
    verify = ("verify", reading.out, "--cases", reading.cases, "--conforms")
    assert reading(*verify).code == 0, "alone, evidence tells nobody who wrote it"
    said = reading(*verify, "--repeat", 1000, "--backend", FLUSHES).expect(1)
    assert "patterns[StaticReshape-f32]: the evidence says f32[8], now f32[8] (subnormals flushed)" in said.text


def test_rows_are_called_again_only_on_the_backend_that_the_evidence_names(reading: Command) -> None:
    reading.run("numpy")
    said = verify(reading, "--repeat", 3, "--backend", mini("Bent")).expect(3)
    assert "the evidence is of numpy" in said.err
    for words in (("--repeat", 3), ("--backend", "numpy")):
        assert verify(reading, *words).code == 2


# ── publishing ────────────────────────────────────────────────────────────────────────────────────
def test_publishing_says_what_it_replaces(reading: Command) -> None:
    change = impersonate(reading, FLUSHES)
    assert "replaces" not in read_by(reading, "publish", reading.out).err
    assert "replaces" not in read_by(reading, "publish", reading.out).err, "it is the same"

    rewrite(made(reading), change)
    said = read_by(reading, "publish", reading.out)
    assert re.search(r"replaces the run of \S+, in which [1-9]\d* verdicts failed; 0 fail now", said.err)


@pytest.mark.parametrize("name", ["..", ".", "-", "///", "../.."])
def test_a_backend_whose_name_names_no_folder_is_not_published(reading: Command, name: str) -> None:
    rewrite(made(reading), lambda records: records[0]["backend"].update(name=name))
    read_by(reading, "publish", reading.out).expect(2, err="names no folder")
    assert not list((reading.folder / "reports").glob("*"))


def test_counts_can_be_forged_with_their_rows_and_are_told_by_the_rows(reading: Command) -> None:
    rewrite(made(reading, FLUSHES), lambda records: records[-1]["verdicts"].update({"pass": 9999}))
    assert "the footer counts 9999 pass" in verify(reading).out
    rewrite(reading.out / "results.jsonl", count)
    assert verify(reading).code == 0
