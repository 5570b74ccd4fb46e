"""results.jsonl: a header, one row a row of the plan, a footer; written once and refused when anything is missing."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TextIO

from . import __version__
from .model import VERDICTS, Claims, Identity, Result, Suite

FORMAT = "reshape-conformance-results-1"


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


def header_of(suite: Suite, identity: Identity, claims: Claims, target: Target, backend: str) -> dict[str, Any]:
    """What pins a run: suite, backend, claims, target and environment; the time stands nowhere else."""
    return {
        "record": "header",
        "format": FORMAT,
        "suite": {
            "version": __version__,
            "digest": suite.digest,
            "documents": {document.id: document.sha256 for document in suite.spec.documents.values()},
        },
        "backend": {"name": identity.name, "version": identity.version, "adapter": backend, "detail": dict(identity.detail)},
        "claims": claims._asdict(),
        "target": {
            "operations": target.operations, "documents": target.documents, "types": target.types,
            "select": target.select, "large": target.large, "require": target.require,
        },
        "environment": environment(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def environment() -> dict[str, str]:
    """The machine and the interpreter, as far as they can change an answer."""
    import ml_dtypes
    import numpy

    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "numpy": numpy.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
    }


class Writer:
    """Writes a results file line by line; without `close` it has no footer and nobody will take it."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: TextIO = path.open("w", encoding="utf-8", newline="\n")
        self._digest = hashlib.sha256()
        self._rows = 0
        self._counts: Counter[str] = Counter()
        self._line(header)

    def _line(self, record: Mapping[str, Any]) -> str:
        line = json.dumps(record, separators=(",", ":"), ensure_ascii=True) + "\n"
        self._stream.write(line)
        return line

    def row(self, result: Result) -> None:
        self._digest.update(self._line(row_record(result)).encode())
        self._rows += 1
        for verdict in result.verdicts.values():
            self._counts[verdict] += 1

    def close(self, seconds: float, notes: tuple[str, ...] = ()) -> dict[str, Any]:
        """The footer, after which the file is whole."""
        footer: dict[str, Any] = {
            "record": "footer",
            "rows": self._rows,
            "verdicts": {verdict: self._counts[verdict] for verdict in VERDICTS},
            "digest": self._digest.hexdigest(),
            "notes": notes,
            "seconds": round(seconds, 3),
        }
        self._line(footer)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return footer


def row_record(result: Result) -> dict[str, Any]:
    """A result as it stands in the file."""
    record: dict[str, Any] = {"record": "row", "row": result.row, "verdicts": dict(result.verdicts), "outcome": result.outcome}
    if result.diagnosis is not None:
        record["diagnosis"], record["detail"] = result.diagnosis, result.detail
    return record


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Evidence:
    """A results file; Refused, with the reason, where it is not whole or was changed."""
    try:
        lines = path.read_bytes().decode("utf-8").splitlines(keepends=True)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: byte {error.start} is not UTF-8; the file is damaged") from None
    if not lines:
        raise Refused(f"{path}: is empty; run again")
    records = [_record(path, number, line) for number, line in enumerate(lines, 1)]
    header, footer = records[0], records[-1]
    if header.get("record") != "header" or header.get("format") != FORMAT:
        raise Refused(f"{path}:1: is no header of {FORMAT}; the file is of another kind or another version")
    if footer.get("record") != "footer":
        raise Refused(f"{path}: has no footer: the run did not end; run again")
    for number, record in enumerate(records[1:-1], 2):
        if record.get("record") != "row":
            raise Refused(f"{path}:{number}: a {record.get('record')} among the rows; two files are mixed")
    _check_footer(path, lines[1:-1], records[1:-1], footer)
    return Evidence(header, tuple(_result(record) for record in records[1:-1]), footer)


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    if not line.endswith("\n"):
        raise Refused(f"{path}:{number}: the line is cut off: the run did not end; run again")
    try:
        record = json.loads(line)
    except ValueError as error:
        raise Refused(f"{path}:{number}: is no JSON ({error}); the file is damaged") from None
    if not isinstance(record, dict):
        raise Refused(f"{path}:{number}: is no record; the file is damaged")
    return record


def _check_footer(path: Path, lines: list[str], rows: list[dict[str, Any]], footer: Mapping[str, Any]) -> None:
    seen: set[str] = set()
    for number, row in enumerate(rows, 2):
        if not isinstance(row.get("row"), str) or not isinstance(row.get("verdicts"), dict) or not isinstance(row.get("outcome"), dict):
            raise Refused(f"{path}:{number}: the row lacks its id, verdicts or outcome; the file is damaged")
        if row["row"] in seen:
            raise Refused(f"{path}:{number}: the row {row['row']} stands twice")
        seen.add(row["row"])
    if footer.get("rows") != len(rows):
        raise Refused(f"{path}: the footer counts {footer.get('rows')} rows, there are {len(rows)}; rows are missing or added")
    if footer.get("digest") != hashlib.sha256("".join(lines).encode()).hexdigest():
        raise Refused(f"{path}: the rows are not those that the footer was written for; the file was changed")


def _result(record: Mapping[str, Any]) -> Result:
    return Result(record["row"], record["verdicts"], record["outcome"], record.get("diagnosis"), record.get("detail"))


def complete(evidence: Evidence, row_ids: Iterable[str], digest: str, path: Path) -> None:
    """Refuses evidence for another suite, or without exactly the rows that the suite has."""
    if evidence.header["suite"]["digest"] != digest:
        raise Refused(f"{path}: is of a suite with digest {evidence.header['suite']['digest'][:12]}, this one has {digest[:12]}; run again")
    wanted, there = list(row_ids), {result.row for result in evidence.results}
    if missing := [row for row in wanted if row not in there]:
        raise Refused(f"{path}: lacks {len(missing)} rows of the suite, first {missing[0]}")
    if foreign := there - set(wanted):
        raise Refused(f"{path}: has rows that the suite does not, such as {sorted(foreign)[0]}")
