"""Backend node tests of ONNX as calls: the data sets of models that are one Reshape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..graphs.nodes import ReshapeNode, Unreadable, content_of
from ..graphs.onnx_model import TYPES
from ..system.text import short
from .onnx_export import load_onnx

_MOST_BYTES = 1 << 28
_MOST_DATA_SETS = 1000
_OLDEST_OPSET = 5


class NodeTest(NamedTuple):
    """One data set of a node test."""

    name: str
    """The name of its folder, and a number from the second data set on."""
    call: ReshapeNode
    dst: tuple[int, ...]
    """The dims of the output that the test wants."""


class LeftOut(NamedTuple):
    """A folder that gives no call."""

    folder: str
    why: str


def read_node_tests(folder: Path) -> Iterator[NodeTest | LeftOut]:
    """Yield the calls of the node tests in a folder, in the order of their names; folders without a model are none."""
    onnx = load_onnx()
    for model in sorted(folder.glob("*/model.onnx")):
        yield from _read_or_leave_out(onnx, model.parent)


def _read_or_leave_out(onnx: Any, folder: Path) -> Iterator[NodeTest | LeftOut]:
    try:
        yield from _read(onnx, folder)
    except Unreadable as unreadable:
        yield LeftOut(folder.name, str(unreadable))


def _read(onnx: Any, folder: Path) -> Iterator[NodeTest]:
    graph, allow_zero = _reshape_of(onnx, folder / "model.onnx")
    node = graph.node[0]
    constants = {tensor.name: tensor for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constants]
    data_sets = [folder / f"test_data_set_{number}" for number in range(_MOST_DATA_SETS)]
    for number, data in enumerate(path for path in data_sets if path.is_dir()):
        given = {name: _tensor(onnx, data / f"input_{k}.pb") for k, name in enumerate(inputs)}
        operands = constants | given
        if not all(name in operands for name in node.input):
            raise Unreadable("an input of its Reshape is neither a constant nor in the data set")
        src, shape = (operands[name] for name in node.input)
        dst = _tensor(onnx, data / "output_0.pb")
        name = folder.name if number == 0 else f"{folder.name}_{number + 1}"
        call = ReshapeNode(
            name, str(data), None, _type(onnx, src), tuple(src.dims), _entries(onnx, shape), not allow_zero
        )
        yield NodeTest(name, call, tuple(dst.dims))


def _reshape_of(onnx: Any, path: Path) -> tuple[Any, bool]:
    """Return the graph of a model, and `allowzero` of its only node; Unreadable if it is no Reshape."""
    model = _parse(onnx.ModelProto, path)
    graph = model.graph
    if len(graph.node) != 1 or graph.node[0].op_type != "Reshape" or graph.node[0].domain not in ("", "ai.onnx"):
        raise Unreadable("its model is not one Reshape")
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 1)
    if opset < _OLDEST_OPSET or len(graph.node[0].input) != 2:
        raise Unreadable(f"its Reshape of opset {opset} has no input `shape`; opsets from {_OLDEST_OPSET} are read")
    return graph, any(attribute.name == "allowzero" and attribute.i for attribute in graph.node[0].attribute)


def _tensor(onnx: Any, path: Path) -> Any:
    return _parse(onnx.TensorProto, path)


def _parse(message: Any, path: Path) -> Any:
    try:
        content = content_of(path, _MOST_BYTES)
    except Unreadable as unreadable:
        raise Unreadable(f"{path.name} {unreadable}") from None
    try:
        return message.FromString(content)
    except Exception as error:  # the exception's class depends on the version of protobuf
        raise Unreadable(f"{path.name} is not of ONNX, or cut short: {short(str(error))}") from None


def _type(onnx: Any, src: Any) -> str:
    name = onnx.TensorProto.DataType.Name(src.data_type) if src.data_type in onnx.TensorProto.DataType.values() else ""
    if name not in TYPES or any(length < 0 for length in src.dims):
        raise Unreadable(f"its src is of type {name or src.data_type}; the suite has {', '.join(TYPES.values())}")
    return TYPES[name]


def _entries(onnx: Any, shape: Any) -> tuple[int, ...]:
    if shape.data_location == shape.EXTERNAL or len(shape.dims) != 1 or shape.data_type != shape.INT64:
        raise Unreadable("its shape is not a list of s64 in the model or the data set")
    try:
        return tuple(int(entry) for entry in onnx.numpy_helper.to_array(shape))
    except (ValueError, TypeError) as error:
        raise Unreadable(f"its shape cannot be read: {short(str(error))}") from None
