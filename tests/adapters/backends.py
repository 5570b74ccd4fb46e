"""Graphs, calls and backends for the tests of adapters."""

from typing import Any

import pytest

from conformance.adapter import CannotStart, load_adapter
from conformance.model import Declared, Graph, Node, Operand, Tensor
from conformance.model.types import name_of
from conformance.plan.memory import TensorSpec, lay_out
from conformance.run.call import elements_of

NO, YES = Operand("bool", (), (False,)), Operand("bool", (), (True,))
LAYOUTS = ("transposed", "padded", "cropped", "offset", "broadcast", "reversed")


def load_or_skip(backend: str) -> Any:
    try:
        return load_adapter(backend)
    except CannotStart as cannot:
        pytest.skip(str(cannot))


def node(
    shape: tuple[int, ...] | None, zero: Operand | None = NO, operation: str = "StaticReshape", **more: Any
) -> Node:
    return Node(operation, None if shape is None else Operand("s64", (len(shape),), shape), zero, **more)


def graph(
    type_: str, src: tuple[int, ...], shape: tuple[int, ...] | None, *, zero: Operand | None = NO, **more: Any
) -> Graph:
    """A graph of one Reshape-1."""
    return Graph(Declared(type_, src), (node(shape, zero, "Reshape-1", **more),))


def parts_of(dst: Any) -> tuple[str, tuple[int, ...], bytes]:
    """The type, dims and elements of an answer."""
    type_ = dst.type if isinstance(dst, Tensor) else name_of(dst.dtype)
    return type_, tuple(dst.dims if isinstance(dst, Tensor) else dst.shape), bytes(elements_of(dst))


def answer(adapter: Any, graph: Graph, source: TensorSpec) -> tuple[str, tuple[int, ...], bytes]:
    return parts_of(adapter.compile(graph).run(lay_out(source).tensor, (), False))
