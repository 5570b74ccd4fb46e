"""Programs and calls of one process, as the suite keeps them: what was sent, and what is watched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...model import Graph, Tensor
from .messages import Place

if TYPE_CHECKING:
    from .session import Session


class CompiledGraph:
    """A graph, and its state in the session that compiled it."""

    session: Session | None = None
    """None if it has to be compiled with the next call."""

    def __init__(self, graph: Graph, number: int = 0) -> None:
        self.graph, self.number = graph, number
        self.calls = 1
        """The number of calls that the latest request made."""
        self.answers: dict[int, Tensor] = {}
        """The answers so far, by the ids of the requests."""
        self.watched: list[WatchedMemory] = []
        """Sources and answers of earlier calls."""
        self.sources: dict[int, Tensor] = {}
        """The src of each of those requests."""

    def __del__(self) -> None:
        if self.session is not None:
            self.session.closing.append(self.number)


class WatchedMemory(NamedTuple):
    """Memory in the worker that must not change, and our copy of it."""

    address: int
    size: int
    data: bytearray
    """Its content when it was last read."""
    key: str
    """The key under which a worker reports a change: `changed` for an answer, `overwrote` for a src."""
    call: int
    tensor: Tensor


class UnreportedChange(Exception):
    """Memory of a call that was sent ahead changed, and no reply says so. A later call may have changed it."""


class SentCall(NamedTuple):
    """A request to run a program, and what is needed to read its replies."""

    program: CompiledGraph
    id: int
    """The id of the request."""
    tensors: Sequence[Tensor]
    places: Sequence[Place]
    room: int
    """Bytes of shared memory that the tensors take; as many behind them are for the answer."""
    may_overwrite: bool
    closes: Sequence[int] = ()
    """The ids of the requests to close programs that were sent with it."""
    compiling: int = 0
    """The id of the request to compile; 0 if the program was compiled before."""
    is_last: bool = True
    """Whether no other call was sent behind it in the same write."""
    is_one_of_many: bool = False
    """Whether calls that wait for their turn were sent with it."""
