"""A backend that ends the process of the command, which `--isolation none` lets it, is no success whatever its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import processes

BACKEND = """import ctypes, os, signal, sys, time
from conformance.adapters.numpy_reference import NumpyReference
from conformance.model import Identity
class Mine(NumpyReference):
    identity = Identity("mine", "1")
    def compile(self, graph):
        {}
        return super().compile(graph)
"""


def command(folder: Path, act: str) -> list[str]:
    (folder / "mine.py").write_text(BACKEND.format(act))
    words = ["run", f"{folder / 'mine.py'}:Mine", "--isolation", "none", "-k", "there-and-back", "--type", "f32"]
    return [sys.executable, "-m", "conformance", *words, "--out", str(folder / "out")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("os._exit(0)", "ended with exit code 0 before the command was through"),
        ("ctypes.CDLL(None).exit(0)", "ended with exit code 0 before the command was through"),
        ("ctypes.CDLL(None)._exit(0)", "ended with exit code 0 before the command was through"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended with signal 9 before the command was through"),
    ],
)
def test_a_backend_that_ends_the_command_shows_nothing(tmp_path: Path, act: str, words: str) -> None:
    done = subprocess.run(command(tmp_path, act), check=False, capture_output=True, text=True)
    assert done.returncode == 4
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("act", "code"), [("pass", 4), ("os.fork()", 4), ("raise KeyError", 1), ("raise KeyboardInterrupt", 130)]
)
def test_the_code_of_a_command_that_comes_to_its_end_is_its_own(tmp_path: Path, act: str, code: int) -> None:
    done = subprocess.run(command(tmp_path, act), check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert "was through" not in done.stderr
    assert (tmp_path / "out" / "report.html").exists() == (code != 130)


@pytest.mark.skipif(sys.platform != "linux", reason="another kernel tells nobody that a pipe has no writer any more")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path, end: signal.Signals) -> None:
    pid = tmp_path / "pid"
    act = f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with subprocess.Popen(command(tmp_path, act), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        for _ in range(600):
            if pid.exists() and pid.read_text():
                break
            time.sleep(0.05)
        running.send_signal(end)
    for _ in range(40):
        if not processes.running(int(pid.read_text())):
            return
        time.sleep(0.05)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    pytest.fail("it outlived the command")
