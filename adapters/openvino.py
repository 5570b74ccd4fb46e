"""OpenVINO: its CPU plugin, and the reference implementation in its core.

A known shape becomes a Constant, and the lengths of src are known. A shape that arrives with the call becomes a
Parameter, and only the rank of src is known. A mapping of attributes makes a node, so that one can lack or be mistyped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np

from conformance import Claims, Graph, Identity, Operand, Rejected, Tensor
from conformance.adapter import rejection
from conformance.model.types import WIDTH, dtype_of

from .shared import graph_of_model, node_attributes, own_shapes, strides_of

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # otherwise the import sends telemetry

import openvino as ov  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
from openvino.exceptions import OVError  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
from openvino.utils.node_factory import NodeFactory  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

TYPES = {
    "f16": ov.Type.f16, "bf16": ov.Type.bf16, "f32": ov.Type.f32, "f64": ov.Type.f64, "bool": ov.Type.boolean,
    "s8": ov.Type.i8, "u8": ov.Type.u8, "s16": ov.Type.i16, "u16": ov.Type.u16,
    "s32": ov.Type.i32, "u32": ov.Type.u32, "s64": ov.Type.i64, "u64": ov.Type.u64,
}  # fmt: skip
NAMES = {repr(type_): name for name, type_ in TYPES.items()}
PROPERTIES = ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")
REJECTIONS = (RuntimeError, ValueError, OverflowError, OVError)
VERSION = str(ov.get_version())
MOST_MODELS = 256
"""Compiled models that are kept, those used last; equal graphs share one, since compiling takes twenty milliseconds.

Each has its own threads and some 16 MB of address space. Twice as many save three compilations of a hundred."""


class OpenVino:
    """OpenVINO's CPU plugin on two threads; with one thread it runs other code, see openvino-one-thread."""

    name: ClassVar[str] = "openvino"
    threads: ClassVar[int] = 2
    claims = Claims(
        ("StaticReshape", "DynamicReshape-1", "Reshape-1"),
        ("declared", "form:outputs", "form:types", "runtime-shape:changing-rank", "unknown-src:rank", "shared-src",
         "threads:one-program"),  # an infer request runs once at a time, says its documentation
    )  # fmt: skip

    def __init__(self) -> None:
        self.core = ov.Core()
        self.models: dict[Graph, Any] = {}

    @property
    def identity(self) -> Identity:
        device, abilities = (self.core.get_property("CPU", p) for p in PROPERTIES)
        detail = {"build": VERSION, "device": str(device), "capabilities": " ".join(sorted(abilities))}
        return Identity(self.name, VERSION.partition("-")[0], (*detail.items(), ("threads", str(self.threads))))

    def compile(self, graph: Graph) -> Request:
        common = graph_of_model(graph)
        properties = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": self.threads}
        try:
            compiled = self.models.pop(common, None) or self.core.compile_model(model(common), "CPU", properties)
            self.models[common] = compiled  # as the newest
            if len(self.models) > MOST_MODELS:
                del self.models[next(iter(self.models))]
            return Request(self, graph, compiled.create_infer_request())
        except REJECTIONS as error:
            raise rejection("compile", error) from error

    def forget(self, graph: Graph) -> None:
        """Drop a compiled model that rejected a call: it answers the same call when it is repeated."""
        self.models.pop(graph_of_model(graph), None)


class OpenVinoOneThread(OpenVino):
    """OpenVINO's CPU plugin on one thread; no compiled model is shared, since a wrong one shows no rejection."""

    name = "openvino-one-thread"
    threads = 1

    def compile(self, graph: Graph) -> Request:
        self.models.clear()
        return super().compile(graph)


class Request:
    """An inference request of a compiled model, with its own memory."""

    def __init__(self, plugin: OpenVino, graph: Graph, request: Any) -> None:
        self.plugin, self.graph, self.request = plugin, graph, request
        self.buffers: list[Any] = []
        """Every input so far: the plugin writes a strided src into the memory of the src before it."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        arguments = inputs(self.graph, src, shapes)
        self.buffers += (src, *shapes, *arguments)
        try:
            for index, argument in enumerate(arguments):
                self.request.set_input_tensor(index, argument)
            self.request.infer()
            return copy_answer(self.request.get_output_tensor(0))
        except REJECTIONS as error:
            self.plugin.forget(self.graph)
            raise rejection("run", error) from error


class OpenVinoReference:
    """OpenVINO's reference implementation, evaluated by its core without a plugin."""

    name = "openvino-reference"
    identity = Identity(name, VERSION.partition("-")[0], (("build", VERSION),))
    claims = OpenVino.claims._replace(
        not_claimed=("declared", "form:outputs", "form:types", "shared-src", "threads:one-program")
    )

    def compile(self, graph: Graph) -> Evaluation:
        try:
            return Evaluation(graph, model(graph_of_model(graph)))
        except REJECTIONS as error:
            raise rejection("compile", error) from error


class Evaluation:
    """A model for the core's evaluation."""

    def __init__(self, graph: Graph, model: Any) -> None:
        self.graph, self.model = graph, model

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        arguments = inputs(self.graph, src, shapes)
        answers = [ov.Tensor(TYPES[src.type], ov.Shape([0]))]
        try:
            succeeded = self.model.evaluate(answers, arguments)
        except REJECTIONS as error:
            raise rejection("run", error) from error
        if not succeeded:
            raise Rejected("run", "evaluate returned false")
        return copy_answer(answers[0])


# ── models ────────────────────────────────────────────────────────────────────────────────────────


def model(graph: Graph) -> Any:
    """Return the model of a graph; its inputs are src, further data inputs, and the shapes that arrive."""
    extra = max(0, *(node.inputs - 1 for node in graph.nodes))
    data = [parameter(graph.src.type, graph.src.dims) for _ in range(extra + 1)]
    arriving: list[Any] = []
    value, shape = data[0], None
    for node in graph.nodes:
        operands = [value][: node.inputs]
        if node.shape is not None:
            if not node.shares_shape and node.shape.values is None:
                arriving.append(parameter(node.shape.type, node.shape.dims))
            if not node.shares_shape:
                shape = arriving[-1] if node.shape.values is None else constant(node.shape)
            operands.append(shape)
        value = NodeFactory("opset1").create("Reshape", operands + data[1 : node.inputs], node_attributes(node))
    return ov.Model([value], data + arriving, "graph")


def parameter(type_: str, dims: tuple[int | None, ...] | None) -> Any:
    shape = ov.PartialShape.dynamic() if dims is None else ov.PartialShape([-1 if n is None else n for n in dims])
    return ov.op.Parameter(TYPES[type_], shape)


def constant(operand: Operand) -> Any:
    dims, values = [n for n in operand.dims if n is not None], operand.values
    if operand.type == "string":
        return ov.op.Constant(ov.Type.string, ov.Shape(dims), list(values or ()))
    return ov.op.Constant(fill_tensor(operand.type, dims, np.array(values, dtype_of(operand.type)).tobytes()))


# ── tensors ───────────────────────────────────────────────────────────────────────────────────────


def inputs(graph: Graph, src: Tensor, shapes: tuple[Tensor, ...]) -> list[Any]:
    """Return the arguments of a model, in the order of its inputs."""
    data = max(1, *(node.inputs for node in graph.nodes))
    return [to_ov_tensor(src)] * data + [to_ov_tensor(shape) for shape in own_shapes(graph, shapes)]


def wrap_memory(type_: str, dims: Sequence[int], memory: bytearray | memoryview, offset: int) -> Any:
    """Return an ov.Tensor over dense memory; it is no copy, and it does not keep the memory alive."""
    bits = np.ndarray((max(1, prod(dims)),), f"<u{WIDTH[type_]}", memory, offset)  # some versions read one
    return ov.Tensor(bits, ov.Shape(list(dims)), TYPES[type_])


def to_ov_tensor(ours: Tensor) -> Any:
    """Return an ov.Tensor over the memory of a tensor if strides are positive and nested, else a dense copy."""
    around = enclosing_dims(ours)
    if around == ours.dims or 0 in ours.dims:
        return wrap_memory(ours.type, ours.dims, ours.memory, ours.offset)
    if around is not None:
        whole = wrap_memory(ours.type, around, ours.memory, ours.offset)
        return ov.Tensor(whole, [0] * len(around), list(ours.dims))
    return fill_tensor(ours.type, ours.dims, ours.array().tobytes())


def fill_tensor(type_: str, dims: Sequence[int], elements: bytes) -> Any:
    """Return an ov.Tensor with new memory, and copy elements into it."""
    own, memory = ov.Tensor(TYPES[type_], ov.Shape(list(dims))), bytearray(elements)
    if memory:  # copy_to of an empty tensor may end the process
        wrap_memory(type_, dims, memory, 0).copy_to(own)
    return own


def enclosing_dims(ours: Tensor) -> tuple[int, ...] | None:
    """Return the dims of a dense tensor that has this one at the start of each axis; None if there is none."""
    if not ours.dims:
        return ()
    width, dims, strides = WIDTH[ours.type], ours.dims, ours.strides
    if strides[-1] != width or min(strides) <= 0 or any(outer % inner for outer, inner in pairwise(strides)):
        return None
    around = (dims[0], *(outer // inner for outer, inner in pairwise(strides)))
    fits = all(whole >= part for whole, part in zip(around, dims, strict=True))
    return around if fits and ours.offset + prod(around) * width <= len(ours.memory) else None


def copy_answer(answer: Any) -> Tensor:
    """Copy an answer into new memory, since the library reuses its buffers."""
    type_, dims = NAMES[repr(answer.element_type)], tuple(answer.shape)
    memory = bytearray(prod(dims) * WIDTH[type_])
    if memory:  # as above
        answer.copy_to(wrap_memory(type_, dims, memory, 0))
    return Tensor(type_, dims, strides_of(type_, dims), memory, 0)
