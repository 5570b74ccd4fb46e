"""A graph of operations with declared dims. If an input gets other dims, they are followed through reshapes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from .nodes import Binding, Dims, InferDst, ReshapeNode, UnreadableModel, check_rank


class GraphOperation(NamedTuple):
    """One operation: the names of its tensors, and its reshape if it is one. The first input of a reshape is src."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: ReshapeNode | Callable[[Mapping[str, Dims | None]], ReshapeNode] | None = None
    """A function where shape is computed from the dims of tensors, which it takes."""


@dataclass(frozen=True)
class ModelGraph:
    """A graph in the order of its file. The dims of tensors that nobody declares are None."""

    operations: Sequence[GraphOperation]
    dims: Mapping[str, Dims | None]
    inputs: Mapping[str, Dims | None]
    answer: InferDst

    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes. Behind an input with other dims than declared, only reshapes tell theirs."""
        for name, given in binding.items():
            check_rank(name, self.inputs[name], given)
        dims = {**self.dims, **binding}
        stale = {name for name, given in binding.items() if given != self.dims.get(name)}
        nodes: dict[int, ReshapeNode] = {}
        for number in self._order:
            operation = self.operations[number]
            is_stale = any(name in stale for name in operation.inputs)
            dst = None
            if operation.node is not None:
                node = operation.node(dims) if callable(operation.node) else operation.node
                nodes[number] = node = self._read(node, operation, dims, stale)
                dst = self.answer(node)
            stale.update(operation.outputs if is_stale else ())
            dims |= {name: dst for name in operation.outputs if is_stale or dims.get(name) is None}
        return tuple(nodes[number] for number in sorted(nodes))

    def _read(
        self, node: ReshapeNode, operation: GraphOperation, dims: Mapping[str, Dims | None], stale: set[str]
    ) -> ReshapeNode:
        """Return the node with src as it is known by now. Behind changed inputs, declared dims do not hold."""
        src, *rest = operation.inputs or ("",)
        if stale.isdisjoint(operation.inputs):
            return node if node.src is not None else node._replace(src=dims.get(src))
        form = node.form._replace(declared=None) if node.form else None
        node = node._replace(declared=None, form=form)
        if src in stale:
            why = node.missing if dims[src] is not None else "the dims of src are not inferred for this length"
            node = node._replace(src=dims[src], missing=why)
        if any(name in stale for name in rest) and (node.shape is None or not callable(operation.node)):
            node = node._replace(shape=None, missing="shape is computed from an input")
        return node

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The numbers of the operations, each after those that make its inputs."""
        maker = {name: number for number, operation in enumerate(self.operations) for name in operation.outputs}
        graph = {
            number: {maker[name] for name in operation.inputs if name in maker}
            for number, operation in enumerate(self.operations)
        }
        try:
            return tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            circle = " → ".join(f"operation {number}" for number in error.args[1][:5])
            raise UnreadableModel(f"the graph is a circle: {circle}") from None
