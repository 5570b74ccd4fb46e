"""The requests to one process: compile programs, call them, and find what each call changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import ne
from typing import Any
from weakref import ref

from ...adapter import CannotStart, check_description
from ...model import AnswerNotRead, Claims, Crashed, Identity, Rejected, RemoteError, Tensor, TimedOut, Unsupported
from ...model.types import WIDTH
from ...plan.memory import count_max_answer_bytes, has_no_memory, strides_of, volume_of
from ...system.text import MAX_TEXT_CHARACTERS, quote, quote_json, shorten
from ..process.tensor_memory import MAX_BYTES_AT_PAGE, Edge, MemoryReader, SharedMemory
from ..process.usage import CALLS_APART, ProcessSample
from . import messages
from .calls import SentCall, SessionProgram, UnreportedChange, WatchedMemory
from .messages import (
    ProtocolError,
    TensorPlace,
    find_kind_of_reply,
    read_addressed_tensors,
    read_objects,
    read_type_and_dims,
    result_of,
)
from .piped_process import Bytes, PipedProcess

SHARED_FROM = 1 << 16
"""Bytes from which tensors go through shared memory, which saves 10 % of the CPU time of `conformance run numpy`."""
_PAGE = 4096
_ALIGNMENT = 16
"""What malloc gives. A src has the same address modulo this at a page and elsewhere: alignment is another facet."""
_MAX_DROPPED = 1 << 20
"""Bytes of a contradictory answer, or of a change that nobody looks at, that are read and dropped."""
_CHANGES = ("wrote", "changed", "overwrote")
"""The keys under which a reply reports changes of memory."""
_CLOSE_AT_ONCE = 16
"""Number of unused programs that are closed together; after a large call they are closed at once."""
ProgramCall = tuple[SessionProgram, Sequence[Tensor], bool]
"""A program, its tensors, and whether it may overwrite src."""
Reply = Mapping[str, Any]
FAILURES = (ProtocolError, RemoteError, AnswerNotRead, Crashed, TimedOut, Rejected, Unsupported, MemoryError)
"""Ways in which a process that should start can fail."""


class Session:
    """The calls of one process."""

    def __init__(self, process: PipedProcess, shared: SharedMemory) -> None:
        self.process = process
        self.is_patient = False
        """Whether a call may take as long as a start, as some compile or load then what they need.

        It may until one is answered: who rejects a call may not have needed that yet.
        """
        self.began_slowly = False
        """Whether a call took longer than usual up to the first that was answered."""
        self.shared: SharedMemory | None = None
        self.closing: list[int] = []
        """Programs to be closed with the next request."""
        self.watched: dict[tuple[str, int], WatchedMemory] = {}
        """Answers and sources of earlier calls, by the key of a reply that reports a change, and the id of the call."""
        self.samples: list[ProcessSample] = []
        """What the process held after some of its calls."""
        self._calls, self._measured_at = 0, 0
        self._programs, self._large = 0, False
        self._reader: MemoryReader | None = None
        try:
            self.description = self._begin(shared)
        except CannotStart:
            self.process.end()
            raise
        except FAILURES as error:
            self.process.end()
            what = f"{type(error).__name__}: {error}" if isinstance(error, RemoteError) else str(error)
            if isinstance(error, TimedOut):
                what += "; it waits, or does not flush its reply"
            raise CannotStart(f"{self.process.name}: {shorten(what, MAX_TEXT_CHARACTERS)}") from None

    @property
    def can_send_ahead(self) -> bool:
        return self._takes_ahead and not self.is_patient  # the first calls of a backend are made alone

    @property
    def _seconds(self) -> float | None:
        """Seconds that the next call may take; None for the usual limit."""
        return self.process.limits.start_seconds if self.is_patient else None

    def new_program(self) -> int:
        self._programs += 1
        return self._programs

    # ── beginning ──

    def _begin(self, shared: SharedMemory) -> tuple[Identity, Claims]:
        hello = self._ask({"do": "hello", "protocol": messages.VERSION, "shared_memory": shared.path}, "hello")
        if hello.get("protocol") != messages.VERSION:
            raise self.process.end_with_fault(
                f"hello: it speaks {quote(hello.get('protocol'))}, this suite {messages.VERSION!r}"
            )
        if shared.path is not None and hello.get("shared_memory") is True:
            self.shared = shared
        self._close_many = hello.get("close_many") is True
        self._has_forks = hello.get("takes_src") is True
        self._takes_ahead = hello.get("behind") is True
        self.takes_edge = hello.get("edge") is True
        if hello.get("pid") == self.process.pid:  # otherwise it is in a container, where addresses differ
            self._reader = MemoryReader(self.process.pid)
        description = messages.parse_description(self._ask({"do": "describe"}, "describe"))
        check_description(*description, self.process.name)
        identity, claims = description
        offers = {"threads": hello.get("with_next") is True, "shared-src": self._has_forks}
        more = tuple(facet for facet, offered in offers.items() if not offered and not claims.excludes(facet))
        return identity, claims._replace(not_claimed=claims.not_claimed + more)

    def _ask(self, request: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Send a request without payloads, and return the result in its reply."""
        number, seconds = self.process.new_id(), self.process.limits.start_seconds
        return self._exchange(number, messages.encode_line({"id": number, **request}), what, seconds)

    def _exchange(self, number: int, line: bytes, what: str, seconds: float | None) -> dict[str, Any]:
        self.process.send([line], what, seconds)
        reply = self.process.read_reply(number, what)
        self.process.expect_no_more(what)
        return self._read_result(reply, what)

    # ── a call ──

    def send(self, calls: Sequence[ProgramCall], often: tuple[int, float] | None = None) -> list[SentCall]:
        """Send calls; `read` returns their answers, in this order. If there are several, each must be small.

        One write sends all that they need: programs to close, to compile and to run. Only the first of them are sent if
        the pipe has no room for all: writing must not wait for what is called. `often`: the times that the process may
        run a program, and the seconds that this may take.
        """
        parts, size, sent = list[Bytes](), 0, list[SentCall]()
        for number, call in enumerate(calls, 1):
            try:
                next_sent, request = self._make_request(*call, len(calls) - number if len(calls) > 1 else None, often)
            except Unsupported:
                if not sent:
                    raise
                break  # it is made in its turn, and raises this then
            size += sum(map(len, request))
            if sent and size > self.process.room:
                break
            parts += request
            sent.append(next_sent)
        if len(sent) < len(calls):
            sent[-1] = sent[-1]._replace(is_last=True)
        self.process.send(parts if self._large else [b"".join(parts)], "run", self._seconds)
        return sent

    def read(self, sent: SentCall) -> Tensor:
        """Read the answer to a call; UnreportedChange if it was sent with others and has to be made again."""
        if sent.is_one_of_many:
            self.process.set_deadline(self._seconds)
        for number in sent.closes:
            self.process.read_reply(number, "close")
        if sent.compiling:
            self._check_compile_reply(self.process.read_reply(sent.compiling, "compile"), sent)
        return self._read_answer(sent)

    def _make_request(
        self, program: SessionProgram, tensors: Sequence[Tensor], may_overwrite: bool, behind: int | None,
        often: tuple[int, float] | None,
    ) -> tuple[SentCall, list[Bytes]]:  # fmt: skip
        """Return a call, and the parts of the requests that it takes.

        `behind`: the number of calls that are to be sent behind it; None if it is sent alone.
        """
        new_id = self.process.new_id
        parts, closes, compiling = list[Bytes](), list[int](), 0
        if len(self.closing) >= _CLOSE_AT_ONCE or (self._large and self.closing):
            unused, self.closing = self.closing, []
            for fields in [{"programs": unused}] if self._close_many else [{"program": each} for each in unused]:
                closes.append(new_id())
                parts.append(messages.encode_line({"id": closes[-1], "do": "close", **fields}))
        if program.session is None:
            compiling = new_id()
            parts.append(self._compile_line(compiling, program))
        places: Sequence[TensorPlace]
        places, room = self._place(tensors)
        if compiling and self.takes_edge:  # at each call it would make a run 5 % slower
            places = [_edge_of(each) if at is None else at for each, at in zip(tensors, places, strict=True)]
            tensors = [_cut_at(*each) for each in zip(tensors, places, strict=True)]
        call = SentCall(
            program, new_id(), tensors, places, room, may_overwrite, closes, compiling, not behind, behind is not None
        )
        more: dict[str, Any] = {} if behind is None else {"behind": behind}
        if often is not None:
            more |= {"times": often[0], "seconds": min(often[1], self.process.limits.seconds / 2)}
        self._calls += 1
        if not self._large and self._calls >= self._measured_at + CALLS_APART:
            more["measure"], self._measured_at = True, self._calls
        return call, parts + self._run_request(call, more)

    def _run_request(self, call: SentCall, more: Mapping[str, Any]) -> list[Bytes]:
        if not call.is_one_of_many and (earlier := self._list_watched_calls()):
            more = {**more, "earlier": earlier}
        line = messages.run_line(
            call.id, call.program.number, call.may_overwrite, call.tensors, call.places, call.room, more
        )
        return [
            line,
            *(tensor.memory for tensor, at in zip(call.tensors, call.places, strict=True) if not isinstance(at, int)),
        ]

    def _list_watched_calls(self) -> list[int]:
        """Return the earlier calls with a tensor that somebody still has, and forget the others."""
        calls = dict.fromkeys([number for (_, number), memory in self.watched.items() if memory.tensor()])
        self.watched = {name: memory for name, memory in self.watched.items() if name[1] in calls}
        return [*calls]

    def _watch(self, call: SentCall, answer: object) -> None:
        """Watch src until its program is dropped, and an answer until the row drops it."""
        src = replace(call.tensors[0])  # other programs and rows have the tensor, too
        call.program.sources.append(src)
        self.watched["overwrote", call.id] = WatchedMemory(ref(src), len(src.memory))
        if isinstance(answer, Tensor):
            self.watched["changed", call.id] = WatchedMemory(ref(answer), len(answer.memory))

    def _compile_line(self, number: int, program: SessionProgram) -> bytes:
        """Encode the request to compile a program; Unsupported if the process would read a fork as a chain."""
        if not self._has_forks and any(node.takes_src for node in program.graph.nodes):
            raise Unsupported("shared-src")
        return messages.compile_line(number, program.number, program.graph)

    def compile(self, program: SessionProgram) -> None:
        number = self.process.new_id()
        self._exchange(number, self._compile_line(number, program), "compile", self._seconds)
        program.session = self

    def send_at_once(self, runs: Sequence[ProgramCall]) -> list[SentCall]:
        """Send calls of compiled programs, to be made at the same time; their answers are to be read in this order."""
        calls, parts = list[SentCall](), list[Bytes]()
        self._large = False  # the tensors go through the pipe
        for number, (program, tensors, may_overwrite) in enumerate(runs, 1):
            places, is_last = [None] * len(tensors), number == len(runs)
            call = SentCall(program, self.process.new_id(), tensors, places, 0, may_overwrite, is_last=is_last)
            parts += self._run_request(call, {} if is_last else {"with_next": True})
            calls.append(call)
        self.process.send(parts, "run", self._seconds)
        return calls

    def _check_compile_reply(self, reply: Reply, call: SentCall) -> None:
        """Check the reply to compile. If compilation failed, the run sent with it must fail too; raise the former."""
        try:
            self._read_result(reply, "compile")
        except (Rejected, Unsupported, RemoteError, MemoryError):
            reply = self.process.read_reply(call.id, "run")
            if "result" in reply:
                raise self.process.end_with_fault("run: a result, although the program was not compiled") from None
            try:
                self._apply_changes(reply, call)
            except ProtocolError as fault:
                raise self.process.end_with_fault(f"run: {fault}") from None
            if call.is_last:
                self.process.expect_no_more("run")
            raise
        call.program.session = self

    def _place(self, tensors: Sequence[Tensor]) -> tuple[Sequence[int | None], int]:
        """Copy tensors to shared memory if one is large; return their places there, or None, and the bytes they take.

        A shape then lies where the one of the last such call lay, so that who keeps what was there is found.
        """
        sizes = [len(tensor.memory) for tensor in tensors]
        self._large = max(sizes) >= SHARED_FROM
        if self.shared is None or not self._large:
            return [None] * len(sizes), 0
        *places, end = accumulate((-(-size // _PAGE) * _PAGE for size in sizes), initial=0)
        room = self.shared.room(2 * end)
        for at, size, tensor in zip(places, sizes, tensors, strict=True):
            room[at : at + size] = tensor.memory
        return places, end

    def _read_answer(self, call: SentCall) -> Tensor:
        """Read the answer, and apply the changes of the worker's memory to ours, where they are judged."""
        reply = self.process.read_reply(call.id, "run")
        self.began_slowly |= self.is_patient and self.process.was_slow
        try:
            answer = self._read_tensor(reply["result"], call) if find_kind_of_reply(reply) == "result" else None
            if not call.is_one_of_many:  # otherwise it is the only call of its row
                self._watch(call, answer)
            if call.room:
                self._copy_back(call)
            if "usage" in reply:
                self._keep_sample(reply["usage"])
            call.program.calls = made = reply.get("calls", 1)
            if type(made) is not int or not 1 <= made < 1 << 31:
                raise ProtocolError(f"'calls' is {quote_json(made)}, but should be the number of calls")
            if any(map(reply.__contains__, _CHANGES)):
                self._apply_changes(reply, call)
            if self._reader and not call.room:
                self._apply_unreported_changes(self._reader, reply, call, answer)
        except ProtocolError as fault:
            raise self.process.end_with_fault(f"run: {fault}") from None
        if call.is_last:
            self.process.expect_no_more("run")
        if self.shared and self._large:
            self.shared.forget()
        if answer is None:
            self._read_result(reply, "run")
        if not isinstance(answer, Tensor):
            raise answer or RemoteError("no tensor came")
        self.is_patient = False
        return answer

    def _keep_sample(self, usage: Any) -> None:
        if usage is None:  # its system does not tell
            return
        if (
            not isinstance(usage, list)
            or len(usage) != 3
            or not all(type(n) is int and 0 <= n < 1 << 53 for n in usage)
        ):
            raise ProtocolError(
                f"'usage' is {quote_json(usage)}, but should be three counts: bytes of memory, open files, threads"
            )
        if not self.samples or self.samples[-1].calls < self._measured_at:  # some send it with each reply
            self.samples.append(ProcessSample(self._measured_at, *usage))

    def _apply_changes(self, reply: Reply, call: SentCall) -> None:
        for index, wrote in read_objects(reply, "wrote", "tensor"):
            if type(index) is not int or not 0 <= index < len(call.tensors):
                raise ProtocolError(f"'wrote' names the tensor {quote_json(index)}, and there are {len(call.tensors)}")
            memory = call.tensors[index].memory
            memory[:] = self._read_change(wrote, len(memory))
        for key in ("changed", "overwrote"):
            for number, changed in read_objects(reply, key, "call"):
                if type(number) is not int or not 0 < number <= call.id:
                    raise ProtocolError(f"{key!r} names the call {quote_json(number)}, which was not made")
                size = changed.get("bytes")
                if earlier := self.watched.get((key, number)):
                    earlier.change(self._read_change(changed, earlier.size))
                elif type(size) is int and 0 <= size <= _MAX_DROPPED:
                    self.process.read_payload(size, "run")
                else:
                    raise _make_size_error(size)

    def _apply_unreported_changes(self, reader: MemoryReader, reply: Reply, call: SentCall, answer: object) -> None:
        """Find and apply changes that the worker did not report: read src, shapes and earlier tensors in its memory.

        A change that the worker reports is kept as reported, because it may concern memory that was cut off or moved.
        If the call was sent with others, any difference is an UnreportedChange: a later call may have made it.
        """
        if not (addressed := read_addressed_tensors(reply, call.tensors)):
            return
        watched = {name: memory for name, memory in self.watched.items() if memory.address}
        # one read for all: each is a system call, and the worker waits meanwhile
        spans = [(at, len(tensor.memory)) for at, tensor in addressed]
        spans += [(memory.address, memory.size) for memory in watched.values()]
        if (contents := reader.read(spans)) is None:
            return
        if call.is_one_of_many:
            if any(map(ne, contents, [tensor.memory for _, tensor in addressed])):
                raise UnreportedChange
            return
        wrote = {index for index, _ in read_objects(reply, "wrote", "tensor")} if "wrote" in reply else ()
        for index, ((_, tensor), content) in enumerate(zip(addressed, contents, strict=False)):
            if content != tensor.memory and index not in wrote:
                tensor.memory[:] = content
        reported = {(key, call) for key in ("changed", "overwrote") for call, _ in read_objects(reply, key, "call")}
        for (name, memory), content in zip(watched.items(), contents[len(addressed) :], strict=True):
            if name in reported:
                memory.data = content
            elif content != memory.data:
                memory.change(content)
        # later calls must leave alone what this one took and, if it is not too large to compare, what it answered
        if not call.may_overwrite:
            src = self.watched["overwrote", call.id]
            src.address, src.data = addressed[0][0], contents[0]
            address = reply["result"].get("address") if isinstance(answer, Tensor) else None
            if type(address) is int and isinstance(answer, Tensor) and 0 < len(answer.memory) < SHARED_FROM:
                kept = self.watched["changed", call.id]
                kept.address, kept.data = address, bytes(answer.memory)

    def _read_tensor(self, result: Reply, call: SentCall) -> Tensor | RemoteError:
        """Read the tensor of a result, or return how the result contradicts itself. Its size is checked first."""
        size, at, limit = result.get("bytes"), result.get("at"), self.process.limits.memory
        if type(size) is not int or size < 0:
            raise _make_size_error(size)
        announced = read_type_and_dims(result, size)
        if at is None:
            self._check_size(announced, size, call)
        if limit and size > limit:
            raise _make_size_error(size)
        memory = self.process.read_payload(size, "run") if at is None else self._read_shared_memory(at, size, call)
        if isinstance(announced, RemoteError):
            return announced
        type_, dims = announced
        strides = strides_of(dims, "dense", WIDTH[type_])
        return Tensor(type_, dims, strides, memory, 0, shares_src=result.get("shares") is True)

    def _check_size(self, announced: tuple[str, tuple[int, ...]] | RemoteError, size: int, call: SentCall) -> None:
        """End the process, and raise AnswerNotRead, if a payload is larger than any right answer to this call."""
        if isinstance(announced, RemoteError):
            if size > _MAX_DROPPED:
                raise ProtocolError(f"{announced}; a payload of {size} bytes is not read for that")
            return
        if size > count_max_answer_bytes(call.tensors[0].dims):
            self.process.end()
            raise AnswerNotRead(*announced)

    def _read_shared_memory(self, at: Any, size: int, call: SentCall) -> bytearray:
        """Read an answer in shared memory; it must be in the room offered behind the tensors."""
        if self.shared is None or not call.room or at != call.room or size > call.room:
            raise ProtocolError(f"the result lies at {quote_json(at)} in shared memory, where it was given no room")
        with memoryview(self.shared.room(at + size)) as view:
            return bytearray(view[at : at + size])

    def _copy_back(self, call: SentCall) -> None:
        """Copy tensors back from shared memory, those that changed: comparing is cheaper than copying."""
        assert self.shared is not None
        for at, tensor in zip(call.places, call.tensors, strict=True):
            if isinstance(at, int):
                end = at + len(tensor.memory)
                with memoryview(self.shared.room(end)) as view, view[at:end] as shared:
                    if tensor.memory != shared:
                        tensor.memory[:] = shared

    def _read_change(self, change: Mapping[str, Any], size: int) -> bytearray:
        if change.get("bytes") != size:
            raise ProtocolError(f"it changed {quote_json(change.get('bytes'))} bytes of a memory that has {size}")
        return self.process.read_payload(size, "run")

    def _read_result(self, reply: Reply, what: str) -> dict[str, Any]:
        try:
            return result_of(reply)
        except ProtocolError as fault:
            raise self.process.end_with_fault(f"{what}: {fault}") from None


def _edge_of(tensor: Tensor) -> Edge | None:
    """Choose the end of a tensor that touches a page that nobody may read; None if neither can.

    Only a tensor without gaps can: libraries differ in whether the gap behind the last row belongs to a tensor.
    """
    if len(tensor.memory) > MAX_BYTES_AT_PAGE or has_no_memory(tensor.dims):
        return None
    width = WIDTH[tensor.type]
    if tensor.strides != strides_of(tensor.dims, "dense", width):
        return None
    if (tensor.offset + volume_of(tensor.dims) * width) % _ALIGNMENT == 0:
        return "end"
    return "start" if tensor.offset % _ALIGNMENT == 0 else None


def _cut_at(tensor: Tensor, place: TensorPlace) -> Tensor:
    """Return a tensor in the same memory, with nothing past the end that touches a page."""
    if not isinstance(place, str):
        return tensor
    memory, start = memoryview(tensor.memory), tensor.offset
    if place == "start":
        return Tensor(tensor.type, tensor.dims, tensor.strides, memory[start:], 0)
    memory = memory[: start + volume_of(tensor.dims) * WIDTH[tensor.type]]
    return Tensor(tensor.type, tensor.dims, tensor.strides, memory, start)


def _make_size_error(size: object) -> ProtocolError:
    return ProtocolError(f"'bytes' is {quote_json(size)}, but should be the size of the payload behind the line")
