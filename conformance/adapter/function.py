"""Adapters written as one Python function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..model import EVERY, Array, Claims, Graph, Identity, Node, Rejected, Tensor, Unsupported
from ..system.text import as_text


class FunctionAdapter:
    """A backend that is one function from an array to an array; subclass it and write `reshape`."""

    name: str = ""
    version: str = ""
    operations: tuple[str, ...] = EVERY
    """The operations that it supports; by default every one of the suite."""
    not_claimed: tuple[str, ...] = ("declared", "form", "rank:65")
    """Facets that a function of NumPy arrays cannot express; add what the library lacks, such as `layout:reversed`."""
    answers_special_zero: bool = False
    """`reshape` answers special_zero itself, because the library has no such flag."""
    rejections: tuple[type[Exception], ...] = (ValueError, RuntimeError, OverflowError)
    """The exceptions by which the library rejects a call; never Exception, TypeError or AttributeError."""

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        raise NotImplementedError(f"{type(self).__name__} does not define reshape(self, src, shape, special_zero)")

    @property
    def identity(self) -> Identity:
        return Identity(self.name, self.version)

    @property
    def claims(self) -> Claims:
        for name in ("operations", "not_claimed"):
            names = getattr(self, name)
            if isinstance(names, str):  # ("declared") is text, which tuple() would take apart
                raise TypeError(f"`{name}` is {names!r}; write ({names!r},), with the comma")
            if not hasattr(names, "__iter__"):
                raise TypeError(f"`{name}` is {names!r}; write a tuple of names, or leave the line out")
        return Claims(tuple(self.operations), tuple(self.not_claimed), self.answers_special_zero)

    def compile(self, graph: Graph) -> FunctionProgram:
        check_nodes_plain(graph)
        return FunctionProgram(self, graph.nodes)


class FunctionProgram:
    """The nodes of a graph, called one after another."""

    def __init__(self, adapter: FunctionAdapter, nodes: tuple[Node, ...]) -> None:
        self.adapter, self.nodes = adapter, nodes

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        array = given = array_of(src)
        calls = tuple(node_calls(self.nodes, shapes))
        try:
            for call in calls:
                array = self.adapter.reshape(given if call.takes_src else array, call.shape, call.special_zero)
        except self.adapter.rejections as error:
            raise rejection("run", error) from error
        return array


class NodeCall(NamedTuple):
    """The arguments of one node of a graph."""

    shape: tuple[int, ...]
    special_zero: bool
    shape_type: str
    runtime: bool
    """shape arrived with the call."""
    takes_src: bool = False
    """A later node takes src, not the output before it."""


def check_nodes_plain(graph: Graph) -> None:
    """Raise Unsupported for nodes that a function of arrays cannot express: another form, or a declared output."""
    for node in graph.nodes:
        if not node.well_formed:
            raise Unsupported("form")
        if node.result is not None:
            raise Unsupported("declared")


def node_calls(nodes: Iterable[Node], shapes: Iterable[Tensor]) -> Iterator[NodeCall]:
    """Yield the arguments of each node; `shapes` are those that arrive with the call."""
    arriving = iter(shapes)
    for node in nodes:
        assert node.shape is not None
        assert node.special_zero is not None
        assert node.special_zero.values is not None
        values = node.shape.values if node.shape.values is not None else next(arriving).array().tolist()
        runtime = node.shape.values is None
        yield NodeCall(tuple(values), bool(node.special_zero.values[0]), node.shape.type, runtime, node.takes_src)


def rejection(stage: str, error: Exception) -> Rejected:
    """Return the rejection of a call that a library rejects by an exception."""
    return Rejected(stage, f"{type(error).__name__}: {as_text(error)}")


def array_of(src: Tensor) -> Array:
    """Return src as a NumPy array; Rejected if its lengths are too large for NumPy, Unsupported if its rank is."""
    check_rank_in_numpy(src.dims)
    try:
        return src.array()
    except ValueError as error:
        raise Rejected("run", f"src cannot be a NumPy array: {error}") from error


def check_rank_in_numpy(dims: Sequence[int]) -> None:
    """Raise Unsupported for more than 64 dims, the most that a NumPy array has."""
    if len(dims) > 64:
        raise Unsupported(f"rank:{len(dims)}")
