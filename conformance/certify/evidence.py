"""results.jsonl: a header, a line for each row of the plan, a footer; refused if anything is missing."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

from .. import __version__
from ..adapter import digest_of_adapter
from ..model import VERDICTS, Claims, Identity, Result, Suite
from ..system.files import create, read_bytes
from .machine import environment
from .record import FOOTER, HEADER, ROW, Form, decode, misfit, short

FORMAT = "reshape-conformance-results-2"
IDLE: Mapping[str, Any] = {"kind": "none"}
"""The outcome of a row that was not called."""
_ROW = '{"record":"row","row":'
"""How the line of every row begins."""
PACKED = ".gz"
MOST = 1 << 28
"""Bytes of evidence that are read, packed or not; a run of the whole suite writes some 3 MB."""
PART = ".part"
"""What the name of a file ends in while its run goes on; only a whole file gets its name."""
_AT_ONCE = 1 << 13
"""Bytes that are written together, and lost where a run is killed; Python 3.14 would gather sixteen times as many."""


class Refused(Exception):
    """A results file that proves nothing, and why."""


class OtherFormat(Refused):
    """A results file of another version of the suite, which only that version reads."""


class Tampered(Exception):
    """Somebody changed a results file while its run wrote it, so that nothing in it holds."""


@dataclass(frozen=True)
class Evidence:
    """A whole results file."""

    header: Mapping[str, Any]
    results: tuple[Result, ...]
    footer: Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """What a run was asked to look at; empty tuples stand for everything claimed."""

    operations: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    select: str | None = None
    """The expression given with -k, which makes a run incomplete."""
    large: bool = False
    require: tuple[str, ...] = ()
    """Facets, documents and types that must not be left out."""
    shard: str | None = None
    """`2/3`: the second of three parts of the rows."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Target:
        """A target as a header holds it."""
        fields: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
        return cls(**fields)


def header_of(
    suite: Suite, identity: Identity, claims: Claims, target: Target, backend: str,
    folders: Mapping[str, Path | None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What pins a run: suite, backend, claims, target and environment; the time stands nowhere else.

    `folders`: those of `--spec` and `--cases` as they were given, for the commands that repeat a row.
    """
    given = {name: str(path) for name, path in (folders or {}).items() if path is not None}
    header = {
        "record": "header",
        "format": FORMAT,
        "suite": {
            "version": __version__,
            "digest": suite.digest,
            "documents": {document.id: document.sha256 for document in suite.spec.documents.values()},
        },
        "backend": {
            "name": identity.name, "version": identity.version, "adapter": backend, "detail": dict(identity.detail),
            "digest": digest_of_adapter(backend),
        },
        "claims": claims._asdict(),
        "target": {
            "operations": target.operations, "documents": target.documents, "types": target.types,
            "select": target.select, "large": target.large, "require": target.require, "shard": target.shard,
        },
        "environment": environment(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip
    return {**header, "folders": given} if given else header


def folder_words(header: Mapping[str, Any], option: str = "--") -> list[str]:
    """The folders that a run was given, as words of a command."""
    return [str(word) for name, path in header.get("folders", {}).items() for word in (f"{option}{name}", path)]


encoded = json.JSONEncoder(separators=(",", ":")).encode
"""One encoder for all records: `json.dumps` makes one for each."""


class Writer:
    """Writes a results file under a temporary name; `close` adds the footer and gives the file its name.

    What `close` returns is what this writer wrote. It raises Tampered if the file holds anything else. Without a path
    it writes into memory.
    """

    def __init__(self, path: Path | None, header: Mapping[str, Any]) -> None:
        self._path = path
        self._stream: BinaryIO = io.BytesIO() if path is None else create(part_of(path), _AT_ONCE)
        self._all, self._digest = hashlib.sha256(), hashlib.sha256()
        self._rows, self._resumed = 0, 0
        self._counts: Counter[str] = Counter()
        self._idle: dict[Any, str] = {}
        self._header = hashlib.sha256(self._line(f"{encoded(header)}\n")).hexdigest()

    def _line(self, line: str) -> bytes:
        data = line.encode()
        self._all.update(data)
        self._stream.write(data)
        return data

    def row(self, result: Result) -> None:
        self._digest.update(self._line(self._written(result)))
        self._rows += 1
        self._resumed += result.resumed
        for verdict in result.verdicts.values():
            self._counts[verdict] += 1

    def _written(self, result: Result) -> str:
        """The line of a row; of rows that were not called, all but the id is encoded once."""
        if result.outcome != IDLE or result.diagnosis is not None or result.resumed:
            return f"{encoded(row_record(result))}\n"
        id_, key = encoded(result.row), tuple(result.verdicts.items())
        if key not in self._idle:
            self._idle[key] = encoded(row_record(result)).removeprefix(_ROW + id_)
        return f"{_ROW}{id_}{self._idle[key]}\n"

    def close(self, seconds: float, notes: tuple[str, ...] = (), canaries: Mapping[str, int] | None = None) -> Evidence:
        """Write the footer, give the file its name, and return its content. `canaries`: failures by planted backend."""
        footer: dict[str, Any] = {
            "record": "footer",
            "rows": self._rows,
            "verdicts": {verdict: self._counts[verdict] for verdict in VERDICTS},
            "digest": self._digest.hexdigest(),
            "header": self._header,
            "notes": notes,
            "canaries": dict(canaries or {}),
            "seconds": round(seconds, 3),
        }
        if self._resumed:
            footer["resumed"] = self._resumed
        footer["seal"] = seal_of(footer)
        self._line(f"{encoded(footer)}\n")
        self._stream.flush()
        self._stream.seek(0)
        content = self._stream.read()
        if self._path is not None:
            os.fsync(self._stream.fileno())
            self._name(self._path, content)
        self._stream.close()
        return parsed(content, self._path or Path("evidence"))

    def _name(self, path: Path, content: bytes) -> None:
        """Give the file its name; Tampered if it does not hold what was written, or something else gets the name."""
        try:
            os.replace(part_of(path), path)
            named = read_bytes(path)
        except OSError:
            named = b""
        for found in (content, named):
            if hashlib.sha256(found).digest() != self._all.digest():
                with contextlib.suppress(OSError):
                    path.unlink()
                raise Tampered(f"{path} was changed while the run wrote it; no verdict holds, run again")

    def leave(self) -> None:
        """Close the file as it is, under its temporary name, to be resumed."""
        self._stream.close()


def part_of(path: Path) -> Path:
    """The name that a results file has until it is whole."""
    return path.with_name(f"{path.name}{PART}")


def seal_of(footer: Mapping[str, Any]) -> str:
    """The digest of a footer, and through it of the header and the rows."""
    return hashlib.sha256(encoded({key: value for key, value in footer.items() if key != "seal"}).encode()).hexdigest()


def row_record(result: Result) -> dict[str, Any]:
    """A result as it stands in the file."""
    record: dict[str, Any] = {"record": "row", "row": result.row}
    if any(result.content):
        record["content"] = result.content
    record["verdicts"], record["outcome"] = dict(result.verdicts), result.outcome
    if result.diagnosis is not None:
        record["diagnosis"], record["detail"] = result.diagnosis, result.detail
    if result.resumed:
        record["resumed"] = True
    return record


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Evidence:
    """Read a results file, packed or not; Refused, with the reason, if it is not whole or was changed."""
    return parsed(content(path), path)


def content(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz."""
    try:
        data = read_bytes(path, MOST)
        return _unpack(data, path) if path.suffix == PACKED else data
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def _unpack(data: bytes, path: Path) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            whole = stream.read(MOST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{path}: cannot be unpacked: {error}; the file is damaged") from None
    if len(whole) > MOST:
        raise Refused(f"{path}: unpacks to more than {MOST:,} bytes, which no run writes")
    return whole


def packed(data: bytes) -> bytes:
    """The same bytes for the same data, whenever and wherever it is packed."""
    whole = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=whole, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return whole.getvalue()


def parsed(data: bytes, path: Path) -> Evidence:
    """Read the content of a results file; `path` is for messages."""
    try:
        lines = data.decode("utf-8").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: byte {error.start} is not UTF-8; the file is damaged") from None
    if not lines:
        raise Refused(f"{path}: is empty; run again")
    header = _record(path, 1, lines[0])
    check_format(header, path)
    records = list(_records(path, lines[1:]))
    footer = records.pop() if records else header
    if footer.get("record") != "footer":
        raise Refused(f"{path}: has no footer: the run did not end; run again")
    _check(path, "header", header, HEADER)
    _check(path, "footer", footer, FOOTER)
    results = _results(path, records)
    _check_footer(path, lines, footer, results)
    return Evidence(header, results, footer)


def check_format(header: Mapping[str, Any], path: Path) -> None:
    """Refuse what is no header, or that of another format, and say which one it is."""
    format_ = header.get("format")
    if header.get("record") != "header" or not isinstance(format_, str):
        raise Refused(f"{path}:1: is no header of {FORMAT}; name its folder, results.jsonl or report.html")
    if format_ != FORMAT:
        made = header.get("suite", {}).get("version") if isinstance(header.get("suite"), dict) else None
        by = f", as suite {short(made)} wrote it" if made else ""
        what = f"is in the format {short(format_)}{by}, and this suite reads {FORMAT}"
        raise OtherFormat(f"{path}:1: {what}; read it with that version, or run again")


def _records(path: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The record of each line; what rows have in common behind id and content is decoded and checked once."""
    known: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 2):
        begin = _BEGIN.match(line)
        rest = line[begin.end() :] if begin else ""
        if begin is None or (rest not in known and not _learn(rest, known)):
            record = _record(path, number, line)
            if record.get("record") == "row":
                _check(f"{path}:{number}", "row", record, ROW)
            yield record
        else:
            begun: dict[str, Any] = {"record": "row", "row": begin[1]}
            if begin[2]:
                begun["content"] = [begin[2]]
            yield {**begun, **known[rest]}


_BEGIN = re.compile(_ROW + r'"([^"\\\0-\x1f]*)",(?:"content":\["([0-9a-f]{16})"\],)?(?=".*\n\Z)')
"""The beginning of a row's line, up to its verdicts; an id with escapes in it is left to the decoder."""


def _learn(rest: str, known: dict[str, dict[str, Any]]) -> bool:
    """Keep the end of a row's line if it is one and has the right form; else it is looked at as a whole."""
    try:
        record = decode("{" + rest)
    except ValueError:
        return False
    if misfit({"record": "row", "row": "", **record}, ROW) is not None:
        return False
    known[rest] = record
    return True


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    if not line.endswith("\n"):
        raise Refused(f"{path}:{number}: the line is cut off: the run did not end; run again")
    try:
        record = decode(line)
    except ValueError as error:
        if number == 1:
            raise Refused(f"{path}:1: is no evidence of a run; name its folder, results.jsonl or report.html") from None
        raise Refused(f"{path}:{number}: is no JSON ({error}); the file is damaged") from None
    if not isinstance(record, dict):
        raise Refused(f"{path}:{number}: is no record; the file is damaged")
    return record


def _check(place: object, what: str, record: Mapping[str, Any], form: Form) -> None:
    """Refuse a record that has not the form that its kind has."""
    if wrong := misfit(record, form):
        where = f"{wrong.where} in the {what}" if wrong.where else f"the {what}"
        raise Refused(f"{place}: {where} {wrong.what}; the file is damaged")


def _results(path: Path, records: Sequence[Mapping[str, Any]]) -> tuple[Result, ...]:
    """The results of records, each of which is a row, and each row once."""
    seen: set[str] = set()
    for number, record in enumerate(records, 2):
        if record.get("record") != "row":
            raise Refused(f"{path}:{number}: a {short(record.get('record'))} among the rows; two files are mixed")
        if record["row"] in seen:
            raise Refused(f"{path}:{number}: the row {record['row']} stands twice")
        seen.add(record["row"])
    return tuple(map(_result, records))


def _check_footer(path: Path, lines: Sequence[str], footer: Mapping[str, Any], results: Sequence[Result]) -> None:
    """Refuse a footer that was written for other lines."""
    if footer["rows"] != len(results):
        raise Refused(
            f"{path}: the footer counts {footer['rows']} rows, there are {len(results)}; rows are missing or added"
        )
    if footer["digest"] != hashlib.sha256("".join(lines[1:-1]).encode()).hexdigest():
        raise Refused(f"{path}: the rows are not those that the footer was written for; the file was changed")
    if footer["header"] != hashlib.sha256(lines[0].encode()).hexdigest():
        raise Refused(f"{path}: the header is not the one that the footer was written for; two files are mixed")
    if footer["seal"] != seal_of(footer):
        raise Refused(f"{path}: the footer is not as it was written; the file was changed")
    if footer.get("resumed", 0) != sum(result.resumed for result in results):
        raise Refused(f"{path}: the footer does not count the resumed rows; the file was changed")


def salvaged(path: Path, header: Mapping[str, Any]) -> list[Result]:
    """The whole rows of a run that was interrupted, marked as resumed; `path` is the name that a whole file has.

    Refused if they are not of the run that `header` begins.
    """
    part = part_of(path)
    if not part.exists() and path.exists():
        raise Refused(f"{path}: the run ended; there is nothing to resume")
    try:
        lines = read_bytes(part).decode("utf-8", "replace").splitlines(keepends=True)
    except OSError as error:
        raise Refused(f"{part}: cannot be read: {error.strerror}; there is no run to resume") from None
    if not lines or not lines[0].endswith("\n"):
        return []
    begun = _record(part, 1, lines[0])
    check_format(begun, part)
    wanted = json.loads(json.dumps(header))
    for key in wanted.keys() | begun.keys():
        if key not in ("started", "folders") and begun.get(key) != wanted.get(key):
            what, was, now = find_difference(key, begun.get(key), wanted.get(key))
            raise Refused(f"{part}: {what} was {was} and is {now}; begin a new run")
    whole = [line for line in lines[1:] if line.endswith("\n")]
    records = list(_records(part, whole))
    if records and records[-1].get("record") == "footer":
        records.pop()  # the run was interrupted while it gave the file its name
    return [result._replace(resumed=True) for result in _results(part, records)]


def find_difference(key: str, one: Any, other: Any) -> tuple[str, str, str]:
    """Find where two values differ, and return the key and both values, shortened."""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = next(name for name in {**one, **other} if one.get(name) != other.get(name))
        return find_difference(f"{key}.{inner}", one.get(inner), other.get(inner))
    return key, short(one), short(other)


def _result(record: Mapping[str, Any]) -> Result:
    return Result(
        record["row"], record["verdicts"], record["outcome"], record.get("diagnosis"), record.get("detail"),
        tuple(record.get("content", ())), record.get("resumed", False),
    )  # fmt: skip


def miscounts(evidence: Evidence) -> Iterator[str]:
    """Say where the verdicts that the footer counts are not those of the rows."""
    counts = Counter(verdict for result in evidence.results for verdict in result.verdicts.values())
    said = evidence.footer["verdicts"]
    for name in dict.fromkeys((*VERDICTS, *said)):
        if said.get(name) != counts[name]:
            yield f"the footer counts {said.get(name)} {name}, the rows have {counts[name]}"


def complete(evidence: Evidence, row_ids: Iterable[str], digest: str, path: Path) -> None:
    """Refuse evidence for another suite, or without exactly the rows that the suite has."""
    if evidence.header["suite"]["digest"] != digest:
        theirs = evidence.header["suite"]["digest"][:12]
        raise Refused(f"{path}: is of a suite with digest {theirs}, this one has {digest[:12]}; run again")
    wanted, there = list(row_ids), {result.row for result in evidence.results}
    if missing := [row for row in wanted if row not in there]:
        raise Refused(f"{path}: lacks {len(missing)} rows of the suite, first {missing[0]}")
    if foreign := there - set(wanted):
        raise Refused(f"{path}: has rows that the suite does not, such as {min(foreign)}")
