"""How a process answers for a backend: lines of JSON, each followed by the raw bytes that it counts.

adapters/README.md describes it for those who write such a process in another language. Nothing that is expected is
ever sent, and no case is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .model import Claims, Declared, Graph, Identity, Node, Operand

VERSION = "reshape-conformance/1"
LONGEST_LINE = 1 << 20
"""Bytes in which any header fits; a longer line is a fault."""
_EXACT = 2**53
"""Integers from here on are sent as decimal text, for readers whose numbers are doubles."""


class Fault(Exception):
    """What a process said is not in the protocol."""


def number(value: int) -> int | str:
    """An integer as it is sent."""
    return value if -_EXACT < value < _EXACT else str(value)


def integer(value: Any) -> int:
    """An integer as it was received."""
    if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 40:
        return int(value)
    if type(value) is int:
        return value
    raise Fault(f"{short(value)} where a whole number was due")


_decode = json.JSONDecoder().decode
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def line(record: Mapping[str, Any]) -> bytes:
    """A header, ready to be written."""
    return _encode(record).encode() + b"\n"


def parsed(text: bytes) -> dict[str, Any]:
    """A header that was read."""
    try:
        record = _decode(text.decode())
    except UnicodeDecodeError as error:
        raise Fault(f"byte {error.start} of the line is not UTF-8: {short(text)}") from None
    except (ValueError, RecursionError):
        if text.startswith(b"\xef\xbb\xbf"):
            raise Fault("the line begins with a byte order mark; send plain UTF-8") from None
        raise Fault(f"the line is no JSON: {short(text)}; if a library printed it, {_AWAY}") from None
    if not isinstance(record, dict):
        raise Fault(f"the line is no JSON object: {short(text)}; if a library printed it, {_AWAY}")
    if text.endswith(b"\r"):
        raise Fault("the line ends with a carriage return; end lines with a line feed alone")
    return record


_AWAY = "move the real standard output away before anything else (adapters/README.md)"


def short(value: object) -> str:
    """A value in messages, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


# ── graphs ────────────────────────────────────────────────────────────────────────────────────────


def graph_record(graph: Graph) -> dict[str, Any]:
    """A graph as it is sent."""
    return {"src": _declared(graph.src), "nodes": [_node(node) for node in graph.nodes]}


def _declared(declared: Declared | None) -> Any:
    if declared is None:
        return None
    return {"type": declared.type, "dims": _numbers(declared.dims), "strides": _numbers(declared.strides)}


def _numbers(values: Iterable[int | None] | None) -> Any:
    return None if values is None else [None if value is None else number(value) for value in values]


def _operand(operand: Operand | None) -> Any:
    if operand is None:
        return None
    values = operand.values
    if values is not None:
        values = tuple(number(v) if type(v) is int else v for v in values)
    return {"type": operand.type, "dims": _numbers(operand.dims), "values": values}


def _node(node: Node) -> dict[str, Any]:
    return {
        "operation": node.operation,
        "shape": _operand(node.shape),
        "special_zero": _operand(node.special_zero),
        "result": _declared(node.result),
        "attributes": {name: _operand(operand) for name, operand in node.attributes},
        "inputs": node.inputs,
        "outputs": node.outputs,
    }


def graph_of(record: Mapping[str, Any]) -> Graph:
    """A graph as it was received."""
    src = _declared_of(record["src"])
    assert src is not None
    return Graph(src, tuple(_node_of(node) for node in record["nodes"]))


def _dims_of(values: Any) -> Any:
    return None if values is None else tuple(None if value is None else integer(value) for value in values)


def _declared_of(record: Any) -> Declared | None:
    return record and Declared(record["type"], _dims_of(record["dims"]), _dims_of(record["strides"]))


def _operand_of(record: Any) -> Operand | None:
    if record is None:
        return None
    values, integral = record["values"], record["type"][0] in "su" and record["type"] != "string"
    if values is not None:
        values = tuple(integer(value) if integral else value for value in values)
    return Operand(record["type"], _dims_of(record["dims"]), values)


def _node_of(record: Mapping[str, Any]) -> Node:
    attributes = tuple((name, operand) for name, each in record["attributes"].items() if (operand := _operand_of(each)))
    return Node(
        record["operation"], _operand_of(record["shape"]), _operand_of(record["special_zero"]),
        _declared_of(record["result"]), attributes, record["inputs"], record["outputs"],
    )  # fmt: skip


# ── who it is ─────────────────────────────────────────────────────────────────────────────────────


def description(identity: Identity, claims: Claims) -> dict[str, Any]:
    """What `describe` is answered with."""
    return {
        "name": identity.name, "version": identity.version, "detail": dict(identity.detail),
        "operations": claims.operations, "leaves_out": claims.leaves_out, "mapped": claims.mapped,
    }  # fmt: skip


def described(record: Mapping[str, Any]) -> tuple[Identity, Claims]:
    """The same as it was received."""

    def texts(key: str) -> tuple[str, ...]:
        value = record.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Fault(f"describe: {key!r} is {short(value)}, where a list of names was due")
        return tuple(value)

    for key in ("name", "version"):
        if not isinstance(record.get(key), str):
            raise Fault(f"describe: {key!r} is {short(record.get(key))}, where text was due")
    detail = record.get("detail", {})
    if not isinstance(detail, dict):
        raise Fault(f"describe: 'detail' is {short(detail)}, where an object was due")
    facts = tuple(sorted((str(key), str(value)) for key, value in detail.items()))
    return Identity(record["name"], record["version"], facts), Claims(
        texts("operations"), texts("leaves_out"), texts("mapped")
    )
