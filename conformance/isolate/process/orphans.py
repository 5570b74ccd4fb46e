"""Find and kill the processes that a worker leaves behind, whatever environment or session they have."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 40
"""Rounds of killing: children may start while others are being killed, and a process takes a moment to end."""
_PAUSE = 0.002


class ProcessEntry(NamedTuple):
    """A process as /proc shows it."""

    pid: int
    parent: int
    session: int
    start_time: str
    """With the pid it identifies one process; a pid alone may be used again."""
    over: bool
    """Whether it has ended and waits to be reaped."""


_Processes = dict[int, ProcessEntry]
"""Processes by their pids."""
_before = set[tuple[int, str]]()
"""Children of this process that were there before any worker; they are no orphans."""
_alive = dict[int, str]()
"""Workers and copies that may still run, each with the mark of its environment."""
_adopting: list[int] = []
"""The pid of this process once it adopts orphans; a fork of it does not."""
LOCK = threading.RLock()
"""Held while a worker is started and registered: another thread that looks for orphans meanwhile would kill it."""


def adopt() -> None:
    """Become the reaper of our workers' orphans and kill them. Call it only in a process that runs nothing else."""
    if sys.platform != "linux" or _adopting == [os.getpid()]:
        return
    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting[:] = [os.getpid()]
            _before.update((e.pid, e.start_time) for e in _list_processes().values() if e.parent == os.getpid())


def register(pid: int, mark: str) -> None:
    """Register a worker, so that it never counts as an orphan."""
    with LOCK:
        _alive[pid] = mark


def forget(pid: int) -> None:
    with LOCK:
        _alive.pop(pid, None)


def kill_family(family: Iterable[ProcessEntry], pid: int, mark: str, spare: int) -> None:
    """Kill what a worker leaves until none is left: a known family, processes with its mark, and its orphans.

    `spare` is the pid of a process with the same mark that goes on.
    """
    me, known = os.getpid(), set(family)

    def find_rest(now: _Processes) -> set[ProcessEntry]:
        nonlocal known
        known = {entry for entry in known if entry.pid in now and now[entry.pid].start_time == entry.start_time}
        known |= find_descendants({entry.pid for entry in known}, now)
        known |= {now[marked] for marked in find_marked_pids(mark) if marked in now}
        known |= _find_orphans(now, (pid, spare), mark)
        known = {entry for entry in known if entry.pid not in (spare, me)}
        known = {e for e in known if not now[e.pid].over or now[e.pid].parent == me}  # others reap the rest
        return known

    _kill_what_is_found(find_rest)


def kill_adopted_orphans() -> None:
    """Kill every orphan that this process adopted, with its children; for a process that starts no workers itself."""

    def find_adopted(now: _Processes) -> set[ProcessEntry]:
        adopted = {e for e in now.values() if e.parent == os.getpid() and (e.pid, e.start_time) not in _before}
        return adopted | find_descendants({entry.pid for entry in adopted}, now)

    if _adopting == [os.getpid()]:
        _kill_what_is_found(find_adopted)


def _kill_what_is_found(find: Callable[[_Processes], set[ProcessEntry]]) -> None:
    for number in range(_ROUNDS):
        now = _list_processes()
        if not (found := find(now)):
            return
        for pid in (entry.pid for entry in found):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            if now[pid].parent == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        time.sleep(_PAUSE * min(number, 10))


def _find_orphans(now: _Processes, sessions: tuple[int, int], mark: str) -> set[ProcessEntry]:
    """Find the adopted orphans of a worker.

    An orphan that another living worker may have left is spared. It is killed with the last worker.
    """
    me = os.getpid()
    if _adopting != [me]:
        return set()
    with LOCK:
        alive = dict(_alive)
    session = os.getsid(0)
    orphans = {
        entry for entry in now.values()
        if entry.parent == me and entry.session != session and entry.pid not in alive
        and (entry.pid, entry.start_time) not in _before
    }  # fmt: skip
    others_alive = any(other != mark for other in alive.values())
    return {entry for entry in orphans if entry.session in sessions} if others_alive else orphans


def find_descendants(pids: set[int], now: _Processes | None = None) -> set[ProcessEntry]:
    entries = (_list_processes() if now is None else now).values()
    descendants: set[ProcessEntry] = set()
    while children := {entry for entry in entries if entry.parent in pids} - descendants:
        descendants |= children
        pids = {entry.pid for entry in children}
    return descendants


def _list_processes() -> _Processes:
    """Return every process by its pid; none unless this is Linux."""
    processes = {}
    for pid, stat in _read_each("stat"):
        with contextlib.suppress(ValueError):
            state, parent, _, session, *rest = stat.rpartition(b")")[2].split()
            processes[pid] = ProcessEntry(pid, int(parent), int(session), rest[15].decode(), state in (b"Z", b"X"))
    return processes


def find_marked_pids(mark: str) -> list[int]:
    """Return the pids of our processes that were started with the mark; none unless this is Linux."""
    return [pid for pid, environ in _read_each("environ") if mark.encode() in environ]


def _read_each(name: str) -> Iterator[tuple[int, bytes]]:
    """Read a file of each process that /proc shows and lets us read; of none where there is no /proc."""
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
                yield int(pid), file.read()
