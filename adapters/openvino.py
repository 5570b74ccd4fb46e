"""OpenVINO: its CPU plugin, and the reference implementation that its core evaluates models with.

Shape known beforehand is a Constant beside a src of known lengths; shape that arrives is a Parameter beside a src of
which only the rank is known. A node is made from a mapping of attributes, so that one can be left out or mistyped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, ClassVar

import numpy as np

from conformance import Claims, Graph, Identity, Node, Operand, Rejected, Tensor, Unsupported
from conformance.model.types import WIDTH, dtype_of

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # or the import is reported to its makers

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
REFUSALS = (RuntimeError, ValueError, OverflowError, OVError)
VERSION = str(ov.get_version())
MOST_KEPT = 256
"""Compiled models at a time: to compile one takes forty milliseconds, so that equal graphs share one."""


class OpenVino:
    """The CPU plugin, on two threads: on one it takes another way, as OpenVinoOneThread shows."""

    name: ClassVar[str] = "openvino"
    threads: ClassVar[int] = 2
    claims = Claims(
        ("StaticReshape", "DynamicReshape-1", "Reshape-1"),
        ("declared", "form:outputs", "form:types", "runtime-shape:changing-rank"),
    )

    def __init__(self) -> None:
        self.core = ov.Core()
        self.kept: dict[Graph, Any] = {}

    @property
    def identity(self) -> Identity:
        device, abilities = (self.core.get_property("CPU", p) for p in PROPERTIES)
        detail = {"build": VERSION, "device": str(device), "capabilities": " ".join(sorted(abilities))}
        return Identity(self.name, VERSION.partition("-")[0], (*detail.items(), ("threads", str(self.threads))))

    def compile(self, graph: Graph) -> Request:
        common = in_common(graph)
        properties = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": self.threads}
        try:
            if common not in self.kept:
                if len(self.kept) == MOST_KEPT:
                    self.kept.clear()
                self.kept[common] = self.core.compile_model(model(common), "CPU", properties)
            return Request(self, graph, self.kept[common].create_infer_request())
        except REFUSALS as refusal:
            raise rejected("compile", refusal) from refusal

    def forget(self, graph: Graph) -> None:
        """A compiled model that refused a call is not used for other cases: it answers that call when asked again."""
        self.kept.pop(in_common(graph), None)


class OpenVinoOneThread(OpenVino):
    """The CPU plugin on one thread, where no refusal tells which compiled models are not fit to be shared."""

    name = "openvino-one-thread"
    threads = 1

    def compile(self, graph: Graph) -> Request:
        self.kept.clear()
        return super().compile(graph)


class Request:
    """A compiled model with memory of its own."""

    def __init__(self, plugin: OpenVino, graph: Graph, request: Any) -> None:
        self.plugin, self.graph, self.request = plugin, graph, request
        self.held: list[Any] = []
        """The plugin writes a strided src into the memory of the src before it, which must not be gone."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        arguments = inputs(self.graph, src, shapes)
        self.held += (src, *shapes, *arguments)
        try:
            for index, argument in enumerate(arguments):
                self.request.set_input_tensor(index, argument)
            self.request.infer()
            return copied(self.request.get_output_tensor(0))
        except REFUSALS as refusal:
            self.plugin.forget(self.graph)
            raise rejected("run", refusal) from refusal


class OpenVinoReference:
    """The core's own evaluation, without a plugin."""

    name = "openvino-reference"
    identity = Identity(name, VERSION.partition("-")[0], (("build", VERSION),))
    claims = OpenVino.claims._replace(leaves_out=("declared", "form:outputs", "form:types"))

    def compile(self, graph: Graph) -> Evaluation:
        try:
            return Evaluation(graph, model(in_common(graph)))
        except REFUSALS as refusal:
            raise rejected("compile", refusal) from refusal


class Evaluation:
    """A model to be evaluated."""

    def __init__(self, graph: Graph, model: Any) -> None:
        self.graph, self.model = graph, model

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        arguments = inputs(self.graph, src, shapes)
        answers = [ov.Tensor(TYPES[src.type], ov.Shape([0]))]
        try:
            evaluated = self.model.evaluate(answers, arguments)
        except REFUSALS as refusal:
            raise rejected("run", refusal) from refusal
        if not evaluated:
            raise Rejected("run", "evaluate returned false")
        return copied(answers[0])


def rejected(stage: str, refusal: Exception) -> Rejected:
    return Rejected(stage, f"{type(refusal).__name__}: {refusal}")


# ── models ────────────────────────────────────────────────────────────────────────────────────────


def in_common(graph: Graph) -> Graph:
    """What the model is made from, and whether src has gaps: graphs that come to the same are equal."""
    dims = graph.src.dims
    if dims is not None and any(node.shape is not None and node.shape.values is None for node in graph.nodes):
        dims = (None,) * len(dims)
    for node in graph.nodes:
        if node.outputs != 1:
            raise Unsupported("form:outputs")
        if node.result is not None:
            raise Unsupported("form:types" if node.result.type != graph.src.type else "declared")
    return Graph(graph.src._replace(dims=dims), tuple([node._replace(operation="Reshape") for node in graph.nodes]))


def model(graph: Graph) -> Any:
    """The graph as a model: src first, then further data inputs, then the shapes that arrive."""
    extra = max(0, *(node.inputs - 1 for node in graph.nodes))
    data = [parameter(graph.src.type, graph.src.dims) for _ in range(extra + 1)]
    arriving: list[Any] = []
    value = data[0]
    for node in graph.nodes:
        operands = [value][: node.inputs]
        if node.shape is not None:
            if node.shape.values is None:
                arriving.append(parameter(node.shape.type, node.shape.dims))
            operands.append(arriving[-1] if node.shape.values is None else constant(node.shape))
        value = NodeFactory("opset1").create("Reshape", operands + data[1 : node.inputs], attributes(node))
    return ov.Model([value], data + arriving, "graph")


def attributes(node: Node) -> dict[str, Any]:
    """A node's attributes, as Python values of their types."""
    written = dict(node.attributes)
    if node.special_zero is not None:
        written["special_zero"] = node.special_zero
    kinds = {"bool": bool, "string": str, **dict.fromkeys(("f16", "bf16", "f32", "f64"), float)}
    return {name: kinds.get(each.type, int)((each.values or ())[0]) for name, each in written.items()}


def parameter(type_: str, dims: tuple[int | None, ...] | None) -> Any:
    known = ov.PartialShape.dynamic() if dims is None else ov.PartialShape([-1 if n is None else n for n in dims])
    return ov.op.Parameter(TYPES[type_], known)


def constant(operand: Operand) -> Any:
    dims, values = [n for n in operand.dims if n is not None], operand.values
    if operand.type == "string":
        return ov.op.Constant(ov.Type.string, ov.Shape(dims), list(values or ()))
    return ov.op.Constant(filled(operand.type, dims, np.array(values, dtype_of(operand.type)).tobytes()))


# ── tensors ───────────────────────────────────────────────────────────────────────────────────────


def inputs(graph: Graph, src: Tensor, shapes: tuple[Tensor, ...]) -> list[Any]:
    """What a model is called with, in the order of its inputs."""
    data = max(1, *(node.inputs for node in graph.nodes))
    return [tensor(src)] * data + [tensor(shape) for shape in shapes]


def wrapped(type_: str, dims: Sequence[int], memory: bytearray | memoryview, offset: int) -> Any:
    """Memory that holds elements without gaps, as the library's tensor: nothing is copied, nothing kept alive."""
    bits = np.ndarray((max(1, prod(dims)),), f"<u{WIDTH[type_]}", memory, offset)  # some versions look at the first
    return ov.Tensor(bits, ov.Shape(list(dims)), TYPES[type_])


def tensor(given: Tensor) -> Any:
    """A tensor as the library's: the very memory where rows lie in order with gaps or without, else filled by NumPy."""
    around = enclosing(given)
    if around == given.dims or 0 in given.dims:
        return wrapped(given.type, given.dims, given.memory, given.offset)
    if around is not None:
        whole = wrapped(given.type, around, given.memory, given.offset)
        return ov.Tensor(whole, [0] * len(around), list(given.dims))
    return filled(given.type, given.dims, given.array().tobytes())


def filled(type_: str, dims: Sequence[int], elements: bytes) -> Any:
    """A tensor of the library's own with elements copied into it."""
    own, memory = ov.Tensor(TYPES[type_], ov.Shape(list(dims))), bytearray(elements)
    if memory:  # copy_to of an empty tensor may end the process
        wrapped(type_, dims, memory, 0).copy_to(own)
    return own


def enclosing(given: Tensor) -> tuple[int, ...] | None:
    """The lengths of a tensor without gaps, of which the given one is the part that begins at index 0."""
    if not given.dims:
        return ()
    width, dims, strides = WIDTH[given.type], given.dims, given.strides
    if strides[-1] != width or min(strides) <= 0 or any(outer % inner for outer, inner in pairwise(strides)):
        return None
    around = (dims[0], *(outer // inner for outer, inner in pairwise(strides)))
    fits = all(whole >= part for whole, part in zip(around, dims, strict=True))
    return around if fits and given.offset + prod(around) * width <= len(given.memory) else None


def copied(answer: Any) -> Tensor:
    """An answer in memory of its own, since the library uses its buffers again."""
    type_, dims = NAMES[repr(answer.element_type)], tuple(answer.shape)
    memory = bytearray(prod(dims) * WIDTH[type_])
    if memory:  # as above
        answer.copy_to(wrapped(type_, dims, memory, 0))
    strides = tuple(WIDTH[type_] * prod(max(n, 1) for n in dims[index + 1 :]) for index in range(len(dims)))
    return Tensor(type_, dims, strides, memory, 0)
