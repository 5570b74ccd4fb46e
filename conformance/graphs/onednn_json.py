"""oneDNN Graph JSON: what ONEDNN_GRAPH_DUMP=graph writes, and what benchdnn reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..meaning.partial import UNKNOWN_TYPE
from ..model import INTEGERS, CallForm, Operation
from ..system.text import format_dims
from .model_graph import GraphOperation, ModelGraph
from .nodes import (
    MAX_NODES,
    Dims,
    InferDst,
    ReshapeNode,
    UnreadableModel,
    are_equal_where_known,
    fail_at,
    parse_json,
    read_model_bytes,
)

MAX_BYTES = 1 << 26
_UNKNOWN = -(2**63)
MAX_DIMS = 1000
_OWN_ATTRIBUTES = ("partition_id", "backend")
"""The library adds these when it divides a graph into partitions."""


def read_onednn_json(path: Path, answer: InferDst, kinds: Mapping[str, Operation]) -> ModelGraph:
    """Return the graph of a file; `kinds` are the operations that are reshapes, by their names there."""
    data = parse_json(read_model_bytes(path, MAX_BYTES))
    graph = data.get("graph") if isinstance(data, dict) else None
    if not isinstance(graph, list):
        raise UnreadableModel("there is no list `graph` in it; a dump of oneDNN Graph has one")
    if len(graph) > MAX_NODES:
        raise UnreadableModel(f"graph: {len(graph):,} operations, at most {MAX_NODES:,} are read")
    reader = _Reader(kinds)
    operations = [reader.operation(entry, f"graph[{number}]") for number, entry in enumerate(graph)]
    made = {name for operation in operations for name in operation.outputs}
    inputs = {name: reader.dims.get(name) for each in operations for name in each.inputs if name not in made}
    return ModelGraph(operations, reader.dims, inputs, answer)


class _Reader:
    """Reads operations and collects the dims of their tensors."""

    def __init__(self, kinds: Mapping[str, Operation]) -> None:
        self._kinds = kinds
        self.dims: dict[str, Dims | None] = {}

    def operation(self, entry: Any, place: str) -> GraphOperation:
        if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
            fail_at(place, entry, "an operation is an object with a text `kind`")
        inputs, outputs = (list(self._read_tensors(entry, place, key)) for key in ("inputs", "outputs"))
        takes, makes = (tuple(str(tensor["id"]) for tensor in tensors) for tensors in (inputs, outputs))
        node = self._read_node(entry, place, inputs, outputs) if entry["kind"] in self._kinds else None
        return GraphOperation(takes, makes, node)

    def _read_tensors(self, entry: dict[str, Any], place: str, key: str) -> Iterator[dict[str, Any]]:
        tensors = entry.get(key, [])
        if not isinstance(tensors, list):
            fail_at(f"{place}.{key}", tensors, "a list of tensors is wanted")
        for number, tensor in enumerate(tensors):
            at = f"{place}.{key}[{number}]"
            if not isinstance(tensor, dict) or type(tensor.get("id")) is not int:
                fail_at(at, tensor, "a tensor is an object with a whole number `id`")
            dims = _read_dims(tensor.get("shape"), f"{at}.shape")
            other = self.dims.get(str(tensor["id"]))
            if not are_equal_where_known(dims, other):
                fail_at(f"{at}.shape", tensor["shape"], f"tensor {tensor['id']} is {format_dims(other or ())} before")
            if other is None:
                self.dims[str(tensor["id"])] = dims
            yield {**tensor, "shape": dims}

    def _read_node(self, entry: dict[str, Any], place: str, inputs: list[Any], outputs: list[Any]) -> ReshapeNode:
        attributes = entry.get("attrs", {})
        if not isinstance(attributes, dict):
            fail_at(f"{place}.attrs", attributes, "an object is wanted")
        values = {
            name: _read_attribute(value, f"{place}.attrs.{name}")
            for name, value in attributes.items()
            if name not in _OWN_ATTRIBUTES
        }
        takes_shape = "attribute" in self._kinds[entry["kind"]].shape_passed_as
        wanted = ("special_zero", "shape") if takes_shape else ("special_zero",)
        operands = ("src",) if takes_shape else ("src", "shape")
        zero = values.get("special_zero")
        shape = _read_entries(values.get("shape"), f"{place}.attrs.shape") if takes_shape else None
        src = inputs[0] if inputs else {}
        dst = outputs[0] if outputs else {}
        src_type = _read_type(src)
        shape_type = str(inputs[1].get("dtype", "s64")) if len(inputs) > 1 else "s64"
        if takes_shape:
            shape_type = values["shape"][0].removesuffix("[]") if "shape" in values else "s64"
        form = CallForm(
            src_type, _read_type(dst) if "dtype" in dst else src_type, shape_type,
            special_zero_type="bool" if zero is None or zero[0] in ("bool", "boolean") else str(zero[0]),
            special_zero_is_exact=zero is None or (zero[0] in ("bool", "boolean", *INTEGERS) and zero[1] in (0, 1)),
            missing_attributes=tuple(name for name in wanted if name not in values),
            missing_operands=(*operands[len(inputs) :], *(() if outputs else ("dst",))),
            extra_attributes=tuple(sorted(values.keys() - set(wanted))),
            extra_operands=("input",) * max(0, len(inputs) - len(operands)) + ("output",) * max(0, len(outputs) - 1),
            declared=dst.get("shape"),
        )  # fmt: skip
        flag = bool(zero[1]) if zero is not None and zero[1] in (0, 1) else None
        return ReshapeNode(
            str(entry.get("name") or entry.get("id", "")), place, entry["kind"], src_type or None, src.get("shape"),
            shape, flag, form.declared, form, "" if takes_shape else "shape arrives with run",
        )  # fmt: skip


def _read_type(tensor: dict[str, Any]) -> str:
    type_ = str(tensor.get("dtype", "undef"))
    return UNKNOWN_TYPE if type_ == "undef" else type_


def _read_attribute(value: Any, place: str) -> tuple[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str) or "value" not in value:
        fail_at(place, value, "an attribute has a type and a value")
    return value["type"], value["value"]


def _read_entries(value: tuple[str, Any] | None, place: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    return (value[1],) if type(value[1]) is int else _read_whole_numbers(value[1], place)


def _read_dims(value: Any, place: str) -> Dims | None:
    """Return dims. If any length is unknown, the library writes a single INT64_MIN."""
    if value is None or value in ([_UNKNOWN], ""):
        return None
    return tuple(length if length >= 0 else None for length in _read_whole_numbers(value, place))


def _read_whole_numbers(value: Any, place: str) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_DIMS or not all(type(entry) is int for entry in value):
        fail_at(place, value, f"a list of at most {MAX_DIMS} whole numbers is wanted")
    return tuple(value)
