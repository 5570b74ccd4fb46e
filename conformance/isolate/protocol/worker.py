"""The main program of a worker: a process that answers for an adapter. `remote` starts it and sends it requests."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import mmap
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes  # noqa: F401 - now: a backend may change Python's path, and a part of the rows uses the same files
import numpy as np

from ...adapter import CannotStart, load_adapter, place_in
from ...model import Adapter, Array, Program, Rejected, Tensor, Unsupported
from ...model.types import WIDTH
from ...plan.memory import count_max_answer_bytes, size_of, strides_of
from ...run.call import (
    call_often,
    dims_of_answer,
    elements_of,
    find_named_type,
    lies_in,
    make_rejection_outcome,
    read_message,
    what_it_did,
)
from ...run.concurrent import run_in_threads
from ...system.exit_codes import CANNOT_START
from ...system.text import MAX_TEXT_CHARACTERS, as_text, shorten
from ..process.tensor_memory import GuardedPages
from ..process.usage import measure
from . import messages
from .messages import ProtocolError, encode_integer

Reply = tuple[dict[str, Any], Sequence[bytes | memoryview]]
"""A record, and the bytes that follow it."""
DONE: dict[str, Any] = {"result": {}}
"""The reply to a request that asks for nothing in return."""
_MAX_BYTES_COMPARED = 1 << 16
"""Bytes of an answer that are kept with a program. After a larger one the suite looks at each call itself."""


class WatchedContent:
    """An answer that was returned, or a src that must stay as it is, and its content when it was last read."""

    def __init__(self, call: int, read: Callable[[], Any], data: bytes | memoryview) -> None:
        self.call, self.read, self.data = call, read, data


@dataclass(slots=True)
class ServedProgram:
    program: Program
    did: Any = None
    """What its latest run did. Many runs for one request are compared with it."""


class ReceivedRun(NamedTuple):
    """A request to run a program, its tensors, and what is needed to find what the call changes."""

    request: Mapping[str, Any]
    tensors: list[Tensor]
    before: list[bytes | None]
    """The memory of each tensor before the call; None if it lies in shared memory, which the suite sees itself."""
    addresses: list[int]


class AdapterServer:
    """One adapter and its compiled programs."""

    def __init__(self, adapter: Adapter, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self.adapter, self.stdin, self.stdout = adapter, stdin, stdout
        self.pid = os.getpid()
        self.file = getattr(sys.modules.get(type(adapter).__module__), "__file__", None)
        self.programs: dict[int, ServedProgram] = {}
        self.answers: list[WatchedContent] = []
        """Those of earlier calls that the suite still watches, also if their programs are closed."""
        self.sources: list[WatchedContent] = []
        self.shared_file: int | None = None
        self._shared: mmap.mmap | None = None
        self.pages = GuardedPages()
        self.latest: list[Tensor] = []
        """The tensors since the suite last waited for a reply: it reads their memory until its next request."""
        self.calls = 1
        """The number of calls that the latest request made."""
        self.behind = 0
        """The number of runs that were sent together behind the latest."""

    def serve(self) -> None:
        """Reply to requests until one is `stop`, or the input ends.

        Each reply is flushed before the next request is read, so that a crash is blamed on the right request.
        """
        while (text := self.stdin.readline(messages.MAX_LINE_BYTES)).endswith(b"\n"):
            request = messages.parse_line(text[:-1])
            if request.get("with_next"):
                self.reply_to_all(request)
                continue
            self.reply(request, self.handle(request))
            self.stdout.flush()
            if request["do"] == "stop":
                return

    def reply(self, request: Mapping[str, Any], reply: Reply) -> None:
        if os.getpid() != self.pid:  # the backend forked, and the fork returned
            os._exit(0)
        record, payloads = reply
        self.stdout.write(messages.encode_line({"id": request["id"], **record}))
        for payload in payloads:
            self.stdout.write(payload)

    def reply_to_all(self, request: Mapping[str, Any]) -> None:
        """Reply to a run and to those after it that belong to it. Each is made in its own thread, at the same time."""
        runs = [self.receive(request)]
        while request.get("with_next"):
            request = messages.parse_line(self.stdin.readline(messages.MAX_LINE_BYTES)[:-1])
            runs.append(self.receive(request))
        replies = run_in_threads([partial(self.guard, self.answer, run.request, run.tensors) for run in runs])
        self.latest, self.behind = [tensor for run in runs for tensor in run.tensors], 0
        for run, reply in zip(runs, replies, strict=True):
            self.reply(run.request, self.report(run, reply, in_threads=True))
        self.stdout.flush()

    def handle(self, request: Mapping[str, Any]) -> Reply:
        """Return the reply to a request: a record, and the bytes that follow it."""
        match request["do"]:
            case "run":
                return self.run(request)
            case "compile":
                return self.guard(self.compile, request)
            case "close":
                for program in request.get("programs") or (request["program"],):
                    self.programs.pop(program, None)
                return DONE, ()
            case "hello":
                return self.hello(request), ()
            case "describe":
                return {"result": messages.describe(self.adapter.identity, self.adapter.claims)}, ()
            case "stop":
                return DONE, ()
        return {"error": {"message": f"unknown request {request['do']!r}"}}, ()

    def hello(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["protocol"] != messages.VERSION:
            return {"error": {"message": f"this worker speaks {messages.VERSION}"}}
        if path := request.get("shared_memory"):
            with contextlib.suppress(OSError):
                self.shared_file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        shared = self.shared_file is not None
        offers = {"close_many": True, "with_next": True, "takes_src": True, "behind": True, "edge": True}
        return {"result": {"protocol": messages.VERSION, "shared_memory": shared, **offers, "pid": os.getpid()}}

    def guard(self, act: Callable[..., Reply], *arguments: Any) -> Reply:
        """Call the backend, and return its reply, or the reply for the exception that it raised."""
        try:
            return act(*arguments)
        except Rejected as rejected:
            outcome = make_rejection_outcome(rejected)
            if outcome.kind == "error":
                return {"error": {"message": outcome.message}}, ()
            return {"rejected": {"stage": outcome.stage, "message": outcome.message}}, ()
        except Unsupported as unsupported:
            return {"unsupported": {"feature": read_message(getattr(unsupported, "facet", None))}}, ()
        except BaseException as error:  # no terminal reaches this process, so an interrupt too comes from the backend
            is_too_much = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.EFBIG
            where = "" if is_too_much else place_in(self.file, error)
            message = read_message(f"{type(error).__name__}: {as_text(error)}{where}")
            return {"error": {"message": message, "memory": True} if is_too_much else {"message": message}}, ()

    def compile(self, request: Mapping[str, Any]) -> Reply:
        self.programs.pop(request["program"], None)
        program = self.adapter.compile(messages.graph_of(request["graph"]))
        self.programs[request["program"]] = ServedProgram(program)
        return DONE, ()

    # ── one call ──

    def run(self, request: Mapping[str, Any]) -> Reply:
        run = self.receive(request)
        reply = self.guard(self.answer, request, run.tensors)
        self.latest = [*self.latest, *run.tensors] if self.behind else run.tensors
        self.behind = request.get("behind", 0)
        record, payloads = self.report(run, reply)
        record |= {"usage": measure()} if request.get("measure") else {}
        return (record | {"calls": self.calls} if "times" in request else record), payloads

    def receive(self, request: Mapping[str, Any]) -> ReceivedRun:
        watched = set(request.get("earlier", ()))
        self.answers = [kept for kept in self.answers if kept.call in watched]
        self.sources = [kept for kept in self.sources if kept.call in watched]
        before: list[bytes | None] = []
        tensors = [self.tensor(record, before) for record in request["tensors"]]
        addresses = [  # 0 of shared and of empty memory
            ctypes.addressof(ctypes.c_char.from_buffer(tensor.memory)) if was else 0
            for tensor, was in zip(tensors, before, strict=True)
        ]
        return ReceivedRun(request, tensors, before, addresses)

    def report(self, run: ReceivedRun, reply: Reply, in_threads: bool = False) -> Reply:
        """Add to a reply what the call changed beside its answer: the memory of its tensors, and earlier answers.

        What its compilation changed is among that, also if it failed. Another thread can change its own answer.
        """
        request, tensors, before, addresses = run
        record, payloads = reply
        record["addresses"] = addresses
        sent = list(payloads)
        wrote = []
        for place, (tensor, was) in enumerate(zip(tensors, before, strict=True)):
            if was is not None and bytes(tensor.memory) != was:
                wrote.append({"tensor": place, "bytes": len(was)})
                sent.append(_read_content(tensor.memory, was))
        if wrote:
            record["wrote"] = wrote
        earlier = [kept for kept in self.answers if kept.call < request["id"] + in_threads]
        self.add_changes("changed", earlier, record, sent)
        self.add_changes("overwrote", self.sources, record, sent)
        if before[0] is not None and not request["may_overwrite"]:
            now = _read_content(tensors[0].memory, before[0]) if wrote else before[0]
            self.sources.append(WatchedContent(request["id"], lambda: bytes(tensors[0].memory), now))
        return record, sent

    def add_changes(
        self, key: str, kept: Sequence[WatchedContent], record: dict[str, Any], sent: list[bytes | memoryview]
    ) -> None:
        """Add the earlier answers that have changed, or the sources into which a later call wrote."""
        changed = []
        for each in kept:
            try:
                now = each.read()
            except Exception:  # it cannot be read any more
                now = b""
            if now != each.data:
                each.data = _read_content(now, each.data)
                changed.append({"call": each.call, "bytes": len(each.data)})
                sent.append(each.data)
        if changed:
            record[key] = changed

    def answer(self, request: Mapping[str, Any], tensors: list[Tensor]) -> Reply:
        program = self.programs.get(request["program"])
        if program is None:
            return {"error": {"message": f"there is no program {request['program']}"}}, ()
        run = partial(program.program.run, tensors[0], tuple(tensors[1:]), request["may_overwrite"])
        try:
            if "times" in request:
                value, error, self.calls = call_often(run, request["times"], request["seconds"], program.did)
                if error is not None:
                    raise error
            else:
                value = run()
        except Rejected as rejected:
            program.did = what_it_did(None, rejected)
            raise
        if isinstance(value, np.generic):
            value = np.asarray(value)
        type_ = find_named_type(value)
        if isinstance(type_, Exception):
            return {"error": {"message": str(type_)}}, ()
        dims = dims_of_answer(value)
        result: dict[str, Any] = {"type": type_, "dims": [encode_integer(n) for n in dims]}
        if (size := size_of(type_, dims)) > count_max_answer_bytes(tensors[0].dims):
            return {"result": result | {"bytes": size}}, ()  # the suite does not read the elements
        data = elements_of(value)
        program.did = (type_, dims, data) if len(data) <= _MAX_BYTES_COMPARED else None
        result["bytes"] = len(data)
        if data and _shares_memory(value, tensors[0].memory):
            result["shares"] = True
        # The next src will lie in the shared memory, so an answer that lies there is lost anyway.
        lost = bool(data) and self._shared is not None and _shares_memory(value, self._shared)
        if not request["may_overwrite"] and not lost:
            self.answers.append(WatchedContent(request["id"], partial(elements_of, value), data))
            if data and (address := _address_of_answer(value)):
                result["address"] = address
        room = request.get("answer")
        if room is None or len(data) > room["room"]:
            return {"result": result}, (data,)
        result["at"] = at = room["at"]
        self.shared(at + len(data))[at : at + len(data)] = data
        return {"result": result}, ()

    def tensor(self, record: Mapping[str, Any], before: list[bytes | None]) -> Tensor:
        """Read a tensor of a request; one in shared memory is not compared here, as the suite sees it itself."""
        size, at = record["bytes"], record.get("at")
        memory: bytearray | memoryview
        if at is not None:
            memory = memoryview(self.shared(at + size))[at : at + size]
            before.append(None)
        else:
            content = self.stdin.read(size)
            if len(content) != size:
                raise ProtocolError(f"{len(content)} bytes of {size}")
            memory = self.pages.place(content, record["edge"]) if "edge" in record else bytearray(content)
            before.append(content)
        dims, strides = messages.dims_of(record["dims"]), messages.dims_of(record["strides"])
        return Tensor(record["type"], dims, strides, memory, record["offset"])

    def shared(self, size: int) -> mmap.mmap:
        assert self.shared_file is not None
        if self._shared is None or len(self._shared) < size:
            self._shared = mmap.mmap(self.shared_file, 0)
        return self._shared


def _address_of_answer(value: Tensor | Array) -> int:
    """Return the address of an answer's elements; 0 if they do not lie one after another, or move at each look."""
    if isinstance(value, Tensor):
        dense = tuple(value.strides) == strides_of(dims_of_answer(value), "dense", WIDTH[value.type])
        memory = value.memory  # may be bytes
        if not dense or value.memory is not memory:
            return 0
        return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0]) + int(value.offset)
    return int(value.__array_interface__["data"][0]) if value.flags.c_contiguous else 0


def _read_content(memory: bytes | bytearray | memoryview, was: bytes | memoryview) -> bytes:
    """Return the content of a memory; if its length has changed, the earlier content with every bit flipped."""
    return bytes(memory) if len(memory) == len(was) else bytes(byte ^ 0xFF for byte in was)


def _shares_memory(value: Tensor | Array, memory: Any) -> bool:
    if isinstance(value, Tensor):
        return value.memory is memory or lies_in(np.frombuffer(value.memory, np.uint8), memory)
    return lies_in(value, memory)


def main(arguments: Sequence[str]) -> int:
    """Move the real standard output away first, so that nothing a library prints gets into the protocol."""
    stdout = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    os.dup2(2, 1)
    stdin = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        adapter = load_adapter(arguments[0])
    except (CannotStart, KeyboardInterrupt) as cannot:  # no terminal reaches this process
        interrupted = isinstance(cannot, KeyboardInterrupt)
        why = f"{arguments[0]}: cannot be started: {cannot!r}" if interrupted else str(cannot)
        stdout.write(messages.encode_line({"cannot_start": shorten(why, MAX_TEXT_CHARACTERS)}))
        stdout.flush()
        return CANNOT_START
    gc.freeze()  # the collector would else walk all loaded modules again and again
    try:
        AdapterServer(adapter, stdin, stdout).serve()
    except OSError as error:  # of our own pipes; those of the backend are caught where it is called
        why = f"the worker lost the suite: {error.strerror}; a backend may close only descriptors that it opened"
        os.write(2, why.encode())
        os._exit(1)  # the exit of Python would write to them once more
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
