"""Graphs and tensors, as a backend gets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .types import dtype_of

Array = NDArray[Any]


# ── what a backend sees ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Tensor:
    """Elements in memory that may have guards around them; bytes, not an ndarray, which stops at 64 dims."""

    type: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes, as NumPy counts them."""
    memory: bytearray | memoryview
    offset: int
    """Where the element with every index 0 begins."""
    shares_src: bool = False
    """Of an answer from another process: whether it lay in src's memory there."""

    def array(self) -> Array:
        """A NumPy view of the very memory, rank 64 at most."""
        return np.ndarray(self.dims, dtype_of(self.type), self.memory, self.offset, self.strides)


class Declared(NamedTuple):
    """What a graph says of a tensor before it exists."""

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
    """One operation of a graph. `shape` is the attribute of StaticReshape and the second input of the others."""

    operation: str
    shape: Operand | None
    """None: missing."""
    special_zero: Operand | None
    """None: missing. Well-formed: Operand('bool', (), (True,))."""
    result: Declared | None = None
    """What is declared of the output; None: nothing."""
    attributes: tuple[tuple[str, Operand], ...] = ()
    """Attributes that the operation does not have."""
    inputs: int = 1
    """How many tensors are connected as data inputs (shape not counted): 1 is right, 0 lacks src, 2 is one too many."""
    outputs: int = 1

    @property
    def well_formed(self) -> bool:
        """Whether a plain function call can express the node; an integer of any type becomes one of the language's."""
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
    """Nodes in a row: the first takes src, each next one the output before it."""

    src: Declared
    nodes: tuple[Node, ...]
