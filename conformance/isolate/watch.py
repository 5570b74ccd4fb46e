"""A backend in this very process may end it, with 0 if it likes: a parent looks on, and believes no end but ours."""

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
    """SIGTERM came: the command ends as if it was interrupted, and says so in other words."""


def heed_signals() -> None:
    """Have SIGTERM end this process the way an interrupt does, and one of either not cut another's cleaning short."""
    last = 0.0

    def end(number: int, frame: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > _PATIENCE:
            last = now
            raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    for each, handler in usual.items():
        if signal.getsignal(each) is handler:  # else whoever started us wants it ignored
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(each, end)


_PATIENCE = 2.0
"""Seconds after a signal in which another one does nothing."""
_GRACE = 5.0
"""Seconds to end in, for a child that has said what it came to, or that was told to end."""
_GLANCE = 0.05


def watched(work: Callable[[], int], ended: Callable[[int], int]) -> int:
    """Do the work in a child, and return what it came to.

    If the child ends without saying so, return what `ended` makes of its exit code, or of the negative number of the
    signal. A child that does not end after its work is killed, and so is every process that it leaves behind. To be
    called before there are threads.
    """
    if not hasattr(os, "fork"):
        return work()
    from .orphans import adopt, end_adopted  # slow to import, and only needed here

    adopt()
    told, telling = os.pipe()
    theirs, ours = os.pipe()
    child = os.fork()
    if not child:
        return _told(work, telling, theirs, ours)
    os.close(telling)
    os.close(theirs)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child is interrupted too, and says so
    try:
        word, status = _wait(child, told)
        return word[0] if word else ended(os.waitstatus_to_exitcode(status))
    finally:
        end_adopted()
        signal.signal(signal.SIGINT, before)
        os.close(told)
        os.close(ours)


def _wait(child: int, told: int) -> tuple[bytes, int]:
    """Wait for the child; return what it said, empty if nothing, and the status with which it ended."""
    os.set_blocking(told, False)  # a child of the child may hold the other end
    word, end = b"", float("inf")

    def hand_on(number: int, frame: object) -> None:
        nonlocal end
        os.kill(child, signal.SIGTERM)
        end = min(end, time.monotonic() + _GRACE)

    signal.signal(signal.SIGTERM, hand_on)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if not word:
            with contextlib.suppress(BlockingIOError):
                word = os.read(told, 1)
            end = min(end, time.monotonic() + _GRACE) if word else end
        if pid:
            return word, status
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        select.select([] if word else [told], [], [], _GLANCE)


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
