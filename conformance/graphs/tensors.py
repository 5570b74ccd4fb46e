"""A model as tensors and operations, for formats of which we read no more: dims flow through reshapes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from ..meaning.partial import Length, Lengths
from .lengths import bind_symbols, symbols_of
from .nodes import MOST_ENTRIES, Answer, Bound, ReshapeNode


class Tensor(NamedTuple):
    """A tensor as the file declares it."""

    type: str | None
    dims: Lengths | None
    values: Lengths | None = None
    """The elements, if they are a constant of the file and few."""


class Operation(NamedTuple):
    """An operation with the ids of the tensors that it takes and gives."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reshape: ReshapeNode | None = None
    """What the file says of the node itself; src, shape and dst are filled in from the tensors."""
    shape_input: str | None = None
    """The tensor that holds shape, if it is no attribute."""


class Cycle(Exception):
    """Operations that take one another's outputs; the message names them."""


@dataclass(frozen=True)
class TensorGraph:
    """The content of a file."""

    tensors: Mapping[str, Tensor]
    operations: Sequence[Operation]
    inputs_by_name: Mapping[str, str]
    """The ids of the inputs by the names that --input uses."""

    def __post_init__(self) -> None:
        in_order(self.operations)  # Cycle if there is no order

    @property
    def inputs(self) -> Mapping[str, Lengths | None]:
        return {name: self.tensors[id_].dims for name, id_ in self.inputs_by_name.items()}

    def nodes(self, bound: Bound, answer: Answer) -> Sequence[ReshapeNode]:
        """Return the reshape nodes. Dims that follow from a bound length through other operations are not known."""
        symbols = symbols_of(self.inputs, bound)
        dims = {id_: bind_symbols(tensor.dims, symbols) for id_, tensor in self.tensors.items()}
        stale = set()
        for name, lengths in bound.items():
            id_ = self.inputs_by_name[name]
            old = dims[id_]
            dims[id_] = now = _overlay(old, lengths)
            if _contradicts(old, now):
                stale.add(id_)
        values = {id_: bind_symbols(tensor.values, symbols) for id_, tensor in self.tensors.items()}
        makers = {output: each for each in self.operations for output in each.outputs}
        found: dict[int, ReshapeNode] = {}
        for operation in in_order(self.operations):
            is_stale = not stale.isdisjoint(operation.inputs)
            if operation.reshape is not None:
                node = self._node(operation, dims, values, makers, is_stale)
                node = _bind_node(node, symbols)
                found[id(operation)] = node
                dst = answer(node)
            else:
                dst = None
            for output in operation.outputs:
                declared = dims.get(output)
                if operation.reshape is not None and dst is not None:
                    dims[output] = dst if is_stale or declared is None else _overlay(declared, dst)
                elif is_stale:
                    dims[output] = None
                if is_stale:
                    stale.add(output)
        return [found[id(operation)] for operation in self.operations if operation.reshape is not None]

    def _node(
        self, operation: Operation, dims: Mapping[str, Lengths | None], values: Mapping[str, Lengths | None],
        makers: Mapping[str, Operation], is_stale: bool,
    ) -> ReshapeNode:  # fmt: skip
        assert operation.reshape is not None
        node, whence = operation.reshape, {}
        if operation.inputs:
            src = operation.inputs[0]
            tensor = self.tensors.get(src, Tensor(None, None))
            node = node._replace(src=dims.get(src), src_type=tensor.type)
            whence["src"] = _describe_maker(makers.get(src))
        if operation.shape_input is not None:
            given = self.tensors.get(operation.shape_input, Tensor(None, None))
            entries = values.get(operation.shape_input)
            if entries is None and given.dims and len(given.dims) == 1:
                count = given.dims[0]
                entries = (None,) * count if isinstance(count, int) and count <= MOST_ENTRIES else None
            node = node._replace(shape=entries)
            whence["shape"] = _describe_maker(makers.get(operation.shape_input))
        if operation.outputs:
            result = self.tensors.get(operation.outputs[0], Tensor(None, None))
            declared = None if is_stale else dims.get(operation.outputs[0])
            node = node._replace(declared=declared, dst_type=result.type)
        return node._replace(whence=whence)


def _bind_node(node: ReshapeNode, symbols: Mapping[str, int]) -> ReshapeNode:
    return node._replace(shape=bind_symbols(node.shape, symbols)) if symbols else node


def _describe_maker(operation: Operation | None) -> str:
    return "an input of the graph" if operation is None else f"{operation.kind} {operation.name!r}"


def _overlay(dims: Lengths | None, lengths: Sequence[Length]) -> Lengths:
    """Return lengths, and those of dims where they are not known."""
    if dims is None or len(dims) != len(lengths):
        return tuple(lengths)
    return tuple(old if new is None else new for old, new in zip(dims, lengths, strict=True))


def _contradicts(old: Lengths | None, new: Lengths) -> bool:
    if old is None:
        return False
    return len(old) != len(new) or any(isinstance(a, int) and a != b for a, b in zip(old, new, strict=True))


def in_order(operations: Sequence[Operation]) -> Iterable[Operation]:
    """Return operations so that each comes after those whose outputs it takes; Cycle if there is no such order."""
    makers = {output: k for k, each in enumerate(operations) for output in each.outputs}
    sorter = TopologicalSorter(
        {k: {makers[i] for i in each.inputs if i in makers} for k, each in enumerate(operations)}
    )
    try:
        return [operations[k] for k in sorter.static_order()]
    except CycleError as error:
        names = " → ".join(repr(operations[k].name) for k in error.args[1][:6])
        raise Cycle(f"operations take one another's outputs: {names}") from None
