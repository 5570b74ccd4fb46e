"""ONNX models. Weights in external files are never read; dims are inferred by the package onnx."""

from __future__ import annotations

import importlib
import math
from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model.types import name_of
from ..system.text import quote
from .lengths import bind_length, bind_symbol
from .nodes import (
    MAX_NODES,
    Binding,
    Dims,
    ReshapeNode,
    UnreadableModel,
    are_equal_where_known,
    check_rank,
    known_dims,
    make_odd_form,
    read_model_bytes,
)
from .onnx_values import MAX_ELEMENTS, Value, compute, compute_shape

MAX_BYTES = 1 << 30
MAX_ROUNDS = 8
"""Rounds of computing values and inferring dims from them."""
TYPES = {
    "FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "DOUBLE": "f64", "BOOL": "bool", "STRING": "string",
    **{f"{long}INT{bits}": f"{kind}{bits}" for long, kind in (("", "s"), ("U", "u")) for bits in (8, 16, 32, 64)},
}  # fmt: skip
_NO_SYMBOL = ("", "?", "None", "-1")
"""Symbols that may be another length each time. Scripts write "None" for every length that is not known."""
_INFERRED = "unk__"
"""The package onnx begins its own symbols so."""
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


@contextmanager
def _explain(what: str) -> Iterator[None]:
    """Report of the file whatever onnx, protobuf and NumPy raise; the classes depend on their versions."""
    try:
        yield
    except UnreadableModel:
        raise
    except Exception as error:
        raise UnreadableModel(f"{what}: {quote(str(error))}") from None


def read_onnx(path: Path) -> OnnxModel:
    """Return the model of a file; UnreadableModel if the package onnx is missing or the file is no ONNX."""
    content = read_model_bytes(path, MAX_BYTES)
    try:
        onnx = importlib.import_module("onnx")
        importlib.import_module("onnx.shape_inference")
        importlib.import_module("onnx.inliner")
    except ImportError:
        raise UnreadableModel("ONNX is read with the package onnx; pip install 'reshape-conformance[graphs]'") from None
    with _explain(f"not ONNX, or cut short after byte {len(content):,}"):
        proto = onnx.ModelProto.FromString(content)
    if not proto.graph.node and not proto.graph.input:
        raise UnreadableModel("not ONNX: there is no graph in it")
    if len(proto.graph.node) > MAX_NODES:
        raise UnreadableModel(f"graph.node: {len(proto.graph.node):,} nodes, at most {MAX_NODES:,} are read")
    for graph, _ in _list_graphs(proto.graph, "graph"):
        _drop_weights(graph)
    for owner in (proto.graph, *proto.functions):
        for graph, _ in _list_graphs(owner, ""):
            _shorten_domains(graph.node)
    for owner in (proto, *proto.functions):
        _shorten_domains(owner.opset_import)
    if proto.functions:
        with _explain("onnx cannot insert its functions"):
            proto = onnx.inliner.inline_local_functions(proto)
    return OnnxModel(proto, onnx)


class OnnxModel:
    """A model without its weights."""

    def __init__(self, proto: Any, onnx: Any) -> None:
        self._proto, self._onnx = proto, onnx
        held = {tensor.name for tensor in proto.graph.initializer}
        self.inputs: dict[str, Dims | None] = {
            str(value.name): _dims_of(value.type) for value in proto.graph.input if value.name not in held
        }

    @_explain("a value in it is not as ONNX has it")
    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes, of subgraphs too, with dims inferred from those of the inputs."""
        proto = type(self._proto)()
        proto.CopyFrom(self._proto)
        tensors = [(at, _dims_of(value.type)) for at, value in _list_declared(proto.graph)]
        named = {at for at, dims in tensors if any(isinstance(length, str) for length in dims or ())}
        _bind(proto.graph, binding)
        declared = {at: _dims_of(value.type) for at, value in _list_declared(proto.graph)}
        _forget_dims(proto.graph)
        values: dict[tuple[str, str], Value] = {}
        inferred = self._infer(proto, values)
        is_fixed = all(known_dims(dims) is not None for dims in self.inputs.values())
        if not is_fixed and _is_of_other_inputs(inferred.graph, declared):
            declared = {at: declared[at] for at in named}
        if _fill_dims(inferred.graph, declared):
            inferred = self._infer(inferred, values)
        opset = next((each.version for each in proto.opset_import if not each.domain), 1)
        return tuple(
            _reshape(scope, node, place, declared, set() if is_fixed else declared.keys() - named, opset, self.inputs)
            for scope, node, place in _Scope(self._onnx, "graph").compute(inferred.graph, {})
            if node.op_type == "Reshape" and not node.domain
        )

    def _infer(self, proto: Any, values: dict[tuple[str, str], Value]) -> Any:
        """Return a model with the dims that follow from those it has, and from the values that it computes."""
        for _ in range(MAX_ROUNDS):
            with _explain("onnx cannot infer its shapes"):
                inferred = self._onnx.shape_inference.infer_shapes(proto, data_prop=True)
            known = len(values)
            _Scope(self._onnx, "graph").compute(inferred.graph, values)
            if len(values) == known:
                break
            _store(self._onnx, proto.graph, values)
        return inferred


# ── dims ──────────────────────────────────────────────────────────────────────────────────────────


def _dims_of(type_: Any) -> Dims | None:
    tensor = type_.tensor_type
    if not type_.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(map(_length_of, tensor.shape.dim))


def _length_of(dim: Any, symbols: Mapping[str, int] = {}) -> int | str | None:
    """Return a length, its symbol or a product such as `2*n`; None if inference made the symbol."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    symbol = str(dim.dim_param)
    if symbol in _NO_SYMBOL or symbol.startswith(_INFERRED) or symbol.isdecimal():
        return None
    return bind_length(symbol, symbols)


def _bind(graph: Any, binding: Binding) -> None:
    """Set the dims of inputs. A symbol stands for one length everywhere; other declared dims go if one is replaced."""
    symbols: dict[str, int] = {}
    replaced = False
    for value in graph.input:
        given = binding.get(value.name)
        if given is None:
            continue
        check_rank(value.name, _dims_of(value.type), given)
        if not value.type.tensor_type.HasField("shape"):
            value.type.tensor_type.shape.dim.extend([value.type.tensor_type.shape.Dimension() for _ in given])
        for k, (dim, length) in enumerate(zip(value.type.tensor_type.shape.dim, given, strict=True)):
            if not isinstance(length, int):
                continue
            if isinstance(symbol := _length_of(dim), str):
                bind_symbol(symbols, symbol, length, f"{value.name}[{k}]")
            replaced = replaced or (dim.HasField("dim_value") and dim.dim_value != length)
            dim.dim_value = length
    if replaced:
        _forget_dims(graph)
    _set_symbols(graph, symbols)


def _list_declared(graph: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the tensors behind the inputs of a model for which dims are declared, each with its graph and name."""
    for inner, place in _list_graphs(graph, "graph"):
        for value in (*inner.value_info, *inner.output, *(inner.input if inner is not graph else ())):
            yield (place, value.name), value


def _forget_dims(graph: Any) -> None:
    for _, value in _list_declared(graph):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _fill_dims(graph: Any, declared: Mapping[tuple[str, str], Dims | None]) -> bool:
    """Set the declared lengths that inference did not find, and say whether there are any."""
    is_filled = False
    for at, value in _list_declared(graph):
        dims, found = declared.get(at), _dims_of(value.type)
        if dims is None or not are_equal_where_known(dims, found):
            dims = found
        if dims is None:
            continue
        is_filled = is_filled or found is None
        shape = value.type.tensor_type.shape
        shape.dim.extend([shape.Dimension() for _ in dims[len(shape.dim) :]])
        for dim, length, known in zip(shape.dim, dims, found or (None,) * len(dims), strict=True):
            if known is not None:
                continue
            dim.Clear()  # of a symbol that inference made, which hides what it finds now
            is_filled = is_filled or length is not None
            if isinstance(length, int):
                dim.dim_value = length
            elif length is not None:
                dim.dim_param = length
    return is_filled


def _is_of_other_inputs(graph: Any, declared: Mapping[tuple[str, str], Dims | None]) -> bool:
    """Ask whether a declared number is another length in what inference found."""
    for at, value in _list_declared(graph):
        dims, found = declared.get(at), _dims_of(value.type)
        if dims is None or found is None:
            continue
        pairs = zip(dims, found, strict=False)
        if len(dims) != len(found) or any(isinstance(one, int) and other not in (one, None) for one, other in pairs):
            return True
    return False


def _set_symbols(graph: Any, symbols: Mapping[str, int]) -> None:
    for inner, _ in _list_graphs(graph, "graph"):
        for value in (*inner.input, *inner.output, *inner.value_info):
            for dim in value.type.tensor_type.shape.dim if value.type.tensor_type.HasField("shape") else ():
                if dim.dim_param and isinstance(length := _length_of(dim, symbols), int):
                    dim.dim_value = length


# ── graphs, constants and values ──────────────────────────────────────────────────────────────────


def _list_graphs(graph: Any, place: str) -> Iterator[tuple[Any, str]]:
    """Yield a graph and the graphs inside its nodes, with their places."""
    yield graph, place
    for number, node in enumerate(graph.node):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _list_graphs(attribute.g, f"{place}.node[{number}].{attribute.name}")


def _shorten_domains(named: Any) -> None:
    """Name the domain of ONNX itself by the empty text, as onnx wants it; `ai.onnx` is the same."""
    for each in named:
        if each.domain == "ai.onnx":
            each.domain = ""


def _drop_weights(graph: Any) -> None:
    """Drop the elements of large tensors: no dims follow from them."""
    constants = [attribute.t for node in graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in (*graph.initializer, *constants):
        if math.prod(tensor.dims) > MAX_ELEMENTS:
            for name in _DATA:
                tensor.ClearField(name)


def _store(onnx: Any, graph: Any, values: Mapping[tuple[str, str], Value]) -> None:
    """Replace the nodes that compute known values by constants, except reshapes, which are to be told."""
    for inner, place in [*_list_graphs(graph, "graph")]:
        held = {tensor.name for tensor in inner.initializer}
        for node in inner.node:
            for name in node.output:
                if node.op_type not in ("Constant", "Reshape") and name not in held and (place, name) in values:
                    node.CopyFrom(
                        onnx.helper.make_node(
                            "Constant", [], [name], value=onnx.numpy_helper.from_array(values[place, name])
                        )
                    )


class _NamedTensor(NamedTuple):
    dims: Dims | None
    type: str | None


class _Scope:
    """The names that the nodes of a graph see: those of the graph itself and of the graphs around it."""

    def __init__(self, onnx: Any, place: str, outer: _Scope | None = None) -> None:
        self.onnx, self.place = onnx, place
        self._tensors: ChainMap[str, _NamedTensor] = outer._tensors.new_child() if outer else ChainMap()
        self.values: ChainMap[str, Value | None] = outer.values.new_child() if outer else ChainMap()
        self.external: set[str] = set()

    def _enter(self, graph: Any) -> None:
        names = self.onnx.TensorProto.DataType.Name
        for value in (*graph.input, *graph.value_info, *graph.output):
            type_ = value.type.tensor_type.elem_type
            known_type = TYPES.get(names(type_), names(type_).lower()) if type_ else None
            self._tensors[value.name] = _NamedTensor(_dims_of(value.type), known_type)
            self.values[value.name] = None  # hides a value of that name in the graph around this one
        for tensor in graph.initializer:
            known_type = TYPES.get(names(tensor.data_type), names(tensor.data_type).lower())
            self._tensors[tensor.name] = _NamedTensor(tuple(tensor.dims), known_type)
            self.values[tensor.name] = self._read(tensor)
            if tensor.data_location == tensor.EXTERNAL:
                self.external.add(tensor.name)

    def tensor(self, name: str) -> _NamedTensor:
        return self._tensors.get(name, _NamedTensor(None, None))

    def compute(self, graph: Any, values: dict[tuple[str, str], Value]) -> list[tuple[_Scope, Any, str]]:
        """Add to `values` what the nodes of a graph compute from what is known, subgraphs too.

        Return each node with its scope and its place.
        """
        self._enter(graph)
        found: list[tuple[_Scope, Any, str]] = []
        for number, node in enumerate(graph.node):
            place = f"{self.place}.node[{number}]"
            found.append((self, node, place))
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    found += _Scope(self.onnx, f"{place}.{attribute.name}", self).compute(attribute.g, values)
            if not node.domain and len(node.output) == 1:
                self._compute_node(node, values)
        return found

    def _compute_node(self, node: Any, values: dict[tuple[str, str], Value]) -> None:
        attributes = self.attributes(node)
        if node.op_type == "Constant":
            result = attributes.get("value", attributes.get("value_ints", attributes.get("value_int")))
            result = np.asarray(result) if result is not None else None
        elif node.op_type == "Shape":
            result = compute_shape(attributes, self.tensor(node.input[0]).dims) if node.input else None
        else:
            result = compute(node.op_type, attributes, list(map(self.values.get, node.input)))
        self.values[node.output[0]] = result
        if result is not None and result.dtype != object:
            values[self.place, node.output[0]] = result

    def attributes(self, node: Any) -> dict[str, Any]:
        """Return the attributes that are numbers, lists of numbers or small tensors."""
        found: dict[str, Any] = {}
        for attribute in node.attribute:
            match attribute.type:
                case attribute.INT:
                    found[attribute.name] = attribute.i
                case attribute.INTS:
                    found[attribute.name] = list(attribute.ints)
                case attribute.TENSOR:
                    found[attribute.name] = self._read(attribute.t)
        if node.op_type == "Cast" and "to" in found:
            found["to"] = self._find_dtype(found["to"])
        return found

    def _find_dtype(self, number: int) -> Any:
        try:
            return self.onnx.helper.tensor_dtype_to_np_dtype(number)
        except (KeyError, ValueError):
            return None

    def _read(self, tensor: Any) -> Value | None:
        """Return the elements of a small tensor; None if they are elsewhere, too many or too few."""
        if tensor.data_location == tensor.EXTERNAL or any(length < 0 for length in tensor.dims):
            return None
        if math.prod(tensor.dims) > MAX_ELEMENTS:
            return None
        try:
            value: Value = self.onnx.numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError):
            return None
        return value


# ── reshapes ──────────────────────────────────────────────────────────────────────────────────────


def _reshape(
    scope: _Scope, node: Any, place: str, declared: Mapping[tuple[str, str], Dims | None],
    of_other_lengths: Collection[tuple[str, str]], opset: int, inputs: Collection[str],
) -> ReshapeNode:  # fmt: skip
    name = str(node.name or (node.output[0] if node.output else ""))
    if opset < 5 or len(node.input) < 2:
        why = f"Reshape of opset {opset} is not read, from 5 it is" if opset < 5 else "the node has no input `shape`"
        return ReshapeNode(name, place, None, None, None, None, None, missing=why)
    src = scope.tensor(node.input[0])
    value = scope.values.get(node.input[1])
    shape: Dims | None = None
    missing, form = "", None
    at = (scope.place, node.output[0] if node.output else "")
    dst = declared.get(at)
    if value is not None and None in value.ravel().tolist():
        value = None
    if value is not None and value.ndim == 1 and value.dtype.kind in "iuO":
        shape = tuple(entry if isinstance(entry, str) else int(entry) for entry in value)
    elif value is not None:
        type_ = "s64" if value.dtype.kind in "iuO" else name_of(value.dtype)
        form = make_odd_form(src.type, dst, shape_rank=value.ndim, shape_type=type_)
    else:
        missing = "shape is computed while it runs"
        if node.input[1] in scope.external:
            missing = "shape is in an external file, which is not read"
        elif node.input[1] in inputs:
            missing = "shape is an input of the model"
    if at in of_other_lengths and None in (known_dims(src.dims), known_dims(shape)):
        dst = None  # it gives way to whatever a known length leads to
    if src.dims is None and not missing:
        missing = "the dims of src are not inferred"
    allow_zero = scope.attributes(node).get("allowzero", 0)
    return ReshapeNode(name, place, None, src.type, src.dims, shape, not allow_zero, dst, form, missing)
