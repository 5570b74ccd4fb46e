"""results.jsonl: a header, one row a row of the plan, a footer; written once and refused when anything is missing."""

from __future__ import annotations

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

from . import __version__
from .adapter import digest_of_adapter
from .machine import environment, joined, shared
from .model import VERDICTS, Claims, Identity, Result, Suite

FORMAT = "reshape-conformance-results-1"
IDLE: Mapping[str, Any] = {"kind": "none"}
"""The outcome of a row that was not called."""
_ROW = '{"record":"row","row":'
"""How the line of every row begins."""
PACKED = ".gz"
_AT_ONCE = 1 << 13
"""Bytes that are written together, and lost where a run is killed; Python 3.14 would gather sixteen times as many."""


class Refused(Exception):
    """A results file that proves nothing, and why."""


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


def _begun(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb", _AT_ONCE)


class Writer:
    """Writes a results file, or the same into memory, line by line; without `close` it has no footer and is refused."""

    def __init__(self, to: Path | io.BytesIO, header: Mapping[str, Any]) -> None:
        self._file = not isinstance(to, io.BytesIO)
        self._stream: BinaryIO = to if isinstance(to, io.BytesIO) else _begun(to)
        self._digest = hashlib.sha256()
        self._rows = 0
        self._counts: Counter[str] = Counter()
        self._idle: dict[Any, str] = {}
        self._header = hashlib.sha256(self._line(f"{encoded(header)}\n")).hexdigest()

    def _line(self, line: str) -> bytes:
        data = line.encode()
        self._stream.write(data)
        return data

    def row(self, result: Result) -> None:
        self._digest.update(self._line(self._written(result)))
        self._rows += 1
        for verdict in result.verdicts.values():
            self._counts[verdict] += 1

    def _written(self, result: Result) -> str:
        """A row’s line; of rows that were not called, all but the id is encoded once."""
        if result.outcome != IDLE or result.diagnosis is not None:
            return f"{encoded(row_record(result))}\n"
        id_, key = encoded(result.row), tuple(result.verdicts.items())
        if key not in self._idle:
            self._idle[key] = encoded(row_record(result)).removeprefix(_ROW + id_)
        return f"{_ROW}{id_}{self._idle[key]}\n"

    def close(
        self, seconds: float, notes: tuple[str, ...] = (), canaries: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """The footer, after which the file is whole. `canaries`: the failures of each planted backend."""
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
        self._line(f"{encoded(footer)}\n")
        if self._file:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
        return footer


def row_record(result: Result) -> dict[str, Any]:
    """A result as it stands in the file."""
    record: dict[str, Any] = {
        "record": "row",
        "row": result.row,
        "verdicts": dict(result.verdicts),
        "outcome": result.outcome,
    }
    if result.diagnosis is not None:
        record["diagnosis"], record["detail"] = result.diagnosis, result.detail
    return record


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Evidence:
    """A results file, packed or not; Refused, with the reason, where it is not whole or was changed."""
    return parsed(content(path), path)


def content(path: Path) -> bytes:
    """The bytes of a file, unpacked where its name ends in .gz."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == PACKED else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{path}: cannot be unpacked: {error}; the file is damaged") from None
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def packed(data: bytes) -> bytes:
    """The same bytes for the same data, whenever and wherever it is packed."""
    whole = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=whole, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return whole.getvalue()


def parsed(data: bytes, path: Path) -> Evidence:
    """The same of what stands in a results file; `path` is for messages."""
    try:
        lines = data.decode("utf-8").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: byte {error.start} is not UTF-8; the file is damaged") from None
    if not lines:
        raise Refused(f"{path}: is empty; run again")
    records = list(_records(path, lines))
    header, footer = records[0], records[-1]
    if header.get("record") != "header" or header.get("format") != FORMAT:
        raise Refused(f"{path}:1: is no header of {FORMAT}; the file is of another kind or another version")
    if footer.get("record") != "footer":
        raise Refused(f"{path}: has no footer: the run did not end; run again")
    for number, record in enumerate(records[1:-1], 2):
        if record.get("record") != "row":
            raise Refused(f"{path}:{number}: a {record.get('record')} among the rows; two files are mixed")
    _check_keys(path, header, footer)
    _check_footer(path, lines[1:-1], records[1:-1], footer)
    if footer["header"] != hashlib.sha256(lines[0].encode()).hexdigest():
        raise Refused(f"{path}: the header is not the one that the footer was written for; two files are mixed")
    return Evidence(header, tuple(_result(record) for record in records[1:-1]), footer)


def _records(path: Path, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The record of each line; what rows have in common behind their ids is decoded once, and shared."""
    known: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        begin = _ID.match(line)
        rest = line[begin.end() :] if begin else ""
        if begin is None or (rest not in known and not _learnt(rest, known)):
            yield _record(path, number, line)
        else:
            yield {"record": "row", "row": begin[1], **known[rest]}


_ID = re.compile(_ROW + r'"([^"\\\0-\x1f]*)",(?=".*\n\Z)')
"""The beginning of a row’s line, up to its second key; an id with escapes in it is left to the decoder."""


def _learnt(rest: str, known: dict[str, dict[str, Any]]) -> bool:
    """Whether the end of a row’s line is the end of an object; what that has is put among what is known."""
    try:
        known[rest] = json.loads("{" + rest)
    except ValueError:
        return False
    return True


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    if not line.endswith("\n"):
        raise Refused(f"{path}:{number}: the line is cut off: the run did not end; run again")
    try:
        record = json.loads(line)
    except ValueError as error:
        if number == 1:
            raise Refused(f"{path}:1: is no evidence of a run; name its folder, results.jsonl or report.html") from None
        raise Refused(f"{path}:{number}: is no JSON ({error}); the file is damaged") from None
    if not isinstance(record, dict):
        raise Refused(f"{path}:{number}: is no record; the file is damaged")
    return record


_Kinds = Mapping[str, type | tuple[type, ...]]
_IN_HEADER: _Kinds = {
    "suite": dict, "backend": dict, "claims": dict, "target": dict, "environment": dict, "started": str,
}  # fmt: skip
_IN_FOOTER: _Kinds = {
    "rows": int, "verdicts": dict, "digest": str, "header": str, "notes": list, "canaries": dict,
    "seconds": (int, float),
}  # fmt: skip


def _check_keys(path: Path, header: Mapping[str, Any], footer: Mapping[str, Any]) -> None:
    for name, record, keys in (("header", header, _IN_HEADER), ("footer", footer, _IN_FOOTER)):
        if missing := [key for key in keys if key not in record]:
            raise Refused(f"{path}: the {name} lacks {', '.join(missing)}; the file is damaged")
        if wrong := next((key for key, kind in keys.items() if not isinstance(record[key], kind)), None):
            raise Refused(f"{path}: {wrong} in the {name} is {_short(record[wrong])}; the file is damaged")


def _check_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Refuses rows that lack something, have unknown verdicts or stand twice."""
    seen: set[Any] = set()
    right: set[tuple[int, int]] = set()  # many rows share their verdicts and outcome, which stay where they are
    for number, row in enumerate(rows, 2):
        shared = id(row.get("verdicts")), id(row.get("outcome"))
        if shared not in right or not isinstance(row.get("row"), str):
            _check_row(path, number, row)
            right.add(shared)
        if row["row"] in seen:
            raise Refused(f"{path}:{number}: the row {row['row']} stands twice")
        seen.add(row["row"])


def _check_row(path: Path, number: int, row: Mapping[str, Any]) -> None:
    kinds = (("row", str), ("verdicts", dict), ("outcome", dict))
    if not all(isinstance(row.get(key), kind) for key, kind in kinds):
        raise Refused(f"{path}:{number}: the row lacks its id, verdicts or outcome; the file is damaged")
    if unknown := set(map(str, row["verdicts"].values())) - set(VERDICTS):
        raise Refused(f"{path}:{number}: {min(unknown)!r} is no verdict; the file is damaged")


def _check_footer(path: Path, lines: list[str], rows: list[dict[str, Any]], footer: Mapping[str, Any]) -> None:
    _check_rows(path, rows)
    if footer.get("rows") != len(rows):
        raise Refused(
            f"{path}: the footer counts {footer.get('rows')} rows, there are {len(rows)}; rows are missing or added"
        )
    if footer.get("digest") != hashlib.sha256("".join(lines).encode()).hexdigest():
        raise Refused(f"{path}: the rows are not those that the footer was written for; the file was changed")


def salvaged(path: Path, header: Mapping[str, Any]) -> list[Result]:
    """The whole rows of a run that was interrupted; Refused where they are not of the run that `header` begins."""
    try:
        lines = path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}; there is no run to resume") from None
    if not lines or not lines[0].endswith("\n"):
        return []
    begun = _record(path, 1, lines[0])
    wanted = json.loads(json.dumps(header))
    for key in wanted.keys() | begun.keys():
        if key not in ("started", "folders") and begun.get(key) != wanted.get(key):
            what, was, now = _parted(key, begun.get(key), wanted.get(key))
            raise Refused(f"{path}: {what} was {was} and is {now}; begin a new run")
    results = []
    for number, line in enumerate(lines[1:], 2):
        if not line.endswith("\n"):
            break
        record = _record(path, number, line)
        if record.get("record") == "footer":
            raise Refused(f"{path}: the run ended; there is nothing to resume")
        _check_row(path, number, record)
        results.append(_result(record))
    return results


def _parted(key: str, one: Any, other: Any) -> tuple[str, str, str]:
    """What of two values differs, and both: of objects, the first of their keys that does."""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = next(name for name in {**one, **other} if one.get(name) != other.get(name))
        return _parted(f"{key}.{inner}", one.get(inner), other.get(inner))
    return key, _short(one), _short(other)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def merged(paths: Sequence[Path]) -> tuple[dict[str, Any], list[Result]]:
    """The header and the rows of several shards of one run; Refused where they are not that."""
    parts = [read(path) for path in paths]
    header = {**parts[0].header, "target": {**parts[0].header["target"], "shard": None}}
    first_header = _in_common(header)
    for path, part in zip(paths, parts, strict=True):
        its_header = _in_common(part.header)
        for key in ("suite", "backend", "claims", "isolation", "waivers", "environment"):
            if its_header.get(key) != first_header.get(key):
                what, its, first = _parted(key, its_header.get(key), first_header.get(key))
                raise Refused(f"{path}: its {what} is {its}, that of {paths[0]} {first}; merge the parts of one run")
        if {**part.header["target"], "shard": None} != header["target"]:
            raise Refused(f"{path}: its target is not that of {paths[0]}")
    shards = [str(part.header["target"].get("shard")) for part in parts]
    _complete_shards(paths, shards)
    header["environment"] = joined([part.header["environment"] for part in parts])
    header["shards"] = [{"shard": s, "started": p.header["started"]} for s, p in zip(shards, parts, strict=True)]
    return header, _joined(paths, parts)


def _in_common(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header without what may differ between the parts of a run that are on several machines."""
    return {**header, "environment": shared(header["environment"])}


def _complete_shards(paths: Sequence[Path], shards: list[str]) -> None:
    """Refuses anything but each of N parts once."""
    count = shards[0].partition("/")[2]
    for path, shard in zip(paths, shards, strict=True):
        if "/" not in shard or shard.partition("/")[2] != count:
            what = f"shard {shard}" if "/" in shard else "a whole run and no shard"
            raise Refused(f"{path}: is {what}, not one of {count or 'several'}; merge the parts of one run")
    for part in range(1, int(count) + 1):
        named = [str(path) for path, shard in zip(paths, shards, strict=True) if shard == f"{part}/{count}"]
        if not named:
            raise Refused(
                f"shard {part}/{count} is missing; run it with --shard {part}/{count}, and name its folder too"
            )
        if len(named) > 1:
            raise Refused(f"shard {part}/{count} is there {len(named)} times: {' and '.join(named)} overlap; name one")


def _joined(paths: Sequence[Path], parts: Sequence[Evidence]) -> list[Result]:
    """Each row from the part that ran it."""
    joined: dict[str, Result] = {}
    for path, part in zip(paths, parts, strict=True):
        if joined and list(joined) != [result.row for result in part.results]:
            raise Refused(f"{path}: its rows are not those of {paths[0]}")
        for result in part.results:
            before = joined.get(result.row)
            if before is None or _idle(before):
                joined[result.row] = result
            elif not _idle(result):
                raise Refused(f"{path}: the row {result.row} was run by another shard too; the shards overlap")
    return list(joined.values())


def _idle(result: Result) -> bool:
    return set(result.verdicts.values()) == {"not run"}


def _result(record: Mapping[str, Any]) -> Result:
    return Result(record["row"], record["verdicts"], record["outcome"], record.get("diagnosis"), record.get("detail"))


def complete(evidence: Evidence, row_ids: Iterable[str], digest: str, path: Path) -> None:
    """Refuses evidence for another suite, or without exactly the rows that the suite has."""
    if evidence.header["suite"]["digest"] != digest:
        theirs = evidence.header["suite"]["digest"][:12]
        raise Refused(f"{path}: is of a suite with digest {theirs}, this one has {digest[:12]}; run again")
    wanted, there = list(row_ids), {result.row for result in evidence.results}
    if missing := [row for row in wanted if row not in there]:
        raise Refused(f"{path}: lacks {len(missing)} rows of the suite, first {missing[0]}")
    if foreign := there - set(wanted):
        raise Refused(f"{path}: has rows that the suite does not, such as {min(foreign)}")
