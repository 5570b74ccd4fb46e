"""The base of adapters for array libraries, which call one reshape after another; helpers for all adapters."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import Any, NamedTuple

from conformance import Array, Claims, Declared, Graph, Identity, Node, Operand, Tensor, Unsupported, array_of
from conformance.adapter import NodeCall, check_nodes_plain, check_rank_in_numpy, node_calls, rejection
from conformance.model import EVERY
from conformance.model.types import WIDTH

NodeCalls = tuple[NodeCall, ...]


def resolve_zeros(src: Sequence[int], call: NodeCall) -> tuple[int, ...]:
    """Return the shape for a library without special_zero, with copied lengths instead of zeros.

    A 0 past the rank of src stays.
    """
    if not call.special_zero:
        return call.shape
    return tuple(src[i] if entry == 0 and i < len(src) else entry for i, entry in enumerate(call.shape))


def resolve_infer(src: Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape for a library without -1, with a length instead of the only -1.

    A -1 beside another one, or beside lengths that do not divide the volume of src, stays.
    """
    known = math.prod(entry for entry in shape if entry != -1)
    if shape.count(-1) != 1 or known <= 0 or math.prod(src) % known:
        return shape
    return tuple(math.prod(src) // known if entry == -1 else entry for entry in shape)


def check_31_bits(dims: Sequence[int]) -> Sequence[int]:
    """Return lengths or entries of shape that a signed integer of 32 bits can hold; Unsupported for others."""
    if any(length >> 31 not in (0, -1) for length in dims):
        raise Unsupported("length:2^31")
    return dims


def has_elements(dims: Sequence[int]) -> bool:
    """Ask whether an answer has elements to read. A library may report negative lengths or more than 2^60 elements."""
    return min(dims, default=1) > 0 and not math.prod(dims) >> 60


def without_elements(type_: str, dims: Sequence[int]) -> Tensor:
    """Return an answer that has dims but no elements, because NumPy may not be able to hold such an array."""
    return Tensor(type_, tuple(dims), (0,) * len(dims), bytearray(), 0)


def read_answer(type_: str, dims: Sequence[int], read: Callable[[], Array]) -> Tensor | Array:
    """Return what `read` returns if the answer has elements; Unsupported if NumPy has no array of its rank."""
    check_rank_in_numpy(dims)
    return read() if has_elements(dims) else without_elements(type_, dims)


def strides_of(type_: str, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor, in bytes."""
    return tuple(WIDTH[type_] * math.prod(max(n, 1) for n in dims[index + 1 :]) for index in range(len(dims)))


def own_shapes(graph: Graph, shapes: Sequence[Tensor]) -> list[Tensor]:
    """Return the shapes that arrive with run, without those that a node shares with the node before it."""
    late = [node for node in graph.nodes if node.shape is not None and node.shape.values is None]
    return [shape for node, shape in zip(late, shapes, strict=True) if not node.shares_shape]


def split_fork(calls: NodeCalls) -> list[NodeCalls]:
    """Return the calls as chains that begin at src."""
    starts = [0, *(k for k, call in enumerate(calls) if k and call.takes_src)]
    return [calls[start:end] for start, end in zip(starts, [*starts[1:], len(calls)], strict=True)]


def types_except(names: Collection[str]) -> tuple[str, ...]:
    """Return the facets of the element types that a library lacks, if it has these."""
    return tuple(f"type:{name}" for name in WIDTH if name not in names)


def check_facets(graph: Graph, not_claimed: Collection[str]) -> None:
    """Raise Unsupported for a shape that arrives with run, a type of src or a fork, if it is not claimed."""
    if "runtime-shape" in not_claimed and any(node.shape and node.shape.values is None for node in graph.nodes):
        raise Unsupported("runtime-shape")
    if f"type:{graph.src.type}" in not_claimed:
        raise Unsupported(f"type:{graph.src.type}")
    if "shared-src" in not_claimed and any(node.takes_src for node in graph.nodes):
        raise Unsupported("shared-src")


def graph_of_model(graph: Graph) -> Graph:
    """Return the graph without what an OpenVINO model does not depend on, so that graphs with the same model are equal.

    The strides of src stay: a compiled model writes a strided src into memory of earlier requests, also freed memory.
    """
    dims = graph.src.dims
    if dims is not None and any(node.shape is not None and node.shape.values is None for node in graph.nodes):
        dims = (None,) * len(dims)
    for node in graph.nodes:
        if node.outputs != 1:
            raise Unsupported("form:outputs")
        if node.takes_src:
            raise Unsupported("shared-src")
        if node.result is not None:
            raise Unsupported("form:types" if node.result.type != graph.src.type else "declared")
    return Graph(graph.src._replace(dims=dims), tuple([node._replace(operation="Reshape") for node in graph.nodes]))


def first_value(operand: Operand) -> Any:
    if not operand.values:
        raise Unsupported("form:attributes")
    return operand.values[0]


def node_attributes(node: Node) -> dict[str, Any]:
    """Return a node's attributes, special_zero among them, as Python values of their types."""
    operands = dict(node.attributes)
    if node.special_zero is not None:
        operands["special_zero"] = node.special_zero
    kinds = {"bool": bool, "string": str, **dict.fromkeys(("f16", "bf16", "f32", "f64"), float)}
    return {name: kinds.get(operand.type, int)(first_value(operand)) for name, operand in operands.items()}


ONNX_OPSETS = {"Reshape-5": 5, "Reshape-14": 14, "Reshape-25": 25}
"""The opsets of the operations that ONNX itself defines (examples/onnx); the others take that of the backend."""


class OnnxParts(NamedTuple):
    """The parts of the ONNX model of a graph, without the package onnx."""

    inputs: list[tuple[str, Declared]]
    constants: list[tuple[str, Operand]]
    nodes: list[tuple[str, list[str], list[str], dict[str, Any]]]
    """Operator, operands, outputs and attributes."""
    outputs: list[tuple[str, Declared]]


def onnx_parts(graph: Graph) -> OnnxParts:
    """Return the model of a graph. `allowzero` is `not special_zero`, and a shape of s32 passes through a Cast."""
    inputs, constants = [("src", graph.src), *((f"extra{k}", graph.src) for k in range(1, most_inputs(graph)))], []
    nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
    value, arriving, name, between = "src", count(), "", list[str]()
    for number, node in enumerate(graph.nodes):
        last = number == len(graph.nodes) - 1
        value = "src" if node.takes_src else value
        operands = [value if node.inputs else ""]
        if node.shares_shape:
            operands.append(name)
        elif node.shape is not None:
            name = f"shape{number}" if node.shape.values is not None else f"arriving{next(arriving)}"
            if node.shape.values is not None:
                constants.append((name, node.shape))
            else:
                inputs.append((name, Declared(node.shape.type, node.shape.dims)))
            if node.shape.type == "s32" and node.operation not in ONNX_OPSETS:
                nodes.append(("Cast", [name], [f"{name}-s64"], {"to": 7}))  # TensorProto.INT64
                name = f"{name}-s64"
            operands.append(name)
        operands += [f"extra{k}" for k in range(1, node.inputs)]
        value = "dst" if last else f"between{number}"
        between += [value] if not last and graph.nodes[number + 1].takes_src else []
        outputs = [value, *(f"more{k}" for k in range(1, node.outputs))][: node.outputs]
        nodes.append(("Reshape", operands, outputs, onnx_attributes(node)))
    of_src_type = Declared(graph.src.type, None)  # ONNX wants a type, and no dims, of each output
    declared = [("dst", graph.nodes[-1].result or of_src_type)] if graph.nodes[-1].outputs else []
    declared += [(name, of_src_type) for name in between]  # or an optimiser would drop their nodes
    return OnnxParts(inputs, constants, nodes, declared)


def onnx_attributes(node: Node) -> dict[str, Any]:
    """Return a node's attributes. An allowzero of 0 is left out, as that is its default and opset 5 has no other.

    An ill-formed special_zero is Unsupported, since allowzero is an optional integer.
    """
    zero, extra = node.special_zero, dict(node.attributes)
    if zero is None or zero.values is None or zero.type != "bool" or "allowzero" in extra:
        raise Unsupported("form:attributes")
    allowzero = {} if first_value(zero) else {"allowzero": 1}
    return allowzero | {name: first_value(operand) for name, operand in extra.items()}


def most_inputs(graph: Graph) -> int:
    return max(node.inputs for node in graph.nodes)


class ArrayLibrary:
    """A library with tensors and a reshape of them; a subclass converts the tensors."""

    name: str = ""
    version: str = ""
    detail: tuple[tuple[str, str], ...] = ()
    operations: tuple[str, ...] = EVERY
    not_claimed: tuple[str, ...] = ("declared", "form", "rank:65")
    """Facets that a function of NumPy arrays cannot express; add what the library lacks."""
    answers_special_zero: bool = True
    rejections: tuple[type[Exception], ...] = (ValueError, RuntimeError, OverflowError)

    def import_src(self, src: Tensor) -> Any:
        return array_of(src)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        """Call the library once."""
        raise NotImplementedError

    def export_dst(self, dst: Any) -> Tensor | Array:
        """Return the library's tensor as the suite reads it."""
        array: Array = dst
        return array

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        """Run the nodes of a graph; a library that compiles graphs overrides it."""
        for call in calls:
            src = self.reshape(src, resolve_zeros(src.shape, call) if self.answers_special_zero else call.shape)
        return src

    @property
    def identity(self) -> Identity:
        return Identity(self.name, self.version, self.detail)

    @property
    def claims(self) -> Claims:
        return Claims(self.operations, self.not_claimed, self.answers_special_zero)

    def compile(self, graph: Graph) -> ArrayProgram:
        check_nodes_plain(graph)
        check_facets(graph, self.not_claimed)
        return ArrayProgram(self, graph)


class ArrayProgram:
    """A graph that an array library runs call by call."""

    def __init__(self, library: ArrayLibrary, graph: Graph) -> None:
        self.library, self.nodes = library, graph.nodes

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        first, *others = split_fork(tuple(node_calls(self.nodes, shapes)))
        try:
            given = self.library.import_src(src)
            dst = self.library.run_chain(given, first)
            for calls in others:
                dst = self.library.run_chain(given, calls)
        except self.library.rejections as error:
            raise rejection("run", error) from error
        return self.library.export_dst(dst)
