"""The protocol of a process that answers for a backend: lines of JSON, each followed by the bytes it announces.

adapters/README.md describes it for authors of such a process in another language. It never sends an expected result or
the name of a case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...model import Claims, Declared, Graph, Identity, Node, Operand, Rejected, RemoteError, Tensor, Unsupported
from ...model.types import WIDTH
from ...plan.memory import find_dims_error, size_of
from ...system.json_forms import KeyTwice, refuse_twice
from ...system.text import describe_unknown, quote, quote_json
from ..process.tensor_memory import Edge

VERSION = "reshape-conformance/1"
MAX_LINE_BYTES = 1 << 20
"""Bytes in which any header fits; a longer line is a fault."""
_EXACT = 2**53
"""Integers from here on are sent as decimal text, for readers that store numbers as doubles."""
_WHOLE = re.compile(r"-?[0-9]{1,39}")


TensorPlace = int | Edge | None
"""The place of a tensor in shared memory; through the pipe, its end that touches a guard page, or None."""


class ProtocolError(Exception):
    """A process sent something that is not in the protocol."""


def encode_integer(value: int) -> int | str:
    return value if -_EXACT < value < _EXACT else str(value)


def parse_integer(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if type(value) is int:
        return value
    raise ProtocolError(f"{quote_json(value)} should be a whole number")


_decode = json.JSONDecoder(object_pairs_hook=refuse_twice).decode  # a backend may change the module
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def encode_line(record: Mapping[str, Any]) -> bytes:
    return _encode(record).encode() + b"\n"


def parse_line(text: bytes) -> dict[str, Any]:
    try:
        record = _decode(text.decode())
    except UnicodeDecodeError as error:
        what = f"byte {error.start} of the line is not UTF-8: {quote(text)}; write a header first, then its bytes"
        raise ProtocolError(what) from None
    except KeyTwice as twice:
        raise ProtocolError(f"the key {quote(twice.key)} occurs twice in an object of the line") from None
    except (ValueError, RecursionError):
        if text.startswith(b"\xef\xbb\xbf"):
            raise ProtocolError("the line begins with a byte order mark; send plain UTF-8") from None
        raise ProtocolError(f"the line is no JSON: {quote(text)}; {_AWAY}") from None
    if not isinstance(record, dict):
        raise ProtocolError(f"the line is no JSON object: {quote(text)}; {_AWAY}")
    if text.endswith(b"\r"):
        raise ProtocolError("the line ends with a carriage return; end lines with a line feed alone")
    return record


_AWAY = "write a header in one line; if a library printed this, move the real standard output away before anything else"


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────


def compile_line(request: int, program: int, graph: Graph) -> bytes:
    return encode_line({"id": request, "do": "compile", "program": program, "graph": write_graph_record(graph)})


def run_line(
    request: int, program: int, may_overwrite: bool, tensors: Sequence[Tensor], places: Sequence[TensorPlace],
    room: int, more: Mapping[str, Any],
) -> bytes:  # fmt: skip
    """Encode the request to run a program on tensors, each at its place.

    `room`: bytes of shared memory that the tensors take, and that the answer may take behind them. `more`: fields that
    say which requests belong to this one.
    """
    answer = {"answer": {"at": room, "room": room}} if room else {}
    records = [_write_tensor(tensor, at) for tensor, at in zip(tensors, places, strict=True)]
    fields = {"program": program, "may_overwrite": may_overwrite, "tensors": records}
    return encode_line({"id": request, "do": "run", **fields, **answer, **more})


def _write_tensor(tensor: Tensor, place: TensorPlace) -> dict[str, Any]:
    record = {
        "type": tensor.type, "dims": _write_integers(tensor.dims), "strides": _write_integers(tensor.strides),
        "offset": tensor.offset, "bytes": len(tensor.memory),
    }  # fmt: skip
    return record if place is None else {**record, "at" if isinstance(place, int) else "edge": place}


def write_graph_record(graph: Graph) -> dict[str, Any]:
    return {"src": _record_of(graph.src), "nodes": [_write_node(node) for node in graph.nodes]}


def _write_integers(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else [encode_integer(value) if type(value) is int else value for value in values]


def _record_of(part: Declared | Operand | None) -> dict[str, Any] | None:
    """Encode a type and two lists of numbers, under the names of the fields."""
    if part is None:
        return None
    type_, first, second = part
    return dict(zip(part._fields, (type_, _write_integers(first), _write_integers(second)), strict=True))


def _write_node(node: Node) -> dict[str, Any]:
    record = {
        "operation": node.operation, "shape": _record_of(node.shape), "special_zero": _record_of(node.special_zero),
        "result": _record_of(node.result),
        "attributes": {name: _record_of(operand) for name, operand in node.attributes},
        "inputs": node.inputs, "outputs": node.outputs,
    }  # fmt: skip
    return record | {key: True for key in ("takes_src", "shares_shape") if getattr(node, key)}


def graph_of(record: Mapping[str, Any]) -> Graph:
    src = _declared_of(record["src"])
    assert src is not None
    return Graph(src, tuple([_node_of(node) for node in record["nodes"]]))


def dims_of(values: Any) -> Any:
    """Read lengths, entries or strides as they were received; None if there are none."""
    if values is None:
        return None
    if str in map(type, values):
        return tuple([parse_integer(value) if type(value) is str else value for value in values])
    return tuple(values)


def _declared_of(record: Any) -> Declared | None:
    return record and Declared(record["type"], dims_of(record["dims"]), dims_of(record["strides"]))


def _operand_of(record: Any) -> Operand | None:
    if record is None:
        return None
    type_, values = record["type"], record["values"]
    if values is not None:
        values = dims_of(values) if type_[0] in "su" and type_ != "string" else tuple(values)
    return Operand(type_, dims_of(record["dims"]), values)


def _node_of(record: Mapping[str, Any]) -> Node:
    extra = record["attributes"]
    attributes = tuple(
        [(name, operand) for name, value in extra.items() if (operand := _operand_of(value))] if extra else ()
    )
    return Node(
        record["operation"], _operand_of(record["shape"]), _operand_of(record["special_zero"]),
        _declared_of(record["result"]), attributes, record["inputs"], record["outputs"],
        record.get("takes_src", False), record.get("shares_shape", False),
    )  # fmt: skip


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────

_KINDS = ("result", "rejected", "unsupported", "error")


def find_kind_of_reply(reply: Mapping[str, Any]) -> str:
    if len(reply) == (3 if "addresses" in reply else 2) and type(reply.get("result")) is dict:
        return "result"
    kinds = [kind for kind in _KINDS if kind in reply]
    if len(kinds) != 1:
        raise ProtocolError(f"a reply needs one of {', '.join(_KINDS)}, and it has {', '.join(kinds) or 'none'}")
    if not isinstance(reply[kinds[0]], dict):
        raise ProtocolError(f"{kinds[0]!r} is {quote_json(reply[kinds[0]])}, but should be an object")
    return kinds[0]


def result_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a reply, or raise the exception that the reply stands for."""
    kind = find_kind_of_reply(reply)
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


def read_type_and_dims(result: Mapping[str, Any], size: int) -> tuple[str, tuple[int, ...]] | RemoteError:
    """Return the type and dims of a result, or what is wrong with them or with its number of bytes."""
    type_, dims = result.get("type"), result.get("dims")
    if not isinstance(type_, str) or type_ not in WIDTH:
        return RemoteError(f"the result's type is {quote_json(type_)}, which is no element type, such as 'f32'")
    if not isinstance(dims, list):
        return RemoteError(f"the result's dims are {quote_json(dims)}, but should be a list")
    try:
        whole = tuple([n if type(n) is int else parse_integer(n) for n in dims])
    except ProtocolError as fault:
        return RemoteError(f"the result's dims: {fault}")
    if problem := find_dims_error(whole):
        return RemoteError(f"the result has {problem}")
    due = size_of(type_, whole)
    if size != due and (due or 0 in whole):  # else no memory holds such dims, and its elements are not compared
        return RemoteError(f"the result has {size} bytes for {type_}{quote(list(whole))}, which takes {due}")
    return type_, whole


def read_addressed_tensors(reply: Mapping[str, Any], tensors: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
    """Return each tensor with its address in the worker; none if the reply does not give them."""
    addresses = reply.get("addresses")
    if not isinstance(addresses, list) or [*map(type, addresses)] != [int] * len(tensors):
        return []
    return list(zip(addresses, tensors, strict=True))


def read_objects(reply: Mapping[str, Any], key: str, name: str) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return the objects listed under a key, each with its value of `name`; ProtocolError if two have the same one."""
    objects = reply.get(key, [])
    if not isinstance(objects, list) or not all(isinstance(entry, dict) for entry in objects):
        raise ProtocolError(f"{key!r} is {quote_json(objects)}, but should be a list of objects")
    named = [(entry.get(name), entry) for entry in objects]
    numbers = [number for number, _ in named if type(number) is int]
    if len(set(numbers)) < len(numbers):
        raise ProtocolError(f"{key!r} names the same {name} twice")
    return named


# ── the description ─────────────────────────────────────────────────────────────────────────────────────


def describe(identity: Identity, claims: Claims) -> dict[str, Any]:
    """Return the result of a reply to `describe`."""
    return {
        "name": identity.name, "version": identity.version, "detail": dict(identity.detail),
        "operations": claims.operations, "not_claimed": claims.not_claimed,
        "answers_special_zero": claims.answers_special_zero,
    }  # fmt: skip


def parse_description(record: Mapping[str, Any]) -> tuple[Identity, Claims]:
    """Read the result of a reply to `describe`; ProtocolError if it has another form."""
    known = (*Identity._fields, *Claims._fields)
    for key in record.keys() - known:  # a claim under a misspelt key would count as not made
        raise ProtocolError(f"describe: {describe_unknown('key', key, known)}")

    def texts(key: str) -> tuple[str, ...]:
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ProtocolError(f"describe: {key!r} is {quote_json(value)}, but should be a list of names")
        return tuple(value)

    for key in ("name", "version"):
        if not isinstance(record.get(key), str):
            raise ProtocolError(f"describe: {key!r} is {quote_json(record.get(key))}, but should be text")
    detail = record.get("detail", {})
    if not isinstance(detail, dict):
        raise ProtocolError(f"describe: 'detail' is {quote_json(detail)}, but should be an object")
    answers = record.get("answers_special_zero", False)
    if not isinstance(answers, bool):
        raise ProtocolError(f"describe: 'answers_special_zero' is {quote_json(answers)}, but should be true or false")
    facts = tuple(sorted((str(key), str(value)) for key, value in detail.items()))
    claims = Claims(texts("operations"), texts("not_claimed"), answers)
    return Identity(record["name"], record["version"], facts), claims
