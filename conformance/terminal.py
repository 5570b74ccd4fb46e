"""What goes to a person's terminal: inert text, colour where it is wanted, aligned tables, a progress line."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

_KEY = os.urandom(6).hex()
"""Marks our own colours, so that no text from a file can pass for one."""
_PAINT = re.compile(rf"\\x1b{_KEY}(\d+);")
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
_WIDEST = 100


def printable(text: str) -> str:
    """The text with every character that could act on a terminal or on the reading order written out."""
    return "".join(_inert(character) for character in text)


def _inert(character: str) -> str:
    if character == "\n" or character.isprintable():
        return character
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"


# ── colour ────────────────────────────────────────────────────────────────────────────────────────


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def coloured(stream: TextIO | None) -> bool:
    """Whether to colour what goes to the stream: https://no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(style: str, text: str) -> str:
    """The text in a style; `say` brings it out where colour is wanted, and drops it elsewhere."""
    return f"\x1b{_KEY}{_STYLES[style]};{text}\x1b{_KEY}0;"


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Prints a text, inert but for our own colours."""
    stream = stream or sys.stdout
    colour = "\x1b[\\1m" if coloured(stream) else ""
    print(_PAINT.sub(colour, printable(text)), file=stream)


# ── layout ────────────────────────────────────────────────────────────────────────────────────────


def width(stream: TextIO | None = None) -> int:
    """Columns to write in: a person's terminal, but no wider than one reads with ease."""
    if not is_terminal(stream or sys.stdout):
        return _WIDEST
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


def columns(text: str) -> int:
    """Columns that a text takes; wide characters take two, combining ones none, colours none."""
    text = _PAINT.sub("", printable(text))
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """Rows in aligned columns, two blanks apart; the columns numbered in `right` end together."""
    cells = [list(map(str, row)) for row in rows]
    shown = [[paint("dim", name) for name in header], *cells] if header else cells
    if not shown:
        return ""
    widths = [max(columns(row[at]) for row in shown) for at in range(len(shown[0]))]
    to_right = set(right)
    return "\n".join(
        "  ".join(_padded(cell, widths[at], at in to_right) for at, cell in enumerate(row)).rstrip() for row in shown
    )


def _padded(cell: str, wanted: int, right: bool) -> str:
    blanks = " " * (wanted - columns(cell))
    return blanks + cell if right else cell + blanks


def wrapped(text: str, indent: int = 0, hang: int | None = None) -> str:
    """A paragraph folded to the width, indented; `hang` indents the lines after the first."""
    later = " " * (indent if hang is None else hang)
    return textwrap.fill(
        text,
        width(),
        initial_indent=" " * indent,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def labelled(label: str, text: str, gap: int = 12) -> str:
    """`label       a paragraph`, the paragraph folded in its own column."""
    body = wrapped(text, gap).lstrip()
    return f"{paint('dim', label)}{' ' * max(1, gap - columns(label))}{body}"


def counted(number: int, noun: str) -> str:
    """`1 rule`, `2 rules`, `3 silences`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cut(text: str, most: int) -> str:
    """The text in one line of so many columns at most."""
    return text if columns(text) <= most else f"{text[: max(0, most - 1)].rstrip()}…"


# ── progress ──────────────────────────────────────────────────────────────────────────────────────


class Progress:
    """One line that counts up on a person's terminal, and nothing at all elsewhere."""

    def __init__(self, label: str, total: int, stream: TextIO | None = None) -> None:
        self._label, self._total = label, total
        self._stream = stream or sys.stderr
        self._shown = is_terminal(self._stream) and os.environ.get("TERM") != "dumb"
        self._next = 0.0

    def at(self, done: int, note: str = "") -> None:
        """Shows how far it is, ten times a second at most."""
        if not self._shown or (time.monotonic() < self._next and done < self._total):
            return
        self._next = time.monotonic() + 0.1
        line = f"{self._label} {done:,} of {self._total:,} {note}".rstrip()
        self._stream.write(f"\r\x1b[K{cut(printable(line), width(self._stream) - 1)}")
        self._stream.flush()

    def close(self) -> None:
        """Clears the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
