"""The source documents held against spec/: digests, line counts, pointers, and coverage statement by statement."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from .. import model
from ..load.strict_yaml import MOST
from ..system.files import leaves_its_folder, read_bytes

# ── statements ────────────────────────────────────────────────────────────────────────────────────

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
    """Neighbouring lines that are read as one text: numbers of the first and the last, counted from 0."""

    first: int
    last: int
    row: bool = False
    """A table row, which is never cut into sentences."""


def statements(text: str) -> tuple[Statement, ...]:
    """The document cut mechanically, so that every character that is neither blank nor a ruler is in exactly one."""
    lines = text.splitlines()
    return tuple(statement for block in _blocks(lines) for statement in _cut(lines, block))


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Paragraphs, list items, headings, directives and table rows, in order."""
    begun: int | None = None
    table = False
    for number, line in enumerate(lines):
        bare = line.strip()
        ruler = _RULER.fullmatch(bare) is not None
        alone = bare.startswith(".. ") or _HASHES.match(bare) is not None
        row = bare.startswith("|") and bare.endswith("|") and len(bare) > 1
        grid_goes_on = row and begun is not None and lines[begun].lstrip().startswith("|")
        starts = alone or (row and not grid_goes_on) or table or _BULLET.match(bare) is not None
        if begun is not None and (not bare or ruler or starts):
            yield _Block(begun, number - 1, lines[begun].lstrip().startswith("|"))
            begun = None
        if ruler:
            table = _SIMPLE_TABLE.fullmatch(bare) is not None and not _closes(lines, number)
        elif not bare:
            table = False
        elif alone or table:
            yield _Block(number, number, row=True)
        elif begun is None:
            begun = number
    if begun is not None:
        yield _Block(begun, len(lines) - 1, lines[begun].lstrip().startswith("|"))


def _closes(lines: list[str], number: int) -> bool:
    """Whether the ruler of a simple table is its last one: nothing but a blank line or the end comes after it."""
    return number + 1 == len(lines) or not lines[number + 1].strip()


def _cut(lines: list[str], block: _Block) -> Iterator[Statement]:
    """The statements of one block."""
    text = "\n".join(lines[block.first : block.last + 1])
    starts = [0]  # of each line, in text
    for line in lines[block.first : block.last]:
        starts.append(starts[-1] + len(line) + 1)
    for whole in [(0, len(text))] if block.row else _sentences(text):
        piece = text[slice(*whole)]
        begin = whole[0] + len(piece) - len(piece.lstrip())
        end = whole[0] + len(piece.rstrip())
        first, last = bisect_right(starts, begin) - 1, bisect_right(starts, end - 1) - 1
        yield Statement(
            block.first + first + 1,
            begin - starts[first] + 1,
            block.first + last + 1,
            end - starts[last] + 1,
            _plain(text[begin:end]),
        )


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph begin and end."""
    begin = _marker(text)
    first = 0
    for found in _SENTENCE_END.finditer(text, begin):
        if _ABBREVIATION.search(text, first, found.start() + 1) or not text[found.end() :].strip():
            continue
        yield first, found.end()
        first = found.end()
    yield first, len(text)


def _marker(text: str) -> int:
    """The length of the bullet or number that opens a list item."""
    indent = len(text) - len(text.lstrip())
    found = _BULLET.match(text, indent)
    return found.end() if found else indent


def _plain(text: str) -> str:
    """A statement's text for people: one line, without bullet, hashes or the bars of a table."""
    if text.startswith("|"):
        columns = [re.sub(r"\s+", " ", cell).strip() for cell in _cells(text.splitlines())]
        return " | ".join(filter(None, columns))
    text = re.sub(r"\s+", " ", text[_marker(text) :])
    return _HASHES.sub("", text, count=1) if text.startswith("#") else text


def _cells(rows: list[str]) -> list[str]:
    """The cells of a grid table's row; a bar is a border where every line of the row has one."""
    rows = [row.strip() for row in rows]
    borders = [at for at in range(min(map(len, rows))) if all(row[at] == "|" for row in rows)]
    return [" ".join(row[a + 1 : b] for row in rows) for a, b in pairwise(borders)]


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────


class Covered(NamedTuple):
    """A statement and the ids of what points at it; of prose the reasons."""

    statement: Statement
    rules: tuple[str, ...]
    findings: tuple[str, ...]
    prose: tuple[str, ...]

    @property
    def uncovered(self) -> bool:
        return not (self.rules or self.findings or self.prose)


class DocumentCoverage(NamedTuple):
    """How much of one document spec/ accounts for. A statement may count as pointed at by a rule and by a finding."""

    document: str
    covered: tuple[Covered, ...]

    @property
    def statements(self) -> int:
        return len(self.covered)

    @property
    def by_rule(self) -> int:
        return sum(bool(each.rules) for each in self.covered)

    @property
    def by_finding(self) -> int:
        return sum(bool(each.findings) for each in self.covered)

    @property
    def by_prose(self) -> int:
        return sum(bool(each.prose) for each in self.covered)

    @property
    def uncovered(self) -> int:
        return sum(each.uncovered for each in self.covered)


@dataclass(frozen=True)
class Coverage:
    """The coverage of every document that could be read, by its id."""

    documents: Mapping[str, DocumentCoverage]

    @property
    def statements(self) -> int:
        return sum(each.statements for each in self.documents.values())

    @property
    def uncovered(self) -> int:
        return sum(each.uncovered for each in self.documents.values())


class _Claim(NamedTuple):
    """A pointer with the one who makes it."""

    kind: str
    name: str
    pointer: model.Pointer
    place: model.Place


_LARGEST = 1 << 20  # a document is a page of text: larger files are not searched for one


def verify(spec: model.Spec, folder: Path) -> tuple[list[model.Problem], Coverage]:
    """Every document of `spec` against its text in `folder`."""
    problems: list[model.Problem] = []
    covered: dict[str, DocumentCoverage] = {}
    if not folder.is_dir():
        what = f"no folder of documents at {str(folder)!r}: name the one that holds their files"
        return [model.Problem(_sources(spec), what)], Coverage({})
    claims = _claims(spec)
    for document in spec.documents.values():
        if spec.added and document.id not in spec.added:
            continue  # those that come along were verified where they come from
        text, found = _text(document, folder)
        problems += found
        if text is None:
            continue
        cut = statements(text)
        problems += _pinned(document, text, cut)
        mine = [claim for claim in claims if claim.pointer.document == document.id]
        covered[document.id], found = _cover(document, text.splitlines(), cut, mine)
        problems += found
        problems += _holes(document, covered[document.id])
    return problems, Coverage(covered)


def _sources(spec: model.Spec) -> model.Place:
    """Where to put what concerns no single document."""
    for document in spec.documents.values():
        return document.place._replace(line=1)
    return model.Place("spec/sources.yaml", 1)


def _claims(spec: model.Spec) -> list[_Claim]:
    """Every pointer of spec/ and whose it is."""
    claims = [_Claim("rule", r.id, pointer, r.place) for r in spec.rules.values() for pointer in r.stated]
    claims += [_Claim("finding", f.id, pointer, f.place) for f in spec.findings.values() for pointer in f.at]
    claims += [_Claim("prose", p.reason, p.pointer, p.place) for d in spec.documents.values() for p in d.prose]
    return claims


def _text(document: model.Document, folder: Path) -> tuple[str | None, list[model.Problem]]:
    """A document's text, found by digest or else by name, and what is wrong with the file."""
    try:
        data = _bytes(document, folder)
    except OSError as error:
        return None, [model.Problem(document.place, f"{document.id}: cannot read its file: {error.strerror}")]
    if data is None:
        what = f"{document.id}: neither {document.file!r} nor a file of its sha256 is in {str(folder)!r}: put it there"
        return None, [model.Problem(document.place, what)]
    problems = []
    digest = hashlib.sha256(data).hexdigest()
    if digest != document.sha256 and leaves_its_folder(folder / document.file):
        what = "is a symbolic link to another folder and not the text that is pinned; its content is not shown"
        return None, [model.Problem(document.place, f"{document.id}: {document.file!r} {what}")]
    if digest != document.sha256:
        what = f"{document.id}: sha256 of {document.file!r} is {digest}, not {document.sha256}: read the text again"
        problems.append(model.Problem(document.place, f"{what}, then pin the new digest"))
    try:
        return data.decode("utf-8"), problems
    except UnicodeDecodeError as error:
        what = f"{document.id}: {document.file!r} is no UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}"
        return None, [*problems, model.Problem(document.place, f"{what}: fetch the document again")]


def _bytes(document: model.Document, folder: Path) -> bytes | None:
    """The bytes of a document's file. One of its name with other bytes yields to one with the pinned digest."""
    named = folder / document.file
    data = read_bytes(named, MOST) if named.exists() and not named.is_dir() else None
    if data is not None and hashlib.sha256(data).hexdigest() == document.sha256:
        return data
    for other in sorted(folder.iterdir()):
        try:
            if other == named or not other.is_file() or other.stat().st_size > _LARGEST:
                continue
            candidate = read_bytes(other, _LARGEST)
        except OSError:  # a file that nobody asked for
            continue
        if hashlib.sha256(candidate).hexdigest() == document.sha256:
            return candidate
    return data


def _pinned(document: model.Document, text: str, cut: tuple[Statement, ...]) -> list[model.Problem]:
    """Whether the counts in sources.yaml are those of the text."""
    counted = (("lines", document.lines, len(text.splitlines())), ("statements", document.statements, len(cut)))
    return [
        model.Problem(document.place, f"{document.id}: has {got} {name}, not {pinned}: set {name} to {got}")
        for name, pinned, got in counted
        if pinned != got
    ]


def _cover(
    document: model.Document, lines: list[str], cut: tuple[Statement, ...], claims: Iterable[_Claim]
) -> tuple[DocumentCoverage, list[model.Problem]]:
    """Which pointers stand on which statement, and those that stand nowhere."""
    problems: list[model.Problem] = []
    pointed: list[dict[str, list[str]]] = [{"rule": [], "finding": [], "prose": []} for _ in cut]
    for claim in claims:
        at, wrong = _locate(lines, cut, claim.pointer)
        if at is None:
            who = f"{claim.kind} {claim.name}" if claim.kind != "prose" else "prose"
            problems.append(model.Problem(claim.place, f"{who}: {wrong}"))
        elif claim.name not in pointed[at][claim.kind]:
            pointed[at][claim.kind].append(claim.name)
    covered = tuple(
        Covered(statement, tuple(by["rule"]), tuple(by["finding"]), tuple(by["prose"]))
        for statement, by in zip(cut, pointed, strict=True)
    )
    return DocumentCoverage(document.id, covered), problems


def _locate(lines: list[str], cut: tuple[Statement, ...], pointer: model.Pointer) -> tuple[int | None, str]:
    """The number of the statement that a pointer stands on, or what is wrong with the pointer."""
    spot = f"line {pointer.line} of {pointer.document}"
    if not 1 <= pointer.line <= len(lines):
        return None, f"there is no {spot}: it has {len(lines)} lines"
    found = list(_words(pointer.words).finditer(lines[pointer.line - 1]))
    if not found:
        return None, f"{pointer.words!r} does not stand on {spot}: {_elsewhere(lines, pointer)}"
    if len(found) > 1:
        return None, f"{pointer.words!r} stands {len(found)} times on {spot}: take more words, so that it is once"
    begin, end = found[0].start() + 1, found[0].end()
    for number, statement in enumerate(cut):
        if statement.holds(pointer.line, begin):
            if statement.holds(pointer.line, end):
                return number, ""
            return None, f"{pointer.words!r} on {spot} runs from one statement into the next: take words of one"
    return None, f"{pointer.words!r} on {spot} is part of a ruler, not of a statement: point at words"


def _words(words: str) -> re.Pattern[str]:
    """Matches these very words, whole, whatever the white space between them."""
    body = r"\s+".join(map(re.escape, words.split()))
    before = r"(?<!\w)" if words.strip()[:1].isalnum() else ""
    after = r"(?!\w)" if words.strip()[-1:].isalnum() else ""
    return re.compile(before + body + after if body else r"(?!)")


def _elsewhere(lines: list[str], pointer: model.Pointer) -> str:
    """Where the words of a pointer stand instead."""
    pattern = _words(pointer.words)
    found = [str(number) for number, line in enumerate(lines, 1) if pattern.search(line)]
    if not found:
        return "nor on any other, so read the document again"
    return f"it does on line{'s' if len(found) > 1 else ''} {', '.join(found)}"


def _holes(document: model.Document, coverage: DocumentCoverage) -> list[model.Problem]:
    """A problem for each statement that nothing points at."""
    return [
        model.Problem(
            document.place,
            f"{document.id}: line {each.statement.line}, {_opening(each.statement)!r}: nothing points at this statement"
            ": point a rule or a finding at it, or list it under prose with a reason",
        )
        for each in coverage.covered
        if each.uncovered
    ]


def _opening(statement: Statement) -> str:
    """The first few words of a statement."""
    words = statement.text.split()
    return " ".join(words[:6]) + (" …" if len(words) > 6 else "")
