"""The calls of a sweep: a bounded domain in blocks, and the ways in which each of its calls is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..isolate.backend import Isolation
from ..isolate.process.launch import DEFAULT_LIMITS, ProcessLimits
from ..meaning.domain import Domain, Lengths
from ..model import Layout, ShapePassedAs, Spec

_MAX_SHAPES = 256
"""The most shapes of a block; their nodes are kept while the sources pass by."""
_CALLS_OF_BLOCK = 1024
"""Calls of a block, about, for each way of making them: a few seconds in a worker, which an interruption loses."""
_MAX_PRODUCT = 1 << 62
"""No product of lengths in a domain may be larger: they are counted in 64 bits."""


class CallVariant(NamedTuple):
    """One way in which a call can be made."""

    operation: str
    shape_passed_as: ShapePassedAs
    shape_type: str
    type: str
    layout: Layout

    def __str__(self) -> str:
        parts = [self.operation, self.type]
        if self.shape_passed_as != "attribute":
            parts += [self.shape_type, self.shape_passed_as]
        return " ".join(parts if self.layout == "dense" else [*parts, self.layout])


class Block(NamedTuple):
    """Calls that are made together: some srcs of one rank, each with some shapes of one length and both flags."""

    rank: int
    entries: int
    first_shape: int
    shapes: int
    first_src: int
    srcs: int

    @property
    def calls(self) -> int:
        return 2 * self.shapes * self.srcs


class SweepRequest(NamedTuple):
    """A sweep that was asked for: all that a process needs to know to make the calls of a block."""

    backend: str
    domain: Domain
    ways: tuple[CallVariant, ...]
    isolation: Isolation = "none"
    limits: ProcessLimits = DEFAULT_LIMITS
    suite: Path | None = None
    digest: str = ""
    """The digest of the specification, which every process must have."""

    @property
    def calls(self) -> int:
        return self.domain.size * len(self.ways)


def list_variants(
    spec: Spec, operations: Sequence[str] = (), types: Sequence[str] = (), layouts: Sequence[Layout] = ("dense",)
) -> tuple[CallVariant, ...]:
    """List the ways in which the chosen operations can be called with the chosen types and layouts."""
    return tuple(
        CallVariant(operation.id, shape_passed_as, shape_type, type_, layout)
        for operation in spec.operations.values()
        if not operations or operation.id in operations
        for shape_passed_as in operation.shape_passed_as
        for shape_type in operation.shape_types
        for type_ in operation.types
        if not types or type_ in types
        for layout in layouts
    )


def is_too_large(domain: Domain) -> bool:
    longest = max(domain.max_length, domain.highest, -domain.lowest, 1)
    factors = max(domain.max_rank, domain.max_entries, 1)
    return bool(longest ** min(factors, 62) >= _MAX_PRODUCT)  # 2 ** 62 is enough, and more may take hours


def list_lengths(first: int, count: int, rank: int, lowest: int, highest: int) -> tuple[Lengths, ...]:
    """List tuples number `first` to `first + count` of all tuples of `rank` numbers."""
    base = highest - lowest + 1
    bases = [base**place for place in reversed(range(rank))]
    return tuple(tuple(number // each % base + lowest for each in bases) for number in range(first, first + count))


def blocks_of(domain: Domain) -> Iterator[Block]:
    """Yield the blocks of a domain, fewer dimensions first; together they hold each call once."""
    pairs = [(rank, entries) for rank in range(domain.max_rank + 1) for entries in range(domain.max_entries + 1)]
    for rank, entries in sorted(pairs, key=lambda pair: (sum(pair), pair)):
        srcs, shapes = (domain.max_length + 1) ** rank, (domain.highest - domain.lowest + 1) ** entries
        for first_shape in range(0, shapes, _MAX_SHAPES):
            width = min(_MAX_SHAPES, shapes - first_shape)
            step = max(1, _CALLS_OF_BLOCK // (2 * width))
            for first_src in range(0, srcs, step):
                yield Block(rank, entries, first_shape, width, first_src, min(step, srcs - first_src))
