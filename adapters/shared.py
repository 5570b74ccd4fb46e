"""What the adapters of array libraries have in common: their tensors, called one reshape after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance import Array, Claims, Graph, Identity, Rejected, Tensor, Unsupported, array_of
from conformance.model import EVERY
from conformance.model.types import WIDTH


class Call(NamedTuple):
    """What one node of a graph says."""

    shape: tuple[int, ...]
    special_zero: bool
    shape_type: str
    runtime: bool
    """Whether shape came with the call."""


Calls = tuple[Call, ...]


def copied_zeros(src: Sequence[int], call: Call) -> tuple[int, ...]:
    """The shape for a library without special_zero: zeros that copy are resolved; past the rank of src a 0 stays."""
    if not call.special_zero:
        return call.shape
    return tuple(src[i] if entry == 0 and i < len(src) else entry for i, entry in enumerate(call.shape))


def has_elements(dims: Sequence[int]) -> bool:
    """Whether an answer can be read at all; a library may claim more elements than 64 bits count."""
    return min(dims, default=1) > 0 and not math.prod(dims) >> 60


def without_elements(type_: str, dims: Sequence[int]) -> Tensor:
    """An answer that NumPy may have no room for: empty, of negative lengths, of more elements than memory holds."""
    return Tensor(type_, tuple(dims), (0,) * len(dims), bytearray(), 0)


def strides_of(type_: str, dims: Sequence[int]) -> tuple[int, ...]:
    """Those of a dense tensor, in bytes."""
    return tuple(WIDTH[type_] * math.prod(max(n, 1) for n in dims[index + 1 :]) for index in range(len(dims)))


class ArrayLibrary:
    """A library whose reshape takes its own tensor and a shape; a subclass says how tensors get in and out."""

    name: str = ""
    version: str = ""
    detail: tuple[tuple[str, str], ...] = ()
    operations: tuple[str, ...] = EVERY
    leaves_out: tuple[str, ...] = ("declared", "form")
    answers_special_zero: bool = True
    refusals: tuple[type[Exception], ...] = (ValueError, RuntimeError, OverflowError)

    def tensor(self, src: Tensor) -> Any:
        """src as the library's own tensor."""
        return array_of(src)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        """The library's call."""
        raise NotImplementedError

    def answer(self, dst: Any) -> Tensor | Array:
        """The library's tensor as the suite reads it."""
        array: Array = dst
        return array

    def chain(self, src: Any, calls: Calls) -> Any:
        """The nodes of a graph; a compiling library overrides it."""
        for call in calls:
            src = self.reshape(src, copied_zeros(src.shape, call) if self.answers_special_zero else call.shape)
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
            calls.append(Call(tuple(values), bool(node.special_zero.values[0]), node.shape.type, runtime))
        try:
            dst = self.library.chain(self.library.tensor(src), tuple(calls))
        except self.library.refusals as refusal:
            raise Rejected("run", f"{type(refusal).__name__}: {refusal}") from refusal
        return self.library.answer(dst)
