"""Which processes run: from /proc, since small images of Linux have no ps; elsewhere from ps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
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
