"""The conversation with one process: programs compiled there, calls of these, and what each changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..adapter import CannotStart, check_description
from ..model import Claims, Crashed, Graph, Identity, Rejected, RemoteError, Tensor, TimedOut, Unsupported
from ..model.types import WIDTH
from ..plan.memory import strides_of, unfit, unreal, volume_of
from ..system.text import cut, short
from . import protocol
from .peek import Window
from .process import Bytes, Process, SharedMemory
from .protocol import Fault, integer

SHARED_FROM = 1 << 16
"""Bytes from which tensors go through shared memory rather than through the pipe."""
_PAGE = 4096
_MOST, _DROPPED = 1 << 26, 1 << 20
"""Bytes of an answer that are always read; and of one that contradicts itself, which are read and dropped."""
_WIDEST = 8
"""Bytes of the widest element type."""
_CLOSE_AT_ONCE = 16
"""Programs that nobody uses any more are closed so many at a time; large ones at once."""


class Compiled:
    """A graph, and what the session knows of it in which it was compiled."""

    session: Session | None = None
    """None: it has to be compiled with the next call."""

    def __init__(self, graph: Graph, number: int = 0) -> None:
        self.graph, self.number = graph, number
        self.answers: dict[int, Tensor] = {}
        """The answers so far, by the ids of the requests."""
        self.seen: list[Seen] = []
        """Sources and answers of earlier calls."""
        self.sources: dict[int, Tensor] = {}
        """What each of those requests gave as src."""

    def __del__(self) -> None:
        if self.session is not None:
            self.session.closing.append(self.number)


class Seen(NamedTuple):
    """Memory in the worker that has to stay as it is, and the tensor of ours that stands for it."""

    address: int
    size: int
    data: bytearray
    """What lay there when it was last looked at."""
    key: str
    """What a worker calls it that this changed: `changed` of an answer, `overwrote` of a src."""
    call: int
    tensor: Tensor


class Sent(NamedTuple):
    """A call that was asked for."""

    call: int
    """The id of the request."""
    tensors: Sequence[Tensor]
    places: Sequence[int | None]
    """Where each tensor lies in shared memory; None: it went through the pipe."""
    room: int
    """Bytes of shared memory that the tensors take; as many lie behind them for the answer."""
    deadline: float
    may_overwrite: bool


class Session:
    """The calls of one process."""

    def __init__(self, process: Process, shared: SharedMemory | None, patient: bool = False) -> None:
        self.process, self._patient = process, patient
        """The very first call of a backend may take as long as its start: some compile or load what they need then."""
        self.shared: SharedMemory | None = None
        self.closing: list[int] = []
        """Programs to be closed with the next request."""
        self._programs, self._large = 0, False
        self._window: Window | None = None
        try:
            self.described = self._begin(shared)
        except CannotStart:
            self.process.end()
            raise
        except (Fault, RemoteError, Crashed, TimedOut, Rejected, Unsupported, MemoryError) as error:
            raise self._no_start(error) from None

    def new_program(self) -> int:
        self._programs += 1
        return self._programs

    # ── beginning ──

    def _begin(self, shared: SharedMemory | None) -> tuple[Identity, Claims]:
        path = shared.path if shared else None
        hello = self._ask({"do": "hello", "protocol": protocol.VERSION, "shared_memory": path}, "hello")
        if hello.get("protocol") != protocol.VERSION:
            raise self.process.fault(
                f"hello: it speaks {short(hello.get('protocol'))}, this suite {protocol.VERSION!r}"
            )
        if path is not None and hello.get("shared_memory") is True:
            self.shared = shared
        self._close_many = hello.get("close_many") is True
        if hello.get("pid") == self.process.pid:  # else it is in a container, where addresses are others
            self._window = Window(self.process.pid)
        described = protocol.described(self._ask({"do": "describe"}, "describe"))
        check_description(*described, self.process.name)
        return described

    def _ask(self, request: Mapping[str, Any], what: str) -> dict[str, Any]:
        """A request without payloads, and the result in its reply."""
        deadline = self.process.deadline(self.process.limits.start_seconds)
        asked = self.process.new_id()
        self.process.send([protocol.line({"id": asked, **request})], deadline, what)
        reply = self.process.reply(asked, deadline, what)
        self.process.settled(what)
        return self._result(reply, what)

    def _no_start(self, error: Exception) -> CannotStart:
        self.process.end()
        what = f"{type(error).__name__}: {error}" if isinstance(error, RemoteError) else str(error)
        return CannotStart(f"{self.process.name}: {cut(what)}")

    # ── a call ──

    def run(self, program: Compiled, tensors: Sequence[Tensor], may_overwrite: bool) -> Tensor:
        """Everything that one call needs in one write: programs to close, one to compile, one to run."""
        process, new_id = self.process, self.process.new_id
        parts, closes, compiling = list[Bytes](), list[int](), 0
        if len(self.closing) >= _CLOSE_AT_ONCE or (self._large and self.closing):
            for closed in self._closed():
                closes.append(new_id())
                parts.append(protocol.line({"id": closes[-1], "do": "close", **closed}))
        if program.session is None:
            compiling = new_id()
            parts.append(protocol.compile_line(compiling, program.number, program.graph))
        places, room = self._placed(tensors)
        sent = Sent(new_id(), tensors, places, room, self._deadline(), may_overwrite)
        parts.append(protocol.run_line(sent.call, program.number, may_overwrite, tensors, places, room))
        parts += [tensor.memory for tensor, at in zip(tensors, places, strict=True) if at is None]
        program.sources[sent.call] = tensors[0]
        process.send(parts if self._large else [b"".join(parts)], sent.deadline, "run")
        for asked in closes:
            process.reply(asked, sent.deadline, "close")
        if compiling:
            self._compiled(program, process.reply(compiling, sent.deadline, "compile"), sent)
        answer = program.answers[sent.call] = self._answered(program, sent)
        return answer

    def _closed(self) -> list[dict[str, Any]]:
        """What the requests say that close what nobody uses any more."""
        programs, self.closing = self.closing, []
        return [{"programs": programs}] if self._close_many else [{"program": each} for each in programs]

    def _deadline(self) -> float:
        patient, self._patient = self._patient, False
        return self.process.deadline(self.process.limits.start_seconds if patient else None)

    def _compiled(self, program: Compiled, reply: Mapping[str, Any], sent: Sent) -> None:
        """Where it was refused, so must be the run that was sent with it; the refusal is what counts."""
        try:
            self._result(reply, "compile")
        except (Rejected, Unsupported, RemoteError, MemoryError):
            if "result" in self.process.reply(sent.call, sent.deadline, "run"):
                raise self.process.fault("run: a result from a program whose compilation did not succeed") from None
            self.process.settled("run")
            raise
        program.session = self

    def _placed(self, tensors: Sequence[Tensor]) -> tuple[list[int | None], int]:
        """Where each tensor was put in shared memory, None where it was not, and how much room they take there."""
        sizes = [len(tensor.memory) for tensor in tensors]
        self._large = max(sizes) >= SHARED_FROM
        places: list[int | None] = [None] * len(sizes)
        end = 0
        if self.shared and self._large:
            for index, size in enumerate(sizes):
                if size >= SHARED_FROM:
                    places[index] = end
                    end += -(-size // _PAGE) * _PAGE
            room = self.shared.room(2 * end)
            for at, size, tensor in zip(places, sizes, tensors, strict=True):
                if at is not None:
                    room[at : at + size] = tensor.memory
        return places, end

    def _answered(self, program: Compiled, sent: Sent) -> Tensor:
        """The answer; what the call did to their memory is done to ours, to be judged as if it had happened here."""
        reply = self.process.reply(sent.call, sent.deadline, "run")
        try:
            answered = self._kind(reply, "run") == "result"
            answer = self._tensor(reply["result"], sent) if answered else None
            if sent.room:
                self._copy_back(sent)
            if len(reply) > 2:
                self._changed(program, reply, sent)
            if self._window:
                self._look(self._window, program, reply, sent, answer)
        except Fault as fault:
            raise self.process.fault(f"run: {fault}") from None
        self.process.settled("run")
        if self.shared and self._large:
            self.shared.forget()
        if answer is None:
            self._result(reply, "run")
        if not isinstance(answer, Tensor):
            raise answer or RemoteError("no tensor came")
        return answer

    def _changed(self, program: Compiled, reply: Mapping[str, Any], sent: Sent) -> None:
        """What a reply to run says beside its result: memory that is not what it was."""
        for index, wrote in _listed(reply, "wrote", "tensor"):
            if type(index) is not int or not 0 <= index < len(sent.tensors):
                raise Fault(f"'wrote' names the tensor {short(index)}, and there are {len(sent.tensors)}")
            self._replace(sent.tensors[index].memory, wrote, sent.deadline)
        for key, known in (("changed", program.answers), ("overwrote", program.sources)):
            for call, changed in _listed(reply, key, "call"):
                earlier = known.get(call) if type(call) is int else None
                if earlier is None:
                    raise Fault(f"{key!r} names the call {short(call)}, which is none of this program")
                self._replace(earlier.memory, changed, sent.deadline)

    def _look(self, window: Window, program: Compiled, reply: Mapping[str, Any], sent: Sent, answer: object) -> None:
        """Read in the worker's memory what it may have kept from us: src, shapes, and what earlier calls left there.

        What the worker itself reports stands: it also knows of memory that was cut off or moved.
        """
        if not (given := _addresses(reply, sent)):
            return
        spans = [(at, len(tensor.memory)) for at, tensor in given] + [seen[:2] for seen in program.seen]
        if (found := window.read(spans)) is None:
            return
        wrote = {index for index, _ in _listed(reply, "wrote", "tensor")} if "wrote" in reply else ()
        for index, ((_, tensor), now) in enumerate(zip(given, found, strict=False)):
            if now != tensor.memory and index not in wrote:
                tensor.memory[:] = now
        if program.seen:
            self._look_back(program, reply, found[len(given) :])
        if not sent.may_overwrite:
            program.seen.append(Seen(*spans[0], found[0], "overwrote", sent.call, given[0][1]))
            address = reply["result"].get("address") if isinstance(answer, Tensor) else None
            if type(address) is int and isinstance(answer, Tensor) and 0 < len(answer.memory) < SHARED_FROM:
                data = bytearray(answer.memory)
                program.seen.append(Seen(address, len(data), data, "changed", sent.call, answer))

    def _look_back(self, program: Compiled, reply: Mapping[str, Any], found: Sequence[bytearray]) -> None:
        """Compare what earlier calls left in the worker with what lay there when it was last looked at."""
        told = {(key, call) for key in ("changed", "overwrote") for call, _ in _listed(reply, key, "call")}
        for number, (seen, now) in enumerate(zip(program.seen, found, strict=True)):
            if now != seen.data:
                program.seen[number] = seen._replace(data=now)
                if (seen.key, seen.call) not in told:
                    seen.tensor.memory[:] = now

    def _tensor(self, result: Mapping[str, Any], sent: Sent) -> Tensor | RemoteError:
        """The tensor of a result, or how the result contradicts itself. Nothing is read before its size is bounded."""
        size, at, limit = result.get("bytes"), result.get("at"), self.process.limits.memory
        if type(size) is not int or size < 0 or (limit and size > limit):
            raise Fault(f"'bytes' is {short(size)}, where the size of the payload was due")
        announced = _announcement(result, size)
        if at is None:
            self._bound(announced, size, sent)
            memory = self.process.payload(size, sent.deadline, "run")
        else:
            memory = self._answer_at(at, size, sent)
        if isinstance(announced, RemoteError):
            return announced
        type_, dims = announced
        strides = strides_of(dims, "dense", WIDTH[type_])
        return Tensor(type_, dims, strides, memory, 0, shares_src=result.get("shares") is True)

    def _bound(self, announced: tuple[str, tuple[int, ...]] | RemoteError, size: int, sent: Sent) -> None:
        """Refuses a payload that is larger than any answer to this call can be, or that nothing explains."""
        if isinstance(announced, RemoteError):
            if size > _DROPPED:
                raise Fault(f"{announced}; a payload of {size} bytes is not read for that")
            return
        src = sent.tensors[0].dims
        most = max(_MOST, 2 * _WIDEST * (0 if unreal(src) else volume_of(src)))
        if size > most:
            type_, dims = announced
            raise Fault(f"the result {type_}{short(list(dims))} has {size} bytes, where at most {most} are read")

    def _answer_at(self, at: Any, size: int, sent: Sent) -> bytearray:
        """An answer that lies in shared memory, in the room that was offered behind the tensors."""
        if self.shared is None or not sent.room or at != sent.room or size > sent.room:
            raise Fault(f"the result lies at {short(at)} in shared memory, where it was given no room")
        with memoryview(self.shared.room(at + size)) as view:
            return bytearray(view[at : at + size])

    def _copy_back(self, sent: Sent) -> None:
        """Only where something changed: to compare is cheaper than to copy."""
        assert self.shared is not None
        for at, tensor in zip(sent.places, sent.tensors, strict=True):
            if at is not None:
                end = at + len(tensor.memory)
                with memoryview(self.shared.room(end)) as view, view[at:end] as theirs:
                    if tensor.memory != theirs:
                        tensor.memory[:] = theirs

    def _replace(self, memory: Any, said: Mapping[str, Any], deadline: float) -> None:
        if said.get("bytes") != len(memory):
            raise Fault(f"it changed {short(said.get('bytes'))} bytes of a memory that has {len(memory)}")
        memory[:] = self.process.payload(len(memory), deadline, "run")

    def _kind(self, reply: Mapping[str, Any], what: str) -> str:
        """Which of the four ways to reply it is."""
        if len(reply) == (3 if "addresses" in reply else 2) and type(reply.get("result")) is dict:
            return "result"
        kinds = [kind for kind in _KINDS if kind in reply]
        if len(kinds) != 1:
            said = ", ".join(kinds) or "none"
            raise self.process.fault(f"{what}: one of {', '.join(_KINDS)} is due, and it said {said}")
        if not isinstance(reply[kinds[0]], dict):
            raise self.process.fault(f"{what}: {kinds[0]!r} is {short(reply[kinds[0]])}, where an object was due")
        return kinds[0]

    def _result(self, reply: Mapping[str, Any], what: str) -> dict[str, Any]:
        """A reply's result, or the exception that stands for what it says instead."""
        kind = self._kind(reply, what)
        body: dict[str, Any] = reply[kind]
        match kind:
            case "rejected":
                raise Rejected(str(body.get("stage")), str(body.get("message", "")))
            case "unsupported":
                raise Unsupported(str(body.get("feature")))
            case "error":
                message = str(body.get("message", ""))
                raise MemoryError(message) if body.get("memory") is True else RemoteError(message)
        return body


_KINDS = ("result", "rejected", "unsupported", "error")


def _announcement(result: Mapping[str, Any], size: int) -> tuple[str, tuple[int, ...]] | RemoteError:
    """The type and dims of a result, or why they cannot be those of a tensor of that many bytes."""
    type_, dims = result.get("type"), result.get("dims")
    if not isinstance(type_, str) or type_ not in WIDTH:
        return RemoteError(f"the result's type is {short(type_)}, which is no element type")
    if not isinstance(dims, list):
        return RemoteError(f"the result's dims are {short(dims)}, where a list was due")
    try:
        whole = tuple([n if type(n) is int else integer(n) for n in dims])
    except Fault as fault:
        return RemoteError(f"the result's dims: {fault}")
    if why := unfit(whole):
        return RemoteError(f"the result has {why}")
    due = 0 if unreal(whole) else volume_of(whole) * WIDTH[type_]
    if size != due:
        return RemoteError(f"the result has {size} bytes for {type_}{short(list(whole))}, which takes {due}")
    return type_, whole


def _addresses(reply: Mapping[str, Any], sent: Sent) -> list[tuple[int, Tensor]]:
    """Each tensor with its address in the worker; none if one of them lies in shared memory, or it does not say."""
    said = reply.get("addresses")
    if sent.room or not isinstance(said, list) or [*map(type, said)] != [int] * len(sent.tensors):
        return []
    return list(zip(said, sent.tensors, strict=True))


def _listed(reply: Mapping[str, Any], key: str, name: str) -> list[tuple[Any, Mapping[str, Any]]]:
    """The objects listed under a key, each with what it names, which no other may name too."""
    listed = reply.get(key, [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise Fault(f"{key!r} is {short(listed)}, where a list of objects was due")
    named = [(each.get(name), each) for each in listed]
    whole = [index for index, _ in named if type(index) is int]
    if len(set(whole)) < len(whole):
        raise Fault(f"{key!r} names the same {name} twice")
    return named
