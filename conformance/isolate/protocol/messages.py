"""The protocol of a process that answers for a backend: lines of JSON, each followed by the bytes it announces.

adapters/README.md describes it for authors of such a process in another language. It never sends an expected result or
the name of a case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...model import Claims, Declared, Graph, Identity, Node, Operand, Tensor
from ...system.text import quote

VERSION = "reshape-conformance/1"
LONGEST_LINE = 1 << 20
"""Bytes in which any header fits; a longer line is a fault."""
_EXACT = 2**53
"""Integers from here on are sent as decimal text, for readers that store numbers as doubles."""
_WHOLE = re.compile(r"-?[0-9]{1,39}")


class Fault(Exception):
    """A process sent something that is not in the protocol."""


def encode_integer(value: int) -> int | str:
    return value if -_EXACT < value < _EXACT else str(value)


def parse_integer(value: Any) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if type(value) is int:
        return value
    raise Fault(f"{quote(value)} should be a whole number")


_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def encode_line(record: Mapping[str, Any]) -> bytes:
    return _encode(record).encode() + b"\n"


def parse_line(text: bytes) -> dict[str, Any]:
    try:
        record = _decode(text.decode())
    except UnicodeDecodeError as error:
        raise Fault(f"byte {error.start} of the line is not UTF-8: {quote(text)}") from None
    except (ValueError, RecursionError):
        if text.startswith(b"\xef\xbb\xbf"):
            raise Fault("the line begins with a byte order mark; send plain UTF-8") from None
        raise Fault(f"the line is no JSON: {quote(text)}; if a library printed it, {_AWAY}") from None
    if not isinstance(record, dict):
        raise Fault(f"the line is no JSON object: {quote(text)}; if a library printed it, {_AWAY}")
    if text.endswith(b"\r"):
        raise Fault("the line ends with a carriage return; end lines with a line feed alone")
    return record


_AWAY = "move the real standard output away before anything else (adapters/README.md)"


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────


def graph_text(graph: Graph) -> str:
    return f'{{"src":{_declared_text(graph.src)},"nodes":[{",".join([_node_text(node) for node in graph.nodes])}]}}'


def compile_line(request: int, program: int, graph: Graph) -> bytes:
    """Encode the request to compile a graph; formatting takes half the time of a JSON encoder."""
    return f'{{"id":{request},"do":"compile","program":{program},"graph":{graph_text(graph)}}}\n'.encode()


WITH_NEXT = ',"with_next":true'
"""Part of a request to run: the next request is a run to be made at the same time."""


def behind(count: int) -> str:
    """Return the part of a request to run that says how many runs were sent behind it."""
    return f',"behind":{count}'


def run_line(
    request: int, program: int, may_overwrite: bool, tensors: Sequence[Tensor], places: Sequence[int | None], room: int,
    more: str = "",
) -> bytes:  # fmt: skip
    """Encode the request to run a program on tensors, each at its place in shared memory or in the pipe if None.

    `room`: bytes of shared memory that the tensors take, and that the answer may take behind them. `more`: `WITH_NEXT`
    or the text of `behind`.
    """
    tensor_texts = ",".join([_tensor_text(tensor, at) for tensor, at in zip(tensors, places, strict=True)])
    answer = f',"answer":{{"at":{room},"room":{room}}}' if room else ""
    overwrite = "true" if may_overwrite else "false"
    fields = f'"program":{program},"may_overwrite":{overwrite},"tensors":[{tensor_texts}]{answer}{more}'
    return f'{{"id":{request},"do":"run",{fields}}}\n'.encode()


def _tensor_text(tensor: Tensor, at: int | None) -> str:
    place = "" if at is None else f',"at":{at}'
    return (
        f'{{"type":{_quoted(tensor.type)},"dims":{_integers_text(tensor.dims)},"strides":{_integers_text(tensor.strides)},'
        f'"offset":{tensor.offset},"bytes":{len(tensor.memory)}{place}}}'
    )


_quoted = lru_cache(256)(_encode)


def _declared_text(declared: Declared | None) -> str:
    if declared is None:
        return "null"
    type_, dims, strides = declared
    return f'{{"type":{_quoted(type_)},"dims":{_integers_text(dims)},"strides":{_integers_text(strides)}}}'


@lru_cache(1 << 12)
def _integers_text(values: tuple[int | None, ...] | None) -> str:
    return "null" if values is None else _encode([None if value is None else encode_integer(value) for value in values])


def _values_text(values: tuple[Any, ...] | None) -> str:
    if values is None:
        return "null"
    if len(values) == 1 and type(values[0]) is bool:
        return "[true]" if values[0] else "[false]"
    if set(map(type, values)) <= {int}:  # a bool is equal to an int, and written differently
        return _integers_text(values)
    return _encode([encode_integer(value) if type(value) is int else value for value in values])


def _operand_text(operand: Operand | None) -> str:
    if operand is None:
        return "null"
    type_, dims, values = operand
    return f'{{"type":{_quoted(type_)},"dims":{_integers_text(dims)},"values":{_values_text(values)}}}'


_TAKES_SRC, _SHARES_SHAPE = ',"takes_src":true', ',"shares_shape":true'


def _node_text(node: Node) -> str:
    operation, shape, special_zero, result, attributes, inputs, outputs, takes_src, shares_shape = node
    extra = (
        ",".join([f"{_quoted(name)}:{_operand_text(operand)}" for name, operand in attributes]) if attributes else ""
    )
    return (
        f'{{"operation":{_quoted(operation)},"shape":{_operand_text(shape)},"special_zero":{_operand_text(special_zero)},'
        f'"result":{_declared_text(result)},"attributes":{{{extra}}},"inputs":{inputs},"outputs":{outputs}'
        f"{_TAKES_SRC * takes_src}{_SHARES_SHAPE * shares_shape}}}"
    )


def graph_of(record: Mapping[str, Any]) -> Graph:
    src = _declared_of(record["src"])
    assert src is not None
    return Graph(src, tuple([_node_of(node) for node in record["nodes"]]))


def dims_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """Read lengths, entries or strides as they were received."""
    if str in map(type, values):
        return tuple([parse_integer(value) if type(value) is str else value for value in values])
    return tuple(values)


def _dims_of(values: Any) -> Any:
    return None if values is None else dims_of(values)


def _declared_of(record: Any) -> Declared | None:
    return record and Declared(record["type"], _dims_of(record["dims"]), _dims_of(record["strides"]))


def _operand_of(record: Any) -> Operand | None:
    if record is None:
        return None
    type_, values = record["type"], record["values"]
    if values is not None:
        values = dims_of(values) if type_[0] in "su" and type_ != "string" else tuple(values)
    return Operand(type_, _dims_of(record["dims"]), values)


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


# ── the description ─────────────────────────────────────────────────────────────────────────────────────


def describe(identity: Identity, claims: Claims) -> dict[str, Any]:
    """Return the result of a reply to `describe`."""
    return {
        "name": identity.name, "version": identity.version, "detail": dict(identity.detail),
        "operations": claims.operations, "not_claimed": claims.not_claimed,
        "answers_special_zero": claims.answers_special_zero,
    }  # fmt: skip


def parse_description(record: Mapping[str, Any]) -> tuple[Identity, Claims]:
    """Read the result of a reply to `describe`; Fault if it has another form."""

    def texts(key: str) -> tuple[str, ...]:
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Fault(f"describe: {key!r} is {quote(value)}, but should be a list of names")
        return tuple(value)

    for key in ("name", "version"):
        if not isinstance(record.get(key), str):
            raise Fault(f"describe: {key!r} is {quote(record.get(key))}, but should be text")
    detail = record.get("detail", {})
    if not isinstance(detail, dict):
        raise Fault(f"describe: 'detail' is {quote(detail)}, but should be an object")
    answers = record.get("answers_special_zero", "special_zero" in texts("mapped"))  # `mapped` is the older word
    if not isinstance(answers, bool):
        raise Fault(f"describe: 'answers_special_zero' is {quote(answers)}, but should be true or false")
    not_claimed = texts("leaves_out" if "leaves_out" in record else "not_claimed")  # the first is the older word
    facts = tuple(sorted((str(key), str(value)) for key, value in detail.items()))
    return Identity(record["name"], record["version"], facts), Claims(texts("operations"), not_claimed, answers)
