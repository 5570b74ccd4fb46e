"""An adapter that lives in another process: starts it, drives it over the protocol, limits it, and buries it."""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


from . import protocol
from .adapter import CannotStart
from .memory import strides_of
from .model import Claims, Crashed, Graph, Identity, Rejected, Tensor, TimedOut, Unsupported
from .protocol import Fault, integer
from .types import WIDTH

SHARED_FROM = 1 << 16
"""Bytes from which tensors go through shared memory rather than through the pipe."""
_STDERR_KEPT = 8192
_PIPE = 1 << 20


class Limits(NamedTuple):
    """What a process may take."""

    seconds: float = 20.0
    """For one request."""
    start_seconds: float = 120.0
    """To start and to describe itself."""
    memory: int = 16 << 30
    """Bytes of address space; 0: no limit."""


class Remote:
    """A backend behind a process; an Adapter like any other."""

    def __init__(self, command: Sequence[str], limits: Limits = Limits(), env: Mapping[str, str] | None = None) -> None:
        self.command, self.limits, self.env = list(command), limits, env
        self.generation = 0
        """How often it was started."""
        self._process: Process | None = None
        self._live = self._started()
        self.identity, self.claims = self._live.described

    def compile(self, graph: Graph) -> RemoteProgram:
        process = self._started()
        closing = [{"do": "close", "program": number} for number in process.closing]
        process.closing.clear()
        reply = process.ask({"do": "compile", "graph": protocol.graph_record(graph)}, closing)
        number = _result(reply, "compile").get("program")
        if type(number) is not int:
            raise Fault(f"compile: 'program' is {number!r}, where a number was due")
        return RemoteProgram(process, number)

    def restart(self) -> None:
        """Ends the process; the next call starts a fresh one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    close = restart

    def _started(self) -> Process:
        if self._process is None or self._process.ended:
            self.restart()
            self.generation += 1
            self._process = Process(self.command, self.limits, self.env)
            if self.generation > 1 and self._process.described != (self.identity, self.claims):
                raise Fault("it described itself differently when it was started again")
        return self._process


class RemoteProgram:
    """A program compiled over there."""

    def __init__(self, process: Process, number: int) -> None:
        self.process, self.number = process, number
        weakref.finalize(self, process.closing.append, number)

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        if self.process.ended:
            raise Crashed("the process had ended before the call")
        return self.process.run(self.number, (src, *shapes), may_overwrite)


def _result(reply: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A reply's result, or the exception that stands for what it says instead."""
    if "result" in reply and isinstance(reply["result"], dict):
        return reply["result"]
    for key in ("rejected", "unsupported", "error"):
        if key in reply and not isinstance(reply[key], dict):
            raise Fault(f"{what}: {key!r} is {reply[key]!r}, where an object was due")
    if "rejected" in reply:
        raise Rejected(str(reply["rejected"].get("stage")), str(reply["rejected"].get("message", "")))
    if "unsupported" in reply:
        raise Unsupported(str(reply["unsupported"].get("feature")))
    if "error" in reply:
        message = str(reply["error"].get("message", ""))
        raise MemoryError(message) if reply["error"].get("memory") is True else RemoteError(message)
    raise Fault(f"{what}: the reply has none of result, rejected, unsupported, error: {sorted(reply)}")


class RemoteError(Exception):
    """What went wrong in the adapter over there."""

    def __str__(self) -> str:
        return self.args[0] if self.args else ""


class Process:
    """One running process and its pipes."""

    def __init__(self, command: Sequence[str], limits: Limits, env: Mapping[str, str] | None) -> None:
        self.limits, self.closing, self.ended = limits, list[int](), False
        self._said, self._stderr, self._next = bytearray(), bytearray(), 0
        self._answers: dict[int, tuple[int, Tensor]] = {}
        self.shared_path = _shared_file()
        self._map: mmap.mmap | None = None
        self._popen = _popen(command, limits, env)
        self._selector = selectors.DefaultSelector()
        for stream in (self._popen.stdout, self._popen.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        self._finalizer = weakref.finalize(self, _bury, self._popen, self.shared_path)
        try:
            self.described = self._begin()
        except BaseException:
            self.end()
            raise

    def _begin(self) -> tuple[Identity, Claims]:
        """hello and describe."""
        try:
            hello = {"do": "hello", "protocol": protocol.VERSION, "shared_memory": self.shared_path}
            answer = _result(self.ask(hello, seconds=self.limits.start_seconds), "hello")
            if answer.get("protocol") != protocol.VERSION:
                raise Fault(f"hello: it speaks {answer.get('protocol')!r}, this suite {protocol.VERSION!r}")
            self.shares = answer.get("shared_memory") is True
            described = self.ask({"do": "describe"}, seconds=self.limits.start_seconds)
            return protocol.described(_result(described, "describe"))
        except _Told as told:
            raise CannotStart(str(told)) from None
        except (Fault, RemoteError, Crashed, TimedOut) as error:
            what = f"{type(error).__name__}: {error}" if isinstance(error, RemoteError) else str(error)
            raise CannotStart(f"{shlex.join(self._popen.args)}: {what}") from None  # type: ignore[arg-type]

    # ── a call ──

    def run(self, program: int, tensors: Sequence[Tensor], may_overwrite: bool) -> Tensor:
        records, payloads, at = [], [], 0
        for tensor in tensors:
            size = len(tensor.memory)
            record: dict[str, Any] = {
                "type": tensor.type, "dims": [protocol.number(n) for n in tensor.dims],
                "strides": [protocol.number(n) for n in tensor.strides], "offset": tensor.offset, "bytes": size,
            }  # fmt: skip
            if self.shares and size >= SHARED_FROM:
                record["at"] = at
                self._mapped(at + size)[at : at + size] = tensor.memory
                at += -(-size // 4096) * 4096
            else:
                payloads.append(tensor.memory)
            records.append(record)
        request = {"do": "run", "program": program, "may_overwrite": may_overwrite, "tensors": records}
        if self.shares:
            request |= {"answer_at": at, "shared_from": SHARED_FROM}
        number = self._next
        reply = self.ask(request, payloads=payloads)
        self._see_changes(reply, records, tensors)
        answer = self._answer(_result(reply, "run"), reply)
        self._answers[number] = (program, answer)
        if len(self._answers) > 64:  # no case has as many steps; what is older belongs to programs that are closed
            del self._answers[next(iter(self._answers))]
        return answer

    def _answer(self, result: Mapping[str, Any], reply: Mapping[str, Any]) -> Tensor:
        type_, dims, size = result.get("type"), result.get("dims"), result.get("bytes")
        if not isinstance(type_, str) or not isinstance(dims, list) or type(size) is not int:
            raise Fault(f"run: the result lacks type, dims or bytes: {dict(result)!r}")
        whole = tuple(integer(n) for n in dims)
        if any(n < 0 for n in whole):
            raise Fault(f"run: the result has the dims {list(whole)}")
        volume = 1
        for n in whole:
            volume *= n
        if size != volume * WIDTH.get(type_, 1):
            raise Fault(f"run: {size} bytes for {type_}{list(whole)}, which has {volume * WIDTH.get(type_, 1)}")
        memory = bytearray(self._mapped(result["at"] + size)[result["at"] : result["at"] + size]) if "at" in result else reply["payload"]
        strides = strides_of(whole, "dense", WIDTH.get(type_, 1))
        return Tensor(type_, whole, strides, memory, 0, shares_src=result.get("shares") is True)

    def _see_changes(self, reply: Mapping[str, Any], records: Sequence[Mapping[str, Any]], tensors: Sequence[Tensor]) -> None:
        """Puts into our memory what the call did to theirs, so that it is judged as if it had happened here."""
        for record, tensor in zip(records, tensors, strict=True):
            if "at" in record:
                tensor.memory[:] = self._mapped(0)[record["at"] : record["at"] + record["bytes"]]
        for wrote, content in reply["wrote_payloads"]:
            if not 0 <= wrote < len(tensors) or len(content) != len(tensors[wrote].memory):
                raise Fault(f"run: it wrote tensor {wrote}, {len(content)} bytes, which is none of ours")
            tensors[wrote].memory[:] = content
        for call, content in reply["changed_payloads"]:
            if call in self._answers and len(self._answers[call][1].memory) == len(content):
                self._answers[call][1].memory[:] = content

    # ── requests and replies ──

    def ask(
        self, request: Mapping[str, Any], before: Sequence[Mapping[str, Any]] = (),
        payloads: Sequence[bytes | bytearray | memoryview] = (), seconds: float | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Sends requests in one go and reads a reply for each; the last request's reply is returned."""
        deadline = time.monotonic() + (seconds or self.limits.seconds)
        parts: list[bytes | bytearray | memoryview] = []
        ids = []
        for record in (*before, request):
            ids.append(self._next)
            parts.append(protocol.line({"id": self._next, **record}))
            self._next += 1
        try:
            self._send([*parts, *payloads], deadline)
            reply: dict[str, Any] = {}
            for expected in ids:
                reply = self._reply(expected, deadline)
            return reply
        except (Fault, TimedOut):
            self.end()
            raise

    def _reply(self, expected: int, deadline: float) -> dict[str, Any]:
        reply = protocol.parsed(self._line(deadline))
        if "cannot_start" in reply:
            raise _Told(str(reply["cannot_start"]))
        if reply.get("id") != expected:
            raise Fault(f"a reply to request {reply.get('id')!r}, where one to {expected} was due")
        result = reply.get("result")
        reply["payload"] = b""
        if isinstance(result, dict) and "bytes" in result and "at" not in result:
            reply["payload"] = self._bytes(result["bytes"], deadline)
        for key, name in (("wrote", "tensor"), ("changed", "call")):
            reply[f"{key}_payloads"] = [(each.get(name), self._bytes(each.get("bytes"), deadline)) for each in reply.get(key, ())]
        return reply

    def _send(self, parts: Sequence[bytes | bytearray | memoryview], deadline: float) -> None:
        """Writes, and reads meanwhile: the other side may be stuck on a pipe that is full."""
        assert self._popen.stdin is not None
        descriptor = self._popen.stdin.fileno()
        if sum(map(len, parts)) < SHARED_FROM:
            parts = [b"".join(parts)]  # one write is much cheaper than several
        for part in parts:
            view = memoryview(part).cast("B") if len(part) else memoryview(b"")
            while view:
                try:
                    view = view[os.write(descriptor, view[:_PIPE]) :]
                except BlockingIOError:
                    self._pump(deadline, writing=True)
                except BrokenPipeError:
                    raise Crashed(self._obituary()) from None

    def _line(self, deadline: float) -> bytes:
        start = 0
        while (end := self._said.find(b"\n", start)) < 0:
            if len(self._said) > protocol.LONGEST_LINE:
                raise Fault(f"a line of more than {protocol.LONGEST_LINE} bytes: {bytes(self._said[:40])!r}…")
            start = len(self._said)
            self._pump(deadline)
        text = bytes(self._said[:end])
        del self._said[: end + 1]
        if text.endswith(b"\r"):
            raise Fault("the line ends with a carriage return; end lines with a line feed alone")
        return text

    def _bytes(self, size: Any, deadline: float) -> bytearray:
        if type(size) is not int or size < 0:
            raise Fault(f"'bytes' is {size!r}, where a count was due")
        while len(self._said) < size:
            self._pump(deadline)
        content = self._said[:size]
        del self._said[:size]
        return content

    def _pump(self, deadline: float, writing: bool = False) -> None:
        """Waits for something to read, or to be able to write; keeps the end of the standard error."""
        assert self._popen.stdin is not None
        if writing:
            self._selector.register(self._popen.stdin, selectors.EVENT_WRITE)
        try:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        finally:
            if writing:
                self._selector.unregister(self._popen.stdin)
        if not ready:
            raise TimedOut(f"no answer within {self.limits.seconds:g} s{self._last_words()}")
        for key, _ in ready:
            if key.fileobj is self._popen.stdin:
                continue
            content = os.read(key.fd, _PIPE)
            if key.fileobj is self._popen.stderr:
                self._stderr = (self._stderr + content)[-_STDERR_KEPT:]
                if not content:
                    self._selector.unregister(key.fileobj)
            elif content:
                self._said += content
            else:
                raise Crashed(self._obituary())

    # ── the end ──

    def _obituary(self) -> str:
        """How the process ended, and the last that it wrote to the standard error."""
        self.ended = True
        try:
            code = self._popen.wait(2.0)
        except subprocess.TimeoutExpired:
            self.end()
            return f"it closed its output without ending{self._last_words()}"
        with contextlib.suppress(OSError):
            while content := os.read(self._popen.stderr.fileno(), _PIPE):  # type: ignore[union-attr]
                self._stderr = (self._stderr + content)[-_STDERR_KEPT:]
        words = self._last_words()
        self.end()
        if code < 0:
            return f"the process died of {_signal_name(-code)}{words}"
        return f"the process ended with exit code {code} in the middle of a call{words}"

    def _last_words(self) -> str:
        text = self._stderr.decode("utf-8", "replace").strip()
        return f"; its last words: {text[-600:]}" if text else ""

    def end(self) -> None:
        """Nothing of it is left running, and no file."""
        self.ended = True
        self._selector.close()
        if self._map is not None:
            with contextlib.suppress(BufferError):
                self._map.close()
            self._map = None
        self._finalizer()

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            with open(self.shared_path, "r+b") as file:
                if os.fstat(file.fileno()).st_size < size:
                    os.ftruncate(file.fileno(), size)
                self._map = mmap.mmap(file.fileno(), 0)
        return self._map


class _Told(Exception):
    """Our own worker says why the adapter cannot be started."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shared_file() -> str:
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
    descriptor, path = tempfile.mkstemp(prefix="reshape-conformance-", dir=folder)
    os.close(descriptor)
    return path


def _popen(command: Sequence[str], limits: Limits, env: Mapping[str, str] | None) -> subprocess.Popen[bytes]:
    def confine() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limits.memory:
            resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))

    try:
        popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, preexec_fn=confine, env=env and dict(env),
        )  # fmt: skip
    except FileNotFoundError:
        raise CannotStart(f"{command[0]}: no such program; check the path") from None
    except OSError as error:
        raise CannotStart(f"{command[0]}: cannot be run: {error.strerror}; is it executable?") from None
    assert popen.stdin is not None
    os.set_blocking(popen.stdin.fileno(), False)
    return popen


def _bury(popen: subprocess.Popen[bytes], shared_path: str) -> None:
    """Ends the whole process group, children that kept the pipes included."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    with contextlib.suppress(OSError):
        os.unlink(shared_path)


def worker(backend: str, limits: Limits = Limits()) -> Remote:
    """A Python adapter in a process of its own."""
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "PYTHONPATH": path}
    return Remote([sys.executable, "-m", "conformance.worker", backend], limits, env)


def program(command_line: str, limits: Limits = Limits()) -> Remote:
    """`cmd:PROGRAM ARGS`: any program that speaks the protocol."""
    words = shlex.split(command_line)
    if not words:
        raise CannotStart("cmd: names no program; write cmd:./program")
    return Remote(words, limits)


