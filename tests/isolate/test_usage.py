"""What a run observes of the backend's process beside its answers: growth with its calls, and how it ends."""

import json
import sys
from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.isolate.backend import note_processes
from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol import session

from . import faulty_program
from .calls import call
from .remote_backends import start, write_acting

GROWTH = {
    "pass": "",
    "kept[calls % 60] = bytearray(100_000)": "",  # a cache that is full after some calls
    "if calls == 700: kept[0] = bytearray(50_000_000)": "",  # a large pool, made late
    "kept[calls] = bytearray(10_000)": "memory by ",
    "calls % 10 or os.dup(0)": "open files by 100",
    "calls % 10 or threading.Thread(target=time.sleep, args=(60,), daemon=True).start()": "threads by 100",
}


def counting(folder: Path, act: str) -> str:
    """A backend that acts at each of its calls, which it counts."""
    return write_acting(folder, f"global calls; calls += 1\n        {act}", "kept, calls = {}, 0")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures with /proc")
@pytest.mark.parametrize("act", GROWTH)
def test_growth_with_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    monkeypatch.setattr(session, "CALLS_APART", 70)
    remote = start(counting(tmp_path, act))
    for length in range(1400):
        call(remote, (length % 7 + 1,))
    remote.close()
    (end,) = remote.ends
    assert (end.exit, end.calls) == ("exit code 0", 1400)
    assert end.growth is not None
    assert GROWTH[act] in end.growth.describe()
    assert bool(note_processes(remote)) == bool(GROWTH[act])


def test_growth_after_few_calls_is_not_told() -> None:
    remote = start("reference")
    call(remote, (3,))
    remote.close()
    assert remote.ends[0].to_json() == {"exit": "exit code 0", "calls": 0, "growth_per_1000_calls": None}


def test_usage_that_comes_with_each_reply() -> None:
    remote = faulty_program.remote('beside:{"usage": [1, 2, 3]}')
    assert {faulty_program.outcome(remote).kind for _ in range(20)} == {"tensor"}
    remote.close()
    assert remote.ends[0].growth is None


EXITS = {
    "os.abort": ("SIGABRT", "it ended with SIGABRT"),
    "os._exit, 3": ("exit code 3", "it ended with exit code 3"),
    "time.sleep, 60": ("killed", "it answered, but did not end within 0.5 s; it was killed"),
}


@pytest.mark.slow
@pytest.mark.parametrize("act", EXITS)
def test_the_end_of_a_process_at_stop(tmp_path: Path, act: str) -> None:
    remote = start(counting(tmp_path, f"calls > 1 or atexit.register({act})"), ProcessLimits(stop_seconds=0.5))
    call(remote, (3,))
    remote.close()
    exit_, problem = EXITS[act]
    assert remote.ends[0].exit == exit_
    assert note_processes(remote)[0].endswith(f": {problem}")
    remote.ends.clear()  # the fixture asks every other backend for a good end


@pytest.mark.slow
def test_a_bad_end_is_noted_and_not_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backend = counting(tmp_path, "calls > 1 or atexit.register(os.abort)")
    out = tmp_path / "out"
    assert main(["run", backend, "-k", "same-dims", "--jobs", "2", "--out", str(out)]) == 4
    note = "the backend's process was asked to end after the last row: it ended with SIGABRT"
    assert note in " ".join(capsys.readouterr().out.split())
    footer = json.loads((out / "results.jsonl").read_text().splitlines()[-1])
    assert {end["exit"] for end in footer["processes"]} == {"SIGABRT"}
    assert note in (out / "report.html").read_text().replace("&#39;", "'")
    assert main(["verify", str(out)]) == 0
