"""Compare the source documents with spec/: digests, line counts, pointers, and coverage of each statement."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .. import model
from ..load.strict_yaml import MAX_FILE_BYTES
from ..system.files import leaves_its_folder, read_bytes
from .statements import Statement, statements


class DocumentCoverage(NamedTuple):
    """The number of statements of one document, and of those that spec/ covers, perhaps both by rule and by finding."""

    statements: int
    by_rule: int
    by_finding: int
    by_prose: int
    uncovered: int


Coverage = Mapping[str, DocumentCoverage]
"""The coverage of every document that could be read, by its id."""


class _OwnedPointer(NamedTuple):
    """A pointer, and the rule, finding or prose that it belongs to."""

    kind: str
    name: str
    pointer: model.Pointer
    place: model.Place


_MAX_SEARCHED_BYTES = 1 << 20  # a document is a page of text: larger files are not searched for one


def verify_documents(spec: model.Spec, folder: Path) -> tuple[list[model.Problem], Coverage]:
    problems: list[model.Problem] = []
    covered: dict[str, DocumentCoverage] = {}
    if not folder.is_dir():
        what = f"no folder of documents at {str(folder)!r}: name the one that holds their files"
        places = (document.place._replace(line=1) for document in spec.documents.values())
        return [model.Problem(next(places, model.Place("spec/sources.yaml", 1)), what)], {}
    pointers = _list_pointers(spec)
    for document in spec.documents.values():
        if spec.added and document.id not in spec.added:
            continue  # the bundled ones were verified before a release
        text, more = _read_text(document, folder)
        problems += more
        if text is None:
            continue
        cut = statements(text)
        problems += _check_counts(document, text, cut)
        mine = [owned for owned in pointers if owned.pointer.document == document.id]
        covered[document.id], more = _cover(document, text.splitlines(), cut, mine)
        problems += more
    return problems, covered


def _list_pointers(spec: model.Spec) -> list[_OwnedPointer]:
    pointers = [_OwnedPointer("rule", r.id, pointer, r.place) for r in spec.rules.values() for pointer in r.stated]
    pointers += [_OwnedPointer("finding", f.id, pointer, f.place) for f in spec.findings.values() for pointer in f.at]
    pointers += [_OwnedPointer("prose", p.reason, p.pointer, p.place) for d in spec.documents.values() for p in d.prose]
    return pointers


def _read_text(document: model.Document, folder: Path) -> tuple[str | None, list[model.Problem]]:
    """Return a document's text, found by digest or else by name, and the problems with the file."""
    try:
        data = _read_bytes(document, folder)
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


def _read_bytes(document: model.Document, folder: Path) -> bytes | None:
    """Return the bytes of a document's file. A file with the pinned digest goes before one with the right name."""
    named = folder / document.file
    data = read_bytes(named, MAX_FILE_BYTES) if named.exists() and not named.is_dir() else None
    if data is not None and hashlib.sha256(data).hexdigest() == document.sha256:
        return data
    for other in sorted(folder.iterdir()):
        try:
            if other == named or not other.is_file() or other.stat().st_size > _MAX_SEARCHED_BYTES:
                continue
            candidate = read_bytes(other, _MAX_SEARCHED_BYTES)
        except OSError:  # a file that nobody asked for
            continue
        if hashlib.sha256(candidate).hexdigest() == document.sha256:
            return candidate
    return data


def _check_counts(document: model.Document, text: str, cut: tuple[Statement, ...]) -> list[model.Problem]:
    counted = (("lines", document.lines, len(text.splitlines())), ("statements", document.statements, len(cut)))
    return [
        model.Problem(document.place, f"{document.id}: has {got} {name}, not {pinned}: set {name} to {got}")
        for name, pinned, got in counted
        if pinned != got
    ]


def _cover(
    document: model.Document, lines: list[str], cut: tuple[Statement, ...], pointers: Iterable[_OwnedPointer]
) -> tuple[DocumentCoverage, list[model.Problem]]:
    """Find the pointers at each statement; a pointer at none, and a statement without any, is a problem."""
    problems: list[model.Problem] = []
    kinds = [set[str]() for _ in cut]
    for owned in pointers:
        at, wrong = _locate(lines, cut, owned.pointer)
        if at is None:
            who = f"{owned.kind} {owned.name}" if owned.kind != "prose" else "prose"
            problems.append(model.Problem(owned.place, f"{who}: {wrong}"))
        else:
            kinds[at].add(owned.kind)
    uncovered = [statement for statement, pointing in zip(cut, kinds, strict=True) if not pointing]
    for statement in uncovered:
        words = statement.text.split()
        opening = " ".join(words[:6]) + (" …" if len(words) > 6 else "")
        what = f"{document.id}: line {statement.line}, {opening!r}: nothing points at this statement: "
        hint = "point a rule or a finding at it, or list it under prose with a reason"
        problems.append(model.Problem(document.place, what + hint))
    counts = Counter(itertools.chain(*kinds))
    return DocumentCoverage(len(cut), counts["rule"], counts["finding"], counts["prose"], len(uncovered)), problems


def _locate(lines: list[str], cut: tuple[Statement, ...], pointer: model.Pointer) -> tuple[int | None, str]:
    """Return the number of the statement that a pointer points at, or what is wrong with the pointer."""
    spot = f"line {pointer.line} of {pointer.document}"
    if not 1 <= pointer.line <= len(lines):
        return None, f"there is no {spot}: it has {len(lines)} lines"
    matches = list(_make_pattern(pointer.words).finditer(lines[pointer.line - 1]))
    if not matches:
        return None, f"{pointer.words!r} is not on {spot}: {_say_elsewhere(lines, pointer)}"
    if len(matches) > 1:
        return None, f"{pointer.words!r} is {len(matches)} times on {spot}: take more words, so that it is there once"
    begin, end = matches[0].start() + 1, matches[0].end()
    for number, statement in enumerate(cut):
        if statement.holds(pointer.line, begin):
            if statement.holds(pointer.line, end):
                return number, ""
            return None, f"{pointer.words!r} on {spot} runs from one statement into the next: take words of one"
    return None, f"{pointer.words!r} on {spot} is part of a ruler, not of a statement: point at words"


def _make_pattern(words: str) -> re.Pattern[str]:
    """Return a pattern for exactly these words, with any white space between them."""
    body = r"\s+".join(map(re.escape, words.split()))
    before = r"(?<!\w)" if words.strip()[:1].isalnum() else ""
    after = r"(?!\w)" if words.strip()[-1:].isalnum() else ""
    return re.compile(before + body + after if body else r"(?!)")


def _say_elsewhere(lines: list[str], pointer: model.Pointer) -> str:
    """Say on which other lines the words of a pointer are."""
    pattern = _make_pattern(pointer.words)
    numbers = [str(number) for number, line in enumerate(lines, 1) if pattern.search(line)]
    if not numbers:
        return "nor on any other, so read the document again"
    return f"it is on line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
