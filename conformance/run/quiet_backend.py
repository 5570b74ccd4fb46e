"""Keep what a backend does to this process out of the run, and the places of this machine out of messages."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_FOLDERS = (f"{sys.prefix}{os.sep}", f"{Path(__file__).parents[2]}{os.sep}")
"""The folders of the suite and of the libraries on this machine, which must not be published."""
_MOVED = "the backend changed the working directory"


def remove_places(text: str) -> str:
    """Return a message without the folders of this machine."""
    for place in _FOLDERS:
        text = text.replace(place, "")
    return text


@contextlib.contextmanager
def quiet_backend() -> Iterator[list[str]]:
    """Keep what a backend prints out of our output, and keep the working directory.

    At the end the list holds a note on each of these that happened.
    """
    folder, printed, notes = os.getcwd(), io.StringIO(), list[str]()
    try:
        with _output_to_stderr(), contextlib.redirect_stdout(printed):
            yield notes
    finally:
        if lines := len(printed.getvalue().splitlines()):
            notes.append(f"the backend printed {lines} lines to the standard output")
        stay_in(folder, notes)


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Let descriptor 1 be the standard error: a library in C writes there, whatever `sys.stdout` is."""
    if sys.__stdout__ is None or sys.__stderr__ is None:  # closed, so that the number may be of another file
        yield
        return
    _flush_stdout(sys.__stdout__)
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        _flush_stdout(sys.__stdout__)
        os.dup2(stdout, 1)
        os.close(stdout)


def _flush_stdout(stdout: TextIO) -> None:
    """Write out what waits for descriptor 1 in the buffers of Python and C."""
    if not stdout.closed:
        stdout.flush()
    with contextlib.suppress(OSError, TypeError):  # Windows has no library without a name
        ctypes.CDLL(None).fflush(None)


def stay_in(folder: str, notes: list[str]) -> None:
    """Go back to the working directory if a backend has left it, and add a note."""
    with contextlib.suppress(FileNotFoundError):  # it may have removed the one it went to
        if os.getcwd() == folder:
            return
    os.chdir(folder)
    if _MOVED not in notes:
        notes.append(_MOVED)
