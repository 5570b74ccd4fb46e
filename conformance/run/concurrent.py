"""Run programs at the same time, each in its own thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..model import Adapter, Graph, Outcome, Program, Tensor
from ..plan.steps import RowStep
from .call import AnswerOrError, arguments_of, attempt, call_outcome

T = TypeVar("T")
ProgramRun = tuple[Program, Tensor, tuple[Tensor, ...], bool]
"""A program, and the arguments of its run."""


@runtime_checkable
class RunsConcurrently(Protocol):
    """An adapter that runs programs at the same time in another process."""

    def run_concurrently(self, runs: Sequence[ProgramRun]) -> list[AnswerOrError]: ...


def call_concurrently(adapter: Adapter, steps: Sequence[RowStep], one_program: bool) -> list[tuple[Outcome, Any]]:
    """Compile a program for each step or graph, run them at the same time, and return each outcome and answer."""

    def compile_graph(graph: Graph) -> AnswerOrError:
        return attempt(partial(adapter.compile, graph))

    compiled_once = cache(compile_graph) if one_program else compile_graph
    ended = [compiled_once(step.graph) for step in steps]
    compiled = [number for number, (_, error) in enumerate(ended) if error is None]
    runs = [(ended[number][0], *arguments_of(steps[number])) for number in compiled]
    if isinstance(adapter, RunsConcurrently):
        answers = adapter.run_concurrently(runs)
    else:
        answers = run_in_threads([partial(attempt, partial(program.run, *arguments)) for program, *arguments in runs])
    for number, answer in zip(compiled, answers, strict=True):
        ended[number] = answer
    return [(call_outcome(step, *each), each[0]) for step, each in zip(steps, ended, strict=True)]


def run_in_threads(acts: Sequence[Callable[[], T]]) -> list[T]:
    """Call functions, which raise nothing, at the same time, and return what each returned.

    RuntimeError: the system starts no more threads, and no function was called.
    """
    start, returned = Barrier(len(acts) or 1), dict[int, T]()

    def run(number: int) -> None:
        with suppress(BrokenBarrierError):
            start.wait()
            returned[number] = acts[number]()

    threads = [Thread(target=run, args=(number,)) for number in range(len(acts))]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        start.abort()  # otherwise those that did start would wait for ever, and so would Python at its end
        raise
    for thread in threads:
        thread.join()
    return [returned[number] for number in range(len(acts))]
