"""An adapter that lives in another process, over the protocol: to the engine it is one like any other."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..adapter import CannotStart
from ..model import Claims, Crashed, Graph, Identity, Rejected, RemoteError, Tensor, TimedOut, Unsupported
from .nursery import Nursery
from .process import MMAP, TRIM, Process, SharedMemory
from .protocol import Fault
from .session import SHARED_FROM, Compiled, Session
from .started import USUAL, Limits, start

_TRIES = 3
"""Starts in a row that may fail before it is given up."""


class Remote:
    """A backend behind a process, which is started again when it ended."""

    def __init__(
        self, command: Sequence[str], limits: Limits = USUAL, env: Mapping[str, str] | None = None,
        share: bool = True, copies: Copies | None = None,
    ) -> None:  # fmt: skip
        self.command, self.limits, self.env, self.copies = list(command), limits, env, copies
        self.generation = 0
        """How often it was started."""
        self.lost: str | None = None
        """Why it is not started any more."""
        self.late = 0.0
        """Seconds that were lost on calls that timed out."""
        self.amiss: str | None = None
        """What was wrong with the way it ended when it was asked to."""
        self._failures = 0
        self._from_nothing = True
        self._shared = SharedMemory() if share else None
        self._session: Session | None = None
        self.identity, self.claims = self._started().described

    def compile(self, graph: Graph) -> RemoteProgram:
        """The program is compiled when it is first run: both requests travel together."""
        return RemoteProgram(self, graph)

    def renew(self) -> None:
        """Ends the process; the next call has another, which has made no call before."""
        if self._session is not None:
            self._session.process.end()
            self._session = None

    def restart(self) -> None:
        """Ends the process; the next call has one that is started from nothing."""
        self.renew()
        self._from_nothing = True

    def close(self) -> None:
        """Asks the process to end, and ends it."""
        if self._session is not None:
            self.amiss = self._session.process.stop()
        self._session = None
        if self.copies is not None:
            self.copies.close()

    def session(self) -> Session:
        """The running process, or a new one, which must describe itself as the first did."""
        session = self._session
        if session is not None and not session.process.ended:
            return session
        if self.lost is not None:
            raise CannotStart(self.lost)
        try:
            session = self._started()
            if session.described != (self.identity, self.claims):
                raise session.process.fault("started again, it describes itself differently")
        except (CannotStart, Fault) as error:
            self._failures += 1
            if self._failures >= _TRIES:
                self.lost = f"given up after {self._failures} starts that failed, the last one so: {error}"
                raise CannotStart(self.lost) from None
            raise
        self._failures = 0
        return session

    def _started(self) -> Session:
        self.renew()
        self.generation += 1
        if self.copies is not None and not self._from_nothing:
            self._session = self.copies.session(self._shared, (self.identity, self.claims))
        if self._session is None:
            process = Process(start(self.command, self.limits, self.env), self.limits)
            self._session = Session(process, self._shared, patient=self.generation == 1)
        self._from_nothing = False
        return self._session


class RemoteProgram(Compiled):
    """A graph compiled over there; compiled again where the process is another one by now, or where it was refused."""

    def __init__(self, remote: Remote, graph: Graph) -> None:
        super().__init__(graph)
        self.remote = remote

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        session = self.remote.session()
        if self.session is not session:
            self.session, self.number = None, session.new_program()
            self.answers.clear()
            self.sources.clear()
            self.seen.clear()
        began = time.monotonic()
        try:
            answer = session.run(self, (src, *shapes), may_overwrite)
        except TimedOut:
            self.remote.late += time.monotonic() - began
            raise
        copies = self.remote.copies
        if copies is not None and copies.example is None and not may_overwrite:
            copies.learn(self.graph, (src, *shapes), answer)
        return answer


class Example(NamedTuple):
    """A call as it was made, and its answer."""

    graph: Graph
    tensors: tuple[Tensor, ...]
    dst: Tensor


class Copies:
    """Sessions in copies of a process that has imported the backend, which spares each of them the import.

    There are none before a process started from nothing has answered a call, nor unless a copy answers it as that did.
    """

    def __init__(self, command: Sequence[str], limits: Limits, env: Mapping[str, str]) -> None:
        self.command, self.limits, self.env = command, limits, env
        self.example: Example | None = None
        self._nursery: Nursery | None = None

    def learn(self, graph: Graph, tensors: Sequence[Tensor], dst: Tensor) -> None:
        """Keeps a call, unless it is a large one, or says little."""
        if dst.memory and sum(len(tensor.memory) for tensor in tensors) < SHARED_FROM:
            kept = [replace(tensor, memory=bytearray(tensor.memory)) for tensor in (*tensors, dst)]
            self.example = Example(graph, tuple(kept[:-1]), kept[-1])

    def session(self, shared: SharedMemory | None, described: tuple[Identity, Claims]) -> Session | None:
        """One in a new copy, which describes itself so; None where there can be none."""
        if self.example is not None:
            try:
                if self._nursery is None:
                    self._nursery = Nursery(self.command, self.limits, self.env)
                    self._prove(self._nursery, shared, self.example)
                session = self._copied(self._nursery, shared)
                if session.described == described:
                    return session
                session.process.end()
            except (CannotStart, Fault, RemoteError, Crashed, TimedOut, Rejected, Unsupported, MemoryError):
                pass
            self.close()
        return None

    def _copied(self, nursery: Nursery, shared: SharedMemory | None) -> Session:
        started = nursery.copy()
        if started is None:
            raise CannotStart(f"{self.command[-1]}: cannot be copied")
        return Session(Process(started, self.limits), shared)

    def _prove(self, nursery: Nursery, shared: SharedMemory | None, example: Example) -> None:
        """A copy has to answer as the process from nothing did; another follows it, which has made no call."""
        session = self._copied(nursery, shared)
        try:
            dst = session.run(Compiled(example.graph, session.new_program()), example.tensors, False)
        finally:
            session.process.end()
        if vars(dst) != vars(example.dst):
            raise RemoteError("a copy answers otherwise")

    def close(self) -> None:
        """Ends the nursery; there are no copies any more."""
        if self._nursery is not None:
            self._nursery.close()


_START = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "  # the working directory may hide our modules
    "from conformance.isolate.{} import main; sys.exit(main(sys.argv[1:]))"
)
_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(TRIM), "MALLOC_MMAP_THRESHOLD_": str(MMAP)}
_ALONE = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy's own: it would start others as it is imported, for products of matrices."""


def worker(backend: str, limits: Limits = USUAL, share: bool = True) -> Remote:
    """A Python adapter in a process of its own."""
    path = os.pathsep.join(p for p in sys.path if p)
    env = {**_MALLOC, **_ALONE, **os.environ, "PYTHONPATH": path}
    worker, nursery = ([sys.executable, "-c", f"{_START.format(name)}", backend] for name in ("worker", "nursery"))
    return Remote(worker, limits, env, share, Copies(nursery, limits, env))


def program(command_line: str, limits: Limits = USUAL, share: bool = True) -> Remote:
    """`cmd:PROGRAM ARGS`: any program that speaks the protocol."""
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise CannotStart(f"cmd:{command_line}: {error}; write it as for a shell") from None
    if not words:
        raise CannotStart("cmd: names no program; write cmd:./program")
    return Remote(words, limits, None, share)
