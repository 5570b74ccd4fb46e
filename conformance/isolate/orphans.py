"""Processes that a worker leaves behind: found by their parents, whatever environment or session they have."""

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
"""Children may be born while others are being ended, and it takes a moment to end."""
_PAUSE = 0.002


class Entry(NamedTuple):
    """A process as /proc shows it."""

    pid: int
    parent: int
    session: int
    began: str
    """With the pid it names one process for ever: a pid alone is used again."""
    over: bool
    """True if it has ended and waits to be reaped."""


class _Ours(NamedTuple):
    """The children that this process knows."""

    before: set[tuple[int, str]]
    """Children that were there before any worker."""
    alive: dict[int, str]
    """Workers and copies that are not buried, each with the mark of its environment."""


_ours = _Ours(set(), {})
_adopting: list[int] = []
"""The pid of this process, once it adopts; a copy of it does not."""
_lock = threading.Lock()


def adopt() -> None:
    """Make the kernel give us the orphans of our workers. Only for a process that is all ours: it ends them."""
    if sys.platform != "linux" or _adopting == [os.getpid()]:
        return
    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
            _adopting[:] = [os.getpid()]
            _ours.before.update((e.pid, e.began) for e in _processes().values() if e.parent == os.getpid())


def register(pid: int, mark: str) -> None:
    """Make a worker known, so that it is never taken for an orphan."""
    with _lock:
        _ours.alive[pid] = mark


def forget(pid: int) -> None:
    """The worker is buried."""
    with _lock:
        _ours.alive.pop(pid, None)


def descendants(pid: int) -> set[Entry]:
    """The children of a process, their children, and so on."""
    return _below({pid}, _processes())


def end(family: Iterable[Entry], pid: int, mark: str, model: int) -> None:
    """End what a worker leaves: a known family, what carries its mark, and its orphans, until none is left.

    `model` is a process with the same mark that goes on.
    """
    family = set(family)
    for number in range(_ROUNDS):
        now = _processes()
        family = {entry for entry in family if entry.pid in now and now[entry.pid].began == entry.began}
        family |= _below({entry.pid for entry in family}, now)
        family |= {now[each] for each in carriers(mark) if each in now}
        family |= _orphans(now, (pid, model), mark)
        family = {entry for entry in family if entry.pid not in (model, os.getpid()) and _counts(now[entry.pid])}
        if not family:
            return
        for entry in family:
            _end_one(entry.pid, now[entry.pid].parent)
        time.sleep(_PAUSE * min(number, 10))


def end_adopted() -> None:
    """End every process that was given to this one since `adopt`, with its children; for one that starts none."""
    me = os.getpid()
    if _adopting != [me]:
        return
    for number in range(_ROUNDS):
        now = _processes()
        ours = {e.pid for e in now.values() if e.parent == me and (e.pid, e.began) not in _ours.before}
        if not ours:
            return
        for pid in {*ours, *(entry.pid for entry in _below(ours, now))}:
            _end_one(pid, now[pid].parent)
        time.sleep(_PAUSE * min(number, 10))


def _end_one(pid: int, parent: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    if parent == os.getpid():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _counts(entry: Entry) -> bool:
    """True unless it has ended already and another process has to reap it."""
    return not entry.over or entry.parent == os.getpid()


def _orphans(now: dict[int, Entry], sessions: tuple[int, int], mark: str) -> set[Entry]:
    """Children of ours that none of us started: a worker's, whose own parent has ended.

    One that another living worker may have left is spared. It is ended with the last worker.
    """
    me = os.getpid()
    if _adopting != [me]:
        return set()
    with _lock:
        alive = dict(_ours.alive)
    session = os.getsid(0)
    found = {
        entry for entry in now.values()
        if entry.parent == me and entry.session != session and entry.pid not in alive
        and (entry.pid, entry.began) not in _ours.before
    }  # fmt: skip
    others = {other for other, its in alive.items() if its != mark}
    return found if not others else {entry for entry in found if entry.session in sessions}


def _below(pids: set[int], now: dict[int, Entry]) -> set[Entry]:
    children: dict[int, list[Entry]] = {}
    for entry in now.values():
        children.setdefault(entry.parent, []).append(entry)
    found: set[Entry] = set()
    waiting = list(pids)
    while waiting:
        for entry in children.get(waiting.pop(), ()):
            if entry not in found:
                found.add(entry)
                waiting.append(entry.pid)
    return found


def _processes() -> dict[int, Entry]:
    """Every process, where Linux shows them."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                    entry = Entry(
                        int(name), int(fields[1]), int(fields[3]), fields[19].decode(), fields[0] in (b"Z", b"X")
                    )
                    found[entry.pid] = entry
    return found


def carriers(mark: str) -> list[int]:
    """The processes, of ours and where Linux shows them, that were started with the mark."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
    return found
