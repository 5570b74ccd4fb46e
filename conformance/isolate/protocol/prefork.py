"""A parent process imports a backend, or only the worker, once, and forks copies of itself.

It makes no copy if the import left a second thread or a child process, which a fork would not copy. A copy has the same
pipes and limits as a process that was started, and ends in the same ways; its parent reports how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import IO

from ...adapter import CannotStart, import_adapter
from ..process import orphans
from ..process.launch import ProcessHandle, ProcessLimits, kill_tree, start
from ..process.orphans import find_marked_pids
from ..process.own_command import kill_on_hangup

_BYTES = 4


class ForkParent:
    """The parent process, as the suite sees it."""

    def __init__(self, command: Sequence[str], limits: ProcessLimits, env: Mapping[str, str]) -> None:
        self._control, control_of_parent = socket.socketpair()
        self._control.settimeout(limits.start_seconds)
        with control_of_parent:
            streams = control_of_parent.fileno(), subprocess.DEVNULL, subprocess.DEVNULL
            self._parent = start(command, limits, env, streams)
        self._copy: ForkedWorker | None = None
        self._finalizer = weakref.finalize(self, _end, self._parent, self._control)

    def copy(self) -> ProcessHandle:
        """Return a copy, once the one before has ended; CannotStart if there can be none, now and later."""
        with ExitStack() as of_copy, ExitStack() as ours:
            try:
                ends = [_open_pipe(of_copy, ours, copy_reads) for copy_reads in (True, False, False, True)]
                pid = self._fork([copy_end for copy_end, _ in ends]) if self._can_fork() else None
            except OSError:  # the parent has ended, or there are too many open files
                pid = None
            if pid is None:
                raise CannotStart("it cannot be copied")
            orphans.register(pid, self._parent.mark)
            stdin, stdout, stderr, lifeline = (our_end for _, our_end in ends)
            streams = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0), os.fdopen(stderr, "rb", 0)
            self._copy = ForkedWorker(pid, self._control, streams)
            ours.pop_all()
            return self._parent._replace(child=self._copy, lifeline=lifeline, parent=self._parent.child.pid)

    def _can_fork(self) -> bool:
        if not self._finalizer.alive:
            return False
        if self._copy is None:
            return _receive(self._control) is not None and find_marked_pids(self._parent.mark) == [
                self._parent.child.pid
            ]
        return self._copy.wait() < 0  # a copy that exits by itself closes what the import opened for all copies

    def _fork(self, descriptors: Sequence[int]) -> int | None:
        socket.send_fds(self._control, [b"c"], descriptors)
        pid = _receive(self._control)
        if pid is not None:
            kill_on_hangup(descriptors[-1], -pid)
        return pid

    def close(self) -> None:
        self._finalizer()


def _end(parent: ProcessHandle, control: socket.socket) -> None:
    kill_tree(parent)
    control.close()


def _open_pipe(of_copy: ExitStack, ours: ExitStack, copy_reads: bool) -> tuple[int, int]:
    """Open a pipe, and return the copy's end and ours. Each is closed with its stack."""
    reading, writing = os.pipe()
    copy_end, our_end = (reading, writing) if copy_reads else (writing, reading)
    of_copy.callback(os.close, copy_end)
    ours.callback(os.close, our_end)
    return copy_end, our_end


class ForkedWorker:
    """A forked copy, with the methods of `subprocess.Popen` that are needed. Only one exists at a time."""

    def __init__(self, pid: int, control: socket.socket, streams: Sequence[IO[bytes]]) -> None:
        self.pid, self._control = pid, control
        self.stdin, self.stdout, self.stderr = streams
        self._code: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or the negative number of a signal; that of SIGKILL if the parent is gone too."""
        if self._code is None:
            before = self._control.gettimeout()
            try:
                self._control.settimeout(timeout)
                code = _receive(self._control)
                self._control.settimeout(before)
            except (BlockingIOError, TimeoutError):
                self._control.settimeout(before)
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0) from None
            except OSError:  # closed, with the parent
                code = None
            self._code = -signal.SIGKILL if code is None else code
        return self._code


def _receive(control: socket.socket) -> int | None:
    """Receive the next number; None if the other process has ended."""
    try:
        data = control.recv(_BYTES)
    except ConnectionError:
        return None
    return int.from_bytes(data, sys.byteorder, signed=True) if data else None


def _send(control: socket.socket, number: int) -> None:
    control.send(number.to_bytes(_BYTES, sys.byteorder, signed=True))


# ── in the parent process ──


FRESH = "fresh"
"""In front of the backend: the copies import it themselves."""


def main(arguments: Sequence[str]) -> int:
    """Import the worker, and the backend unless told FRESH; then fork at each request, and run the worker there."""
    from .worker import main as serve

    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if arguments[0] != FRESH:
        import_adapter(arguments[0])
    # A fork copies neither threads nor children; outside of Linux libraries break when forked.
    if sys.platform != "linux" or len(os.listdir("/proc/self/task")) > 1 or _has_children():
        return 1
    _send(control, 0)
    gc.freeze()  # the collector then does not write to these pages, which every copy shares
    while descriptors := socket.recv_fds(control, 1, 4)[1]:
        ready, begun = os.pipe()
        pid = os.fork()
        if not pid:
            os.setsid()  # like a process that was started: a leader, which cannot leave its group
            os.close(ready)
            os.close(begun)
            control.close()
            for stream, descriptor in enumerate(descriptors[:3]):  # the last, the lifeline, stays open
                os.dup2(descriptor, stream)
                os.close(descriptor)
            return serve(arguments[-1:])
        os.close(begun)
        os.read(ready, 1)  # until the copy leads its group
        for descriptor in (ready, *descriptors):
            os.close(descriptor)
        _send(control, pid)
        _, status = os.waitpid(pid, 0)
        _send(control, os.waitstatus_to_exitcode(status))
    return 0


def _has_children() -> bool:
    try:  # this sees even a child that has just begun and has no readable environment yet
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
