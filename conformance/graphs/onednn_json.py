"""Read a graph of oneDNN Graph in JSON, as ONEDNN_GRAPH_DUMP=graph and benchdnn write it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..meaning.partial import Lengths
from .nodes import CannotRead, ReshapeNode, read_content
from .tensors import Operation, Tensor, TensorGraph

_UNKNOWN = -(2**63)
"""Stands for a length that is not known; one of them makes the library write it for the whole shape."""
_OPERATIONS = {"StaticReshape": "StaticReshape", "DynamicReshape": "DynamicReshape-1", "Reshape": "Reshape-1"}
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_TYPES = {"boolean": "bool"}


def read_onednn_json(path: Path) -> TensorGraph:
    """Return the graph; CannotRead if the file is no such graph."""
    content = read_content(path)
    data = load_json(path, content)
    listed = data.get("graph")
    if not isinstance(listed, list):
        raise CannotRead(path, "", "there is no list `graph` in it; oneDNN Graph writes one")
    lines = _lines_of_nodes(content.decode())
    tensors: dict[str, Tensor] = {}
    operations = []
    for number, entry in enumerate(listed):
        where = f"line {lines[number]}" if number < len(lines) else f"node {number}"
        try:
            operations.append(_read_operation(entry, where, tensors))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CannotRead(path, where, f"node {number} has not the form of oneDNN Graph: {_say(error)}") from None
    made = {output for each in operations for output in each.outputs}
    ports = data.get("input_ports")
    names = map(str, ports) if isinstance(ports, list) else (each for each in tensors if each not in made)
    return TensorGraph(tensors, operations, {name: name for name in names if name in tensors})


def _say(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def load_json(path: Path, content: bytes) -> dict[str, Any]:
    """Return the outermost object of a JSON file; CannotRead if it is no JSON or no object."""
    try:
        data = json.loads(content.decode())
    except json.JSONDecodeError as error:
        raise CannotRead(path, f"line {error.lineno}, column {error.colno}", f"this is no JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise CannotRead(path, f"byte {error.start}", "this is no UTF-8") from None
    except RecursionError:
        raise CannotRead(path, "", "its JSON is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise CannotRead(path, "", str(error)) from None
    if not isinstance(data, dict):
        raise CannotRead(path, "line 1", "a graph is an object of JSON")
    return data


def _lines_of_nodes(text: str) -> list[int]:
    """Return the line of each object in a list of the outermost object: the nodes."""
    depth: list[str] = []
    found, line, at = [], 1, 0
    for token in _TOKENS.finditer(text):
        character = token[0]
        if character in "[{":
            if character == "{" and depth == ["{", "["]:
                line, at = line + text.count("\n", at, token.start()), token.start()
                found.append(line)
            depth.append(character)
        elif character in "]}" and depth:
            depth.pop()
    return found


def _read_operation(entry: dict[str, Any], where: str, tensors: dict[str, Tensor]) -> Operation:
    kind, name = str(entry["kind"]), str(entry.get("name") or entry.get("id"))
    ids: list[list[str]] = []
    for side in ("inputs", "outputs"):
        ids.append([])
        for tensor in entry.get(side) or []:
            id_ = str(tensor["id"])
            type_ = str(tensor.get("dtype", "undef"))
            dims = _read_dims(tensor.get("shape"))
            if id_ not in tensors or (tensors[id_].dims is None and dims is not None):
                tensors[id_] = Tensor(None if type_ == "undef" else _TYPES.get(type_, type_), dims)
            ids[-1].append(id_)
    inputs, outputs = (tuple(each) for each in ids)
    if kind not in _OPERATIONS:
        return Operation(name, kind, inputs, outputs)
    attributes = entry.get("attrs") or {}
    zero = attributes.get("special_zero")
    shape = attributes.get("shape")
    static = kind == "StaticReshape"
    lacking = [each for each, value in (("shape", shape), ("special_zero", zero)) if value is None]
    node = ReshapeNode(
        name, kind, where, _OPERATIONS[kind], None, None,
        None if shape is None else tuple(_integer(n) for n in shape["value"]),
        None if zero is None else bool(_integer(zero["value"])),
        shape_type="s64" if static else None,
        missing=tuple(each for each in lacking if static or each != "shape"),
    )  # fmt: skip
    return Operation(name, kind, inputs, outputs, node, inputs[1] if not static and len(inputs) > 1 else None)


def _read_dims(shape: Any) -> Lengths | None:
    """Return dims; None if the rank is not known."""
    if shape is None:
        return None
    lengths = tuple(None if _integer(n) == _UNKNOWN else _integer(n) for n in shape)
    if any(n is not None and n < 0 for n in lengths):
        raise ValueError(f"a length of {list(shape)[:8]} is below 0")
    return None if lengths == (None,) else lengths


def _integer(value: Any) -> int:
    if isinstance(value, bool | int):
        return int(value)
    raise ValueError(f"{str(value)[:40]!r} is not a whole number")
