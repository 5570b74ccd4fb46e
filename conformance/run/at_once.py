"""Run programs at the same time, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Barrier, Thread
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..model import Adapter, Outcome, Program, Tensor
from ..plan.steps import RowStep
from .call import arguments_of, conclude_call

T = TypeVar("T")
ProgramRun = tuple[Program, Tensor, tuple[Tensor, ...], bool]
"""A program, and the arguments of its run."""


@runtime_checkable
class RunsAtOnce(Protocol):
    """An adapter that runs programs at the same time in another process."""

    def run_at_once(self, runs: Sequence[ProgramRun]) -> list[Future[Any]]:
        """Return what each run came to."""


def call_at_once(adapter: Adapter, steps: Sequence[RowStep]) -> list[tuple[Outcome, Any]]:
    """Compile a program for each step, run them at the same time, and return the outcome and answer of each."""
    programs = [settle(partial(adapter.compile, step.graph)) for step in steps]
    compiled = [number for number, program in enumerate(programs) if program.exception() is None]
    runs = [(programs[number].result(), *arguments_of(steps[number])) for number in compiled]
    if isinstance(adapter, RunsAtOnce):
        answers = adapter.run_at_once(runs)
    else:
        answers = run_in_threads([partial(run[0].run, *run[1:]) for run in runs])
    came_to: list[Future[Any]] = [*programs]
    for number, answer in zip(compiled, answers, strict=True):
        came_to[number] = answer
    return [conclude_call(step, future.result) for step, future in zip(steps, came_to, strict=True)]


def run_in_threads(acts: Sequence[Callable[[], T]]) -> list[Future[T]]:
    """Call functions at the same time and wait for all of them; return what each came to."""
    start, futures = Barrier(len(acts) or 1), [Future[T]() for _ in acts]

    def run(act: Callable[[], T], future: Future[T]) -> None:
        start.wait()
        settle(act, future)

    threads = [Thread(target=run, args=pair) for pair in zip(acts, futures, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return futures


def settle(act: Callable[[], T], future: Future[T] | None = None) -> Future[T]:
    """Call a function, and return what it came to."""
    future = Future[T]() if future is None else future
    try:
        future.set_result(act())
    except BaseException as error:
        future.set_exception(error)
    return future
