"""JSON lines with a header, and a footer with digests: their forms, and how they are read, if nothing is missing."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

from .. import __version__
from ..model import Claims, Identity, Spec
from ..model.backends import CLAIMS_FORM
from ..system.exit_codes import UNTRUSTED, CommandError
from ..system.files import open_regular
from ..system.json_forms import Form, MapOf, OrNull, decode, first_mismatch, is_time
from ..system.text import quote_json
from .machine import environment

FORMAT = "reshape-conformance-results-5"
"""The value of `format` in the header of a run."""
_HINT = "name its folder, results.jsonl or report.html"
"""What to do if a file is of another kind."""
UNFINISHED = ".part"
"""The suffix of an unfinished file; it gets its own name once it is whole."""
_MAX_LINE_BYTES = 16 << 20
"""The longest line that is read, in bytes."""
_MAY_CHANGE = ("started", "folders")
"""Keys of a header that may differ when an interrupted run is resumed."""


class InvalidEvidence(CommandError):
    """A file proves nothing; the message says why."""


class OtherFormat(InvalidEvidence):
    """A file of another version of the suite, which only that version reads."""


class Tampered(CommandError):
    """A file, or the adapter, was changed during the run, so that no verdict can be trusted."""

    exit_code = UNTRUSTED


def make_header(
    format_: str, spec: Spec, digest: str, identity: Identity, claims: Claims, backend: str,
    digest_of_adapter: str | None, **facts: Any,
) -> dict[str, Any]:  # fmt: skip
    """Make a header, with `facts` that only this kind of work has. `digest` is that of the suite.

    No other record holds the time at which the work began.
    """
    return {
        "format": format_,
        "suite": make_suite_record(spec, digest),
        "backend": {
            "name": identity.name, "version": identity.version, "adapter": backend, "detail": dict(identity.detail),
            "digest": digest_of_adapter,
        },
        "claims": claims.to_json(),
        **facts,
        "environment": environment(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip


def make_suite_record(spec: Spec, digest: str) -> dict[str, Any]:
    """Return what a header says about the suite; `digest` is that of its files."""
    documents = {document.id: document.sha256 for document in spec.documents.values()}
    return {"version": __version__, "digest": digest, "documents": documents}


HEADER_FORM: Mapping[str, Form] = {
    "record": frozenset(("header",)),
    "format": str,
    "suite": {"version": str, "digest": str, "documents": MapOf(str)},
    "backend": {"name": str, "version": str, "adapter": str, "detail": MapOf(str), "digest": OrNull(str)},
    "claims": CLAIMS_FORM,
    "environment": MapOf(str),
    "started": is_time,
}
"""The form of what `make_header` writes, without the facts."""

encode = json.JSONEncoder(separators=(",", ":")).encode
"""One encoder for all records, because `json.dumps` makes a new one each time."""


def name_unfinished(path: Path) -> Path:
    """Return the name of a file until it is whole."""
    return path.with_name(f"{path.name}{UNFINISHED}")


def seal_of(footer: Mapping[str, Any]) -> str:
    """Return the digest of a footer, and through it of the header and the records."""
    return hashlib.sha256(encode({key: value for key, value in footer.items() if key != "seal"}).encode()).hexdigest()


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def refuse_unreadable(path: Path, hint: str = "") -> Iterator[None]:
    """Raise InvalidEvidence if a `with` block cannot read a file."""
    try:
        yield
    except OSError as error:
        raise InvalidEvidence(f"{path}: cannot be read: {error.strerror or error}{hint}") from None


class JournalReader:
    """Reads a journal: its header at once, then each record with the number of its line, and last its footer.

    `footer` can be read after the last record. InvalidEvidence if the file is not whole, was changed, or holds anything
    that a run does not write.
    """

    footer: Mapping[str, Any]

    def __init__(self, stream: BinaryIO, path: Path, forms: Mapping[str, Form]) -> None:
        self._path, self._forms = path, forms
        self._lines = _lines_of(stream, path)
        first = next(self._lines, None)
        if first is None:
            raise InvalidEvidence(f"{path}: is empty; run again")
        self._header_line = first[1]
        self.header: Mapping[str, Any] = self._read_header(first[1])

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        digest, count, footer = hashlib.sha256(), 0, None
        for number, line, record in self._read_records():
            if record["record"] == "footer":
                footer = record
            else:
                digest.update(line)
                count += 1
                yield number, record
        if footer is None:
            ran = f"the run did not end, after {count:,} rows"
            raise InvalidEvidence(f"{self._path}: has no footer: {ran}; run again")
        for what in self._find_contradictions(footer, digest.hexdigest(), count):
            raise InvalidEvidence(f"{self._path}: {what}")
        self.footer = footer

    def salvage_records(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the whole records of a file that may end anywhere."""
        self._lines = ((number, line) for number, line in self._lines if line.endswith(b"\n"))
        for number, _, record in self._read_records():
            if record["record"] != "footer":  # the run was interrupted while it gave the file its name
                yield number, record

    def _read_header(self, line: bytes) -> dict[str, Any]:
        try:
            header = _decode_line(line, f"{self._path}:1")
        except _NotJson:
            raise InvalidEvidence(f"{self._path}:1: is no evidence of a run; {_HINT}") from None
        _check_format(header, self._path)
        self._check_form(header, 1)
        return header

    def _read_records(self) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield each record behind the header, with the number of its line and the line; a footer is the last."""
        footer_at = 0
        for number, line in self._lines:
            if footer_at:
                self._refuse_kind(footer_at, "footer")
            place = f"{self._path}:{number}"
            record = _decode_line(line, place)
            if record.get("record") == "footer":
                footer_at = number
            elif record.get("record") != "row":
                self._refuse_kind(number, record.get("record"))
            self._check_form(record, number)
            yield number, line, record

    def _refuse_kind(self, number: int, kind: Any) -> None:
        raise InvalidEvidence(f"{self._path}:{number}: a {quote_json(kind)} among the rows; two files are mixed")

    def _check_form(self, record: Mapping[str, Any], number: int) -> None:
        kind = record["record"]
        if wrong := first_mismatch(record, self._forms[kind]):
            where = f"{wrong.where} in the {kind}" if wrong.where else f"the {kind}"
            raise InvalidEvidence(f"{self._path}:{number}: {where} {wrong.what}; the file is damaged")

    def _find_contradictions(self, footer: Mapping[str, Any], digest: str, count: int) -> Iterator[str]:
        """Say why a footer was written for other lines."""
        if footer["rows"] != count:
            yield f"the footer counts {footer['rows']} rows, there are {count}; rows are missing or added"
        if footer["digest"] != digest:
            yield "the rows are not those that the footer was written for; the file was changed"
        if footer["header"] != hashlib.sha256(self._header_line).hexdigest():
            yield "the header is not the one that the footer was written for; two files are mixed"
        if footer["seal"] != seal_of(footer):
            yield "the footer is not as it was written; the file was changed"


def salvage(
    path: Path, forms: Mapping[str, Form], header: Mapping[str, Any]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the whole records of an interrupted run, marked as resumed, with their lines' numbers.

    `path` is the name that a whole file has. InvalidEvidence if they are not of the run that `header` begins.
    """
    part = name_unfinished(path)
    if path.exists() and not part.exists():
        raise InvalidEvidence(f"{path}: the run ended; there is nothing to resume")
    with refuse_unreadable(part, "; there is no run to resume"), open_regular(part) as stream:
        if not stream.readline(_MAX_LINE_BYTES).endswith(b"\n"):
            return
        stream.seek(0)
        reader = JournalReader(stream, part, forms)
        wanted = json.loads(json.dumps(header))
        for key in dict.fromkeys((*wanted, *reader.header)):  # suite and backend first, which explain other differences
            if key not in _MAY_CHANGE and reader.header.get(key) != wanted.get(key):
                what, was, now = find_difference(key, reader.header.get(key), wanted.get(key))
                raise InvalidEvidence(f"{part}: {what} was {was} and is {now}; begin a new run")
        for number, record in reader.salvage_records():
            yield number, {**record, "resumed": True}


def find_difference(key: str, one: Any, other: Any) -> tuple[str, str, str]:
    """Find where two values differ, and return the key and both values, shortened."""
    if isinstance(one, dict) and isinstance(other, dict):
        inner = next(name for name in {**one, **other} if one.get(name) != other.get(name))
        return find_difference(f"{key}.{inner}", one.get(inner), other.get(inner))
    return key, quote_json(one), quote_json(other)


def _check_format(header: Mapping[str, Any], path: Path) -> None:
    """Refuse what is no header, or that of another format, and say which one it is."""
    name = header.get("format")
    if header.get("record") != "header" or not isinstance(name, str):
        raise InvalidEvidence(f"{path}:1: is no header of {FORMAT}; {_HINT}")
    if name != FORMAT:
        suite = header["suite"] if isinstance(header.get("suite"), dict) else {}
        digest = suite.get("digest")
        by = f", as the suite {quote_json(digest[:12])} wrote it" if isinstance(digest, str) else ""
        what = f"is in the format {quote_json(name)}{by}, and this suite reads {FORMAT}"
        raise OtherFormat(f"{path}:1: {what}; read it with that suite, or run again")


class _NotJson(InvalidEvidence):
    """A line that cannot be decoded."""


def _lines_of(stream: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; InvalidEvidence for one that is too long."""
    for number in itertools.count(1):
        line = stream.readline(_MAX_LINE_BYTES + 1)
        if len(line) > _MAX_LINE_BYTES:
            raise InvalidEvidence(f"{path}:{number}: the line has more than {_MAX_LINE_BYTES:,} bytes")
        if not line:
            return
        yield number, line


def _decode_line(line: bytes, place: str) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidEvidence(f"{place}: is not UTF-8; the file is damaged") from None
    if not text.endswith("\n"):
        raise InvalidEvidence(f"{place}: the line is cut off: the run did not end; run again")
    try:
        record = decode(text)
    except ValueError as error:
        raise _NotJson(f"{place}: is no JSON ({error}); the file is damaged") from None
    if not isinstance(record, dict):
        raise InvalidEvidence(f"{place}: is no record; the file is damaged")
    return record
