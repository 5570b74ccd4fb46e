"""Output on a terminal: text without control characters, colours, aligned tables."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

_KEY = os.urandom(6).hex()
"""Marks our own colours, line breaks and signs in a text. No text from a file can hold it."""
_OURS = re.compile(rf"\\x1b{_KEY}([^;]*);")
"""Our own marks, as `printable` writes them."""
_BREAK = f"\x1b{_KEY}n;"
OK_SIGN, BAD_SIGN = f"\x1b{_KEY}✓;", f"\x1b{_KEY}✗;"
"""Our signs at the start of a line. `say` puts a backslash before such a sign in any other text."""
_LOOKS_LIKE_OURS = re.compile(rf"(?:[ ]|\\x1b{_KEY}\d+;)*(?=::|✓|✗|✔|✘)")
"""The start of a line that a CI service would obey (`::error::`), or a person would read as our verdict."""
_COMMAND = re.compile(r"(?<=#)#(?=[a-z]*\[)", re.IGNORECASE)
"""`##[group]`, `##vso[…]` and `##teamcity[…]`, which some CI services obey anywhere in a line."""
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
MAX_COLUMNS = 100
_VERBATIM = f"\x1b{_KEY}v;"
_MIN_LAST_COLUMN = 24
"""Columns that a last column needs to be folded in itself."""


def printable(text: str) -> str:
    """Return the text in one line, with escapes for characters that act on a terminal or on the reading order."""
    if text.isprintable():
        return text
    return "".join([character if character.isprintable() else _inert(character) for character in text])


def _inert(character: str) -> str:
    if character == "\n":
        return "\\n"
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"\\u{ord(character):04x}"


def plain(text: str) -> str:
    """Return the text as `say` prints it without colour: safe for a terminal and for the log of a CI service.

    A line break in it is one of `lines`, `table`, `wrap` or `label_paragraph`; any other is written out as `\\n`.
    """
    return _render(text, "")


def _render(text: str, colour: str) -> str:
    def mark(match: re.Match[str]) -> str:
        if match[1].isdigit():
            return match.expand(colour)
        return {"n": "\n", "v": ""}.get(match[1], match[1])

    written = printable(_BREAK).join(map(_disarm, printable(text).split(printable(_BREAK))))
    return _COMMAND.sub(r"\\x23", _OURS.sub(mark, written))


def _disarm(line: str) -> str:
    """Put a backslash before a start of the line that looks like a command or our verdict."""
    start = _LOOKS_LIKE_OURS.match(line)
    return f"{start[0]}\\{line[start.end() :]}" if start else line


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def wants_colour(stream: TextIO | None) -> bool:
    """Ask whether the stream should get colours: https://no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(style: str, text: str) -> str:
    """Mark the text with a style; `say` prints the colour if the stream should be coloured."""
    return f"\x1b{_KEY}{_STYLES[style]};{text}\x1b{_KEY}0;"


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print a text as `plain` makes it, with colours if the stream should be coloured, folded to the terminal."""
    stream = stream or sys.stdout
    if is_terminal(stream):
        text = lines(_fold_all(text))
    print(_render(text, "\x1b[\\1m" if wants_colour(stream) else ""), file=stream)


def say_raw(text: str) -> None:
    """Print a whole file, such as a script or JSON, that has to stay byte for byte what it is."""
    sys.stdout.write(text)


def width(stream: TextIO | None = None) -> int:
    """Return the columns to write in: those of the terminal, at most 100."""
    if not is_terminal(stream or sys.stdout):
        return MAX_COLUMNS
    return max(40, min(MAX_COLUMNS, _size().columns))


def _size() -> os.terminal_size:
    import shutil  # slow to import, and only needed on a terminal

    return shutil.get_terminal_size()


def columns(text: str) -> int:
    """Return the columns that a text takes; wide characters take two, combining ones none, colours none."""
    text = _OURS.sub(lambda mark: mark[1] if mark[1] in "✓✗" else "", printable(text))
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def lines(texts: Iterable[str]) -> str:
    return _BREAK.join(texts)


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = (), right: Iterable[int] = ()) -> str:
    """Lay out rows in aligned columns, two blanks apart; the columns numbered in `right` are aligned to the right.

    If the terminal is too narrow even for the start of the last column, each column from there on begins a line.
    """
    cells = [list(map(str, row)) for row in rows]
    rows_shown = [[paint("dim", name) for name in header], *cells] if header else cells
    if not rows_shown:
        return ""
    widths = [max(columns(row[at]) for row in rows_shown) for at in range(len(rows_shown[0]))]
    to_right = set(right)
    beside = _count_beside(widths) if is_terminal(sys.stdout) else len(widths)
    return lines(
        _BREAK.join(
            (
                "  ".join(_pad(cell, widths[at], at in to_right) for at, cell in enumerate(row[:beside])).rstrip(),
                *(f"    {cell}" for cell in row[beside:]),
            )
        )
        for row in rows_shown
    )


def _count_beside(widths: Sequence[int]) -> int:
    """Count the columns of a table that the terminal has room for side by side; a last one may be folded in itself."""
    across = _size().columns
    ends = [sum(widths[: at + 1]) + 2 * at for at in range(len(widths))]
    if ends[-1] <= across or ends[-1] - widths[-1] <= across - _MIN_LAST_COLUMN:
        return len(widths)
    return max(1, sum(end <= across for end in ends))


def _pad(cell: str, wanted: int, right: bool) -> str:
    blanks = " " * (wanted - columns(cell))
    return blanks + cell if right else cell + blanks


def verbatim(text: str) -> str:
    """Mark a line that readers copy, such as a command: `say` does not fold it."""
    return f"{_VERBATIM}{text}"


def wrap(text: str, indent: int = 0, hang: int | None = None, most: int | None = None, rest: str = "") -> str:
    """Fold a paragraph to the width and indent it; `hang` indents the lines after the first.

    `most`: lines to show of a longer one; `rest` then says where to read it all.
    """
    hang = indent if hang is None else hang
    folded = _fold(" " * indent + re.sub(r"\s", " ", text.strip()), width(), hang)
    if most is not None and len(folded) > most:
        end = f"… ({rest})"
        *folded, last = folded[:most]
        folded.append(f"{_fold(last, width() - columns(end), 0)[0]}{end}")
    return lines(folded)


def fold_lines(text: str) -> str:
    """Fold each line of a text that the terminal is too narrow for; elsewhere no line is folded."""
    if not is_terminal(sys.stdout):
        return text
    return "\n".join(part for line in text.split("\n") for part in _fold(line, width()))


def _fold_all(text: str) -> list[str]:
    across = _size().columns
    return [part for line in text.split(_BREAK) for part in ([line] if _VERBATIM in line else _fold(line, across))]


def _fold(line: str, across: int, hang: int | None = None) -> list[str]:
    """Fold a line between its words. Without `hang` what follows goes on in its last column."""
    if columns(line) <= across:
        return [line]
    if hang is None:
        column = re.match(r" *\S(?:.*\S)? {2,}(?=\S)", line)
        indent = columns(line[: column.end()]) if column else across
        hang = indent if indent <= across - _MIN_LAST_COLUMN else len(line) - len(line.lstrip()) + 2
    folded = [""]
    for word in re.findall(r" *(?:`[^`]{1,76}`|[^ ])+", line):  # a command in backquotes stays whole
        if folded[-1].strip() and columns(folded[-1] + word) > across:
            folded.append(" " * hang + word.lstrip())
        else:
            folded[-1] += word
    return folded


def with_sign(good: bool, text: str) -> str:
    """Fold a paragraph after our sign for yes or no."""
    return (OK_SIGN if good else BAD_SIGN) + wrap(f"✓ {text}", 0, 2)[1:]


def label_paragraph(label: str, text: str, gap: int = 12) -> str:
    """Write `label       a paragraph`; the paragraph is folded in its own column."""
    body = wrap(text, gap).lstrip()
    return f"{paint('dim', label)}{' ' * max(1, gap - columns(label))}{body}"


def count_noun(number: int, noun: str) -> str:
    """Write `1 rule`, `2 rules`, `3 silences`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def cut_columns(text: str, most: int) -> str:
    return text if columns(text) <= most else f"{text[: max(0, most - 1)].rstrip()}…"
