"""Temporary folders; if a command is killed, the next one removes its folder."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "reshape-conformance-"
_NAME = re.compile(rf"{_PREFIX}([0-9]+)-([0-9]+)-([0-9]+)-.*")
"""The space of process ids, a process in it, and its start time."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a new folder and remove it at the end. Folders of killed processes are removed first."""
    space, start = _pid_namespace(), _start_time(os.getpid())
    if space is not None:
        _remove_stale(space)
    name = f"{_PREFIX}{space or 0}-{os.getpid()}-{start or 0}-"
    with tempfile.TemporaryDirectory(prefix=name, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _remove_stale(space: int) -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        name = _NAME.fullmatch(path.name)
        if name and int(name[1]) == space and _start_time(int(name[2])) != int(name[3]):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                    shutil.rmtree(path, ignore_errors=True)


def _pid_namespace() -> int | None:
    """Return the id of the process namespace, since containers may share the folder; None outside Linux."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _start_time(pid: int) -> int | None:
    """Return the start time of a process in ticks; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None
