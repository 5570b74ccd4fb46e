"""A running process that speaks the protocol: its pipes, its time limit, what it shares with us, and its end."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..adapter import CannotStart
from ..model import Crashed, TimedOut
from ..system.text import cut, short
from . import protocol
from .protocol import Fault
from .started import Limits, Started, bury

if sys.platform != "win32":
    import fcntl

Bytes = bytes | bytearray | memoryview

_STDERR_KEPT = 8192
_LAST_READS = 64
"""Reads of what a process that has ended left on its standard error."""
_PIPE = 1 << 20
_READ = 1 << 16
_AHEAD = 2 * protocol.LONGEST_LINE
"""Bytes that are kept of what a process says while a call is still being sent to it."""
_GLANCE = 0.25
"""Seconds after which a silent process is looked at: it may have ended, and a child of its keep the pipes open."""


class Process:
    """One running process; every method that raises Fault, Crashed or TimedOut has ended it."""

    def __init__(self, started: Started, limits: Limits) -> None:
        self.name, self.limits, self.ended = started.name, limits, False
        self._said, self._stderr, self._id = bytearray(), b"", random.getrandbits(16)
        self._allowed = limits.seconds
        self._child = started.child
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._in, self._out, self._err = (
            stream.fileno() for stream in (self._child.stdin, self._child.stdout, self._child.stderr)
        )
        self._finalizer = weakref.finalize(self, bury, started)
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        for descriptor in (self._in, self._out):
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE)
        self._reading, self._writing = select.poll(), select.poll()
        for poll in (self._reading, self._writing):
            poll.register(self._out, select.POLLIN)
            poll.register(self._err, select.POLLIN)
        self._writing.register(self._in, select.POLLOUT)

    @property
    def pid(self) -> int:
        return self._child.pid

    # ── requests and replies ──

    def deadline(self, seconds: float | None = None) -> float:
        """When the requests that come next must be answered."""
        self._allowed = self.limits.seconds if seconds is None else seconds
        return time.monotonic() + self._allowed

    def new_id(self) -> int:
        """An id for a request; not to be foreseen, so that nothing said unasked can pass for a reply."""
        self._id += 1 + random.getrandbits(16)
        return self._id

    def send(self, parts: Sequence[Bytes], deadline: float, what: str) -> None:
        """Writes, and reads meanwhile: the other side may be stuck on a pipe that is full."""
        if self._said:
            raise self.fault(f"it said {short(bytes(self._said[:80]))} before {what} was asked of it")
        for part in parts:
            written = self._written(part)
            if written < len(part):
                self._rest(memoryview(part)[written:], deadline, what)

    def _rest(self, view: memoryview, deadline: float, what: str) -> None:
        while view:
            self._wait(deadline, what, self._writing)
            if len(self._said) > _AHEAD:
                raise self.fault(
                    f"{what}: it said {len(self._said)} bytes before it had read the call: "
                    f"{short(bytes(self._said[:40]))}"
                )
            view = view[self._written(view) :]

    def _written(self, view: Bytes) -> int:
        try:
            return os.write(self._in, view)
        except BlockingIOError:
            return 0
        except BrokenPipeError:  # it has ended; what it said before, or how it ended, comes instead of the reply
            return len(view)

    def reply(self, expected: int, deadline: float, what: str) -> dict[str, Any]:
        """The next header, which must answer the request of that id."""
        text = self._line(deadline, what)
        if text == protocol.done(expected):
            return {"result": {}}
        try:
            record = protocol.parsed(text)
        except Fault as fault:
            raise self.fault(f"{what}: {fault}") from None
        if "cannot_start" in record:
            self.end()
            raise CannotStart(cut(str(record["cannot_start"])))
        if record.get("id") != expected:
            raise self.fault(f"{what}: {_misplaced(record.get('id'), expected, self._id)}")
        return record

    def payload(self, size: int, deadline: float, what: str) -> bytearray:
        """The bytes that a header counts."""
        said = self._said
        if len(said) >= size:
            content = said[:size]
            del said[:size]
            return content
        content = said[:]
        said.clear()
        try:
            self._fill(content, size, deadline, what)
        except (MemoryError, OverflowError):
            raise self.fault(f"{what}: a payload of {size} bytes, for which there is no memory") from None
        return content

    def _fill(self, content: bytearray, size: int, deadline: float, what: str) -> None:
        """Reads on until there are so many bytes. Memory is taken for what has come, not for what is announced."""
        said = self._said
        with memoryview(bytearray(min(size - len(content), _PIPE))) as room:
            while (left := size - len(content)) > 0:
                if more := self._read(room[:left], what):
                    content += room[:more]
                else:
                    got = f"{len(content)} of the {size} bytes of its payload came"
                    self._wait(deadline, f"{what}, {got}", self._reading)
                    content += said[:left]  # what was read while waiting
                    del said[:left]

    def _read(self, into: memoryview, what: str) -> int:
        try:
            count = os.readv(self._out, [into])
        except BlockingIOError:
            return 0
        if not count:
            raise Crashed(self._obituary(what))
        return count

    def settled(self, what: str) -> None:
        """Once every reply is in, nothing more may have been said."""
        if self._said:
            count = len(self._said)
            raise self.fault(
                f"{what}: {count} bytes more than it announced: {short(bytes(self._said[:80]))}; "
                "a second reply, or a payload longer than its header says"
            )

    def fault(self, what: str) -> Fault:
        """What it said is not in the protocol; that ends it."""
        words = self._last_words()
        self.end()
        return Fault(what + words)

    def _line(self, deadline: float, what: str) -> bytes:
        start, said = 0, self._said
        while (end := said.find(b"\n", start)) < 0:
            if len(said) > protocol.LONGEST_LINE:
                raise self.fault(
                    f"{what}: a line of more than {protocol.LONGEST_LINE} bytes: {short(bytes(said[:40]))}"
                )
            start = len(said)
            partial = f"{what}, the line {short(bytes(said[:80]))} has no end" if start else what
            self._wait(deadline, partial, self._reading)
        text = bytes(said[:end])
        del said[: end + 1]
        return text

    def _wait(self, deadline: float, what: str, poll: select.poll) -> None:
        """Until there is something to read, or room to write where that is wanted; keeps the end of stderr."""
        while True:
            left = deadline - time.monotonic()
            ready = poll.poll(max(0.0, min(left, _GLANCE)) * 1000)
            useful = False
            for descriptor, _ in ready:
                if descriptor == self._out:
                    content = os.read(descriptor, _READ)
                    if not content:
                        raise Crashed(self._obituary(what))
                    self._said += content
                    useful = True
                elif descriptor == self._in:
                    useful = True
                else:
                    self._hear()
            if useful:
                return
            if left <= 0:
                words = self._last_words()
                self.end()
                raise TimedOut(f"no answer within {self._allowed:g} s to {what}{words}")
            if not ready and self._child.poll() is not None:
                raise Crashed(self._obituary(what))

    def _hear(self) -> None:
        content = os.read(self._err, _READ)
        self._stderr = (self._stderr + content)[-_STDERR_KEPT:]
        if not content:
            self._reading.unregister(self._err)
            self._writing.unregister(self._err)

    # ── the end ──

    def _obituary(self, what: str) -> str:
        """How the process ended, and the last that it wrote to the standard error."""
        try:
            code = self._child.wait(2.0)
        except subprocess.TimeoutExpired:
            self.end()
            return f"{what}: it closed its output without ending{self._last_words()}"
        with contextlib.suppress(OSError):
            for _ in range(_LAST_READS):  # a child of its may go on writing for ever
                content = os.read(self._err, _READ)
                self._stderr = (self._stderr + content)[-_STDERR_KEPT:]
        self.end()
        if code < 0:
            return f"{what}: the process died of {_signal_name(-code)}{self._last_words()}"
        return f"{what}: the process ended with exit code {code} in the middle of a call{self._last_words()}"

    def _last_words(self) -> str:
        text = self._stderr.decode("utf-8", "replace").strip()
        return f"; its last words: {text[-600:]}" if text else ""

    def end(self) -> None:
        """Nothing of it is left running."""
        self.ended = True
        self._finalizer()

    def stop(self) -> str | None:
        """Asks it to end, and ends it where it does not; what was amiss."""
        if self.ended:
            return None
        deadline = self.deadline(self.limits.stop_seconds)
        try:
            number = self.new_id()
            self.send([protocol.line({"id": number, "do": "stop"})], deadline, "stop")
            self.reply(number, deadline, "stop")
            code = self._child.wait(max(0.05, deadline - time.monotonic()))
            return None if code == 0 else f"stop: it ended with {_ending(code)}"
        except subprocess.TimeoutExpired:
            return f"stop: it answered, but did not end within {self.limits.stop_seconds:g} s; it was killed"
        except TimedOut:
            return f"stop: no answer within {self.limits.stop_seconds:g} s; it was killed"
        except (Fault, Crashed) as error:
            return str(error)
        finally:
            self.end()

    def hang_up(self) -> str | None:
        """Closes its standard input, as where we died; what was amiss."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(self.limits.stop_seconds)
        except subprocess.TimeoutExpired:
            return f"its input was closed, and it did not end within {self.limits.stop_seconds:g} s; it was killed"
        finally:
            self.end()
        return None


class SharedMemory:
    """Memory that both processes have mapped; it has no name that could be left behind."""

    def __init__(self) -> None:
        self.path: str | None = None
        self._map: mmap.mmap | None = None
        self._size = 0
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("reshape-conformance", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)  # or a look at it could kill us
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
            weakref.finalize(self, os.close, self._file)

    def room(self, size: int) -> mmap.mmap:
        """The memory, so many bytes at least."""
        if self._map is None or self._size < size:
            keep_memory()
            size = -(-size // _PIPE) * _PIPE
            os.ftruncate(self._file, max(size, os.fstat(self._file).st_size))
            self._map = mmap.mmap(self._file, size)
            self._size = size
        return self._map

    def forget(self) -> None:
        """Gives the memory back; what was in it is gone."""
        if self._map is not None and self._size >= _KEPT:
            self._map.madvise(mmap.MADV_REMOVE)


_KEPT = 1 << 27
TRIM, MMAP = 1 << 28, 1 << 25
"""How much glibc keeps for the next large tensor: to have pages mapped anew costs ten times the copying."""


@cache
def keep_memory() -> None:
    """Says so to the glibc of this process, where there is one."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-1, TRIM)
        mallopt(-3, MMAP)


def _misplaced(got: object, expected: int, latest: int) -> str:
    if type(got) is not int:
        return f"its reply has the id {short(got)}, where {expected} was due"
    if got < expected:
        return f"a reply to request {got}, which is over, where one to {expected} was due; it was given twice, or late"
    known = "asked for later" if got <= latest else "that nobody made"
    return f"a reply to request {got}, {known}, where one to {expected} was due"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _ending(code: int) -> str:
    return _signal_name(-code) if code < 0 else f"exit code {code}"
