"""A backend that ends the process of the command, which `--isolation none` lets it, is no success whatever its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .. import processes, small

BACKEND = """import atexit, ctypes, os, signal, subprocess, sys, time
from conformance.adapters.numpy_reference import NumpyReference
from conformance.model import Identity
class Mine(NumpyReference):
    identity = Identity("mine", "1")
    def compile(self, graph):
        {}
        return super().compile(graph)
"""


def words(folder: Path, act: str) -> list[str]:
    (folder / "mine.py").write_text(BACKEND.format(act))
    few = ["--cases", str(small.cases(folder)), "--hunt", "0"]
    only = ["--isolation", "none", *few, "-k", "there-and-back", "--type", "f32"]
    return ["run", f"{folder / 'mine.py'}:Mine", *only, "--out", str(folder / "out")]


def start(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """A command whose backend sleeps, and the process of the backend."""
    path = folder / "pid"
    act = f"open({str(path)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    command = [sys.executable, "-m", "conformance", *words(folder, act)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    processes.wait(lambda: path.exists() and path.read_text(), 30)
    return process, int(path.read_text())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
@pytest.mark.parametrize(
    ("act", "how"),
    [
        ("os._exit(0)", "exit code 0"), ("ctypes.CDLL(None).exit(0)", "exit code 0"),
        ("ctypes.CDLL(None)._exit(0)", "exit code 0"), ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    ],
)  # fmt: skip
def test_a_backend_that_ends_the_command_shows_nothing(tmp_path: Path, act: str, how: str) -> None:
    done = processes.run_command(*words(tmp_path, act))
    assert done.returncode == 4
    assert f"ended with {how} before the command was done" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("act", "code"), [("pass", 4), ("os.fork()", 4), ("raise KeyError", 1), ("raise KeyboardInterrupt", 130)]
)
def test_the_code_of_a_command_that_comes_to_its_end_is_its_own(tmp_path: Path, act: str, code: int) -> None:
    done = processes.run_command(*words(tmp_path, act))
    assert done.returncode == code
    assert "was through" not in done.stderr
    assert (tmp_path / "out" / "report.html").exists() == (code != 130)


@pytest.mark.skipif(sys.platform != "linux", reason="another kernel tells nobody that a pipe has no writer any more")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_command_that_is_killed(tmp_path: Path, end: signal.Signals) -> None:
    command, backend = start(tmp_path)
    command.send_signal(end)
    command.communicate(timeout=30)
    processes.wait(lambda: not processes.running(backend), 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_backend_that_hangs_at_exit_keeps_no_command_from_ending(tmp_path: Path) -> None:
    began = time.monotonic()
    code = "import sys; from conformance.isolate import supervise; from conformance.cli.main import main\n"
    code += "supervise._GRACE = 0.5; sys.exit(main())"
    command = [sys.executable, "-c", code, *words(tmp_path, "atexit.register(time.sleep, 60)")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
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
    done = processes.run_command(*words(tmp_path, act), timeout=60)
    assert done.returncode == 4, done.stderr
    pids = [int(pid) for pid in (tmp_path / "pid").read_text().split()]
    assert pids
    assert not any(processes.running(pid) for pid in pids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_command_that_is_terminated_says_so(tmp_path: Path) -> None:
    command, _ = start(tmp_path)
    command.terminate()
    _, said = command.communicate(timeout=30)
    assert command.returncode == 143
    assert "terminated; to go on, give --resume" in said
