"""Programs and calls of one process, as the suite keeps them: what was sent, and what is watched."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from ...model import Graph, Tensor
from ...run.row import MAX_SOURCES_WATCHED
from .messages import TensorPlace

if TYPE_CHECKING:
    from .session import Session


class SessionProgram:
    """A graph, and its state in the session that compiled it."""

    session: Session | None = None
    """None if it has to be compiled with the next call."""

    def __init__(self, graph: Graph, number: int = 0) -> None:
        self.graph, self.number = graph, number
        self.calls = 1
        """The number of calls that the latest request made."""
        self.sources = deque[Tensor](maxlen=MAX_SOURCES_WATCHED)
        """The src of the latest calls, in tensors that nobody else has: the session watches each while it is here."""

    def __del__(self) -> None:
        if self.session is not None:
            self.session.closing.append(self.number)


@dataclass(slots=True)
class WatchedMemory:
    """Memory of an earlier call that must not change, as long as somebody has the tensor."""

    tensor: ref[Tensor]
    """Our copy of it, where changes are judged."""
    size: int
    address: int = 0
    """Its place in the worker; 0 if it cannot be read there."""
    data: bytes | bytearray = b""
    """Its content when it was last read there."""

    def change(self, content: bytearray) -> None:
        self.data = content
        if tensor := self.tensor():
            tensor.memory[:] = content


class UnreportedChange(Exception):
    """Memory of a call that was sent ahead changed, and no reply says so. A later call may have changed it."""


class SentCall(NamedTuple):
    """A request to run a program, and what is needed to read its replies."""

    program: SessionProgram
    id: int
    """The id of the request."""
    tensors: Sequence[Tensor]
    places: Sequence[TensorPlace]
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
