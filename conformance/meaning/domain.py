"""Bounded domains of calls, enumerated in order of size: for proofs by exhaustion, sweeps and smallest examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple


class Domain(NamedTuple):
    """Every call with src and shape within bounds, and either flag."""

    max_rank: int
    """Ranks of src run from 0 to this."""
    max_length: int
    """Dims of src run from 0 to this."""
    max_entries: int
    """Lengths of shape run from 0 to this."""
    lowest: int
    highest: int
    """Entries of shape run from `lowest` to `highest`."""

    @property
    def size(self) -> int:
        sources: int = sum((self.max_length + 1) ** rank for rank in range(self.max_rank + 1))
        shapes: int = sum((self.highest - self.lowest + 1) ** count for count in range(self.max_entries + 1))
        return 2 * sources * shapes

    def __str__(self) -> str:
        return (
            f"the {self.size:,} calls with src of rank 0 to {self.max_rank} and dims 0 to {self.max_length}, "
            f"shape of 0 to {self.max_entries} entries from {self.lowest} to {self.highest}, "
            "special_zero true and false"
        )


FULL_DOMAIN = Domain(max_rank=3, max_length=4, max_entries=4, lowest=-2, highest=4)
"""Every kind of call that the documents tell apart, several times. Proofs by exhaustion use it."""
SMALL_DOMAIN = Domain(max_rank=2, max_length=3, max_entries=3, lowest=-2, highest=3)
"""For searches that must be fast."""
TINY_DOMAIN = Domain(max_rank=1, max_length=2, max_entries=2, lowest=-2, highest=2)
"""For searches that also try every form of a call."""

Lengths = tuple[int, ...]


def calls(domain: Domain) -> Iterator[tuple[Lengths, Lengths, bool]]:
    """Yield (src, shape, special_zero) of every call of a domain: fewer entries first, then smaller ones."""
    sources = _group_by_size(domain.max_rank, range(domain.max_length + 1))
    shapes = _group_by_size(domain.max_entries, range(domain.lowest, domain.highest + 1))
    pairs = sorted(itertools.product(sources, shapes), key=lambda pair: (*map(sum, zip(*pair, strict=True)), pair))
    for of_src, of_shape in pairs:
        for src, shape in itertools.product(sources[of_src], shapes[of_shape]):
            yield src, shape, False
            yield src, shape, True


CALLS_AT_LIMITS = "those with up to 66 dims or entries of 1, and with one length of up to 2^62"


def list_calls_at_limits() -> Iterator[tuple[Lengths, Lengths, bool]]:
    """Yield calls that a limit on the rank, on a length or on the volume tells apart; see CALLS_AT_LIMITS."""
    for src_rank, shape_rank in sorted(itertools.product(range(1, 67), repeat=2), key=sum):
        yield (1,) * src_rank, (1,) * shape_rank, False
    for exponent in range(3, 63):
        for length in ((1 << exponent) - 1, 1 << exponent):
            yield from (((length,), shape, False) for shape in ((length,), (-1,), (1, length)))


_Size = tuple[int, int]


def _group_by_size(most: int, values: range) -> dict[_Size, list[Lengths]]:
    """Return every tuple of up to `most` values, by its length and the sum of its magnitudes."""
    by_size: dict[_Size, list[Lengths]] = {}
    for count in range(most + 1):
        for lengths in itertools.product(values, repeat=count):
            by_size.setdefault((count, sum(map(abs, lengths))), []).append(lengths)
    return by_size
