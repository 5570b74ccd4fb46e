"""Read `--input x=1..8,3,320,320`: the dims that `check-graph` tries for each input."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable

from ..graphs.conclude import Trial
from ..system.text import shorten
from .arguments import Usage
from .reading import LARGEST, MAX_ENTRIES

MAX_TRIALS = 1000
_LENGTH = re.compile(r"([0-9]{1,19})(?:\.\.([0-9]{1,19}))?")


def trials_of(texts: Iterable[str]) -> list[Trial]:
    """Return a trial for every combination of lengths; one without dims if no input is named."""
    dims: dict[str, tuple[range, ...]] = {}
    for text in texts:
        name, equals, lengths = text.rpartition("=")
        if not equals or not name:
            raise Usage(f"--input {shorten(text)!r} names no input; write --input x=1..8,3,320,320")
        if name in dims:
            raise Usage(f"--input names {shorten(name)!r} twice; give all its lengths at once, such as {name}=1..8,3")
        dims[name] = tuple(_read_range(entry, text) for entry in lengths.split(",")) if lengths != "()" else ()
    ranges = [(name, k, tried) for name, each in dims.items() for k, tried in enumerate(each)]
    count = math.prod(len(each) for _, _, each in ranges)
    if count > MAX_TRIALS or len(ranges) > MAX_ENTRIES:
        raise Usage(f"--input asks for {count:,} combinations of lengths; at most {MAX_TRIALS:,} are tried")
    return [_trial(dims, ranges, chosen) for chosen in itertools.product(*(each for _, _, each in ranges))]


def _trial(dims: dict[str, tuple[range, ...]], ranges: list[tuple[str, int, range]], chosen: tuple[int, ...]) -> Trial:
    lengths = {(name, k): length for (name, k, _), length in zip(ranges, chosen, strict=True)}
    varied = tuple((f"{name}[{k}]", lengths[name, k]) for name, k, each in ranges if len(each) > 1)
    return Trial(varied, {name: tuple(lengths[name, k] for k in range(len(each))) for name, each in dims.items()})


def _read_range(entry: str, text: str) -> range:
    match = _LENGTH.fullmatch(entry.strip())
    if not match:
        raise Usage(f"--input {shorten(text)!r}: {shorten(entry)!r} is not a length; write 3, or 1..8 to try 1 to 8")
    first = int(match[1])
    last = int(match[2] or first)
    if last < first or last > LARGEST:
        raise Usage(
            f"--input {shorten(text)!r}: {entry.strip()} holds no length of 64 bits; write the smaller one first"
        )
    return range(first, min(last, first + MAX_TRIALS) + 1)
