"""Check a program that speaks the protocol: send each fault to a new process of it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..isolate.process.launch import DEFAULT_LIMITS, ProcessLimits, start
from ..isolate.protocol import messages
from ..isolate.protocol.messages import ProtocolError
from ..isolate.protocol.piped_process import PipedProcess
from ..model import Crashed, TimedOut
from ..plan.rows import Plan
from ..system.text import quote_json
from .check_claims import Check, is_plain

_HELLO: Mapping[str, Any] = {"do": "hello", "protocol": messages.VERSION, "shared_memory": None}
_TENSOR: Mapping[str, Any] = {"type": "f32", "dims": [2], "strides": [4], "offset": 0, "bytes": 8}
_PIECES = 40


class ProgramConnection:
    """A connection to the program, one request or reply at a time."""

    def __init__(self, command_line: str, plan: Plan, limits: ProcessLimits) -> None:
        self.plan = plan
        self.process = PipedProcess(start(shlex.split(command_line), limits), limits)

    def ask(self, request: Mapping[str, Any], payload: bytes = b"") -> dict[str, Any]:
        number, what = self.process.new_id(), str(request["do"])
        seconds = self.process.limits.start_seconds if what == "hello" else None
        self.process.send([messages.encode_line({"id": number, **request}) + payload], what, seconds)
        return self.process.read_reply(number, what)

    def ask_in_pieces(self, number: int, request: bytes, what: str) -> dict[str, Any]:
        size = -(-len(request) // _PIECES)
        for at in range(0, len(request), size):
            self.process.send([request[at : at + size]], what, self.process.limits.start_seconds)
            time.sleep(0.002)
        return self.process.read_reply(number, what)


def check_program(command_line: str, plan: Plan, limits: ProcessLimits = DEFAULT_LIMITS) -> Iterator[Check]:
    for name, act in _FAULTS.items():
        talk = ProgramConnection(command_line, plan, limits)
        try:
            if name != _OTHER_VERSION:
                talk.ask(_HELLO)
            wrong = act(talk)
        except (ProtocolError, Crashed, TimedOut) as error:
            wrong = str(error)
        finally:
            talk.process.end()
        yield Check.of("protocol", name, f"does not hold: {name}; {wrong}" if wrong else None)


def _check_unknown_key(talk: ProgramConnection) -> str | None:
    wrong = _lacks("result", talk.ask({"do": "describe", "extra": {"nested": [1, 2.5, "é\n", True, None]}}))
    return wrong and f"{wrong}: keys it does not know are to be ignored"


def _close_unknown(talk: ProgramConnection) -> str | None:
    talk.ask({"do": "close", "program": 77})
    return _describe_silence(talk)


def _check_two_concurrent(talk: ProgramConnection) -> str | None:
    first, second = talk.process.new_id(), talk.process.new_id()
    lines = [messages.encode_line({"id": number, "do": "describe"}) for number in (first, second)]
    talk.process.send([b"".join(lines)], "describe")
    talk.process.read_reply(first, "describe")
    talk.process.read_reply(second, "describe")
    return None


def _check_pieces(talk: ProgramConnection) -> str | None:
    _, claims = messages.parse_description(talk.ask({"do": "describe"}).get("result", {}))
    rows = sorted(talk.plan.rows, key=lambda row: (not claims.has_operation(row.operation), len(row.facets)))
    step = next(row for row in rows if is_plain(row)).steps[0]
    number = talk.process.new_id()
    compiled = talk.ask_in_pieces(number, messages.compile_line(number, 5, step.graph), "compile")
    if "result" not in compiled:
        return None  # the call is not supported; what matters is that it replied
    number, tensors = talk.process.new_id(), [buffer.tensor for buffer in (step.src, *step.arriving)]
    request = messages.run_line(number, 5, False, tensors, [None] * len(tensors), 0, {})
    reply = talk.ask_in_pieces(number, request + b"".join(bytes(tensor.memory) for tensor in tensors), "run")
    wrong = _lacks("result", reply)
    return wrong and f"run in pieces: {wrong}"


def _describe_silence(talk: ProgramConnection) -> str | None:
    reply = talk.ask({"do": "describe"})
    return None if "result" in reply else f"afterwards describe came to {_format_reply(reply)}"


def _lacks(key: str, reply: Mapping[str, Any]) -> str | None:
    return None if key in reply else f"it replied {_format_reply(reply)}, where {key!r} was due"


def _format_reply(reply: Mapping[str, Any]) -> str:
    return quote_json({key: value for key, value in reply.items() if key != "id"})


def _asks(request: Mapping[str, Any], payload: bytes = b"") -> Callable[[ProgramConnection], str | None]:
    """Return a check that a request is rejected, and the next one answered."""
    return lambda talk: _lacks("error", talk.ask(request, payload)) or _describe_silence(talk)


_OTHER_VERSION = "another version of the protocol is rejected"
_FAULTS: Mapping[str, Callable[[ProgramConnection], str | None]] = {
    _OTHER_VERSION: lambda talk: _lacks("error", talk.ask({**_HELLO, "protocol": "reshape-conformance/0"})),
    "an unknown request is rejected, and the next one answered": _asks({"do": "sing", "song": ["la", {"la": None}]}),
    "keys that it does not know are ignored": _check_unknown_key,
    "a run of an unknown program is rejected, its payload read": _asks(
        {"do": "run", "program": 77, "may_overwrite": False, "tensors": [_TENSOR]}, bytes(8)
    ),
    "a close of an unknown program is survived": _close_unknown,
    "two requests that come at once get two replies": _check_two_concurrent,
    "a request that comes in pieces is put together": _check_pieces,
    "stop ends it": lambda talk: talk.process.stop(),
    "it ends where we hang up without a word": lambda talk: talk.process.close_input(),
}
