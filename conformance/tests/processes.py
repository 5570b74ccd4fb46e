"""Which processes run: from /proc, since small images of Linux have no ps; elsewhere from ps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path


def running(pid: int = -1, group: int = -1) -> bool:
    """Whether that process, or one of that group, is left and not merely waiting to be reaped."""
    return any(pid == one or group == its for one, its, state in _all() if state != "Z")


def _all() -> Iterator[tuple[int, int, str]]:
    """Process, group and state of each."""
    if Path("/proc/self/stat").exists():
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended since
                state, _, group = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
                yield int(folder.name), int(group), state
        return
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], check=True, capture_output=True, text=True).stdout
    for one, its, state in map(str.split, listed.splitlines()):
        yield int(one), int(its), state[0]


def peak_memory(command: Sequence[str]) -> int:
    """Run a command that may exit with 0 or 1, and return the most bytes that it held at once."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1)
    return used.ru_maxrss << 10
