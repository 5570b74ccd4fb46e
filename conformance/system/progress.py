"""Progress of long work: one line on a terminal that is written over, a line now and then elsewhere.

We need one line, which is no reason to depend on a library such as rich.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from .terminal import cut_columns, is_terminal, printable, width

Value = TypeVar("Value")
LINE_SECONDS = 9.0
"""Seconds between two lines of progress where there is no terminal."""
SAMPLE_SECONDS, RATE_SECONDS = 1.0, 600.0
"""The rate is that of the last ten minutes, with a sample each second: some rows take a thousand times as long."""
MIN_RATE = 0.05
"""If fewer are done in a second, as when a call hangs, the time left is not known."""
POLL_SECONDS = 0.5
"""The thread that writes while nothing ends looks so often."""
SLOW_SECONDS = 1.0
"""What goes on is named after so long: nobody can read names that change ten times a second."""
_going_on: dict[int, tuple[float, str]] = {}
"""What each thread does, and since when, by its id. It is begun in this order."""


def begin(name: str) -> None:
    """Note what this thread does from now on, for the line of progress; nothing without a name."""
    _going_on.pop(threading.get_ident(), None)
    if name:
        _going_on[threading.get_ident()] = time.monotonic(), name


class Progress:
    """The number done, its rate, the failures so far, the time left, and what was begun first of what goes on.

    Without a terminal, as in CI, it writes a line at least every LINE_SECONDS, also while one call hangs.
    """

    shown = 0

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self._label, self._total = label, total
        self._stream = stream or sys.stderr
        self._on_terminal = is_terminal(self._stream) and os.environ.get("TERM") != "dumb"
        self._done = 0
        self._failed: int | None = None
        _going_on.clear()  # what an earlier run left
        began = time.monotonic()
        self._samples = deque([(began, 0)])
        """Times, with the number done, for the rate. The first second goes: a run that is resumed leaps in it."""
        self._next = 0.0 if self._on_terminal else began + LINE_SECONDS
        self._lock, self._closed = threading.Lock(), threading.Event()
        Progress.shown += 1
        if math.isfinite(LINE_SECONDS):
            threading.Thread(target=self._write_while_nothing_ends, daemon=True).start()

    def at(self, done: int, failed: int | None = None) -> None:
        """Show the number done, at most ten times a second on a terminal."""
        with self._lock:
            self._done, self._failed = done, failed
            now = time.monotonic()
            self._sample(now)
            if now >= self._next or (done >= self._total and self._on_terminal):
                self._write_progress(now)

    def close(self) -> None:
        """Clear the line, and write no more."""
        Progress.shown -= 1
        with self._lock:
            self._closed.set()
            if self._on_terminal:
                self._stream.write("\r\x1b[K")
                self._stream.flush()

    def _sample(self, now: float) -> None:
        if now - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._samples.append((now, self._done))
            if not self._samples[0][1]:
                self._samples.popleft()
        while len(self._samples) > 2 and now - self._samples[0][0] > RATE_SECONDS:
            self._samples.popleft()

    def _write_while_nothing_ends(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            with self._lock:
                if (now := time.monotonic()) >= self._next and not self._closed.is_set():
                    self._write_progress(now)

    def _write_progress(self, now: float) -> None:
        self._next = now + (0.1 if self._on_terminal else LINE_SECONDS)
        most = width(self._stream) - 1 if self._on_terminal else sys.maxsize
        line = cut_columns(printable(self._describe(now, most)), most)
        if self._on_terminal:
            self._stream.write(f"\r\x1b[K{line}")
        else:
            self._stream.write(f"conformance: {line}\n")
        self._stream.flush()

    def _describe(self, now: float, most: int) -> str:
        """Say the number done, and what is known of the failures, the rate, the time left and what goes on.

        The name of what goes on is whole: if all is longer than `most`, other parts are left out.
        """
        said = [f"{self._label} {self._done:,} of {self._total:,}" if self._total > 1 else self._label]
        if self._failed is not None:
            said.append(f"{self._failed:,} failed")
        before, done = self._samples[0]
        rate = (self._done - done) / max(now - before, 1e-9)
        if rate >= MIN_RATE:
            left = _as_time((self._total - self._done) / rate)
            said += [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s", f"about {left} left"]
        said += [name for began, name in [*_going_on.values()][:1] if now - began >= SLOW_SECONDS]
        while len(said) > 2 and len(", ".join(said)) > most:
            del said[-2]
        return ", ".join(said)


def track(label: str, things: Iterable[Value], total: int) -> Iterator[Value]:
    """Yield things, and show how many are done, unless other progress is shown."""
    if Progress.shown:
        yield from things
        return
    progress = Progress(label, total)
    try:
        for done, thing in enumerate(things):
            progress.at(done)
            yield thing
    finally:
        progress.close()


def _as_time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
