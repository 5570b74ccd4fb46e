"""Our own command works in a child process, so that a backend that calls exit(0) is not mistaken for success."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable

if sys.platform != "win32":
    import fcntl


class Terminated(KeyboardInterrupt):
    """The command ends as if it was interrupted, with another message: after a signal, or if the system is short."""

    def __init__(self, exit_code: int, why: str = "terminated") -> None:
        super().__init__(why)
        self.exit_code, self.why = exit_code, why


def describe_end(error: KeyboardInterrupt) -> tuple[str, int]:
    """Return the words and the exit code of a command that was interrupted."""
    if isinstance(error, Terminated):
        return error.why, error.exit_code
    if error in interrupts or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return "interrupted", 130  # if the signal is ignored, none raised it
    return "the backend raised KeyboardInterrupt; drop --isolation none", 130


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU") if hasattr(signal, name))
"""Signals that end a command, such as that of a terminal that is closed."""
interrupts: list[KeyboardInterrupt] = []
"""Those that signals raised. Python 3.11 makes a RuntimeError of one that is raised while a class is made."""
_exit_code_known: list[bool] = []
"""Not empty once the exit code is known."""


def install_signal_handlers() -> None:
    """Make signals end this process as an interrupt does; a second signal does not interrupt the cleanup."""
    last = 0.0

    def end(number: int, frame: object) -> None:
        nonlocal last
        if _exit_code_known:  # no handler may raise while Python exits
            os._exit(128 + number)
        now = time.monotonic()
        if now - last > _IGNORE_SECONDS:
            last = now
            interrupts.append(Terminated(128 + number) if number in _SIGNALS else KeyboardInterrupt())
            raise interrupts[-1]

    for number in (signal.SIGINT, *_SIGNALS):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not if our parent ignores it
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, end)


def exit_at_next_signal() -> None:
    """Let signals end this process at once from here on, since its work is done and its output written."""
    _exit_code_known.append(True)


_IGNORE_SECONDS = 2.0
"""Seconds after a signal during which another one is ignored."""
_GRACE_SECONDS = 5.0
"""Seconds in which a child must end after it has reported its exit code, or was told to end."""
_POLL_SECONDS = 0.05


def run_in_child(work: Callable[[], int], on_early_end: Callable[[int], int]) -> int:
    """Do the work in a child process, and return the exit code that the work returned.

    If the child ends before the work does, return `on_early_end` of its exit code, or of the negative number of the
    signal. A child that does not end after its work is killed, and so is every process that it leaves behind. Call
    this before there are threads.
    """
    if not hasattr(os, "fork"):
        return work()
    from .orphans import adopt, kill_adopted_orphans  # slow to import, and only needed here

    adopt()
    report, report_end = os.pipe()
    lifeline, our_end = os.pipe()
    child = os.fork()
    if not child:
        return _work_in_child(work, report_end, lifeline, our_end)
    os.close(report_end)
    os.close(lifeline)
    try:
        code, status = _wait(child, report)
        return code[0] if code else on_early_end(os.waitstatus_to_exitcode(status))
    finally:
        kill_adopted_orphans()
        os.close(report)
        os.close(our_end)


def _wait(child: int, report: int) -> tuple[bytes, int]:
    """Wait for the child; return the exit code that it reported, empty if none, and the status with which it ended."""
    os.set_blocking(report, False)  # a child of the child may hold the other end
    code, end, open_pipes = b"", float("inf"), [report]

    def pass_on(number: int, frame: object) -> None:
        nonlocal end
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)
        end = min(end, time.monotonic() + _GRACE_SECONDS)

    for number in (signal.SIGINT, *_SIGNALS):  # a terminal interrupts the child too, which ignores the second
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` wants SIGHUP ignored
            signal.signal(number, pass_on)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if open_pipes:
            with contextlib.suppress(BlockingIOError):
                code, open_pipes = os.read(report, 1), []  # no code if the backend closed the pipe
            end = min(end, time.monotonic() + _GRACE_SECONDS) if code else end
        if pid:
            return code, status
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        select.select(open_pipes, [], [], _POLL_SECONDS)


def _work_in_child(work: Callable[[], int], report_end: int, lifeline: int, our_end: int) -> int:
    os.close(our_end)
    kill_on_hangup(lifeline, os.getpid())
    me, code = os.getpid(), work()
    if os.getpid() == me:  # a backend may fork
        with contextlib.suppress(OSError):  # it may close what it did not open; the parent says so then
            os.write(report_end, bytes([code & 0xFF]))
    return code


def kill_on_hangup(pipe: int, owner: int) -> None:
    """Make the kernel kill a process, or a group by its negative number, once the pipe has no writer; Linux only.

    A parent-death signal would come as soon as the thread that started the process is gone.
    """
    if hasattr(fcntl, "F_SETSIG"):
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
