"""The result file of a sweep: a header, a line for each block, a footer; in one order, whoever took the blocks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from . import __version__
from .evidence import Refused, encoded
from .machine import environment
from .model import Claims, Identity, Spec
from .sweep import NOTHING, Failure, Order, Part, joined

FORMAT = "reshape-conformance-sweep-1"
FILE = "sweep.jsonl"


class Swept(NamedTuple):
    """A whole result file."""

    header: Mapping[str, Any]
    total: Part
    footer: Mapping[str, Any]


def header_of(order: Order, spec: Spec, who: tuple[Identity, Claims], shard: str | None) -> dict[str, Any]:
    """What pins a sweep; the time stands nowhere else but in the footer's seconds."""
    identity, claims = who
    return {
        "record": "header",
        "format": FORMAT,
        "suite": {
            "version": __version__,
            "digest": spec.digest,
            "documents": {document.id: document.sha256 for document in spec.documents.values()},
        },
        "domain": {**order.domain._asdict(), "calls": order.domain.size},
        "ways": [way._asdict() for way in order.ways],
        "calls": order.domain.size * len(order.ways),
        "shard": shard,
        "backend": {
            "name": identity.name, "version": identity.version,
            "adapter": order.backend, "detail": dict(identity.detail),
        },
        "claims": claims._asdict(),
        "isolation": order.isolation,
        "environment": environment(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


class Writer:
    """Writes a result file line by line, and adds up; without `close` it has no footer and proves nothing."""

    def __init__(self, path: Path, header: Mapping[str, Any], done: Iterable[Part] = ()) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        done = list(done)
        self._stream: TextIO = path.open("w", encoding="utf-8", newline="\n")
        self._digest = hashlib.sha256()
        self._blocks = 0
        self.total = NOTHING
        self._header = hashlib.sha256(self._line(header).encode()).hexdigest()
        for part in done:
            self.part(part)

    def _line(self, record: Mapping[str, Any]) -> str:
        line = encoded(record) + "\n"
        self._stream.write(line)
        return line

    def part(self, part: Part) -> None:
        self._digest.update(self._line({"record": "block", **recorded(part)}).encode())
        self._stream.flush()  # whoever resumes finds every block that was taken
        self._blocks += 1
        self.total = joined(self.total, part)

    def close(self, seconds: float, canaries: Mapping[str, int]) -> Swept:
        footer = {
            "record": "footer",
            "blocks": self._blocks,
            **recorded(self.total),
            "digest": self._digest.hexdigest(),
            "header": self._header,
            "canaries": dict(canaries),
            "seconds": round(seconds, 3),
        }
        self._line(footer)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return Swept({}, self.total, footer)

    def leave(self) -> None:
        """Closes the file as it is, to be resumed."""
        self._stream.close()


def recorded(part: Part) -> dict[str, Any]:
    """A part as it stands in the file."""
    return {
        "calls": part.calls,
        "meanings": {document: _counts(counts) for document, counts in part.meanings.items()},
        "verdicts": {document: _counts(counts) for document, counts in part.verdicts.items()},
        "failures": [
            {"rule": rule, "diagnosis": diagnosis, "calls": failure.calls, "size": failure.size, **failure.example}
            for (rule, diagnosis), failure in sorted(part.failures.items())
        ],
    }


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def part_of(record: Mapping[str, Any]) -> Part:
    """The same read back."""
    failures = {
        (each["rule"], each["diagnosis"]): Failure(
            each["calls"],
            _tuples(each["size"]),
            {key: value for key, value in each.items() if key not in ("rule", "diagnosis", "calls", "size")},
        )
        for each in record["failures"]
    }
    return Part(record["calls"], record["meanings"], record["verdicts"], failures)


def _tuples(size: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in size)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Swept:
    """A result file; Refused, with the reason, where it is not whole or was changed."""
    digest, header_line, footer, total, blocks = hashlib.sha256(), "", None, NOTHING, 0
    for number, line in _lines(path):
        if footer is not None:
            raise Refused(f"{path}:{number}: a line after the footer; two files are mixed")
        record = _record(path, number, line)
        if number == 1:
            header, header_line = record, line
            if record.get("format") != FORMAT:
                raise Refused(f"{path}:1: is no header of {FORMAT}; the file is of another kind or another version")
        elif record["record"] == "footer":
            footer = record
        else:
            digest.update(line.encode())
            total, blocks = joined(total, part_of(record)), blocks + 1
    if not header_line or footer is None:
        raise Refused(f"{path}: has no footer: the sweep did not end; go on with --resume")
    if (footer["digest"], footer["blocks"]) != (digest.hexdigest(), blocks):
        raise Refused(f"{path}: the blocks are not those that the footer was written for; the file was changed")
    if footer["header"] != hashlib.sha256(header_line.encode()).hexdigest():
        raise Refused(f"{path}: the header is not the one that the footer was written for; two files are mixed")
    if {key: footer[key] for key in recorded(total)} != json.loads(json.dumps(recorded(total))):
        raise Refused(f"{path}: the footer does not hold the sum of the blocks; the file was changed")
    return Swept(header, total, footer)


def salvaged(path: Path, header: Mapping[str, Any]) -> list[Part]:
    """The whole blocks of an interrupted sweep; Refused where they are not of the one that `header` begins."""
    parts: list[Part] = []
    wanted = json.loads(json.dumps(header))
    for number, line in _lines(path):
        if not line.endswith("\n"):
            break
        record = _record(path, number, line)
        if number == 1:
            for key in wanted.keys() | record.keys():
                if key != "started" and record.get(key) != wanted.get(key):
                    raise Refused(f"{path}: its {key} is not that of the sweep that was asked for; begin a new one")
        elif record["record"] == "footer":
            raise Refused(f"{path}: the sweep ended; there is nothing to resume")
        else:
            parts.append(part_of(record))
    return parts


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8", newline="\n", errors="replace") as stream:
            yield from enumerate(stream, 1)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if (
        not line.endswith("\n")
        or not isinstance(record, dict)
        or record.get("record") not in ("header", "block", "footer")
    ):
        raise Refused(f"{path}:{number}: is no line of a sweep; the file is damaged")
    return record
