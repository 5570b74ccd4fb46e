"""A process that has imported a backend and makes copies of itself: what the import costs is paid once.

It lends none where the import has left a second thread, or a child: a copy would lack what these hold. A copy has the
same pipes, limits and end as a process that was started; the nursery, whose child it is, tells us how it ended.
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
from typing import IO

from ..adapter import import_adapter
from . import orphans
from .orphans import carriers
from .started import Limits, Started, bury, start
from .watch import tie

_BYTES = 4


class Nursery:
    """The process, seen from ours."""

    def __init__(self, command: Sequence[str], limits: Limits, env: Mapping[str, str]) -> None:
        self._control, theirs = socket.socketpair()
        self._control.settimeout(limits.start_seconds)
        with theirs:
            self._started = start(command, limits, env, (theirs.fileno(), subprocess.DEVNULL, subprocess.DEVNULL))
        self._copy: Copy | None = None
        self._finalizer = weakref.finalize(self, _end, self._started, self._control)

    def copy(self) -> Started | None:
        """A copy, begun as any process is, the one before having ended; None, for good, where there can be none."""
        (stdin, to), (out, stdout), (err, stderr), (lifeline, ours) = (os.pipe() for _ in range(4))
        theirs = stdin, stdout, stderr, lifeline
        streams = os.fdopen(to, "wb", 0), os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)
        try:
            pid = self._lent(theirs) if self._lends() else None
        except OSError:
            pid = None
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        if pid is None:
            for stream in streams:
                stream.close()
            os.close(ours)
            self.close()
            return None
        orphans.register(pid, self._started.mark)
        self._copy = Copy(pid, self._control, streams)
        return self._started._replace(child=self._copy, lifeline=ours, model=self._started.child.pid)

    def _lends(self) -> bool:
        if not self._finalizer.alive:
            return False
        if self._copy is None:
            return _number(self._control) is not None and carriers(self._started.mark) == [self._started.child.pid]
        return self._copy.wait() < 0  # one that came to an end of its own has also ended what the import opened for all

    def _lent(self, descriptors: Sequence[int]) -> int | None:
        socket.send_fds(self._control, [b"c"], descriptors)
        pid = _number(self._control)
        if pid is not None:
            tie(descriptors[-1], -pid)
        return pid

    def close(self) -> None:
        self._finalizer()


def _end(started: Started, control: socket.socket) -> None:
    bury(started)
    control.close()


class Copy:
    """What `subprocess.Popen` is for a process that was started; one at a time."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def __init__(self, pid: int, control: socket.socket, streams: Sequence[IO[bytes]]) -> None:
        self.pid, self._control = pid, control
        self.stdin, self.stdout, self.stderr = streams
        self._code: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the negative number of a signal: that of SIGKILL where the nursery is gone too."""
        if self._code is None:
            before = self._control.gettimeout()
            try:
                self._control.settimeout(timeout)
                code = _number(self._control)
                self._control.settimeout(before)
            except (BlockingIOError, TimeoutError):
                self._control.settimeout(before)
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0) from None
            except OSError:  # closed, with the nursery
                code = None
            self._code = -signal.SIGKILL if code is None else code
        return self._code


def _number(control: socket.socket) -> int | None:
    """The next that it says; None where it has ended."""
    try:
        said = control.recv(_BYTES)
    except ConnectionError:
        return None
    return int.from_bytes(said, sys.byteorder, signed=True) if said else None


def _say(control: socket.socket, number: int) -> None:
    control.send(number.to_bytes(_BYTES, sys.byteorder, signed=True))


# ── over there ──


def main(arguments: Sequence[str]) -> int:
    """Imports the backend, and makes a copy whenever it is asked to; in the copy it is the worker's main."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    import_adapter(arguments[0])
    if not _alone():
        return 1
    _say(control, 0)
    gc.freeze()  # what is not walked is not written to, and so is shared with every copy
    while descriptors := socket.recv_fds(control, 1, 4)[1]:
        pid = os.fork()
        if not pid:
            control.close()
            return _copied(descriptors, arguments)
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(pid, pid)
        for descriptor in descriptors:
            os.close(descriptor)
        _say(control, pid)
        _, status = os.waitpid(pid, 0)
        _say(control, os.waitstatus_to_exitcode(status))
    return 0


def _alone() -> bool:
    """Whether nothing but this thread is at work: Linux tells, and elsewhere libraries do not bear to be copied."""
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1 and not _has_children()


def _has_children() -> bool:
    """Also one that is just beginning, whose environment nobody can read yet."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _copied(descriptors: Sequence[int], arguments: Sequence[str]) -> int:
    """Serves in the copy; the last descriptor, the lifeline, stays open."""
    from .worker import main as serve

    os.setpgid(0, 0)
    for stream, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    return serve(arguments)
