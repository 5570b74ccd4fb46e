"""Answers for an adapter in a process of its own: started and driven by `remote`."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, BinaryIO

import numpy as np

from ..adapter import CannotStart, load_adapter, place_in
from ..model import Adapter, Array, Program, Rejected, Tensor, Unsupported
from ..model.types import WIDTH
from ..plan.memory import strides_of
from ..run.call import as_text, describe_message, elements_of, named_type, rejection_outcome
from . import protocol
from .protocol import Fault, number

CANNOT_START = 3
Reply = tuple[dict[str, Any], Sequence[bytes | memoryview]]
"""A record, and the bytes that follow it."""
DONE: dict[str, Any] = {"result": {}}
"""Of a request that asks for nothing in return."""


class Answer:
    """An answer handed out, and what it held then."""

    def __init__(self, call: int, value: Tensor | Array, data: bytes | memoryview) -> None:
        self.call, self.value, self.data = call, value, data


class Server:
    """One adapter, its compiled programs, and their answers so far."""

    def __init__(self, adapter: Adapter, stdin: BinaryIO, stdout: BinaryIO) -> None:
        self.adapter, self.stdin, self.stdout = adapter, stdin, stdout
        self.pid = os.getpid()
        self.file = getattr(sys.modules.get(type(adapter).__module__), "__file__", None)
        self.programs: dict[int, Program] = {}
        self.answers: dict[int, list[Answer]] = {}
        self.sources: dict[int, list[tuple[int, Tensor, bytes]]] = {}
        self.shared_file: int | None = None
        self._shared: mmap.mmap | None = None
        self.latest: Sequence[Tensor] = ()

    def serve(self) -> None:
        """Until told to stop, or until nobody asks any more.

        Each reply is out before the next request is taken up, so that an end is blamed on the right one.
        """
        while (text := self.stdin.readline(protocol.LONGEST_LINE)).endswith(b"\n"):
            request = protocol.parsed(text[:-1])
            record, payloads = self.handled(request)
            if os.getpid() != self.pid:  # the backend forked, and its copy has come back
                os._exit(0)
            if record is DONE:
                self.stdout.write(b"%b\n" % protocol.done(request["id"]))
            else:
                self.stdout.write(protocol.line({"id": request["id"], **record}))
            for payload in payloads:
                self.stdout.write(payload)
            self.stdout.flush()
            if request["do"] == "stop":
                return

    def handled(self, request: Mapping[str, Any]) -> Reply:
        """The reply to a request: a record, and the bytes that follow it."""
        match request["do"]:
            case "run":
                return self.run(request)
            case "compile":
                return self.guarded(self.compile, request)
            case "close":
                for program in request.get("programs") or (request["program"],):
                    self.programs.pop(program, None)
                    self.answers.pop(program, None)
                    self.sources.pop(program, None)
                return DONE, ()
            case "hello":
                return self.hello(request), ()
            case "describe":
                return {"result": protocol.description(self.adapter.identity, self.adapter.claims)}, ()
            case "stop":
                return DONE, ()
        return {"error": {"message": f"unknown request {request['do']!r}"}}, ()

    def hello(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["protocol"] != protocol.VERSION:
            return {"error": {"message": f"this worker speaks {protocol.VERSION}"}}
        if path := request.get("shared_memory"):
            with contextlib.suppress(OSError):
                self.shared_file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        shared = self.shared_file is not None
        said = {"protocol": protocol.VERSION, "shared_memory": shared, "close_many": True, "pid": os.getpid()}
        return {"result": said}

    def guarded(self, act: Callable[..., Reply], *arguments: Any) -> Reply:
        """What an act of the backend comes to, whichever way it ends."""
        try:
            return act(*arguments)
        except Rejected as rejected:
            refusal = rejection_outcome(rejected)
            if refusal.kind == "error":
                return {"error": {"message": refusal.message}}, ()
            return {"rejected": {"stage": rejected.stage, "message": rejected.message}}, ()
        except Unsupported as unsupported:
            return {"unsupported": {"feature": describe_message(getattr(unsupported, "facet", None))}}, ()
        except MemoryError as error:
            return {"error": {"message": f"MemoryError: {as_text(error)}", "memory": True}}, ()
        except BaseException as error:  # no terminal reaches this process: an interrupt too is the backend's own
            where = place_in(self.file, error)
            return {"error": {"message": f"{type(error).__name__}: {as_text(error)}{where}"}}, ()

    def compile(self, request: Mapping[str, Any]) -> Reply:
        number = request["program"]
        self.programs.pop(number, None)
        self.programs[number] = self.adapter.compile(protocol.graph_of(request["graph"]))
        self.answers[number] = []
        self.sources[number] = []
        return DONE, ()

    # ── one call ──

    def run(self, request: Mapping[str, Any]) -> Reply:
        """Runs, and says besides what else the call changed: memory it was given, answers it gave before."""
        before: list[bytes | None] = []
        tensors = [self.tensor(record, before) for record in request["tensors"]]
        if request["program"] not in self.programs:
            return {"error": {"message": f"there is no program {request['program']}"}}, ()
        earlier = self.answers[request["program"]]
        count = len(earlier)
        addresses = [0 if was is None else _address(tensor.memory) for tensor, was in zip(tensors, before, strict=True)]
        record, payloads = self.guarded(self.answer, request, tensors)
        record["addresses"] = addresses
        self.latest = tensors  # the suite looks at them until it asks for something else
        sent = list(payloads)
        wrote = []
        for place, (tensor, was) in enumerate(zip(tensors, before, strict=True)):
            if was is not None and tensor.memory != was:  # type: ignore[comparison-overlap]
                wrote.append({"tensor": place, "bytes": len(was)})
                sent.append(_now(tensor.memory, was))
        if wrote:
            record["wrote"] = wrote
        if count:
            self.look_again(earlier[:count], record, sent)
        sources = self.sources[request["program"]]
        if sources:
            self.look_at_sources(sources, record, sent)
        if before[0] is not None and not request["may_overwrite"]:
            now = _now(tensors[0].memory, before[0]) if wrote else before[0]
            sources.append((request["id"], tensors[0], now))
        return record, sent

    def look_at_sources(
        self, kept: list[tuple[int, Tensor, bytes]], record: dict[str, Any], sent: list[bytes | memoryview]
    ) -> None:
        """Adds those sources of earlier calls into which this call wrote; they stay as long as the program does."""
        overwrote = []
        for place, (call, tensor, was) in enumerate(kept):
            if tensor.memory != was:  # type: ignore[comparison-overlap]
                now = _now(tensor.memory, was)
                kept[place] = (call, tensor, now)
                overwrote.append({"call": call, "bytes": len(now)})
                sent.append(now)
        if overwrote:
            record["overwrote"] = overwrote

    def look_again(self, earlier: Sequence[Answer], record: dict[str, Any], sent: list[bytes | memoryview]) -> None:
        """Adds those earlier answers that are not what they were."""
        changed = []
        for answer in earlier:
            try:
                now = elements_of(answer.value)
            except Exception:  # it cannot be looked at any more
                now = b""
            if len(now) != len(answer.data):
                now = _other(answer.data)
            if now != answer.data:
                answer.data = now
                changed.append({"call": answer.call, "bytes": len(now)})
                sent.append(now)
        if changed:
            record["changed"] = changed

    def answer(self, request: Mapping[str, Any], tensors: list[Tensor]) -> Reply:
        value = self.programs[request["program"]].run(tensors[0], tuple(tensors[1:]), request["may_overwrite"])
        if isinstance(value, np.generic):
            value = np.asarray(value)
        type_ = named_type(value)
        if isinstance(type_, Exception):
            return {"error": {"message": str(type_)}}, ()
        data = elements_of(value)
        dims = value.dims if isinstance(value, Tensor) else value.shape
        result = {"type": type_, "dims": [number(index(n)) for n in dims], "bytes": len(data)}
        if data and _shares(value, tensors[0].memory):
            result["shares"] = True
        lost = bool(data) and self._shared is not None and _shares(value, self._shared)  # where the next src will lie
        if not request["may_overwrite"] and not lost:
            self.answers[request["program"]].append(Answer(request["id"], value, data))
            if data and (address := _address_of_answer(value)):
                result["address"] = address
        room = request.get("answer")
        if room is None or len(data) > room["room"]:
            return {"result": result}, (data,)
        result["at"] = at = room["at"]
        self.shared(at + len(data))[at : at + len(data)] = data
        return {"result": result}, ()

    def tensor(self, record: Mapping[str, Any], before: list[bytes | None]) -> Tensor:
        """A tensor of a request; in shared memory the other side sees for itself what becomes of it."""
        size, at = record["bytes"], record.get("at")
        memory: bytearray | memoryview
        if at is not None:
            memory = memoryview(self.shared(at + size))[at : at + size]
            before.append(None)
        else:
            content = self.stdin.read(size)
            if len(content) != size:
                raise Fault(f"{len(content)} bytes of {size}")
            memory = bytearray(content)
            before.append(content)
        dims, strides = protocol.dims_of(record["dims"]), protocol.dims_of(record["strides"])
        return Tensor(record["type"], dims, strides, memory, record["offset"])

    def shared(self, size: int) -> mmap.mmap:
        """The shared memory, so many bytes of it at least."""
        assert self.shared_file is not None
        if self._shared is None or len(self._shared) < size:
            self._shared = mmap.mmap(self.shared_file, 0)
        return self._shared


def _address(memory: bytearray | memoryview) -> int:
    """Where a memory begins in this process; 0 if it is empty."""
    return int(np.frombuffer(memory, np.uint8).__array_interface__["data"][0]) if len(memory) else 0


def _address_of_answer(value: Tensor | Array) -> int:
    """Where the elements of an answer lie one after another; 0 if they do not."""
    if isinstance(value, Tensor):
        dense = value.strides == strides_of(value.dims, "dense", WIDTH[value.type])
        return _address(value.memory) + value.offset if dense else 0
    return int(value.__array_interface__["data"][0]) if value.flags.c_contiguous else 0


def _now(memory: bytearray | memoryview, was: bytes) -> bytes:
    """What a memory holds, as long as it was: where its length is another, nothing of what was in it."""
    return bytes(memory) if len(memory) == len(was) else _other(was)


def _other(data: bytes | memoryview) -> bytes:
    """As many bytes, none of them the same."""
    return bytes(byte ^ 0xFF for byte in data)


def _shares(value: Tensor | Array, memory: Any) -> bool:
    """Whether an answer lies in some memory, by whatever object it knows it."""
    if isinstance(value, Tensor):
        if value.memory is memory:
            return True
        value = np.frombuffer(value.memory, np.uint8)
    elif value.base is None:
        return False
    return bool(np.may_share_memory(value, np.frombuffer(memory, np.uint8)))


def main(arguments: Sequence[str]) -> int:
    """Moves the real standard output away first thing, so that nothing a library prints can get into the protocol."""
    stdout = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    os.dup2(2, 1)
    stdin = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        adapter = load_adapter(arguments[0])
    except CannotStart as cannot:
        stdout.write(protocol.line({"cannot_start": str(cannot)}))
        stdout.flush()
        return CANNOT_START
    gc.freeze()  # what was loaded stays; to walk it again and again costs every call
    Server(adapter, stdin, stdout).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
