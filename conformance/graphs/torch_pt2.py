"""Read a program that torch.export.save wrote: a zip file of which only the JSON of the graph is read."""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..meaning.partial import Length, Lengths
from .nodes import CannotRead, ReshapeNode, open_file
from .onednn_json import load_json
from .tensors import Operation, Tensor, TensorGraph

_MOST_JSON = 1 << 27
_MEMBERS = ("serialized_exported_program.json", "models/model.json")
"""The ends of the member's name in programs of older and newer versions."""
_RESHAPES = ("aten.reshape.", "aten.view.", "aten._unsafe_view.", "aten.view_copy.")
_TYPES = {
    1: "u8", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "f16", 7: "f32", 8: "f64", 9: "complex32", 10: "complex64",
    11: "complex128", 12: "bool", 13: "bf16", 28: "u16",
}  # fmt: skip


def read_pt2(path: Path) -> TensorGraph:
    """Return the graph; names of lengths are those of the program."""
    name, content = _read_member(path)
    data = load_json(path, content)
    try:
        graph = data["graph_module"]["graph"]
        symbols = {key: _length(value) for key, value in graph.get("sym_int_values", {}).items()}
        tensors = {key: _tensor(value) for key, value in graph["tensor_values"].items()}
        operations = [_operation(number, node, symbols) for number, node in enumerate(graph["nodes"])]
        given = data["graph_module"].get("signature", {}).get("input_specs", [])
        users = [spec["user_input"]["arg"] for spec in given if "user_input" in spec]
        names = [each["as_tensor"]["name"] for each in users if "as_tensor" in each]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise CannotRead(path, name, f"the graph has not the form that torch.export writes: {what}") from None
    return TensorGraph(tensors, operations, {each: each for each in names if each in tensors})


def _read_member(path: Path) -> tuple[str, bytes]:
    """Return the name and the bytes of the member that holds the graph."""
    with open_file(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                names = [each for each in archive.namelist() if each.endswith(_MEMBERS)]
                if not names:
                    raise CannotRead(path, "", f"the zip file has no member that ends with {' or '.join(_MEMBERS)}")
                with archive.open(names[0]) as member:
                    content = member.read(_MOST_JSON + 1)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, ValueError) as error:
            raise CannotRead(path, "", f"this is no zip file that can be read: {error}") from None
        except zipfile.zlib.error as error:  # type: ignore[attr-defined]
            raise CannotRead(path, names[0], f"its bytes are damaged: {error}") from None
    if len(content) > _MOST_JSON:
        raise CannotRead(path, names[0], f"it has more than {_MOST_JSON:,} bytes")
    return names[0], content


def _tensor(value: Mapping[str, Any]) -> Tensor:
    return Tensor(_TYPES.get(value["dtype"]), tuple(_length(size) for size in value["sizes"]))


def _length(size: Mapping[str, Any]) -> Length:
    """Return a length; one that the program computes is the text of its expression."""
    if "as_int" in size:
        return int(size["as_int"])
    expression = size.get("as_expr") or {}
    text = expression.get("expr_str")
    return _plain_expression(str(text)[:2000]) if text else None


def _plain_expression(text: str) -> str:
    """Return `64*s77` for `Mul(Integer(64), Symbol('s77', integer=True))`, as newer versions write it."""
    try:
        return _plain(ast.parse(text, mode="eval").body) or text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _plain(node: ast.expr) -> str | None:
    """Return an expression of sympy in plain signs; None if it has other functions."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
        return None
    first = node.args[0]
    if node.func.id in ("Symbol", "Integer"):
        return str(first.value) if isinstance(first, ast.Constant) else None
    parts = [_plain(argument) for argument in node.args]
    sign = {"Mul": "*", "Add": " + ", "FloorDiv": "//"}.get(node.func.id)
    if sign is None or None in parts:
        return None
    joined = sign.join(part for part in parts if part)
    return joined if sign == "*" else f"({joined})"


def _operation(number: int, node: Mapping[str, Any], symbols: Mapping[str, Length]) -> Operation:
    kind = str(node["target"]).removeprefix("torch.ops.")
    arguments = [each["arg"] for each in node["inputs"]]
    outputs = tuple(each["as_tensor"]["name"] for each in node["outputs"] if "as_tensor" in each)
    inputs: list[str] = []
    for argument in arguments:
        inputs += [argument["as_tensor"]["name"]] if "as_tensor" in argument else []
        inputs += [each["name"] for each in argument.get("as_tensors") or []]
    name = outputs[0] if outputs else f"node {number}"
    if not kind.startswith(_RESHAPES):
        return Operation(name, kind, tuple(inputs), outputs)
    shape = _shape(arguments[1], symbols)
    return Operation(
        name, kind, tuple(inputs), outputs, ReshapeNode(name, kind, f"node {number}", None, None, None, shape, False)
    )


def _shape(argument: Mapping[str, Any], symbols: Mapping[str, Length]) -> Lengths | None:
    if "as_ints" in argument:
        return tuple(int(n) for n in argument["as_ints"])
    if "as_sym_ints" not in argument:
        raise ValueError(f"size is {json.dumps(argument)[:80]}, no list of lengths")
    return tuple(
        int(each["as_int"]) if "as_int" in each else symbols.get(each["as_name"]) for each in argument["as_sym_ints"]
    )
