"""A backend that ends the process of the command, which `--isolation none` lets it, is no success whatever its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .. import processes

BACKEND = """import atexit, ctypes, os, signal, subprocess, sys, time
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
        ("os._exit(0)", "ended with exit code 0 before the command was done"),
        ("ctypes.CDLL(None).exit(0)", "ended with exit code 0 before the command was done"),
        ("ctypes.CDLL(None)._exit(0)", "ended with exit code 0 before the command was done"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended with signal 9 before the command was done"),
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_backend_that_hangs_at_exit_keeps_no_command_from_ending(tmp_path: Path) -> None:
    began = time.monotonic()
    words = command(tmp_path, "atexit.register(time.sleep, 60)")
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=50)
    assert done.returncode == 4
    assert "exit 4: " in done.stdout
    assert time.monotonic() - began < 40


CHILDREN = {
    "forked": "self.forked = getattr(self, 'forked', 0) or os.fork() or (os.setsid(), time.sleep(600))",
    "of its own": "self.began = getattr(self, 'began', 0) or subprocess.Popen("
    "['sleep', '600'], env={}, start_new_session=True)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found in /proc")
@pytest.mark.parametrize("what", CHILDREN)
def test_children_of_a_backend_in_process_end_with_the_command(tmp_path: Path, what: str) -> None:
    keep = f"open({str(tmp_path / 'pid')!r}, 'a').write(str(os.getpid()) + ' ')" if what == "forked" else "pass"
    act = CHILDREN[what].replace("(os.setsid()", f"({keep}, os.setsid()")
    if what != "forked":
        act += f"; open({str(tmp_path / 'pid')!r}, 'w').write(str(self.began.pid))"
    done = subprocess.run(command(tmp_path, act), check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4, done.stderr
    pids = [int(pid) for pid in (tmp_path / "pid").read_text().split()]
    assert pids
    assert not any(processes.running(pid) for pid in pids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_command_that_is_terminated_says_so(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    act = f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    running = subprocess.Popen(command(tmp_path, act), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if pid.exists() and pid.read_text():
            break
        time.sleep(0.05)
    running.terminate()
    _, said = running.communicate(timeout=30)
    assert running.returncode == 143
    assert "terminated; to go on, give --resume" in said
