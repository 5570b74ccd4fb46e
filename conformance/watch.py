"""A backend in this very process may end it, with 0 if it likes: a parent looks on, and believes no end but ours."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable

if sys.platform != "win32":
    import fcntl


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the command ends as if it was interrupted, and says so in other words."""


def heed_termination() -> None:
    """Have SIGTERM end this process the way an interrupt does, so that nothing of it is left behind."""

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would cut the cleaning short
        raise Terminated

    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, end)


def watched(work: Callable[[], int], ended: Callable[[int], int]) -> int:
    """What the work comes to in a child; or what `ended` makes of the exit code of a child that never came to its end.

    To be called before there are threads. A child that is killed has the negative number of the signal.
    """
    if not hasattr(os, "fork"):
        return work()
    told, telling = os.pipe()
    theirs, ours = os.pipe()
    child = os.fork()
    if not child:
        return _told(work, telling, theirs, ours)
    os.close(telling)
    os.close(theirs)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child is interrupted too, and says so
    try:
        _, status = os.waitpid(child, 0)
        os.set_blocking(told, False)  # a child of the child may hold the other end
        with contextlib.suppress(BlockingIOError):
            if word := os.read(told, 1):
                return word[0]
        return ended(os.waitstatus_to_exitcode(status))
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(told)
        os.close(ours)


def _told(work: Callable[[], int], telling: int, theirs: int, ours: int) -> int:
    """Does the work in the child, and tells the parent what it came to."""
    os.close(ours)
    tie(theirs, os.getpid())
    me, code = os.getpid(), work()
    if os.getpid() == me:  # a backend may fork
        os.write(telling, bytes([code & 0xFF]))
    return code


def tie(pipe: int, owner: int) -> None:
    """Has the kernel, where it can, kill a process, or a group by its negative number, once the pipe has no writer.

    A parent-death signal would come as soon as the thread is gone that started the process.
    """
    if hasattr(fcntl, "F_SETSIG"):
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
            fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)
