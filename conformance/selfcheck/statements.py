"""Cut a document into statements: sentences, table rows, headings and directives."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_RULER = re.compile(r"([=\-#*~^\"'+.])\1{2,}|=+(\s+=+)+|\+[-=+]+\+|\.\.")
_SIMPLE_TABLE = re.compile(r"=+(\s+=+)+")
_BULLET = re.compile(r"(?:[*+•-]|\d+[.)])(?:\s+|$)")
_HASHES = re.compile(r"#+\s+")
_SENTENCE_END = re.compile(r"[.!?;][*_`\"')\]’”]*(?=\s)")
_ABBREVIATION = re.compile(r"(?<!\w)(?:i\.e|e\.g|etc|cf|vs|resp|approx|fig|no)\.$", re.IGNORECASE)


class Statement(NamedTuple):
    """One thing that a document says: a sentence or its half before a semicolon, a table row, a heading, a directive.
    Lines and columns count from 1; the end column is the one after the last character."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str

    def holds(self, line: int, column: int) -> bool:
        return (self.line, self.column) <= (line, column) < (self.end_line, self.end_column)


class _Block(NamedTuple):
    """Neighbouring lines that are read as one text; the first and the last are counted from 0."""

    first: int
    last: int
    row: bool = False
    """A table row, which is never cut into sentences."""


def statements(text: str) -> tuple[Statement, ...]:
    """Cut a document into statements. Each character that is neither blank nor in a ruler is in exactly one."""
    lines = text.splitlines()
    return tuple(statement for block in _find_blocks(lines) for statement in _cut(lines, block))


def _find_blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield paragraphs, list items, headings, directives and table rows, in order."""
    begun: int | None = None
    table = False
    for number, line in enumerate(lines):
        bare = line.strip()
        ruler = _RULER.fullmatch(bare) is not None
        alone = bare.startswith(".. ") or _HASHES.match(bare) is not None
        row = bare.startswith("|") and bare.endswith("|") and len(bare) > 1
        # a cell of a grid table goes on over several lines, up to a ruler; each line of a simple table is a row
        grid_goes_on = row and begun is not None and lines[begun].lstrip().startswith("|")
        starts = alone or (row and not grid_goes_on) or table or _BULLET.match(bare) is not None
        if begun is not None and (not bare or ruler or starts):
            yield _Block(begun, number - 1, lines[begun].lstrip().startswith("|"))
            begun = None
        if ruler:
            ends = number + 1 == len(lines) or not lines[number + 1].strip()
            table = _SIMPLE_TABLE.fullmatch(bare) is not None and not ends
        elif not bare:
            table = False
        elif alone or table:
            yield _Block(number, number, row=True)
        elif begun is None:
            begun = number
    if begun is not None:
        yield _Block(begun, len(lines) - 1, lines[begun].lstrip().startswith("|"))


def _cut(lines: list[str], block: _Block) -> Iterator[Statement]:
    text = "\n".join(lines[block.first : block.last + 1])
    starts = [0]  # of each line, in text
    for line in lines[block.first : block.last]:
        starts.append(starts[-1] + len(line) + 1)
    for whole in [(0, len(text))] if block.row else _find_sentences(text):
        piece = text[slice(*whole)]
        begin = whole[0] + len(piece) - len(piece.lstrip())
        end = whole[0] + len(piece.rstrip())
        first, last = bisect_right(starts, begin) - 1, bisect_right(starts, end - 1) - 1
        yield Statement(
            block.first + first + 1,
            begin - starts[first] + 1,
            block.first + last + 1,
            end - starts[last] + 1,
            _write_plainly(text[begin:end]),
        )


def _find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Find where the sentences of a paragraph begin and end."""
    begin = _measure_marker(text)
    first = 0
    for match in _SENTENCE_END.finditer(text, begin):
        if _ABBREVIATION.search(text, first, match.start() + 1) or not text[match.end() :].strip():
            continue
        yield first, match.end()
        first = match.end()
    yield first, len(text)


def _measure_marker(text: str) -> int:
    """Return the length of the bullet or number that opens a list item, with the blanks around it."""
    indent = len(text) - len(text.lstrip())
    match = _BULLET.match(text, indent)
    return match.end() if match else indent


def _write_plainly(text: str) -> str:
    """Return a statement's text for people: one line, without bullet, hashes or the bars of a table."""
    if text.startswith("|"):
        columns = [re.sub(r"\s+", " ", cell).strip() for cell in _split_cells(text.splitlines())]
        return " | ".join(filter(None, columns))
    text = re.sub(r"\s+", " ", text[_measure_marker(text) :])
    return _HASHES.sub("", text, count=1) if text.startswith("#") else text


def _split_cells(rows: list[str]) -> list[str]:
    """Return the cells of a grid table's row; a bar is a border where every line of the row has one."""
    rows = [row.strip() for row in rows]
    borders = [at for at in range(min(map(len, rows))) if all(row[at] == "|" for row in rows)]
    return [" ".join(row[a + 1 : b] for row in rows) for a, b in pairwise(borders)]
