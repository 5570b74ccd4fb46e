"""Adapters that repeat the outcome of a call that was made already, for the judge to look at."""

from __future__ import annotations

from typing import Any

from ..model import Adapter, Claims, Graph, Identity, Program, Tensor


class Replay:
    """An adapter that answers with what one call has come to."""

    def __init__(self, adapter: Adapter, answer: Any, error: BaseException | None) -> None:
        self.adapter, self.answer, self.error = adapter, answer, error

    @property
    def identity(self) -> Identity:
        return self.adapter.identity

    @property
    def claims(self) -> Claims:
        return self.adapter.claims

    def compile(self, graph: Graph) -> Program:
        return self

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
        if self.error is not None:
            raise self.error
        return self.answer


class RestartableReplay(Replay):
    """A replay of a backend in its own process; after `restart` the call is made again, in a fresh process."""

    restarted = False

    def restart(self) -> None:
        self.restarted = True
        self.adapter.restart()  # type: ignore[attr-defined]

    def compile(self, graph: Graph) -> Program:
        return self.adapter.compile(graph) if self.restarted else self


def replay(adapter: Adapter, answer: Any, error: BaseException | None) -> Adapter:
    """Make an adapter that repeats an answer or an error."""
    kind = RestartableReplay if hasattr(adapter, "restart") else Replay
    return kind(adapter, answer, error)
