"""The result file of a sweep: a header, a line for each block, a footer; in one order, whoever took the blocks."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..certify.evidence import Refused, encoded
from ..certify.machine import environment
from ..model import LAYOUTS, VERDICTS, Claims, Identity, Spec
from ..system.files import create, open_regular
from .sweep import NOTHING, Failure, Order, Part, joined
from .tabulate import KINDS

FORMAT = "reshape-conformance-sweep-2"
FILE = "sweep.jsonl"
PART = f"{FILE}.part"
"""The file while the sweep is under way; an interrupted one can be resumed from it."""
_NEW = f"{FILE}.new"
_LONGEST_LINE = 16 << 20
"""Bytes of a line that is read."""
_CHUNK = 1 << 20
_MOST = 1 << 63
"""No count may be larger."""


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


class Changed(Exception):
    """The file that a sweep wrote does not hold what the sweep wrote."""


class Writer:
    """Writes the result file under a temporary name, line by line, and adds up; `close` gives it its name.

    What it returns comes from the results that it was given, never from the file.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], done: Iterable[Part] = ()) -> None:
        self._folder, self._header = folder, header
        self._whole, self._blocks_digest = hashlib.sha256(), hashlib.sha256()
        self._blocks = self.resumed = 0
        self.total = NOTHING
        name = PART if sys.platform == "win32" else _NEW  # an open file cannot be renamed there
        self._stream = create(folder / name)
        try:
            self._header_digest = hashlib.sha256(self._line(header)).hexdigest()
            for part in done:
                self.part(part, resumed=True)
            self._stream.flush()
            if name != PART:  # an interruption until now leaves the earlier blocks where they were
                os.replace(folder / name, folder / PART)
        except BaseException:
            self._stream.close()
            raise

    def _line(self, record: Mapping[str, Any]) -> bytes:
        line = f"{encoded(record)}\n".encode()
        self._stream.write(line)
        self._whole.update(line)
        return line

    def part(self, part: Part, resumed: bool = False) -> None:
        """Write a block; `resumed` if an earlier, interrupted sweep took it."""
        self._blocks_digest.update(self._line({"record": "block", "resumed": resumed, **recorded(part)}))
        self._stream.flush()  # whoever resumes finds every block that was taken
        self._blocks += 1
        self.resumed += resumed
        self.total = joined(self.total, part)

    def close(self, seconds: float, canaries: Mapping[str, int]) -> Swept:
        """Write the footer and give the file its name; raise Changed if the file is not what was written."""
        footer = {
            "record": "footer",
            "blocks": self._blocks,
            "resumed": self.resumed,
            **recorded(self.total),
            "digest": self._blocks_digest.hexdigest(),
            "header": self._header_digest,
            "canaries": dict(canaries),
            "seconds": round(seconds, 3),
        }
        footer["footer"] = _digest(footer)
        self._line(footer)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._name()
        return Swept(self._header, self.total, footer)

    def _name(self) -> None:
        """Rename the file, and compare what bears the name with what was written."""
        path, digest = self._folder / FILE, hashlib.sha256()
        with contextlib.suppress(OSError):  # somebody removed it, or put something else there
            os.replace(self._folder / PART, path)
            with open_regular(path) as named:
                while chunk := named.read(_CHUNK):
                    digest.update(chunk)
        if digest.digest() != self._whole.digest():
            with contextlib.suppress(OSError):
                path.unlink()
            raise Changed(f"{path} was changed while the sweep ran; nothing here holds")

    def leave(self) -> None:
        """Close the file as it is, to be resumed."""
        self._stream.close()


def clear(folder: Path, resuming: bool) -> None:
    """Remove what an earlier sweep left in a folder, except, when resuming, what is resumed."""
    for name in (FILE, _NEW) if resuming else (FILE, PART, _NEW):
        (folder / name).unlink(missing_ok=True)


def _digest(footer: Mapping[str, Any]) -> str:
    """The digest of a footer's other fields."""
    return hashlib.sha256(encoded({key: footer[key] for key in footer if key != "footer"}).encode()).hexdigest()


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
    """A result file; Refused, with the reason, if it is not whole, was changed, or holds what no sweep writes."""
    digest, header, footer, total = hashlib.sha256(), None, None, NOTHING
    header_digest, blocks, resumed = "", 0, 0
    for number, line in _lines(path):
        if footer is not None:
            raise Refused(f"{path}:{number}: a line after the footer; two files are mixed")
        record = _record(path, number, line)
        if record["record"] == "header":
            header, header_digest = record, hashlib.sha256(line).hexdigest()
        elif record["record"] == "footer":
            footer = record
        else:
            digest.update(line)
            total, blocks, resumed = joined(total, part_of(record)), blocks + 1, resumed + record["resumed"]
    if header is None or footer is None:
        raise Refused(f"{path}: has no footer: the sweep did not end; go on with --resume")
    if footer["footer"] != _digest(footer):
        raise Refused(f"{path}: the footer is not as it was written; the file was changed")
    if (footer["digest"], footer["blocks"]) != (digest.hexdigest(), blocks):
        raise Refused(f"{path}: the blocks are not those that the footer was written for; the file was changed")
    if footer["header"] != header_digest:
        raise Refused(f"{path}: the header is not the one that the footer was written for; two files are mixed")
    sums = {**recorded(total), "resumed": resumed}
    if {key: footer[key] for key in sums} != json.loads(json.dumps(sums)):
        raise Refused(f"{path}: the footer does not hold the sum of the blocks; the file was changed")
    if total.calls != header["calls"] and (header["shard"] is None or total.calls > header["calls"]):
        raise Refused(f"{path}: it holds {total.calls:,} calls, and its header says {header['calls']:,}")
    return Swept(header, total, footer)


def salvaged(path: Path, header: Mapping[str, Any], due: Iterable[int]) -> list[Part]:
    """The whole blocks of an interrupted sweep; Refused if they are not of the one that `header` begins.

    `due` are the calls of each block of that sweep. A last line without an end is left out.
    """
    parts: list[Part] = []
    wanted, of_block = json.loads(json.dumps(header)), iter(due)
    for number, line in _lines(path):
        if not line.endswith(b"\n"):
            break
        record = _record(path, number, line)
        if record["record"] == "footer":
            raise Refused(f"{path}: the sweep ended; there is nothing to resume")
        if record["record"] == "header":
            for key in wanted.keys() | record.keys():
                if key != "started" and record.get(key) != wanted.get(key):
                    raise Refused(f"{path}: its {key} is not that of the sweep that was asked for; begin a new one")
        elif record["calls"] != next(of_block, None):
            raise Refused(f"{path}:{number}: the block does not have the calls that are due; begin a new sweep")
        elif unknown := {*record["meanings"], *record["verdicts"]} - {*header["suite"]["documents"]}:
            raise Refused(f"{path}:{number}: there is no document {_short(min(unknown))}; the file is damaged")
        else:
            parts.append(part_of(record))
    return parts


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open_regular(path) as stream:
            for number in itertools.count(1):
                line = stream.readline(_LONGEST_LINE + 1)
                if len(line) > _LONGEST_LINE:
                    raise Refused(f"{path}:{number}: the line has more than {_LONGEST_LINE:,} bytes")
                if not line:
                    return
                yield number, line
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """A line as a record of the kind that may stand there, every field checked."""
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        record = None
    kind = record.get("record") if isinstance(record, dict) else None
    if not line.endswith(b"\n") or kind not in ("header", "block", "footer"):
        raise Refused(f"{path}:{number}: is no line of a sweep; the file is damaged")
    if (kind == "header") != (number == 1) or (kind == "header" and record.get("format") != FORMAT):
        raise Refused(f"{path}:{number}: is no {FORMAT} from its header on; the file is of another kind or version")
    if wrong := _misfit(record, _SHAPES[kind], kind):
        raise Refused(f"{path}:{number}: {wrong}; the file is damaged")
    return dict(record)


# ── what each field must be ───────────────────────────────────────────────────────────────────────

_Check = Callable[[Any], bool]


class _Each(NamedTuple):
    """A list whose values, or an object whose values, have one form; the names of an object may be limited."""

    kind: Any
    form: Any
    names: tuple[str, ...] = ()


def _misfit(value: Any, form: Any, name: str) -> str:
    """Describe the first value that is not of its form; None if all are."""
    if isinstance(form, dict):
        if not isinstance(value, dict) or value.keys() != form.keys():
            return f"{name} does not have the fields {', '.join(form)}"
        inner = [(value[key], form[key], f"{name}.{key}") for key in form]
    elif not isinstance(form, _Each):
        return "" if form(value) else f"{name} is {_short(value)}"
    elif not isinstance(value, form.kind):
        return f"{name} is {_short(value)}"
    else:
        pairs: Any = value.items() if isinstance(value, dict) else enumerate(value)
        inner = [(each, form.form, f"{name}.{key}") for key, each in pairs]
        if unknown := [key for key in value if form.names and key not in form.names]:
            return f"{name} has the unknown field {_short(unknown[0])}"
    return next(filter(None, (_misfit(*each) for each in inner)), "")


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = encoded(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _text(value: Any) -> bool:
    return type(value) is str


def _text_or_null(value: Any) -> bool:
    return value is None or type(value) is str


def _flag(value: Any) -> bool:
    return type(value) is bool


def _integer(value: Any) -> bool:
    return type(value) is int and -_MOST < value < _MOST


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


def _hex(value: Any) -> bool:
    return type(value) is str and len(value) == 64 and set(value) <= set("0123456789abcdef")


def _size(value: Any) -> bool:
    """Of an example: entries, sum of lengths, src, shape, special_zero, number of the way."""
    if type(value) is not list or len(value) != 6:
        return False
    entries, lengths, src, shape, flag, way = value
    rows = type(src) is type(shape) is list and all(map(_integer, (*src, *shape)))
    return rows and _count(entries) and _count(lengths) and _flag(flag) and _count(way)


_FAILURE = {
    "rule": _text, "diagnosis": _text, "calls": _count, "size": _size, "call": _text, "detail": _text_or_null,
    "verdicts": _Each(dict, VERDICTS.__contains__), "case": _text,
}  # fmt: skip
_PART = {
    "calls": _count,
    "meanings": _Each(dict, _Each(dict, _count, KINDS)),
    "verdicts": _Each(dict, _Each(dict, _count, VERDICTS)),
    "failures": _Each(list, _FAILURE),
}
_SHAPES: Mapping[str, Any] = {
    "header": {
        "record": _text,
        "format": _text,
        "suite": {"version": _text, "digest": _hex, "documents": _Each(dict, _hex)},
        "domain": {
            "ranks": _count, "longest": _count, "entries": _count, "lowest": _integer, "highest": _integer,
            "calls": _count,
        },
        "ways": _Each(list, dict.fromkeys(("operation", "given", "shape_type", "type"), _text) | {
            "layout": LAYOUTS.__contains__,
        }),
        "calls": _count,
        "shard": _text_or_null,
        "backend": {"name": _text, "version": _text, "adapter": _text, "detail": _Each(dict, _text)},
        "claims": dict.fromkeys(Claims._fields, _Each(list, _text)),
        "isolation": _text,
        "environment": _Each(dict, _text),
        "started": _text,
    },
    "block": {"record": _text, "resumed": _flag, **_PART},
    "footer": {
        "record": _text, "blocks": _count, "resumed": _count, **_PART, "digest": _hex, "header": _hex,
        "canaries": _Each(dict, _count), "seconds": _seconds, "footer": _hex,
    },
}  # fmt: skip
