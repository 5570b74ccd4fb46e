"""Find and kill the processes that a worker leaves behind, whatever environment or session they have."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
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


class _KnownChildren(NamedTuple):
    """The children of this process that are not orphans."""

    before: set[tuple[int, str]]
    """Children that were there before any worker."""
    alive: dict[int, str]
    """Workers and copies that may still run, each with the mark of its environment."""


_known_children = _KnownChildren(set(), {})
_adopting: list[int] = []
"""The pid of this process once it adopts orphans; a fork of it does not."""
_lock = threading.Lock()


def adopt() -> None:
    """Become the reaper of our workers' orphans and kill them. Call it only in a process that runs nothing else."""
    if sys.platform != "linux" or _adopting == [os.getpid()]:
        return
    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting[:] = [os.getpid()]
            _known_children.before.update(
                (e.pid, e.start_time) for e in _processes().values() if e.parent == os.getpid()
            )


def register(pid: int, mark: str) -> None:
    """Register a worker, so that it never counts as an orphan."""
    with _lock:
        _known_children.alive[pid] = mark


def forget(pid: int) -> None:
    with _lock:
        _known_children.alive.pop(pid, None)


def find_descendants(pid: int) -> set[ProcessEntry]:
    return _descendants_of({pid}, _processes())


def kill_family(family: Iterable[ProcessEntry], pid: int, mark: str, spare: int) -> None:
    """Kill what a worker leaves until none is left: a known family, processes with its mark, and its orphans.

    `spare` is the pid of a process with the same mark that goes on.
    """
    family = set(family)
    for number in range(_ROUNDS):
        now = _processes()
        family = {entry for entry in family if entry.pid in now and now[entry.pid].start_time == entry.start_time}
        family |= _descendants_of({entry.pid for entry in family}, now)
        family |= {now[marked] for marked in find_marked_pids(mark) if marked in now}
        family |= _find_orphans(now, (pid, spare), mark)
        me = os.getpid()
        family = {entry for entry in family if entry.pid not in (spare, me)}
        family = {e for e in family if not now[e.pid].over or now[e.pid].parent == me}  # others reap the rest
        if not family:
            return
        for entry in family:
            _kill(entry.pid, now[entry.pid].parent)
        time.sleep(_PAUSE * min(number, 10))


def kill_adopted_orphans() -> None:
    """Kill every orphan that this process adopted, with its children; for a process that starts no workers itself."""
    me = os.getpid()
    if _adopting != [me]:
        return
    for number in range(_ROUNDS):
        now = _processes()
        adopted = {
            e.pid for e in now.values() if e.parent == me and (e.pid, e.start_time) not in _known_children.before
        }
        if not adopted:
            return
        for pid in {*adopted, *(entry.pid for entry in _descendants_of(adopted, now))}:
            _kill(pid, now[pid].parent)
        time.sleep(_PAUSE * min(number, 10))


def _kill(pid: int, parent: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    if parent == os.getpid():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _find_orphans(now: dict[int, ProcessEntry], sessions: tuple[int, int], mark: str) -> set[ProcessEntry]:
    """Find the adopted orphans of a worker.

    An orphan that another living worker may have left is spared. It is killed with the last worker.
    """
    me = os.getpid()
    if _adopting != [me]:
        return set()
    with _lock:
        alive = dict(_known_children.alive)
    session = os.getsid(0)
    orphans = {
        entry for entry in now.values()
        if entry.parent == me and entry.session != session and entry.pid not in alive
        and (entry.pid, entry.start_time) not in _known_children.before
    }  # fmt: skip
    others_alive = any(other != mark for other in alive.values())
    return {entry for entry in orphans if entry.session in sessions} if others_alive else orphans


def _descendants_of(pids: set[int], now: dict[int, ProcessEntry]) -> set[ProcessEntry]:
    children: dict[int, list[ProcessEntry]] = {}
    for entry in now.values():
        children.setdefault(entry.parent, []).append(entry)
    descendants: set[ProcessEntry] = set()
    waiting = list(pids)
    while waiting:
        for entry in children.get(waiting.pop(), ()):
            if entry not in descendants:
                descendants.add(entry)
                waiting.append(entry.pid)
    return descendants


def _processes() -> dict[int, ProcessEntry]:
    """Return every process by its pid; none unless this is Linux."""
    processes = {}
    for pid in _pids():
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, _, session, *rest = file.read().rpartition(b")")[2].split()
            over = state in (b"Z", b"X")
            processes[pid] = ProcessEntry(pid, int(parent), int(session), rest[15].decode(), over)
    return processes


def find_marked_pids(mark: str) -> list[int]:
    """Return the pids of our processes that were started with the mark; none unless this is Linux."""
    pids = []
    for pid in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if mark.encode() in file.read():
                pids.append(pid)
    return pids


def _pids() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []
