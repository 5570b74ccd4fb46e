"""OpenVINO IR: model.xml with the constants in model.bin. Only constants that are shapes are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..model import INTEGERS
from ..model.types import WIDTH
from ..system.text import format_dims, quote
from .flow import Flow, GraphOperation
from .nodes import Answer, Dims, ReshapeNode, UnreadableModel, are_equal_where_known, content_of, odd_form
from .openvino_values import NetworkValues, Port
from .xml_tree import XmlElement, dims_of, fail, read_xml

MAX_BYTES = 1 << 28
_TYPES = {"fp32": "f32", "fp16": "f16", "fp64": "f64", "boolean": "bool"} | {
    f"{long}{bits}": f"{kind}{bits}" for long, kind in (("i", "s"), ("u", "u")) for bits in (8, 16, 32, 64)
}
_BODIES = ("body", "then_body", "else_body")


def read_openvino_ir(path: Path, answer: Answer) -> Flow:
    """Return the graph of a file. Without model.bin only shapes are unknown."""
    root = read_xml(content_of(path, MAX_BYTES))
    if root.tag != "net" or not any(root.find("layers")):
        raise UnreadableModel(f"line {root.line}: the root is <{root.tag[:40]}>; OpenVINO IR has <net> with <layers>")
    reader = _Reader(path.with_suffix(".bin"))
    reader.read(root, "", ())
    return Flow(reader.operations, reader.dims, reader.inputs, answer)


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
        for layer in net.find("layers", "layer"):
            if (other := layers.setdefault(number := layer.attributes.get("id", ""), layer)) is not layer:
                fail(layer, number, f"the layer at line {other.line} has this id too")
        edges = {
            (edge.attributes.get("to-layer", ""), edge.attributes.get("to-port", "")): (
                edge.attributes.get("from-layer", ""),
                edge.attributes.get("from-port", ""),
            )
            for edge in net.find("edges", "edge")
        }
        values = NetworkValues(layers, edges, self._weights)
        for number, layer in layers.items():
            makes = tuple(self._outputs(layer, prefix))
            sources = [edges.get((number, port.attributes.get("id", ""))) for port in layer.find("input", "port")]
            for source in sources:
                if source is not None and source[0] not in layers:
                    fail(layer, source[0], "an edge comes from a layer that is not there")
            takes = tuple(_tensor_name(layers[at[0]], at[1], prefix) for at in sources if at is not None)
            is_input = layer.attributes.get("type") == "Parameter"
            if is_input and not prefix:
                self.inputs |= {name: self.dims[name] for name in makes}
            for port, at in zip(layer.find("input", "port"), sources, strict=True):
                if at is not None:
                    _check_edge(port, layers[at[0]], at[1])
            node = self._reshape(layer, sources, values) if layer.attributes.get("type") == "Reshape" else None
            if not (is_input and not prefix):
                self.operations.append(GraphOperation(outer if is_input else takes, makes, node))
            for body in (child for child in layer.children if child.tag in _BODIES):
                self.read(body, f"{prefix}{number}.{body.tag}/", takes)

    def _outputs(self, layer: XmlElement, prefix: str) -> Iterator[str]:
        for port in layer.find("output", "port"):
            name = _tensor_name(layer, port.attributes.get("id", ""), prefix)
            self.dims[name] = dims_of(port)
            yield name

    def _reshape(self, layer: XmlElement, sources: list[Port | None], values: NetworkValues) -> ReshapeNode:
        ports = [*layer.find("input", "port")]
        outputs = [*layer.find("output", "port")]
        place, name = f"line {layer.line}", layer.attributes.get("name", "")
        given = next((data.attributes.get("special_zero") for data in layer.find("data")), None)
        flag = {"true": True, "1": True, "false": False, "0": False}.get((given or "").lower())
        if len(ports) != 2 or len(sources) != 2 or sources[1] is None:
            return ReshapeNode(name, place, None, None, None, None, flag, missing="src and shape are not connected")
        value, why = values.of(sources[1])
        shape = tuple(int(entry) for entry in value) if value is not None and value.ndim == 1 else None
        declared, src_type = dims_of(outputs[0]) if outputs else None, _type(ports[0])
        odd: dict[str, Any] = {"missing_attributes": ("special_zero",)} if given is None else {}
        if value is not None and value.ndim != 1:
            odd["shape_rank"] = value.ndim
        if (shape_type := _type(ports[1])) in WIDTH and shape_type not in INTEGERS:
            odd["shape_type"] = shape_type
        if given is not None and flag is None:
            why = why or f"special_zero is {quote(given)}, and true or false is wanted"
        form = odd_form(src_type, declared, **odd) if odd else None
        return ReshapeNode(name, place, None, src_type, dims_of(ports[0]), shape, flag, declared, form, why)


def _check_edge(port: XmlElement, maker: XmlElement, made: str) -> None:
    """Raise UnreadableModel if the dims at the ends of an edge differ; a port without dims may be of any rank."""
    dims = dims_of(port)
    for each in maker.find("output", "port"):
        others = dims_of(each)
        if each.attributes.get("id", "") == made and dims and others and not are_equal_where_known(dims, others):
            made_dims = f"the edge from line {each.line} brings {format_dims(others)}"
            raise UnreadableModel(f"line {port.line}: a port has the dims {format_dims(dims)}, and {made_dims}")


def _tensor_name(layer: XmlElement, port: str, prefix: str) -> str:
    """Return the name of an input of the model, and a unique one of any other tensor."""
    if layer.attributes.get("type") == "Parameter" and not prefix:
        return layer.attributes.get("name", "")
    return f"\0{prefix}{layer.attributes.get('id', '')}:{port}"


def _type(port: XmlElement) -> str | None:
    precision = port.attributes.get("precision", "").lower()
    return _TYPES.get(precision, precision or None)
