"""Turn graphs into ONNX models; the base of the adapters for libraries that run such models.

`allowzero` is `not special_zero`. ONNX takes a shape of s64 only, so that a shape of s32 passes through a Cast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from onnx import TensorProto, helper  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Declared, Graph, Identity, Node, Operand, Rejected, Tensor, Unsupported
from conformance.adapter import rejection
from conformance.model.types import dtype_of

from .shared import check_facets, own_shapes

TYPES = {
    "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL, "string": TensorProto.STRING,
    "s8": TensorProto.INT8, "u8": TensorProto.UINT8, "s16": TensorProto.INT16, "u16": TensorProto.UINT16,
    "s32": TensorProto.INT32, "u32": TensorProto.UINT32, "s64": TensorProto.INT64, "u64": TensorProto.UINT64,
}  # fmt: skip
OPSET, IR_VERSION = 21, 10
"""The first version with all types that is older than the libraries that read it."""
OPSETS = {"Reshape-5": 5, "Reshape-14": 14, "Reshape-25": 25}
"""The opsets of the operations that ONNX itself defines (examples/onnx); the others take that of the backend."""


def model(graph: Graph, opset: int = OPSET) -> Any:
    """Return the model of a graph; `arguments` names its inputs."""
    opset = OPSETS.get(graph.nodes[0].operation, opset)
    inputs, initializers, nodes = [info("src", graph.src)], [], []
    inputs += [info(f"extra{k}", graph.src) for k in range(1, most_inputs(graph))]
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
                initializers.append(initializer(name, node.shape))
            else:
                inputs.append(info(name, Declared(node.shape.type, node.shape.dims)))
            if node.shape.type == "s32" and node.operation not in OPSETS:
                nodes.append(helper.make_node("Cast", [name], [f"{name}-s64"], to=TensorProto.INT64))
                name = f"{name}-s64"
            operands.append(name)
        operands += [f"extra{k}" for k in range(1, node.inputs)]
        value = "dst" if last else f"between{number}"
        between += [value] if not last and graph.nodes[number + 1].takes_src else []
        outputs = [value, *(f"more{k}" for k in range(1, node.outputs))][: node.outputs]
        nodes.append(helper.make_node("Reshape", operands, outputs, **attributes(node)))
    of_src_type = Declared(graph.src.type, None)  # ONNX wants a type, and no dims, of each output
    outputs = [info("dst", graph.nodes[-1].result or of_src_type)] if graph.nodes[-1].outputs else []
    outputs += [info(name, of_src_type) for name in between]  # or an optimiser would drop their nodes
    whole = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)


def attributes(node: Node) -> dict[str, Any]:
    """Return a node's attributes. An allowzero of 0 is left out, as that is its default and opset 5 has no other.

    An ill-formed special_zero is Unsupported, since allowzero is an optional integer.
    """
    zero, extra = node.special_zero, dict(node.attributes)
    if zero is None or zero.values is None or zero.type != "bool" or "allowzero" in extra:
        raise Unsupported("form:attributes")
    allowzero = {} if zero.values[0] else {"allowzero": 1}
    return allowzero | {name: (operand.values or ())[0] for name, operand in extra.items()}


def info(name: str, declared: Declared) -> Any:
    """Return the declaration of a tensor in a model."""
    return helper.make_tensor_value_info(name, TYPES[declared.type], declared.dims)


def initializer(name: str, operand: Operand) -> Any:
    """Return a tensor that is part of the model."""
    values, dims = operand.values or (), [n for n in operand.dims if n is not None]
    if operand.type == "string":
        return helper.make_tensor(name, TensorProto.STRING, dims, [str(value).encode() for value in values])
    elements = np.array(values, dtype_of(operand.type)).tobytes()
    return helper.make_tensor(name, TYPES[operand.type], dims, elements, raw=True)


def most_inputs(graph: Graph) -> int:
    return max(node.inputs for node in graph.nodes)


def arguments(graph: Graph, src: Tensor, shapes: tuple[Tensor, ...]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a call, each with the name of its input."""
    yield "src", src
    for k in range(1, most_inputs(graph)):
        yield f"extra{k}", src
    for number, shape in enumerate(own_shapes(graph, shapes)):
        yield f"arriving{number}", shape


class OnnxLibrary:
    """A library that runs ONNX models; a subclass loads a model and runs it."""

    identity: Identity
    claims: Claims
    opset = OPSET
    refusals: tuple[type[Exception], ...]
    """The exceptions by which the library rejects a model or a call."""

    def load(self, proto: Any) -> Any:
        """Return a model as the library runs it."""
        raise NotImplementedError

    def run(self, loaded: Any, inputs: dict[str, Tensor]) -> Any:
        """Call the library; `inputs` are the tensors of the call by their names in the model."""
        raise NotImplementedError

    def export_dst(self, answer: Any) -> Tensor | Array:
        """Return what `run` returned as the suite reads it. What fails here is no rejection."""
        array: Array = answer
        return array

    def rejection(self, stage: str, refusal: Exception) -> Rejected:
        return rejection(stage, refusal)

    def compile(self, graph: Graph) -> OnnxProgram:
        check_facets(graph, self.claims.not_claimed)
        proto = model(graph, self.opset)
        try:
            return OnnxProgram(self, graph, self.load(proto))
        except self.refusals as refusal:
            raise self.rejection("compile", refusal) from refusal


class OnnxProgram:
    """A loaded model, ready to run."""

    def __init__(self, library: OnnxLibrary, graph: Graph, loaded: Any) -> None:
        self.library, self.graph, self.loaded = library, graph, loaded

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            answer = self.library.run(self.loaded, dict(arguments(self.graph, src, shapes)))
        except self.library.refusals as refusal:
            raise self.library.rejection("run", refusal) from refusal
        return self.library.export_dst(answer)
