"""Start a process for a backend, limit its memory, and kill it with every process that it started."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...adapter import CannotStart
from ...system.exit_codes import UNTRUSTED
from . import orphans
from .own_command import Terminated, kill_on_hangup

if TYPE_CHECKING:
    from ..protocol.prefork import ForkedWorker
if sys.platform != "win32":
    import resource

_IMPORT = """import sys
sys.path[:] = [path for path in sys.path if path]
sys.path.insert(0, {!r})
import conformance
del sys.path[0]
"""


def import_code() -> str:
    """Return Python code for `-c` that imports this package by its place.

    The working directory and other folders on the path may hold modules of that name.
    """
    return _IMPORT.format(str(Path(__file__).absolute().parents[3]))


class ProcessLimits(NamedTuple):
    """Limits on the time and memory of a process."""

    seconds: float = 20.0
    """For one request."""
    start_seconds: float = 120.0
    """To start and describe itself, and for each call until one was answered."""
    memory: int = 16 << 30
    """Bytes of address space; 0: no limit."""
    stop_seconds: float = 2.0
    """To end after a request to stop, or after it closed its output."""


DEFAULT_LIMITS = ProcessLimits()
DEVICE_MEMORY = 4_000_000 << 20
"""Bytes of address space on a device. CUDA maps much: with 16 GiB JAX does not start, and calls of PyTorch fail."""


class ProcessHandle(NamedTuple):
    """A process, the leader of its group, with what is needed to kill all that it started."""

    name: str
    """The command as a person would type it; for our own workers, the backend."""
    child: subprocess.Popen[bytes] | ForkedWorker
    lifeline: int
    """Our end of a pipe. Once it is closed, as when we are killed, the kernel kills the process."""
    mark: str
    """A text in the environment of all that it starts."""
    parent: int = 0
    """The pid of the process that it was forked from, which has the same mark and goes on."""


def _find_own_limits() -> list[tuple[int, int]]:
    names = () if sys.platform == "win32" else ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE")
    return [resource.getrlimit(getattr(resource, name)) for name in names]


_LIMITS_AT_FIRST = _find_own_limits()
SHORTAGE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""Errors of a system, or a process of the suite, that has no more files, memory or processes to give."""
CAN_LIMIT_MEMORY = sys.platform != "win32" and hasattr(resource, "prlimit")
"""Whether the memory of a running process can be limited on this system."""


def start(
    command: Sequence[str],
    limits: ProcessLimits = DEFAULT_LIMITS,
    env: Mapping[str, str] | None = None,
    streams: tuple[int, int, int] = (subprocess.PIPE,) * 3,
) -> ProcessHandle:
    """Start a command as the leader of a new session, with no more address space than the limits allow."""
    if sys.platform == "win32":
        raise CannotStart("a process for the backend needs POSIX pipes; on Windows add --isolation none")
    if _find_own_limits() != _LIMITS_AT_FIRST:  # a backend can do that, and may not be called without what it needs
        raise Terminated(UNTRUSTED, "somebody changed the limits of this process, see `man prlimit`")
    mark = os.urandom(16).hex()
    env = os.environ if env is None else env
    marked = {**env, _MARK: f"{env.get(_MARK, '')} {mark}".strip()}  # this process may have a mark itself
    lifeline, our_end = os.pipe()
    try:
        with orphans.LOCK:
            popen = subprocess.Popen(
                command, stdin=streams[0], stdout=streams[1], stderr=streams[2], bufsize=0,
                start_new_session=True, env=marked, pass_fds=(lifeline,),
            )  # fmt: skip
            orphans.register(popen.pid, mark)
        kill_on_hangup(lifeline, -popen.pid)
    except OSError as error:
        os.close(our_end)
        if error.errno in SHORTAGE_ERRORS:
            raise
        raise CannotStart(f"{command[0]}: {_say_why_not_run(command[0], error)}") from None
    finally:
        os.close(lifeline)
    is_worker = command[0] == sys.executable and "-c" in command[1:3]
    handle = ProcessHandle(command[-1] if is_worker else shlex.join(command), popen, our_end, mark)
    if CAN_LIMIT_MEMORY:  # from here, not between fork and exec, where threads make it unsafe
        try:
            resource.prlimit(popen.pid, resource.RLIMIT_CORE, (0, 0))
            if limits.memory:
                resource.prlimit(popen.pid, resource.RLIMIT_AS, (limits.memory, limits.memory))
        except (ProcessLookupError, ValueError):
            pass
        except PermissionError:
            allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
            if 0 <= allowed < limits.memory:  # calls that need more would be held against the backend
                kill_tree(handle)
                most, due = allowed >> 20, limits.memory >> 20
                raise CannotStart(
                    f"`ulimit -v` allows {most:,} MiB, and a backend may use {due:,}: raise it, or add --memory {most}"
                ) from None
    return handle


def _say_why_not_run(program: str, error: OSError) -> str:
    from shutil import which  # slow to import, and only needed here

    if os.path.isdir(program):
        return "is a folder; name the program in it"
    if isinstance(error, FileNotFoundError) and which(program):
        return "cannot be run: the interpreter that it names is missing; see its first line"
    if isinstance(error, FileNotFoundError):
        return f"no such program; {f'write ./{program}' if os.path.isfile(program) else 'check the path'}"
    is_script = error.errno == errno.ENOEXEC
    hint = "name its interpreter first, as in cmd:'node mine.mjs'" if is_script else "is it executable?"
    return f"cannot be run: {error.strerror}; {hint}"


_MARK = "RESHAPE_CONFORMANCE_PROCESS"
"""The environment variable that marks the children of a process, whatever session they are in."""


def kill_tree(handle: ProcessHandle) -> None:
    """Kill the whole process group, and children that left it or kept the pipes open."""
    child = handle.child
    family = orphans.find_descendants({child.pid}) if child.poll() is None else set()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    os.close(handle.lifeline)
    orphans.kill_family(family, child.pid, handle.mark, handle.parent)
    orphans.forget(child.pid)


def describe_exit(code: int) -> str:
    """Say how a process ended: `exit code 0`, `SIGSEGV`. The code is as `subprocess` gives it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
