"""Read an ONNX model with the package `onnx`: dims by its shape inference, shape values as far as dims give them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..meaning.partial import Lengths
from .lengths import symbols_of
from .nodes import MOST_ENTRIES, Answer, Bound, CannotRead, ReshapeNode, read_content
from .onnx_values import MOST_VALUES, Values, compute, shape_of, values_of

_ROUNDS = 12
"""Times that dims are inferred again because more values are known."""
_TYPES = {
    1: "f32", 2: "u8", 3: "s8", 4: "u16", 5: "s16", 6: "s32", 7: "s64", 8: "string", 9: "bool", 10: "f16", 11: "f64",
    12: "u32", 13: "u64", 14: "complex64", 15: "complex128", 16: "bf16",
}  # fmt: skip
_INTEGERS = {6: "<i4", 7: "<i8"}
_INT, _TENSOR, _GRAPH, _INTS = 2, 4, 5, 7
"""Types of attributes."""
_EXTERNAL = 1
"""The data location of a tensor whose elements are in another file, which is never read."""
_CONTROL = ("If", "Loop", "Scan")


class _Declared(NamedTuple):
    """The type and the dims of a value."""

    type: str | None
    dims: Lengths | None


def read_onnx(path: Path) -> OnnxModel:
    """Return the model without its weights; CannotRead if it is none, or if the package onnx is not installed."""
    try:
        onnx = import_module("onnx")
    except ImportError:
        what = "the package onnx is not installed; pip install 'reshape-conformance[graphs]'"
        raise CannotRead(path, "", what) from None
    content = read_content(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # protobuf's DecodeError, in a module that depends on its version
        raise CannotRead(path, f"in its {len(content):,} bytes", f"this is no ONNX model: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise CannotRead(path, f"in its {len(content):,} bytes", "this is no ONNX model: it has no graph or no opset")
    if model.functions:
        try:
            model = import_module("onnx.inliner").inline_local_functions(model)
        except Exception as error:  # whatever onnx raises for functions that call themselves or are missing
            raise CannotRead(path, "functions", str(error)) from None
    return OnnxModel(_without_weights(model))


def _without_weights(model: Any) -> Any:
    """Drop the elements of large and external initialisers; inputs take their place."""
    helper = import_module("onnx.helper")
    graph = model.graph
    inputs = {each.name for each in graph.input}
    large = [each for each in graph.initializer if not _is_small(each)]
    for each in large:
        if each.name not in inputs:
            graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    names = {each.name for each in large}
    kept = [each for each in graph.initializer if each.name not in names]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.metadata_props.add(key=_WEIGHTS, value="\0".join(names))
    return model


_WEIGHTS = "conformance.weights"


def _is_small(tensor: Any) -> bool:
    return (
        tensor.data_location != _EXTERNAL
        and 0 <= math.prod(tensor.dims) <= MOST_VALUES
        and not any(length < 0 for length in tensor.dims)
    )


@dataclass(frozen=True)
class OnnxModel:
    """A model that was read."""

    model: Any

    @property
    def inputs(self) -> Mapping[str, Lengths | None]:
        weights = {each.name for each in self.model.graph.initializer}
        weights |= set(self.model.metadata_props[-1].value.split("\0"))
        return {each.name: _declared(each).dims for each in self.model.graph.input if each.name not in weights}

    def nodes(self, bound: Bound, answer: Answer) -> Sequence[ReshapeNode]:
        """Return the reshape nodes; bound lengths take the place of all dims that the file declares behind them."""
        model = type(self.model)()
        model.CopyFrom(self.model)
        declared = {} if bound else _declared_values(model.graph)
        if bound:
            _bind(model.graph, bound, symbols_of(self.inputs, bound))
        values: dict[str, Values] = {}
        for _ in range(_ROUNDS):
            inferred = _infer(model, values)
            dims, known = _declared_values(inferred.graph), _count_known(values)
            values = {}  # names of lengths that onnx makes up hold for one inference only
            _fold(model.graph, dims, values)
            if _count_known(values) == known:
                break
        return list(_collect(inferred.graph, model.graph, dims, values, declared, ""))


def _bind(graph: Any, bound: Bound, symbols: Mapping[str, int]) -> None:
    """Write bound lengths into the inputs, and forget the dims of everything else."""
    for every in _graphs(graph):
        del every.value_info[:]
        for each in every.output:
            each.type.tensor_type.ClearField("shape")
    for each in graph.input:
        tensor = each.type.tensor_type
        lengths = bound.get(each.name)
        if lengths is not None and not tensor.HasField("shape"):
            tensor.shape.SetInParent()
            for _ in lengths:
                tensor.shape.dim.add()
        for k, dim in enumerate(tensor.shape.dim):
            value = lengths[k] if lengths is not None else None
            value = symbols.get(dim.dim_param) if value is None else value
            if value is not None:
                dim.dim_value = value


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and the graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == _GRAPH:
                yield from _graphs(attribute.g)


def _infer(model: Any, values: Mapping[str, Values]) -> Any:
    """Return the model with dims inferred, known values being constants; as it is if inference fails."""
    helper = import_module("onnx.helper")
    copy = type(model)()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if len(node.output) == 1 and node.op_type != "Constant" and node.output[0] in values:
            array = values[node.output[0]]
            if all(type(n) is int and abs(n) < 1 << 63 for n in array.flat):
                tensor = helper.make_tensor("", 7, array.shape, [int(n) for n in array.flat])
                node.CopyFrom(helper.make_node("Constant", [], node.output, node.name, value=tensor))
    try:
        return import_module("onnx.shape_inference").infer_shapes(copy, data_prop=True)
    except Exception:  # whatever onnx raises; what stays unknown is not decided
        return copy


# ── what is declared ──────────────────────────────────────────────────────────────────────────────


def _declared(info: Any) -> _Declared:
    tensor = info.type.tensor_type
    type_ = _TYPES.get(tensor.elem_type) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return _Declared(type_, None)
    lengths = []
    for dim in tensor.shape.dim:
        known = dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        is_name = any(character.isalpha() for character in dim.dim_param)  # some write "?" or "-1"
        lengths.append(known if known is not None else dim.dim_param if is_name else None)
    return _Declared(type_, tuple(lengths))


def _declared_values(graph: Any) -> dict[str, _Declared]:
    """Return what a graph says of its values, by name."""
    found = {each.name: _Declared(_TYPES.get(each.data_type), tuple(each.dims)) for each in graph.initializer}
    for each in (*graph.input, *graph.output, *graph.value_info):
        found.setdefault(each.name, _declared(each))
    return found


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def _tensor_values(tensor: Any) -> Values | None:
    """Return the elements of a small tensor of integers; None for any other."""
    import numpy as np

    dims = tuple(tensor.dims)
    if tensor.data_type not in _INTEGERS or not _is_small(tensor):
        return None
    if tensor.raw_data:
        code = np.dtype(_INTEGERS[tensor.data_type])
        is_whole = len(tensor.raw_data) == math.prod(dims) * code.itemsize
        listed = np.frombuffer(tensor.raw_data, code).tolist() if is_whole else []
    else:
        listed = list(tensor.int32_data if tensor.data_type == 6 else tensor.int64_data)
    return values_of(listed, dims) if len(listed) == math.prod(dims) else None


def _attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node that operations on shapes have."""
    found: dict[str, Any] = {}
    for each in node.attribute:
        if each.type == _INT:
            found[each.name] = each.i
        elif each.type == _INTS:
            found[each.name] = list(each.ints)
        elif each.type == _TENSOR:
            array = _tensor_values(each.t)
            found[each.name] = array.flat[0] if array is not None and array.size == 1 and each.name == "value" else None
    return found


def _fold(graph: Any, dims: Mapping[str, _Declared], values: dict[str, Values]) -> None:
    """Add to `values` what can be computed of small integer tensors."""
    for tensor in graph.initializer:
        if (array := _tensor_values(tensor)) is not None:
            values[tensor.name] = array
    for node in graph.node:
        if len(node.output) == 1 and (array := _node_value(node, dims, values)) is not None:
            values[node.output[0]] = array


def _count_known(values: Mapping[str, Values]) -> int:
    return sum(type(n) is int for array in values.values() for n in array.flat)


def _node_value(node: Any, dims: Mapping[str, _Declared], values: Mapping[str, Values]) -> Values | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Constant":
        return _constant(node)
    attributes = _attributes(node)
    if node.op_type == "Shape" and node.input:
        known = dims.get(node.input[0], _Declared(None, None)).dims
        return None if known is None else shape_of(attributes, known)
    if not any(name in values for name in node.input):
        return None
    return compute(node.op_type, attributes, [values.get(name) for name in node.input])


def _constant(node: Any) -> Values | None:
    for each in node.attribute:
        if each.name == "value":
            return _tensor_values(each.t)
        if each.name == "value_ints":
            return values_of(list(each.ints)[:MOST_VALUES])
        if each.name == "value_int":
            return values_of([each.i], ())
    return None


# ── nodes ─────────────────────────────────────────────────────────────────────────────────────────


def _collect(
    inferred: Any, graph: Any, dims: Mapping[str, _Declared], values: Mapping[str, Values],
    declared: Mapping[str, _Declared], within: str,
) -> Iterator[ReshapeNode]:  # fmt: skip
    """Yield the reshape nodes of a graph and of the graphs inside its nodes."""
    makers = {output: node for node in graph.node for output in node.output}
    for number, (node, with_dims) in enumerate(zip(graph.node, inferred.node, strict=True)):
        at = f"node {number}{within}"
        if node.op_type == "Reshape" and node.domain in ("", "ai.onnx"):
            yield _reshape_node(node, at, dims, values, declared, makers)
        if node.op_type not in _CONTROL:
            continue
        for attribute, other in zip(node.attribute, with_dims.attribute, strict=False):
            if attribute.type == _GRAPH:
                inner = dict(values)
                own = {**dims, **_declared_values(other.g)}
                _fold(attribute.g, own, inner)
                inside = f" of {attribute.name} of {at}"
                given = _declared_values(attribute.g) if declared else {}
                yield from _collect(other.g, attribute.g, own, inner, given, inside)


def _reshape_node(
    node: Any, at: str, dims: Mapping[str, _Declared], values: Mapping[str, Values],
    declared: Mapping[str, _Declared], makers: Mapping[str, Any],
) -> ReshapeNode:  # fmt: skip
    attributes = _attributes(node)
    nothing = _Declared(None, None)
    src = dims.get(node.input[0], nothing) if node.input else nothing
    name = node.input[1] if len(node.input) > 1 else ""
    array = values_of(attributes["shape"]) if "shape" in attributes else values.get(name)
    count = dims.get(name, nothing).dims
    shape: Lengths | None = tuple(array.flat) if array is not None and array.ndim == 1 else None
    if (
        shape is None
        and count is not None
        and len(count) == 1
        and isinstance(count[0], int)
        and count[0] <= MOST_ENTRIES
    ):
        shape = (None,) * count[0]
    whence = {
        "src": _describe_maker(makers, node.input[0] if node.input else ""),
        "shape": _describe_maker(makers, name),
    }
    dst = declared.get(node.output[0], nothing) if node.output else nothing
    return ReshapeNode(
        node.name or (node.output[0] if node.output else "no name"), "Reshape", at, None, src.type, src.dims, shape,
        not attributes.get("allowzero", 0), dst.dims, dst.type, whence=whence,
    )  # fmt: skip


def _describe_maker(makers: Mapping[str, Any], name: str) -> str:
    node = makers.get(name)
    return f"{node.op_type} {node.name or name!r}" if node is not None else f"{name!r}"
