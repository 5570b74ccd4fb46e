"""The base of adapters for array libraries, which call one reshape after another; helpers for all adapters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance import Array, Claims, Graph, Identity, Rejected, Tensor, Unsupported, array_of
from conformance.model import EVERY
from conformance.model.types import WIDTH


class NodeCall(NamedTuple):
    """The arguments of one node of a graph."""

    shape: tuple[int, ...]
    special_zero: bool
    shape_type: str
    runtime: bool
    """True if shape arrived with the call."""


NodeCalls = tuple[NodeCall, ...]


def resolve_zeros(src: Sequence[int], call: NodeCall) -> tuple[int, ...]:
    """Return the shape for a library without special_zero, with copied lengths in place of zeros.

    A 0 past the rank of src stays.
    """
    if not call.special_zero:
        return call.shape
    return tuple(src[i] if entry == 0 and i < len(src) else entry for i, entry in enumerate(call.shape))


def has_elements(dims: Sequence[int]) -> bool:
    """True if an answer has elements to read; a library may report negative lengths or more than 2^60 elements."""
    return min(dims, default=1) > 0 and not math.prod(dims) >> 60


def without_elements(type_: str, dims: Sequence[int]) -> Tensor:
    """Return an answer that has dims but no elements, because NumPy may not be able to hold such an array."""
    return Tensor(type_, tuple(dims), (0,) * len(dims), bytearray(), 0)


def strides_of(type_: str, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor, in bytes."""
    return tuple(WIDTH[type_] * math.prod(max(n, 1) for n in dims[index + 1 :]) for index in range(len(dims)))


def rejection(stage: str, refusal: Exception) -> Rejected:
    """Return the rejection of a call that a library rejects by an exception."""
    return Rejected(stage, f"{type(refusal).__name__}: {refusal}")


class ArrayLibrary:
    """A library whose reshape takes its own tensor and a shape; a subclass converts the tensors."""

    name: str = ""
    version: str = ""
    detail: tuple[tuple[str, str], ...] = ()
    operations: tuple[str, ...] = EVERY
    leaves_out: tuple[str, ...] = ("declared", "form")
    answers_special_zero: bool = True
    refusals: tuple[type[Exception], ...] = (ValueError, RuntimeError, OverflowError)

    def import_src(self, src: Tensor) -> Any:
        """Return src as a tensor of the library."""
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
        return Claims(self.operations, self.leaves_out, self.answers_special_zero)

    def compile(self, graph: Graph) -> ArrayProgram:
        for node in graph.nodes:
            if not node.well_formed:
                raise Unsupported("form")
            if node.result is not None:
                raise Unsupported("declared")
            if node.shape is not None and node.shape.values is None and "runtime-shape" in self.leaves_out:
                raise Unsupported("runtime-shape")
        return ArrayProgram(self, graph)


class ArrayProgram:
    """A graph that an array library runs call by call."""

    def __init__(self, library: ArrayLibrary, graph: Graph) -> None:
        self.library, self.nodes = library, graph.nodes

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        arriving = iter(shapes)
        calls = []
        for node in self.nodes:
            assert node.shape is not None
            assert node.special_zero is not None
            assert node.special_zero.values is not None
            values = node.shape.values if node.shape.values is not None else next(arriving).array().tolist()
            runtime = node.shape.values is None
            calls.append(NodeCall(tuple(values), bool(node.special_zero.values[0]), node.shape.type, runtime))
        try:
            dst = self.library.run_chain(self.library.import_src(src), tuple(calls))
        except self.library.refusals as refusal:
            raise rejection("run", refusal) from refusal
        return self.library.export_dst(dst)
