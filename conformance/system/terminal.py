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
"""Marks what we put into a text ourselves: colours, line breaks and signs. No text from a file can hold it."""
_OURS = re.compile(rf"\\x1b{_KEY}([^;]*);")
"""Our own marks, as `printable` writes them."""
_BREAK = f"\x1b{_KEY}n;"
OK, BAD = f"\x1b{_KEY}✓;", f"\x1b{_KEY}✗;"
"""Our signs at the start of a line. `say` puts a backslash before a sign that somebody else's text puts there."""
_POSES = re.compile(rf"(?:[ ]|\\x1b{_KEY}\d+;)*(?=::|✓|✗|✔|✘)")
"""The start of a line that a CI service takes for a command (`::error::`), or a person for a verdict of ours."""
_COMMAND = re.compile(r"(?<=#)#(?=[a-z]*\[)", re.IGNORECASE)
"""`##[group]`, `##vso[…]` and `##teamcity[…]`, which some CI services obey anywhere in a line."""
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
_WIDEST = 100


def printable(text: str) -> str:
    """The text in one line: every character that could act on a terminal or on the reading order is written out."""
    return "".join(_inert(character) for character in text)


def _inert(character: str) -> str:
    if character.isprintable():
        return character
    if character == "\n":
        return "\\n"
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"


def plain(text: str) -> str:
    """The text as `say` prints it where there is no colour: safe for a terminal and for the log of a CI service.

    A line break in it is one of `lines`, `table`, `wrapped` or `labelled`; any other is written out as `\\n`.
    """
    return _shown(text, "")


def _shown(text: str, colour: str) -> str:
    def mark(match: re.Match[str]) -> str:
        if match[1].isdigit():
            return match.expand(colour)
        return "\n" if match[1] == "n" else match[1]

    written = printable(_BREAK).join(map(_not_posing, printable(text).split(printable(_BREAK))))
    return _COMMAND.sub(r"\\x23", _OURS.sub(mark, written))


def _not_posing(line: str) -> str:
    """A line with a backslash before what would be taken for a command or for our verdict."""
    start = _POSES.match(line)
    return f"{start[0]}\\{line[start.end() :]}" if start else line


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
    """Print a text as `plain` makes it, with our own colours where they are wanted."""
    stream = stream or sys.stdout
    print(_shown(text, "\x1b[\\1m" if coloured(stream) else ""), file=stream)


def say_raw(text: str) -> None:
    """Print a whole file, such as a script or JSON, that has to stay byte for byte what it is."""
    sys.stdout.write(text)


# ── layout ────────────────────────────────────────────────────────────────────────────────────────


def width(stream: TextIO | None = None) -> int:
    """Columns to write in: a person's terminal, but no wider than one reads with ease."""
    if not is_terminal(stream or sys.stdout):
        return _WIDEST
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


def columns(text: str) -> int:
    """Columns that a text takes; wide characters take two, combining ones none, colours none."""
    text = _OURS.sub(lambda mark: mark[1] if mark[1] in "✓✗" else "", printable(text))
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def lines(texts: Iterable[str]) -> str:
    """Several lines, one below the other."""
    return _BREAK.join(texts)


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """Rows in aligned columns, two blanks apart; the columns numbered in `right` end together."""
    cells = [list(map(str, row)) for row in rows]
    shown = [[paint("dim", name) for name in header], *cells] if header else cells
    if not shown:
        return ""
    widths = [max(columns(row[at]) for row in shown) for at in range(len(shown[0]))]
    to_right = set(right)
    return lines(
        "  ".join(_padded(cell, widths[at], at in to_right) for at, cell in enumerate(row)).rstrip() for row in shown
    )


def _padded(cell: str, wanted: int, right: bool) -> str:
    blanks = " " * (wanted - columns(cell))
    return blanks + cell if right else cell + blanks


def wrapped(text: str, indent: int = 0, hang: int | None = None) -> str:
    """A paragraph folded to the width, indented; `hang` indents the lines after the first."""
    later = " " * (indent if hang is None else hang)
    return lines(
        textwrap.wrap(
            text,
            width(),
            initial_indent=" " * indent,
            subsequent_indent=later,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def with_sign(good: bool, text: str) -> str:
    """A verdict of ours: a paragraph behind our sign for yes or no."""
    return (OK if good else BAD) + wrapped(f"✓ {text}", 0, 2)[1:]


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
