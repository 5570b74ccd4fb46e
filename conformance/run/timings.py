"""The time of a run, split into start, compile, run, compare and write. It is printed, and stands in no evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol, TypeVar, runtime_checkable

from ..model import Adapter, Array, Graph, Program, Tensor

T = TypeVar("T")


@runtime_checkable
class CountsSeconds(Protocol):
    """An adapter that measures its calls itself, since compile and run may be one request."""

    seconds_starting: float
    """Seconds until its processes were ready: the first, and those that follow a crash or a hang."""
    seconds_compiling: float
    seconds_running: float
    calls_alone: bool
    """True if no call is sent before its turn, so that the time of each can be measured."""


class Timings:
    """The seconds that a run took so far. Seconds of rows that are none of the first three count as compare."""

    def __init__(self) -> None:
        self.seconds_starting = self.seconds_compiling = self.seconds_running = 0.0
        self.seconds_of_rows = self.seconds_writing = 0.0
        self.calls_alone = True
        self._adapter: CountsSeconds = self
        self._before = 0.0
        """Seconds of starts before the first row."""

    def watch(self, adapter: Adapter) -> Adapter:
        """Return an adapter whose calls are measured."""
        if isinstance(adapter, CountsSeconds):
            self._adapter, self._before, adapter.calls_alone = adapter, adapter.seconds_starting, True
            return adapter
        return _Watched(adapter, self)

    def rows(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield what `rows` yields, and measure how long it takes to make it; the rest of the loop is writing."""
        iterator, done, end = iter(rows), object(), perf_counter()
        while True:
            began = perf_counter()
            self.seconds_writing += began - end
            row = next(iterator, done)
            end = perf_counter()
            self.seconds_of_rows += end - began
            if row is done:
                return
            yield row  # type: ignore[misc] # it is not `done`

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure a block that writes reports."""
        began = perf_counter()
        try:
            yield
        finally:
            self.seconds_writing += perf_counter() - began

    @property
    def split(self) -> Mapping[str, float]:
        """The seconds by what they were spent on."""
        adapter = self._adapter
        parts = {
            "start": adapter.seconds_starting, "compile": adapter.seconds_compiling, "run": adapter.seconds_running,
        }  # fmt: skip
        compare = max(0.0, self.seconds_of_rows + self._before - sum(parts.values()))
        return {**parts, "compare": compare, "write": self.seconds_writing}

    def __str__(self) -> str:
        return ", ".join(f"{what} {seconds:.2f} s" for what, seconds in self.split.items())


class _Watched:
    """An adapter in this process whose calls are measured."""

    def __init__(self, adapter: Adapter, timings: Timings) -> None:
        self._adapter, self._timings = adapter, timings
        self.identity, self.claims = adapter.identity, adapter.claims

    def compile(self, graph: Graph) -> Program:
        began = perf_counter()
        try:
            return _WatchedProgram(self._adapter.compile(graph), self._timings)
        finally:
            self._timings.seconds_compiling += perf_counter() - began


class _WatchedProgram:
    def __init__(self, program: Program, timings: Timings) -> None:
        self._program, self._timings = program, timings

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        began = perf_counter()
        try:
            return self._program.run(src, shapes, may_overwrite)
        finally:
            self._timings.seconds_running += perf_counter() - began
