"""A running process that speaks the protocol: its pipes, its time limits and its end."""

from __future__ import annotations

import contextlib
import os
import random
import re
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ...adapter import CannotStart
from ...model import Crashed, TimedOut
from ...system.text import MAX_TEXT_CHARACTERS, quote, quote_json, shorten
from ..process.launch import ProcessHandle, ProcessLimits, describe_exit, kill_tree
from . import messages
from .messages import ProtocolError

if sys.platform != "win32":
    import fcntl

Bytes = bytes | bytearray | memoryview

_STDERR_BYTES_KEPT = 1 << 15
"""Bytes of the standard error that are kept, the last ones."""
_TRACE = re.compile(r"^stack backtrace:\n(?: *\d+: .*\n?| +at .*\n?)+", re.MULTILINE)
"""A stack trace as Rust prints it: numbered frames, often with an address, and the places of some in a source."""
_MAX_LAST_READS = 64
"""Reads of the standard error of a process that has ended."""
_PIPE_BYTES, _MIN_PIPE_BYTES = 1 << 20, 4096
"""Bytes asked for in a pipe, and those that every pipe has."""
_READ_BYTES = 1 << 16
_MAX_AHEAD_BYTES = 2 * messages.MAX_LINE_BYTES
"""Bytes that a process may send while a call is still being sent to it."""
_POLL_SECONDS = 0.25
"""Seconds after which a silent process is polled: it may have ended while a child of it keeps the pipes open."""


class PipedProcess:
    """One running process; every method that raises ProtocolError, Crashed or TimedOut has ended it."""

    def __init__(self, handle: ProcessHandle, limits: ProcessLimits) -> None:
        self.name, self.limits, self.ended = handle.name, limits, False
        self._unread, self._stderr, self._id = bytearray(), b"", random.getrandbits(16)
        self.set_deadline()
        self.exit: str | None = None
        """How it ended when it was asked to: `exit code 0`, `SIGSEGV`, or `killed`; None if it was not asked."""
        self.before_end: Callable[[int], object] = int
        """Called with its pid before it is killed, or after it ended by itself."""
        self._child, self.pid = handle.child, handle.child.pid
        streams = self._child.stdin, self._child.stdout, self._child.stderr
        self._in, self._out, self._err = (stream.fileno() for stream in streams if stream is not None)
        self._finalizer = weakref.finalize(self, kill_tree, handle)
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self.timed_out = False
        """Whether a call took too long, which has ended it."""
        self.room = _MIN_PIPE_BYTES
        """Bytes that can be sent without waiting to a process that has read all before."""
        for descriptor in (self._out, self._in):
            with contextlib.suppress(OSError, AttributeError):
                self.room = fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._reading, self._writing = select.poll(), select.poll()
        for poll in (self._reading, self._writing):
            poll.register(self._out, select.POLLIN)
            poll.register(self._err, select.POLLIN)
        self._writing.register(self._in, select.POLLOUT)

    # ── requests and replies ──

    def set_deadline(self, seconds: float | None = None) -> None:
        """Set the time by which the next replies must have come."""
        self._allowed = self.limits.seconds if seconds is None else seconds
        self._deadline = time.monotonic() + self._allowed

    @property
    def was_slow(self) -> bool:
        """Ask whether more time went by since the clock was started than a call usually may take."""
        return time.monotonic() - (self._deadline - self._allowed) > self.limits.seconds

    def new_id(self) -> int:
        """Return an id for a request; it is random, so that nothing sent unasked can pass for a reply."""
        self._id += 1 + random.getrandbits(16)
        return self._id

    def send(self, parts: Sequence[Bytes], what: str, seconds: float | None = None) -> None:
        """Write a request, and read meanwhile: the process may be blocked on a full pipe. This starts the clock."""
        self.set_deadline(seconds)
        if self._unread:
            raise self.end_with_fault(f"it sent {quote(bytes(self._unread[:80]))} before the request {what}")
        try:
            for part in parts:
                count = self._write(part)
                if count < len(part):
                    self._send_rest(memoryview(part)[count:], what)
        except BaseException:  # of a signal: the process may be busy already, and would not hear a request to stop
            self.end()
            raise

    def _send_rest(self, view: memoryview, what: str) -> None:
        while view:
            self._wait(what, self._writing)
            if len(self._unread) > _MAX_AHEAD_BYTES:
                raise self.end_with_fault(
                    f"{what}: it sent {len(self._unread)} bytes before it read the call: "
                    f"{quote(bytes(self._unread[:40]))}"
                )
            view = view[self._write(view) :]

    def _write(self, view: Bytes) -> int:
        try:
            return os.write(self._in, view)
        except BlockingIOError:
            return 0
        except BrokenPipeError:  # it has ended; read_reply then returns its last line, or raises how it ended
            return len(view)

    def read_reply(self, expected: int, what: str) -> dict[str, Any]:
        """Read the next header, which must answer the request with that id."""
        text = self._read_line(what)
        try:
            record = messages.parse_line(text)
        except ProtocolError as fault:
            raise self.end_with_fault(f"{what}: {fault}") from None
        if "cannot_start" in record:
            self.end()
            raise CannotStart(shorten(str(record["cannot_start"]), MAX_TEXT_CHARACTERS))
        if (number := record.get("id")) != expected:
            how = "reply to each request once, in order, with its id"
            raise self.end_with_fault(
                f"{what}: a reply with the id {quote_json(number)}, where {expected} was due; {how}"
            )
        return record

    def read_payload(self, size: int, what: str) -> bytearray:
        """Read the bytes that a header announces. Memory is allocated as they arrive, not as they are announced."""
        unread = self._unread
        try:
            while len(unread) < size:
                progress = f"{len(unread)} of the {size} bytes of its payload arrived"
                self._wait(f"{what}, {progress}", self._reading)
            content = unread[:size]
        except MemoryError:
            raise self.end_with_fault(f"{what}: a payload of {size} bytes, for which there is no memory") from None
        del unread[:size]
        return content

    def expect_no_more(self, what: str) -> None:
        if self._unread:
            count = len(self._unread)
            raise self.end_with_fault(
                f"{what}: {count} bytes more than it announced: {quote(bytes(self._unread[:80]))}; "
                "a second reply, or a payload longer than its header says"
            )

    def end_with_fault(self, what: str) -> ProtocolError:
        """End the process, and return the exception for what it sent outside the protocol."""
        tail = self._describe_stderr()
        self.end()
        return ProtocolError(what + tail)

    def _read_line(self, what: str) -> bytes:
        start, unread = 0, self._unread
        while (end := unread.find(b"\n", start)) < 0:
            if len(unread) > messages.MAX_LINE_BYTES:
                raise self.end_with_fault(
                    f"{what}: a line of more than {messages.MAX_LINE_BYTES} bytes: {quote(bytes(unread[:40]))}"
                )
            start = len(unread)
            partial = f"{what}, the line {quote(bytes(unread[:80]))} has no line feed" if start else what
            self._wait(partial, self._reading)
        text = bytes(unread[:end])
        del unread[: end + 1]
        return text

    def _wait(self, what: str, poll: select.poll) -> None:
        """Wait until there is something to read, or room to write if `poll` asks for it; keep the end of stderr."""
        while True:
            left = self._deadline - time.monotonic()
            try:
                ready = poll.poll(max(0.0, min(left, _POLL_SECONDS)) * 1000)
            except BaseException:  # of a signal, such as a limit on a test: the next call would read this one's reply
                self.end()
                raise
            useful = False
            for descriptor, _ in ready:
                if descriptor == self._out:
                    content = os.read(descriptor, _READ_BYTES)
                    if not content:
                        raise Crashed(self._describe_end(what))
                    self._unread += content
                    useful = True
                elif descriptor == self._in:
                    useful = True
                elif not self._read_stderr():
                    self._reading.unregister(self._err)
                    self._writing.unregister(self._err)
            if useful:
                return
            if left <= 0:
                tail = self._describe_stderr()
                self.end()
                self.timed_out = True
                raise TimedOut(f"no answer within {self._allowed:g} s to {what}{tail}")
            if not ready and self._child.poll() is not None:
                raise Crashed(self._describe_end(what))

    def _read_stderr(self) -> bool:
        """Read some of the standard error, and keep its end; return whether more may come."""
        content = os.read(self._err, _READ_BYTES)
        self._stderr = (self._stderr + content)[-_STDERR_BYTES_KEPT:]
        return bool(content)

    # ── the end ──

    def _describe_end(self, what: str) -> str:
        """Wait for the process to end, and say how it ended, with the end of its standard error."""
        try:
            code = self._child.wait(self.limits.stop_seconds)
        except subprocess.TimeoutExpired:
            self.end()
            return f"{what}: it closed its output without ending{self._describe_stderr()}"
        with contextlib.suppress(OSError):
            for _ in range(_MAX_LAST_READS):  # not until the end: a child of it may go on writing for ever
                self._read_stderr()
        self.end()
        if self.exit is not None:
            self.exit = describe_exit(code)
            return f"{what}: it ended with {self.exit} before it replied{self._describe_stderr()}"
        if code < 0:
            return f"{what}: the process died of {describe_exit(code)}{self._describe_stderr()}"
        return f"{what}: the process ended with {describe_exit(code)} in the middle of a call{self._describe_stderr()}"

    def _describe_stderr(self) -> str:
        text = _TRACE.sub("", self._stderr.decode("utf-8", "replace")).strip()
        return f"; its stderr ends with: {text[-600:]}" if text else ""

    def end(self) -> None:
        """Kill the process and all that it started."""
        if not self.ended:
            self.before_end(self.pid)
        self.ended = True
        self._finalizer()

    def stop(self) -> str | None:
        """Ask the process to end, and kill it if it does not; return what went wrong."""
        if self.ended:
            return None
        self.exit = "killed"
        try:
            number = self.new_id()
            self.send([messages.encode_line({"id": number, "do": "stop"})], "stop", self.limits.stop_seconds)
            self.read_reply(number, "stop")
            code = self._child.wait(max(0.05, self._deadline - time.monotonic()))
            self.exit = describe_exit(code)
            return None if code == 0 else f"stop: it ended with {self.exit}"
        except subprocess.TimeoutExpired:
            return f"stop: it answered, but did not end within {self.limits.stop_seconds:g} s; it was killed"
        except TimedOut:
            return f"stop: no answer within {self.limits.stop_seconds:g} s; it was killed"
        except CannotStart as error:
            return f"stop: {error}"
        except (ProtocolError, Crashed) as error:
            return str(error)
        finally:
            self.end()

    def close_input(self) -> str | None:
        """Close its standard input, as when the suite dies; return what went wrong."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            self._child.wait(self.limits.stop_seconds)
        except subprocess.TimeoutExpired:
            return f"its input was closed, and it did not end within {self.limits.stop_seconds:g} s; it was killed"
        finally:
            self.end()
        return None
