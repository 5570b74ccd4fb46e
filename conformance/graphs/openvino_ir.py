"""OpenVINO IR: model.xml with the constants in model.bin. Only constants that are shapes are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model import INTEGERS
from ..model.types import WIDTH, dtype_of
from ..system.files import leaves_its_folder, open_regular
from ..system.text import format_dims, quote
from .model_graph import GraphOperation, ModelGraph
from .nodes import Dims, InferDst, ReshapeNode, UnreadableModel, are_equal_where_known, make_odd_form, read_model_bytes
from .onnx_values import MAX_ELEMENTS, Value, compute, compute_shape
from .xml_tree import XmlElement, dims_of, fail, read_whole, read_xml

MAX_BYTES = 1 << 28
_TYPES = {"fp32": "f32", "fp16": "f16", "fp64": "f64", "boolean": "bool"} | {
    f"{long}{bits}": f"{kind}{bits}" for long, kind in (("i", "s"), ("u", "u")) for bits in (8, 16, 32, 64)
}
_BODIES = ("body", "then_body", "else_body")
MAX_DEPTH = 50
_SAME = {"Subtract": "Sub", "Multiply": "Mul", "Divide": "Div"} | {
    name: name for name in ("Add", "Concat", "Gather", "Unsqueeze", "Squeeze", "ReduceProd", "Slice", "Reshape")
}
"""Operations that ONNX has too, by its names."""
_FOLLOWED = (*_SAME, "Convert", "VariadicSplit", "Broadcast", "StridedSlice")
_NUMBERS = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
Port = tuple[str, str]
"""The ids of a layer and of one of its ports."""


def read_openvino_ir(path: Path, answer: InferDst) -> ModelGraph:
    """Return the graph of a file. Without model.bin only shapes are unknown."""
    root = read_xml(read_model_bytes(path, MAX_BYTES))
    if root.tag != "net" or not root.all("layers"):
        raise UnreadableModel(f"line {root.line}: the root is <{root.tag[:40]}>; OpenVINO IR has <net> with <layers>")
    reader = _Reader(path.with_suffix(".bin"))
    reader.read(root, "", ())
    return ModelGraph(reader.operations, reader.dims, reader.inputs, answer)


class _Reader:
    """Collects the operations of a network and of the bodies inside it."""

    def __init__(self, weights: Path) -> None:
        self._weights = weights
        self.operations: list[GraphOperation] = []
        self.dims: dict[str, Dims | None] = {}
        self.inputs: dict[str, Dims | None] = {}

    def read(self, net: XmlElement, prefix: str, outer: tuple[str, ...]) -> None:
        """Read a network. The dims that enter a body from outside are not followed, only that they may have changed."""
        layers: dict[str, XmlElement] = {}
        for layer in net.all("layers/layer"):
            if (other := layers.setdefault(number := layer.get("id", ""), layer)) is not layer:
                fail(layer, number, f"the layer at line {other.line} has this id too")
        edges = {
            (edge.get("to-layer", ""), edge.get("to-port", "")): (edge.get("from-layer", ""), edge.get("from-port", ""))
            for edge in net.all("edges/edge")
        }
        values = NetworkValues(layers, edges, self._weights, prefix)
        for number, layer in layers.items():
            rank_zero = () if _is_rank_zero(layer) else None
            outputs = layer.all("output/port")
            made = {_name_tensor(layer, port.get("id", ""), prefix): dims_of(port) or rank_zero for port in outputs}
            self.dims |= made
            ports = layer.all("input/port")
            sources = [edges.get((number, port.get("id", ""))) for port in ports]
            for source in sources:
                if source is not None and source[0] not in layers:
                    fail(layer, source[0], "an edge comes from a layer that is not there")
            takes = tuple(_name_tensor(layers[at[0]], at[1], prefix) for at in sources if at is not None)
            is_input = layer.get("type") == "Parameter"
            if is_input and not prefix:
                self.inputs |= made
            for port, at in zip(ports, sources, strict=True):
                if at is not None:
                    _check_edge(port, layers[at[0]], at[1])
            node = None
            if layer.get("type") == "Reshape":
                node = partial(self._reshape, layer, sources, takes[0] if takes else "", values)
            if not (is_input and not prefix):
                self.operations.append(GraphOperation(outer if is_input else takes, tuple(made), node))
            for body in (child for child in layer.all("*") if child.tag in _BODIES):
                self.read(body, f"{prefix}{number}.{body.tag}/", takes)

    def _reshape(
        self, layer: XmlElement, sources: list[Port | None], src: str, values: NetworkValues,
        dims: Mapping[str, Dims | None],
    ) -> ReshapeNode:  # fmt: skip
        """Read a reshape with a shape that follows from these dims."""
        ports, outputs = layer.all("input/port"), layer.all("output/port")
        place, name = f"line {layer.line}", layer.get("name", "")
        given = next((data.get("special_zero") for data in layer.all("data")), None)
        flag = {"true": True, "1": True, "false": False, "0": False}.get((given or "").lower())
        if len(ports) != 2 or sources[1] is None:
            return ReshapeNode(name, place, None, None, None, None, flag, missing="src and shape are not connected")
        value, why = values.from_dims(dims, src).of(sources[1])
        if value is not None:
            why = "shape is computed while it runs" if None in value.ravel().tolist() else ""
        shape = None
        if value is not None and not why and value.ndim == 1 and value.dtype.kind in "iuO":
            shape = tuple(entry if isinstance(entry, str) else int(entry) for entry in value)
        declared, src_type = dims_of(outputs[0]) if outputs else None, _read_type(ports[0])
        odd: dict[str, Any] = {"missing_attributes": ("special_zero",)} if given is None else {}
        if value is not None and value.ndim != 1:
            odd["shape_rank"] = value.ndim
        if (shape_type := _read_type(ports[1])) in WIDTH and shape_type not in INTEGERS:
            odd["shape_type"] = shape_type
        if given is not None and flag is None:
            why = why or f"special_zero is {quote(given)}, and true or false is wanted"
        form = make_odd_form(src_type, declared, **odd) if odd else None
        return ReshapeNode(name, place, None, src_type, dims_of(ports[0]), shape, flag, declared, form, why)


def _is_rank_zero(layer: XmlElement) -> bool:
    """Ask whether a layer says that it makes a tensor of rank 0; its port has no dims, as one of unknown rank."""
    return layer.get("type") in ("Const", "Parameter") and any(data.get("shape") == "" for data in layer.all("data"))


def _check_edge(port: XmlElement, maker: XmlElement, made: str) -> None:
    """Raise UnreadableModel if the dims at the ends of an edge differ."""
    dims = dims_of(port)
    for each in maker.all("output/port"):
        others = dims_of(each)
        if each.get("id", "") == made and dims and others and not are_equal_where_known(dims, others):
            made_dims = f"the edge from line {each.line} brings {format_dims(others)}"
            raise UnreadableModel(f"line {port.line}: a port has the dims {format_dims(dims)}, and {made_dims}")


def _name_tensor(layer: XmlElement, port: str, prefix: str) -> str:
    """Return the name of an input of the model, and a unique one of any other tensor."""
    if layer.get("type") == "Parameter" and not prefix:
        return layer.get("name", "")
    return f"\0{prefix}{layer.get('id', '')}:{port}"


def _read_type(port: XmlElement) -> str | None:
    precision = port.get("precision", "").lower()
    return _TYPES.get(precision, precision or None)


# ── small values: constants of model.bin, and what is computed from them and from known dims ───────


class ValueOrReason(NamedTuple):
    """A value, or why it is not known."""

    value: Value | None = None
    why: str = "shape is computed while it runs"


class NetworkValues:
    """The values of a network that follow from the dims of its tensors, each computed when it is first needed."""

    _dims: Mapping[str, Dims | None] = {}
    _src = ""

    def __init__(
        self, layers: Mapping[str, XmlElement], edges: Mapping[Port, Port], weights: Path, prefix: str
    ) -> None:
        self._layers, self._edges, self._weights, self._prefix = layers, edges, weights, prefix
        self._constants: dict[str, ValueOrReason] = {}
        self._known: dict[Port, ValueOrReason] = {}

    def from_dims(self, dims: Mapping[str, Dims | None], src: str) -> NetworkValues:
        """Return the values for these dims; constants are read once for all. An unknown length of src is `src[0]`."""
        values = copy(self)
        values._dims, values._src, values._known = dims, src, {}
        return values

    def of(self, port: Port, depth: int = 0) -> ValueOrReason:
        if port not in self._known:
            self._known[port] = ValueOrReason()  # for a circle
            if depth < MAX_DEPTH:
                self._known[port] = self._compute(port, depth + 1)
        return self._known[port]

    def _compute(self, port: Port, depth: int) -> ValueOrReason:
        layer = self._layers[port[0]]
        kind = layer.get("type", "")
        data: dict[str, str] = next((each.attrib for each in layer.all("data")), {})
        if kind == "Const":
            if port[0] not in self._constants:
                self._constants[port[0]] = self._read(layer, data)
            return self._constants[port[0]]
        inputs = layer.all("input/port")
        sources = [self._edges.get((port[0], each.get("id", ""))) for each in inputs]
        if kind == "ShapeOf" and sources and sources[0]:
            tensor = _name_tensor(self._layers[sources[0][0]], sources[0][1], self._prefix)
            dims = self._dims.get(tensor)
            if dims is not None and tensor == self._src:
                dims = tuple(f"src[{k}]" if length is None else length for k, length in enumerate(dims))
            return ValueOrReason(compute_shape({}, dims))
        if kind not in _FOLLOWED:
            return ValueOrReason()
        values = [self.of(each, depth).value if each and each[0] in self._layers else None for each in sources]
        if not values or any(value is None for value in values):
            return ValueOrReason()
        outputs = [each.get("id", "") for each in layer.all("output/port")]
        return ValueOrReason(_apply(kind, data, values, outputs.index(port[1]) if port[1] in outputs else 0))

    def _read(self, layer: XmlElement, data: Mapping[str, str]) -> ValueOrReason:
        """Read a constant, if it is small and lies in model.bin."""
        type_ = _TYPES.get(data.get("element_type", ""), "")
        if type_ not in INTEGERS:
            return ValueOrReason(None, f"shape has the type {quote(data.get('element_type'))}")
        offset, size = (read_whole(layer, data.get(name, "")) for name in ("offset", "size"))
        lengths = [read_whole(layer, part) for part in data.get("shape", "").split(",") if part.strip()]
        count = math.prod(lengths)
        if count == 0:  # OpenVINO writes a byte for it
            return ValueOrReason(np.zeros(lengths, np.int64))
        if count > MAX_ELEMENTS or size != count * WIDTH[type_]:
            return ValueOrReason(None, f"line {layer.line}: {size:,} bytes are no shape of {count:,} entries")
        try:
            if leaves_its_folder(self._weights):
                return ValueOrReason(None, f"shape is in {self._weights.name}, a link to another folder")
            with open_regular(self._weights) as stream:
                stream.seek(offset)
                content = stream.read(size)
        except (OSError, ValueError, OverflowError):
            return ValueOrReason(None, f"shape is in {self._weights.name}, which cannot be read")
        if len(content) < size:
            return ValueOrReason(None, f"shape is past the end of {self._weights.name}, at byte {offset:,}")
        return ValueOrReason(np.frombuffer(content, dtype_of(type_)).reshape(lengths))


def _convert(value: Value, to: str) -> Value | None:
    """Return numbers of another type, so that a division of floats is one; None for another type or past its range."""
    if value.dtype == object:
        return value if to in ("i32", "i64") else None
    most = 1 << 31 if to == "i32" else 1 << 62
    return value.astype(_NUMBERS[to]) if to in _NUMBERS and np.abs(value).max(initial=0) < most else None


def _slice_vector(data: Mapping[str, str], value: Value, begin: Value, end: Value, step: Value) -> Value | None:
    """Return a part of a vector, or one entry of it; None if masks ask for more."""
    names = ("begin", "end", "shrink_axis", "new_axis", "ellipsis")
    is_begin, is_end, is_entry, *others = ("1" in data.get(f"{name}_mask", "") for name in names)
    if value.ndim != 1 or begin.size != 1 or any(others) or (is_entry and is_begin):
        return None
    first = begin.item()
    part = slice(None if is_begin else first, None if is_end else end.item(), step.item())
    return np.asarray(value[first if is_entry else part], value.dtype)


def _apply(kind: str, data: Mapping[str, str], values: list[Any], output: int) -> Value | None:
    """Return an output of an operation; None if its attributes or values allow none."""
    try:
        if kind == "Convert":
            return _convert(values[0], data.get("destination_type", ""))
        if kind == "Broadcast":
            small = math.prod(values[1].tolist()) <= MAX_ELEMENTS
            return np.broadcast_to(values[0], tuple(values[1].tolist())) if small else None
        if kind == "VariadicSplit":
            lengths = values[2].tolist()
            rest = values[0].size - sum(length for length in lengths if length >= 0)
            lengths = [rest if length == -1 else length for length in lengths]
            bounds = np.cumsum(lengths)
            fits = values[0].ndim == 1 and min(lengths) >= 0 and bounds[-1] == values[0].size
            return values[0][bounds[output] - lengths[output] : bounds[output]] if fits else None
        if kind == "StridedSlice":
            return _slice_vector(data, *values)
        if kind == "Gather":
            has_batch = data.get("batch_dims", "0") != "0"
            return None if has_batch else compute("Gather", {"axis": values[2].item()}, values[:2])
        if kind == "Slice":  # ONNX has axes before steps
            values[3:] = [*(values[4:] or [np.arange(values[0].ndim)]), values[3]]
        keeps = data.get("keep_dims", "").lower() in ("true", "1")
        attributes = {"axis": int(data.get("axis", "0")), "keepdims": keeps, "noop_with_empty_axes": True}
        return compute(_SAME[kind], attributes, values)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
