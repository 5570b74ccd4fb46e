"""One step of a row, ready to be called: its graph, its tensors in memory, and its meanings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..model import Graph, Meaning
from .memory import GuardedBuffer, TensorSpec, image_of, shape_image, volume_of

_CACHED_IMAGES = 4096
_image = lru_cache(_CACHED_IMAGES)(image_of)
_MANY, _CACHED_OF_MANY = 1 << 9, 4
"""Elements of which only a few images are kept, and how many."""
_image_of_many = lru_cache(_CACHED_OF_MANY)(image_of)
_shape_image = lru_cache(_CACHED_IMAGES)(shape_image)
GREAT = 1 << 21
"""Only the latest image of this many elements or more is kept; cases of the same dims and type share it."""
_great_image = lru_cache(1)(image_of)


class StepMeaning(NamedTuple):
    """One meaning of a step, and the documents in which it has it."""

    meaning: Meaning
    documents: tuple[str, ...]


@dataclass(eq=False)
class RowStep:
    """One call of a row."""

    graph: Graph
    source: TensorSpec
    shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    """Shapes that arrive with run: type, dims, values."""
    may_overwrite: bool
    meanings: tuple[StepMeaning, ...]
    large: bool
    shape_step: int = 1
    """The distance in memory between two entries of a shape, in entries."""

    @property
    def great(self) -> bool:
        """True if src takes much of this process's memory."""
        return volume_of(self.source.dims) >= GREAT

    @cached_property
    def src(self) -> GuardedBuffer:
        """src in memory, shared by all steps with the same source."""
        if self.large:
            return image_of(self.source)
        if self.great:
            return _great_image(self.source)
        return (_image_of_many if self.has_many else _image)(self.source)

    @cached_property
    def has_many(self) -> bool:
        """True if src is too large to keep."""
        return self.large or volume_of(self.source.dims) >= _MANY

    def free_memory(self) -> None:
        """Drop src if it is too large to keep; the next use makes it again."""
        if self.has_many:
            self.__dict__.pop("src", None)

    @cached_property
    def arriving(self) -> tuple[GuardedBuffer, ...]:
        """The shapes that arrive with run, in memory."""
        return tuple(_shape_image(*shape, self.shape_step) for shape in self.shapes)
