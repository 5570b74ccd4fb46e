"""Measure the memory, open files and threads of a worker, and find how they grow with the number of its calls."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CALLS_APART = 250
"""Calls between two measurements. Each takes half a millisecond, so a run becomes less than 1 % slower."""
_MIN_SAMPLES = 16
"""Measurements of one process without which nothing is said: four for each quarter of its calls."""
_CLEAR_GROWTH = (500_000, 1.0, 1.0)
"""Growth per 1,000 calls that a note tells.

A backend that keeps 1 KB of each call grows by 0.8 MB. onnxruntime, which makes a session for each program, grows by
0.2 MB, much of it gaps in its heap. Files and threads are whole numbers that nothing else changes for so long.
"""


class ProcessSample(NamedTuple):
    """What a process holds after a number of calls."""

    calls: int
    memory: int
    """Bytes that it shares with nobody."""
    files: int
    threads: int


class Growth(NamedTuple):
    """Growth of a process per 1,000 calls."""

    memory: int
    files: float
    threads: float

    def describe(self) -> str:
        """Say what grows clearly; empty if nothing does."""
        parts = f"memory by {self.memory / 1e6:.1f} MB", f"open files by {self.files:g}", f"threads by {self.threads:g}"
        return ", ".join(part for part, rate, least in zip(parts, self, _CLEAR_GROWTH, strict=True) if rate >= least)


class ProcessEnd(NamedTuple):
    """How a process of the backend ended after the last row, and how it, or a longer one before it, grew."""

    exit: str | None
    """`exit code 0`, `SIGSEGV`, or `killed` if it did not end when it was asked to; None if none was running."""
    problem: str | None
    """What went wrong when it was asked to end."""
    calls: int
    """Calls of the process that was measured; many of one program in one request count as one, or would hide growth."""
    growth: Growth | None
    """None if it made too few calls, or the system or the program does not tell."""

    def to_json(self) -> dict[str, object]:
        return {"exit": self.exit, "calls": self.calls, "growth_per_1000_calls": self.growth and self.growth._asdict()}


def measure() -> tuple[int, int, int] | None:
    """Return memory, open files and threads of this process; None if the system does not tell.

    Memory that is free is first given back to the system: otherwise one large tensor, freed long ago, hides a leak.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
        files, threads = (len(os.listdir(f"/proc/self/{each}")) for each in ("fd", "task"))
    except OSError:
        return None
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE"), files, threads


def growth_of(samples: Sequence[ProcessSample]) -> Growth | None:
    """Return the least growth from one quarter of the calls to the next; None if there are too few samples.

    A leak grows in each quarter. What is only made once does not: caches, pools, memory for a large tensor.
    """
    if len(samples) < _MIN_SAMPLES:
        return None
    quarters = np.split(np.array(samples), [len(samples) * number // 4 for number in (1, 2, 3)])
    steps = np.diff([np.median(quarter, axis=0) for quarter in quarters], axis=0)
    rates = 1000 * steps[:, 1:] / steps[:, :1]
    memory, files, threads = np.maximum(rates.min(axis=0), 0.0).tolist()
    return Growth(round(memory), round(files, 1), round(threads, 1))
