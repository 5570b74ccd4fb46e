"""An adapter for a backend in another process, called over the protocol."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...adapter import CannotStart, build_worker_path
from ...model import AnswerNotRead, Claims, Graph, Identity, RemoteError, Tensor, TimedOut
from ...run.call import AnswerOrError, attempt
from ...run.concurrent import ProgramRun
from ...system.exit_codes import USAGE
from ..process.launch import DEFAULT_LIMITS, ProcessLimits, import_code, start
from ..process.own_command import Terminated
from ..process.tensor_memory import MMAP, TRIM, SharedMemory
from ..process.usage import ProcessEnd, ProcessSample, growth_of
from .calls import SentCall, SessionProgram, UnreportedChange
from .messages import ProtocolError
from .opened import BEGIN, OpenedFiles
from .piped_process import PipedProcess
from .prefork import FRESH, ForkParent
from .session import FAILURES, SHARED_FROM, ProgramCall, Session

_MAX_FAILED_STARTS = 3
"""Starts that may fail one after another before the backend is given up."""


class RemoteAdapter:
    """A backend in another process, which is started again after it ended."""

    def __init__(
        self, command: Sequence[str], limits: ProcessLimits = DEFAULT_LIMITS, env: Mapping[str, str] | None = None,
        fork_server: ForkServer | None = None, opened: OpenedFiles | None = None,
    ) -> None:  # fmt: skip
        self.command, self.limits, self.env, self.fork_server = list(command), limits, env, fork_server
        self._opened = opened
        self.starts = 0
        """Number of starts."""
        self.given_up: str | None = None
        """The reason why it is not started any more."""
        self.seconds_lost = 0.0
        """Seconds spent on calls that timed out."""
        self.ends: list[ProcessEnd] = []
        """How its last process ended, and those that took rows beside it."""
        self._samples: Sequence[ProcessSample] = ()
        """Measurements of the process that made the most calls."""
        self._failures = 0
        self._next_is_fresh, self._is_fresh = True, False
        self._shared = SharedMemory()
        self._session: Session | None = None
        self._is_patient, self._begins_slowly = True, False
        """Whether the next process may take long until it answers a call; and whether one needed that.

        A process that hung before it answered ends the patience.
        """
        self.next_calls: Iterator[tuple[Graph, tuple[Tensor, ...], bool]] = iter(())
        """The calls that come next, if they are small; read only where a process takes calls before their turn."""
        self.ahead = deque[tuple[RemoteProgram, Tensor, SentCall]]()
        """Calls that were sent and not read, with their programs and sources; those that come next among them."""
        self.calls_alone = False
        """Whether no call is sent before its turn."""
        self.identity, self.claims = self._start_session().description

    def compile(self, graph: Graph) -> RemoteProgram:
        """Make a program, which is compiled when it is first run: both requests are sent together."""
        if self.ahead and self.ahead[0][0].graph is graph:
            return self.ahead[0][0]
        return RemoteProgram(self, graph)

    def read_answer(self, program: RemoteProgram, src: Tensor) -> Tensor | None:
        """Read the answer to a call if it is the next that was sent; None if it has to be sent, perhaps once more."""
        session = self._session
        if not self.ahead or session is None or session.process.ended:
            return None
        expected, source, sent = self.ahead[0]
        if program is not expected or src is not source:
            return None
        self.ahead.popleft()
        try:
            return session.read(sent)
        except UnreportedChange:  # made one by one, it is certain which call changes what
            self.calls_alone = True
            self.renew()
            return None

    def send(
        self, session: Session, program: RemoteProgram, tensors: tuple[Tensor, ...], may_overwrite: bool,
        often: tuple[int, float] | None,
    ) -> None:  # fmt: skip
        """Send a call, and in the same write those that come next, where the process takes that.

        Each of them is compiled and run in its turn as if it had been sent then, and nothing is read of it before.
        """
        calls = [(program, tensors, may_overwrite)]
        if session.can_send_ahead and not self.calls_alone:
            this = next(self.next_calls, None)
            if this and this[1][0] is tensors[0]:
                calls += [(RemoteProgram(self, graph), its, may) for graph, its, may in self.next_calls]
        for each, *_ in calls:
            each.join(session)
        sent = session.send(calls, often)
        self.ahead.extend((each, its[0], later) for (each, its, _), later in zip(calls, sent, strict=False))

    def run_concurrently(self, runs: Sequence[ProgramRun]) -> list[AnswerOrError]:
        """Run programs at the same time, those that compile. If the process ends, all of them end with it."""
        ended, began = dict[int, AnswerOrError](), time.monotonic()
        try:
            self._run_concurrently(runs, ended)
        except OSError as error:
            raise suite_failed(error) from None
        except AnswerNotRead:  # it says nothing of the other answers, which are lost: those calls are made again, alone
            return [
                ended[number] if number in ended else attempt(partial(program.run, src, shapes, may_overwrite))
                for number, (program, src, shapes, may_overwrite) in enumerate(runs)
            ]
        except Exception as error:
            if isinstance(error, TimedOut):
                self.seconds_lost += time.monotonic() - began
            return [ended.get(number, (None, error)) for number in range(len(runs))]
        return [ended[number] for number in range(len(runs))]

    def _run_concurrently(self, runs: Sequence[ProgramRun], ended: dict[int, AnswerOrError]) -> None:
        session = self.session()
        ready: dict[int, ProgramCall] = {}
        for number, (program, src, shapes, may_overwrite) in enumerate(runs):
            assert isinstance(program, RemoteProgram)
            program.join(session)
            is_there = any(program is earlier for earlier, *_ in ready.values())
            error = None if is_there else attempt(partial(session.compile, program))[1]
            if error is None:
                ready[number] = program, (src, *shapes), may_overwrite
                continue
            ended[number] = None, error
            if session.process.ended:
                raise error
        for number, sent in zip(ready, session.send_at_once([*ready.values()]), strict=True):
            ended[number] = _, error = attempt(partial(session.read, sent))
            if error and session.process.ended:
                raise error

    def renew(self) -> None:
        """End the process; the next call starts another, which has made no call before."""
        self.ahead.clear()
        if self._session is not None:
            session = self._session
            session.process.end()
            self._begins_slowly |= session.began_slowly
            self._is_patient = self._begins_slowly or (session.is_patient and not session.process.timed_out)
            self._samples = max(self._samples, session.samples, key=len)
            self._session = None

    def restart(self) -> None:
        """End the process; the next call starts one that imports the backend itself.

        From here on calls are sent alone: a backend that ends its process may have spoilt memory in an earlier call,
        and shows that soonest if nothing else is in that memory.
        """
        self.renew()
        if self._is_fresh and self.fork_server is not None:
            # copies of one process share its addresses and hashes, and the next process must not
            self.fork_server.renew_fresh()
        self._next_is_fresh = self.calls_alone = True

    def interrupt(self) -> None:
        """Kill the process while another thread waits for its reply, and start none any more."""
        self.given_up = "interrupted"
        if (session := self._session) is not None and not session.process.ended:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(session.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        if self.ahead:  # it is still busy with calls that nobody asks for any more
            self.renew()
        ended = problem = None
        if self._session is not None:
            problem = self._session.process.stop()
            ended = self._session.process.exit
        self.renew()
        calls = self._samples[-1].calls if self._samples else 0
        self.ends.append(ProcessEnd(ended, problem, calls, growth_of(self._samples)))
        if self.fork_server is not None:
            self.fork_server.close()

    def session(self) -> Session:
        """Return the session of the running process, or of a new one, which must describe itself as the first did."""
        if self.ahead:  # this call is not the one that was sent
            self.renew()
        session = self._session
        if session is not None and not session.process.ended:
            return session
        if self.given_up is not None:
            raise CannotStart(self.given_up)
        try:
            session = self._start_session()
            for now, before in zip(session.description, (self.identity, self.claims), strict=True):
                if now != before:
                    what = f"it describes itself differently: {now}, not {before}"
                    raise session.process.end_with_fault(f"started again, {what}")
        except (CannotStart, ProtocolError) as error:
            self._failures += 1
            if self._failures >= _MAX_FAILED_STARTS:
                self.given_up = f"given up after {self._failures} starts that failed, the last one so: {error}"
                raise CannotStart(self.given_up) from None
            raise
        self._failures = 0
        return session

    def _start_session(self) -> Session:
        self.renew()
        self.starts += 1
        if self.fork_server is not None and self.starts > 1:
            description = self.identity, self.claims
            self._session = self.fork_server.session(self._shared, description, self._next_is_fresh)
        if self._session is None:
            process = PipedProcess(start(self.command, self.limits, self.env), self.limits)
            self._session = Session(process, self._shared)
        self._session.is_patient = self._is_patient
        if self._opened:
            self._session.process.before_end = self._opened.keep_maps
        self._is_fresh, self._next_is_fresh = self._next_is_fresh, False
        return self._session


class RemoteProgram(SessionProgram):
    """A graph compiled in the process; compiled again in a new process, or if it was rejected before."""

    def __init__(self, remote: RemoteAdapter, graph: Graph) -> None:
        super().__init__(graph)
        self.remote = remote

    def run(
        self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool, often: tuple[int, float] | None = None
    ) -> Tensor:
        began, remote, self.calls = time.monotonic(), self.remote, 1  # if no reply says more
        try:
            while (answer := remote.read_answer(self, src)) is None:
                session = remote.session()
                began = time.monotonic()
                remote.send(session, self, (src, *shapes), may_overwrite, often)
        except TimedOut:
            remote.seconds_lost += time.monotonic() - began
            raise
        except OSError as error:
            raise suite_failed(error) from None
        fork_server = remote.fork_server
        if fork_server is not None and fork_server.example is None and not may_overwrite:
            fork_server.keep_example(self.graph, (src, *shapes), answer)
        return answer

    def join(self, session: Session) -> None:
        """Forget what belongs to an earlier session."""
        if self.session is not session:
            self.session, self.number = None, session.new_program()
            self.sources.clear()


def suite_failed(error: OSError) -> Terminated:
    """Return what ends the command after an error of our own process, which is no error of the backend."""
    return Terminated(USAGE, f"the suite cannot go on: {error.strerror or error}")


class ForkServer:
    """Sessions in forked copies of a process that has imported what they need, so that each of them starts fast.

    There are two such processes: one has imported the backend; copies of the other import the backend themselves.
    Copies of the first are used only after a process that is not a copy has answered a call, and if a copy gives the
    same answer. Where NumPy is all that is imported, a run with many crashes takes an eighth of the CPU
    time that it takes without copies.
    """

    def __init__(
        self, command: Sequence[str], fresh: Sequence[str], limits: ProcessLimits, env: Mapping[str, str]
    ) -> None:
        self._commands, self.limits, self.env = {False: command, True: fresh}, limits, env
        self.example: tuple[Graph, tuple[Tensor, ...], Tensor] | None = None
        """A call and its answer."""
        self._preforks: dict[bool, ForkParent] = {}
        """By whether their copies import the backend themselves."""

    def keep_example(self, graph: Graph, tensors: Sequence[Tensor], dst: Tensor) -> None:
        """Keep a call as the example, unless it is large or its answer is empty."""
        if dst.memory and sum(len(tensor.memory) for tensor in tensors) < SHARED_FROM:
            *sources, answer = (replace(tensor, memory=bytearray(tensor.memory)) for tensor in (*tensors, dst))
            self.example = graph, tuple(sources), answer

    def session(self, shared: SharedMemory, description: tuple[Identity, Claims], fresh: bool) -> Session | None:
        """Start a session in a new copy; None if there can be none that gives this description."""
        if self.example is None and not fresh:
            return None
        try:
            prefork = self._preforks.get(fresh)
            if prefork is None:
                prefork = self._preforks[fresh] = ForkParent(self._commands[fresh], self.limits, self.env)
                if self.example is not None and not fresh:
                    self._check_example(self._start_copy(prefork, shared, description), *self.example)
            return self._start_copy(prefork, shared, description)
        except (CannotStart, *FAILURES):  # failures that only forking may cause: a fresh process is tried
            if fresh in self._preforks:
                self._preforks[fresh].close()
            return None

    def renew_fresh(self) -> None:
        """End the process without the backend; the next fresh session is a copy of a new one."""
        if True in self._preforks:
            self._preforks.pop(True).close()

    def _start_copy(self, prefork: ForkParent, shared: SharedMemory, description: tuple[Identity, Claims]) -> Session:
        session = Session(PipedProcess(prefork.copy(), self.limits), shared)
        if session.description != description:
            raise session.process.end_with_fault("a copy describes itself differently")
        return session

    def _check_example(self, session: Session, graph: Graph, tensors: Sequence[Tensor], due: Tensor) -> None:
        try:
            (sent,) = session.send([(SessionProgram(graph, session.new_program()), tensors, False)])
            dst = session.read(sent)
        finally:
            session.process.end()
        if vars(dst) != vars(due):
            raise RemoteError("a copy answers otherwise")

    def close(self) -> None:
        """End both processes; there are no copies any more."""
        for prefork in self._preforks.values():
            prefork.close()


_START = "from conformance.isolate.protocol.{} import main; sys.exit(main(sys.argv[1:]))"
_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(TRIM), "MALLOC_MMAP_THRESHOLD_": str(MMAP)}
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Without it NumPy starts threads when it is imported, and a process with threads is not copied."""


def start_worker(
    backend: str, limits: ProcessLimits = DEFAULT_LIMITS, opened: OpenedFiles | None = None
) -> RemoteAdapter:
    """Start a process for a Python adapter, which notes the files that it opens if told where."""
    path = os.pathsep.join(build_worker_path())
    env = {**_MALLOC, **_ONE_THREAD, **os.environ, "PYTHONPATH": path, **(opened.env if opened else {})}
    options, begin = (["-S"], BEGIN) if opened else ([], "")
    worker, prefork = (
        [sys.executable, *options, "-c", import_code() + begin + _START.format(name)] for name in ("worker", "prefork")
    )
    fork_server = ForkServer([*prefork, backend], [*prefork, FRESH, backend], limits, env)
    return RemoteAdapter([*worker, backend], limits, env, fork_server, opened)


def start_program(
    command_line: str, limits: ProcessLimits = DEFAULT_LIMITS, opened: OpenedFiles | None = None
) -> RemoteAdapter:
    """Start `cmd:PROGRAM ARGS`: any program that speaks the protocol."""
    try:
        words = shlex.split(command_line)
    except ValueError as error:
        raise CannotStart(f"cmd:{command_line}: {error}; write it as for a shell") from None
    if not words:
        raise CannotStart("cmd: names no program; write cmd:./program")
    return RemoteAdapter(words, limits, {**os.environ, **opened.env} if opened else None, opened=opened)
