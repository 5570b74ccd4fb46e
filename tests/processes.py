"""Which processes run: from /proc, since small images of Linux have no ps; elsewhere from ps."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any


def running(pid: int = -1, group: int = -1) -> bool:
    """Ask if that process, or one of that group, is left and not merely waiting to be reaped."""
    return any(pid == one or group == its for one, its, state in _all() if state != "Z")


def _all() -> Iterator[tuple[int, int, str]]:
    """Process, group and state of each."""
    if os.path.exists("/proc/self/stat"):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat", errors="replace") as file:  # it may have ended since
                state, _, group = file.read().rpartition(")")[2].split()[:3]
                yield int(name), int(group), state
        return
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], check=True, capture_output=True, text=True).stdout
    for one, its, state in map(str.split, listed.splitlines()):
        yield int(one), int(its), state[0]


def wait(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until a condition is true, and fail if that takes longer."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def children() -> set[int]:
    """The processes that this one has started and that are there."""
    found = set()
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):  # it has ended since
            if parent_of(pid) == os.getpid():
                found.add(pid)
    return found


def parent_of(pid: int) -> int:
    """The process that has started that one, or has taken it over."""
    return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])


@contextmanager
def heed_signal(number: signal.Signals) -> Iterator[None]:
    """Let processes that start meanwhile heed a signal: a background job of a shell ignores SIGINT, `nohup` SIGHUP."""
    before = signal.signal(number, lambda *_: None)  # a new process has the default for what is handled, not ignored
    try:
        yield
    finally:
        signal.signal(number, before)


def run_command(
    *words: object, timeout: float = 120, module: str = "conformance", **more: Any
) -> subprocess.CompletedProcess[str]:
    """`conformance` in a new process, to its end."""
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **more)


def peak_memory(command: Sequence[str]) -> int:
    """Run a command that may exit with 0 or 1, and return the most bytes that it held at once."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1)
    return used.ru_maxrss << 10


@cache
def works(tool: str) -> bool:
    """Ask if a program is installed and runs; that of a toolchain manager may have no toolchain behind it."""
    return (
        bool(shutil.which(tool))
        and not subprocess.run([tool, "--version"], capture_output=True, check=False).returncode
    )
