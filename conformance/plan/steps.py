"""One step of a row, ready to be called: its graph, its tensors in memory, and its meanings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count
from typing import NamedTuple

from ..model import Declared, Graph, Meaning
from .memory import GuardedBuffer, TensorSpec, lay_out, lay_out_shape, volume_of

_small_buffer = lru_cache(256)(lay_out)
_medium_buffer = lru_cache(4)(lay_out)
_shape_buffer = lru_cache(256)(lay_out_shape)
_FEW_KEPT_FROM_ELEMENTS = 1 << 9
"""Only a few tensors with this many elements or more stay in memory."""
_ONE_KEPT_FROM_ELEMENTS = 1 << 17
"""Only the latest tensor with this many elements or more stays in memory."""
SHARED_FROM_ELEMENTS = 1 << 21
"""Cases with equal dims of this many elements or more share their tensor."""


_latest: dict[TensorSpec, GuardedBuffer] = {}


def _reuse_latest_buffer(src_spec: TensorSpec) -> GuardedBuffer:
    buffer = _latest.get(src_spec)
    if buffer is None:
        _latest.clear()  # first, as two of them need twice the memory
        buffer = _latest[src_spec] = lay_out(src_spec)
    return buffer


@lru_cache(4)
def _allocate_shapes(number: int, size: int) -> bytearray:
    return bytearray(size)


def _put_in_one_memory(number: int, buffer: GuardedBuffer) -> GuardedBuffer:
    """Return a shape in the memory of all with its number and size. Who calls with it writes it there before."""
    tensor = replace(buffer.tensor, memory=_allocate_shapes(number, len(buffer.before)))
    return GuardedBuffer(tensor, buffer.before, buffer.elements)


class StepMeaning(NamedTuple):
    meaning: Meaning
    documents: tuple[str, ...]


@dataclass(eq=False)
class RowStep:
    """One call of a row."""

    graph: Graph
    src_spec: TensorSpec
    shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    """Shapes that arrive with run: type, dims, values."""
    may_overwrite: bool
    meanings: tuple[StepMeaning, ...]
    large: bool
    shape_step: int = 1
    """The distance in memory between two entries of a shape, in entries."""
    shape_offset: int = 0
    """How far a shape lies from where shapes begin, in entries."""
    one_shape_memory: bool = False
    """Whether the shapes lie where those of the step before lay."""
    new_program: bool = False
    """Whether the program is compiled for this step alone, and deleted after it."""

    @cached_property
    def src(self) -> GuardedBuffer:
        """src in memory, shared by all steps with the same src_spec."""
        if self.large:
            return lay_out(self.src_spec)
        if self.src_spec.layout == "far" or volume_of(self.src_spec.dims) >= _ONE_KEPT_FROM_ELEMENTS:
            return _reuse_latest_buffer(self.src_spec)
        return (_medium_buffer if self.is_too_large_to_keep else _small_buffer)(self.src_spec)

    @cached_property
    def is_too_large_to_keep(self) -> bool:
        far = self.src_spec.layout == "far"
        return self.large or far or volume_of(self.src_spec.dims) >= _FEW_KEPT_FROM_ELEMENTS

    @cached_property
    def strided_dst(self) -> Declared | None:
        """The dst for which the graph declares strides. What they reorder is the same in every later node."""
        return next((node.result for node in self.graph.nodes if node.result and node.result.strides), None)

    def free_memory(self) -> None:
        """Drop src if it is too large to keep; the next use makes it again."""
        if self.is_too_large_to_keep:
            self.__dict__.pop("src", None)

    @cached_property
    def arriving(self) -> tuple[GuardedBuffer, ...]:
        """The shapes that arrive with run, in memory."""
        buffers = tuple(_shape_buffer(*shape, self.shape_step, self.shape_offset) for shape in self.shapes)
        return tuple(map(_put_in_one_memory, count(), buffers)) if self.one_shape_memory else buffers
