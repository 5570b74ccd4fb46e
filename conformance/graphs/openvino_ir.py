"""Read OpenVINO IR: an XML file with the graph, and of the .bin beside it only the constants that are shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn
from xml.parsers import expat

import numpy as np

from ..meaning.partial import Lengths
from .nodes import CannotRead, ReshapeNode, open_file, read_content
from .tensors import Operation, Tensor, TensorGraph

_MOST_XML = 1 << 28
_MOST_VALUES = 1024
_INTEGERS = {"s32": "<i4", "s64": "<i8"}
_TYPES = {"FP16": "f16", "FP32": "f32", "FP64": "f64", "BOOLEAN": "bool"} | {
    f"{long}{bits}": f"{short}{bits}" for long, short in (("I", "s"), ("U", "u")) for bits in (8, 16, 32, 64)
}


@dataclass
class _Element:
    """An element of XML with the line on which it begins."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[_Element]:
        """Yield the elements at the end of a way of tags."""
        if not tags:
            yield self
        for child in self.children:
            if tags and child.tag == tags[0]:
                yield from child.all(*tags[1:])


def read_openvino_ir(path: Path) -> TensorGraph:
    """Return the graph with the graphs of its bodies; CannotRead names the line."""
    root = _parse(path, read_content(path, _MOST_XML))
    if root.tag != "net" or not list(root.all("layers")):
        raise CannotRead(path, f"line {root.line}", "this is no OpenVINO IR: it has no <net> with <layers>")
    reader = _Reader(path)
    try:
        reader.read_graph(root, "")
    finally:
        reader.close()
    return TensorGraph(reader.tensors, reader.operations, reader.inputs)


def _parse(path: Path, content: bytes) -> _Element:
    """Return the outermost element. A document type is an error, since entities can stand for anything."""
    root: list[_Element] = []
    stack: list[_Element] = []
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(tag, attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else root).append(element)
        stack.append(element)

    def text(words: str) -> None:
        if stack and len(stack[-1].text) < 100:
            stack[-1].text += words

    def doctype(*_: object) -> NoReturn:
        where = f"line {parser.CurrentLineNumber}"
        raise CannotRead(path, where, "it declares a document type, which OpenVINO IR does not have")

    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        where = f"line {error.lineno}, column {error.offset}"
        raise CannotRead(path, where, f"this is no XML: {expat.ErrorString(error.code)}") from None
    return root[0]


class _Reader:
    """Collects the tensors and operations of a graph and of the graphs inside its layers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bin: BinaryIO | None = None
        self.tensors: dict[str, Tensor] = {}
        self.operations: list[Operation] = []
        self.inputs: dict[str, str] = {}

    def close(self) -> None:
        if self._bin is not None:
            self._bin.close()

    def read_graph(self, graph: _Element, within: str) -> None:
        """Add a graph; `within` begins the ids of a graph inside a layer."""
        edges: dict[tuple[str, str], str] = {}
        for edge in graph.all("edges", "edge"):
            to = (_get(edge, "to-layer"), _get(edge, "to-port"))
            edges[to] = f"{within}{_get(edge, 'from-layer')}:{_get(edge, 'from-port')}"
        layers = {_get(layer, "id"): layer for layer in graph.all("layers", "layer")}
        shapes = {edges.get((id_, "1")) for id_, layer in layers.items() if layer.attributes.get("type") == "Reshape"}
        for id_, layer in layers.items():
            try:
                self._read_layer(id_, layer, edges, shapes, within)
            except ValueError as error:
                raise CannotRead(self._path, f"line {layer.line}", str(error)) from None
            for body in (each for each in layer.children if each.tag.endswith("body")):
                if within.count("/") < 20:
                    self.read_graph(body, f"{within}{id_}-{body.tag}/")

    def _read_layer(
        self, id_: str, layer: _Element, edges: Mapping[tuple[str, str], str], shapes: set[str | None], within: str
    ) -> None:
        kind, name = layer.attributes.get("type", "?"), layer.attributes.get("name", id_)
        data = next(layer.all("data"), _Element("data", {}, layer.line))
        inputs = []
        for port in layer.all("input", "port"):
            source = edges.get((id_, _get(port, "id")), f"{within}{id_}:{_get(port, 'id')}:open")
            self.tensors.setdefault(source, _read_port(port))
            inputs.append(source)
        outputs = []
        for port in layer.all("output", "port"):
            output = f"{within}{id_}:{_get(port, 'id')}"
            tensor = _read_port(port)
            if kind == "Const" and output in shapes:
                tensor = tensor._replace(values=self._values(tensor, data))
            self.tensors[output] = tensor
            outputs.append(output)
            if kind == "Parameter" and not within:
                for alias in dict.fromkeys((name, *filter(None, port.attributes.get("names", "").split(",")))):
                    self.inputs.setdefault(alias, output)
        reshape = _reshape_node(layer, name, data, self.tensors, inputs) if kind == "Reshape" else None
        shape_input = inputs[1] if reshape and len(inputs) > 1 else None
        self.operations.append(Operation(name, kind, tuple(inputs), tuple(outputs), reshape, shape_input))

    def _values(self, tensor: Tensor, data: _Element) -> Lengths | None:
        """Return the elements of a constant from the .bin file; None if they are no shape."""
        offset, size = _number(data, "offset"), _number(data, "size")
        code = _INTEGERS.get(tensor.type or "")
        if code is None or size > _MOST_VALUES * 8 or tensor.dims != (size // np.dtype(code).itemsize,):
            return None
        weights = self._path.with_suffix(".bin")
        if self._bin is None:
            self._bin = open_file(weights)
        self._bin.seek(offset)
        content = self._bin.read(size)
        if len(content) < size:
            raise CannotRead(weights, f"byte {offset}", f"the file ends before the {size} bytes of a shape do")
        return tuple(np.frombuffer(content, code).tolist())


def _reshape_node(
    layer: _Element, name: str, data: _Element, tensors: Mapping[str, Tensor], inputs: list[str]
) -> ReshapeNode:
    zero = data.attributes.get("special_zero", "").lower()
    if zero not in ("true", "false", "1", "0", ""):
        raise ValueError(f"special_zero is {zero[:40]!r}, neither true nor false")
    shape_type = tensors[inputs[1]].type if len(inputs) > 1 else None
    return ReshapeNode(
        name, "Reshape", f"line {layer.line}", "Reshape-1", None, None, None, zero in ("true", "1") if zero else None,
        shape_type=shape_type, missing=() if zero else ("special_zero",),
    )  # fmt: skip


def _read_port(port: _Element) -> Tensor:
    dims = []
    for dim in port.all("dim"):
        try:
            length = int(dim.text)
        except ValueError:
            raise ValueError(f"line {dim.line}: the length {dim.text[:40]!r} is not a whole number") from None
        if length < -1:
            raise ValueError(f"line {dim.line}: the length {length} is below -1")
        dims.append(None if length == -1 else length)
    precision = port.attributes.get("precision", "")
    return Tensor(_TYPES.get(precision, precision.lower() or None), tuple(dims))


def _get(element: _Element, name: str) -> str:
    return element.attributes.get(name, "")


def _number(element: _Element, name: str) -> int:
    text = _get(element, name)
    if not text.isdecimal() or len(text) > 18:
        raise ValueError(f"{name} of a constant is {text[:40]!r}, not a whole number")
    return int(text)
