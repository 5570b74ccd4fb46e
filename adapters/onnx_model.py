"""Turn graphs into ONNX models; the base of the adapters for libraries that run such models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Declared, Graph, Identity, Operand, Rejected, Tensor
from conformance.adapter import rejection
from conformance.model.types import dtype_of

from .shared import ONNX_OPSETS, check_facets, most_inputs, onnx_parts, own_shapes

TYPES = {
    "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL, "string": TensorProto.STRING,
    "s8": TensorProto.INT8, "u8": TensorProto.UINT8, "s16": TensorProto.INT16, "u16": TensorProto.UINT16,
    "s32": TensorProto.INT32, "u32": TensorProto.UINT32, "s64": TensorProto.INT64, "u64": TensorProto.UINT64,
}  # fmt: skip
OPSET, IR_VERSION = 21, 10
"""The first version with all types that is older than the libraries that read it."""


def model(graph: Graph, opset: int = OPSET) -> Any:
    """Return the model of a graph; `arguments` names its inputs."""
    parts = onnx_parts(graph)
    nodes = [helper.make_node(*names, **attributes) for *names, attributes in parts.nodes]
    inputs, constants = [info(*each) for each in parts.inputs], [initializer(*each) for each in parts.constants]
    between = {f"between{number}": node.result for number, node in enumerate(graph.nodes[:-1]) if node.result}
    # the answer of a branch is an output, and is declared there alone
    outputs = [info(name, between.pop(name, declared)) for name, declared in parts.outputs]
    value_info = [info(*each) for each in between.items()]
    whole = helper.make_graph(nodes, "graph", inputs, outputs, constants, value_info=value_info)
    opsets = [helper.make_opsetid("", ONNX_OPSETS.get(graph.nodes[0].operation, opset))]
    return helper.make_model(whole, opset_imports=opsets, ir_version=IR_VERSION)


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
    rejections: tuple[type[Exception], ...]
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

    def rejection(self, stage: str, error: Exception) -> Rejected:
        return rejection(stage, error)

    def compile(self, graph: Graph) -> OnnxProgram:
        check_facets(graph, self.claims.not_claimed)
        proto = model(graph, self.opset)
        try:
            return OnnxProgram(self, graph, self.load(proto))
        except self.rejections as error:
            raise self.rejection("compile", error) from error


class OnnxProgram:
    """A loaded model, ready to run."""

    def __init__(self, library: OnnxLibrary, graph: Graph, loaded: Any) -> None:
        self.library, self.graph, self.loaded = library, graph, loaded

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            answer = self.library.run(self.loaded, dict(arguments(self.graph, src, shapes)))
        except self.library.rejections as error:
            raise self.library.rejection("run", error) from error
        return self.library.export_dst(answer)
