"""Processes that are started for a backend: how one begins, and that nothing of it is left when it is buried."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple, Protocol

from ..adapter import CannotStart
from . import orphans
from .watch import tie

if sys.platform != "win32":
    import resource


class Limits(NamedTuple):
    """What a process may take."""

    seconds: float = 20.0
    """For one request."""
    start_seconds: float = 120.0
    """To start and to describe itself."""
    memory: int = 16 << 30
    """Bytes of address space; 0: no limit."""
    stop_seconds: float = 2.0
    """To end once it was told to."""
    budget: float = 14400.0
    """Seconds that calls may lose by timing out, in one process and those started in its place."""


USUAL = Limits()


class Child(Protocol):
    """What `subprocess.Popen` is, and a copy that one of our processes made of itself."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class Started(NamedTuple):
    """A process, the leader of its group, and what is needed to leave nothing of it."""

    name: str
    """Its command as a person would type it; of our own workers the backend."""
    child: Child
    lifeline: int
    """The end of a pipe: where that is closed, as when we are killed, the kernel kills the process."""
    mark: str
    """In the environment of all that it starts."""
    model: int = 0
    """The process of which it is a copy, which has the same mark and goes on."""


def start(
    command: Sequence[str],
    limits: Limits = USUAL,
    env: Mapping[str, str] | None = None,
    streams: tuple[int, int, int] = (subprocess.PIPE,) * 3,
) -> Started:
    """Starts a command as the leader of a session of its own."""
    if sys.platform == "win32":
        raise CannotStart("a process for the backend needs POSIX pipes; on Windows add --isolation none")
    mark = secrets.token_hex(16)
    theirs, ours = os.pipe()
    try:
        popen = subprocess.Popen(
            command, stdin=streams[0], stdout=streams[1], stderr=streams[2], bufsize=0,
            start_new_session=True, env=_marked(os.environ if env is None else env, mark), pass_fds=(theirs,),
        )  # fmt: skip
        orphans.register(popen.pid, mark)
        tie(theirs, -popen.pid)
    except OSError as error:
        os.close(ours)
        if isinstance(error, FileNotFoundError):
            raise CannotStart(f"{command[0]}: no such program; check the path") from None
        raise CannotStart(f"{command[0]}: cannot be run: {error.strerror}; is it executable?") from None
    finally:
        os.close(theirs)
    if hasattr(resource, "prlimit"):  # from here, not between fork and exec, where threads make it unsafe
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            resource.prlimit(popen.pid, resource.RLIMIT_CORE, (0, 0))
            if limits.memory:
                resource.prlimit(popen.pid, resource.RLIMIT_AS, (limits.memory, limits.memory))
    ours_of_python = list(command[:2]) == [sys.executable, "-c"]
    return Started(command[-1] if ours_of_python else shlex.join(command), popen, ours, mark)


_MARK = "RESHAPE_CONFORMANCE_PROCESS"
"""The environment variable by which the children of a process are known, wherever they went."""


def _marked(env: Mapping[str, str], mark: str) -> dict[str, str]:
    return {**env, _MARK: f"{env.get(_MARK, '')} {mark}".strip()}  # we may be somebody's child ourselves


def bury(started: Started) -> None:
    """Ends the whole process group, and children that left it or kept the pipes."""
    child = started.child
    family = orphans.descendants(child.pid) if child.poll() is None else set()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    os.close(started.lifeline)
    orphans.end(family, child.pid, started.mark, started.model)
    orphans.forget(child.pid)
