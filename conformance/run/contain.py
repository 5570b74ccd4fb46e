"""Keep what a backend does to this process out of the run, and the places of this machine out of messages."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

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
        with contextlib.redirect_stdout(printed):
            yield notes
    finally:
        if lines := len(printed.getvalue().splitlines()):
            notes.append(f"the backend printed {lines} lines to the standard output")
        stay_in(folder, notes)


def stay_in(folder: str, notes: list[str]) -> None:
    """Go back to the working directory if a backend has left it, and add a note."""
    with contextlib.suppress(FileNotFoundError):  # it may have removed the one it went to
        if os.getcwd() == folder:
            return
    os.chdir(folder)
    if _MOVED not in notes:
        notes.append(_MOVED)
