"""Graphs and tensors, as a backend receives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .types import dtype_of

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Tensor:
    """Elements in memory, perhaps between guards. It is no ndarray, because NumPy has at most 64 dims."""

    type: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes, as in NumPy."""
    memory: bytearray | memoryview
    offset: int
    """The byte at which the element with every index 0 begins."""
    shares_src: bool = False
    """Whether it is an answer from another process, where it shared the memory of src."""

    def array(self) -> Array:
        """Return a NumPy view of the memory; the rank is 64 at most."""
        return np.ndarray(self.dims, dtype_of(self.type), self.memory, self.offset, self.strides)


class Declared(NamedTuple):
    """The type, dims and strides that a graph declares for a tensor."""

    type: str
    dims: tuple[int | None, ...] | None
    """None: not even the rank is known. An entry None: that length is not known."""
    strides: tuple[int, ...] | None = None
    """In bytes; None: dense or not known."""


class Operand(NamedTuple):
    """An attribute or an input as written in a node."""

    type: str
    """An element type; for attributes also `bool` and `string`."""
    dims: tuple[int | None, ...]
    values: tuple[Any, ...] | None
    """In row-major order; None: they arrive with run."""


INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


class Node(NamedTuple):
    """One operation of a graph. `shape` is its attribute or its second input."""

    operation: str
    shape: Operand | None
    """None: missing."""
    special_zero: Operand | None
    """None: missing. Well-formed: Operand('bool', (), (True,))."""
    result: Declared | None = None
    """The declaration of the output; None: there is none."""
    attributes: tuple[tuple[str, Operand], ...] = ()
    """Attributes that the operation does not have."""
    inputs: int = 1
    """Data inputs, not counting shape: 1 is right, 0 lacks src, 2 is one too many."""
    outputs: int = 1
    takes_src: bool = False
    """Whether a later node takes src, not the output before it."""
    shares_shape: bool = False
    """Whether its shape is the tensor of the node before. Both nodes hold the values, or the values arrive for both."""

    @property
    def well_formed(self) -> bool:
        """A plain function call can express the node. The integer type of shape does not matter."""
        return (
            self.shape is not None
            and len(self.shape.dims) == 1
            and self.shape.type in INTEGERS
            and self.special_zero is not None
            and self.special_zero.type == "bool"
            and not self.attributes
            and self.inputs == self.outputs == 1
        )


class Graph(NamedTuple):
    """Nodes in a row: the first takes src, each next one the output before it.

    The answer is the output of the last one. If a node takes src although it is not the first, the graph is a fork.
    """

    src: Declared
    nodes: tuple[Node, ...]
