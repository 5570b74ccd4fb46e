"""results.jsonl: a header, a line for each row of the plan, a footer; refused if anything is missing."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..adapter import digest_of_adapter
from ..model import IDLE, VERDICTS, Claims, Differing, Identity, Outcome, Result, Suite
from ..plan.rows import drawn_number
from ..system.files import read_bytes
from ..system.terminal import count_noun
from . import journal
from .journal import Format, Journal, OtherFormat, Reader, Refused, Tampered, encode, part_of, seal_of
from .json_forms import FOOTER, HEADER, ROW
from .machine import environment
from .subject import NO_SUBJECT, Subject

__all__ = [
    "FORMAT", "MOST", "PACKED", "PACKED_BEFORE", "DrawnCounts", "Evidence", "OtherFormat", "Refused", "Tampered",
    "Target", "Writer", "complete", "header_of", "is_packed", "miscounts", "pack", "parse", "part_of", "read",
    "read_content", "result_of", "row_record", "salvage", "seal_of", "unpack",
]  # fmt: skip
FORMAT = Format(
    "reshape-conformance-results-3", "run", "evidence of a run", "name its folder, results.jsonl or report.html",
    "row", {"header": HEADER, "row": ROW, "footer": FOOTER},
)  # fmt: skip
_IDLE_RECORDS = [{"kind": "none"}]
"""The outcomes of a row that was not called, as every record of a part of a run has them."""
_NONE = {"calls": 0, "failures": 0}
PACKED, PACKED_BEFORE = ".xz", ".gz"
"""The ends of the names of packed evidence: as it is written, and as it was written before, which is still read."""
MOST = 1 << 28
"""Bytes of evidence that are read, packed or not; a run of the whole suite writes some 3 MB."""


@dataclass(frozen=True)
class Evidence:
    """A whole results file."""

    header: Mapping[str, Any]
    results: tuple[Result, ...]
    footer: Mapping[str, Any]
    sha256: str = ""
    """The SHA-256 of its file, unpacked."""


@dataclass(frozen=True)
class Target:
    """The part of the suite that a run covers; empty tuples stand for everything claimed."""

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
    lf: str | None = None
    """The folder given with --lf, whose failed rows alone are run; it makes a run incomplete."""

    @property
    def filter(self) -> str:
        """The options that chose single rows, as they were given: `-k 'infer'`, `--lf FOLDER`, both or nothing."""
        return " ".join([f"-k {self.select!r}"] * bool(self.select) + [f"--lf {self.lf}"] * bool(self.lf))

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Target:
        """Make a target from its record in a header."""
        fields: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
        return cls(**fields)


class DrawnCounts(NamedTuple):
    """The drawn rows that a run called, and those that failed; of these the evidence has one of each kind."""

    calls: int
    failures: int


def header_of(
    suite: Suite, identity: Identity, claims: Claims, target: Target, backend: str,
    folders: Mapping[str, Path | None] | None = None, digest: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Make the header of a run: suite, backend, claims, target, environment and time, which stands nowhere else.

    `folders`: those of `--spec` and `--cases` as they were given, for the commands that repeat a row. `digest`: False
    if nobody will read the digest of the adapter, which takes a while.
    """
    paths = {name: str(path) for name, path in (folders or {}).items() if path is not None}
    header: dict[str, Any] = {
        "record": "header",
        "format": FORMAT.name,
        "suite": {
            "version": __version__,
            "digest": suite.digest,
            "documents": {document.id: document.sha256 for document in suite.spec.documents.values()},
        },
        "backend": {
            "name": identity.name, "version": identity.version, "adapter": backend, "detail": dict(identity.detail),
            "digest": digest_of_adapter(backend) if digest else None,
        },
        "claims": claims._asdict(),
        "target": {
            "operations": target.operations, "documents": target.documents, "types": target.types,
            "select": target.select, "large": target.large, "require": target.require, "shard": target.shard,
        },
        "environment": environment(),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }  # fmt: skip
    if target.lf is not None:
        header["target"]["lf"] = target.lf
    return {**header, "folders": paths} if paths else header


class Writer:
    """Writes a results file under a temporary name; `close` adds the footer and gives the file its name.

    `close` returns what this writer wrote. It raises Tampered if the file holds anything else. Without a path it writes
    into memory.
    """

    def __init__(self, path: Path | None, header: Mapping[str, Any]) -> None:
        self._path = path
        self._journal = Journal(path, FORMAT, header)
        self._rows, self._resumed = 0, 0
        self._counts: Counter[str] = Counter()
        self._milliseconds: dict[str, int] = {}
        """The time of each row that took any; it stands in the footer, so that equal runs write equal rows."""

    def row(self, result: Result) -> None:
        """Write the result of a row."""
        self._journal.write(encode(row_record(result)))
        self._rows += 1
        self._resumed += result.resumed
        self._counts.update(result.verdicts.values())
        if result.milliseconds:
            self._milliseconds[result.row] = result.milliseconds

    def close(
        self, seconds: float, notes: tuple[str, ...] = (), canaries: Mapping[str, int] | None = None,
        drawn: DrawnCounts | None = None, subject: Subject = NO_SUBJECT,
    ) -> Evidence:  # fmt: skip
        """Write the footer, give the file its name, and return its content.

        `canaries`: failures by planted backend. `subject`: the files under test.
        """
        footer: dict[str, Any] = {
            "record": "footer",
            "rows": self._rows,
            "verdicts": {verdict: self._counts[verdict] for verdict in VERDICTS},
            "digest": self._journal.digest,
            "header": self._journal.header_digest,
            "notes": notes,
            "canaries": dict(canaries or {}),
            "seconds": round(seconds, 3),
        }
        if self._milliseconds:
            footer["milliseconds"] = self._milliseconds
        if self._resumed:
            footer["resumed"] = self._resumed
        if drawn is not None:
            footer["drawn"] = drawn._asdict()
        if subject.files:
            footer["subject"] = dict(subject.files)
        if subject.unnamed_code:
            footer["unnamed_code"] = True
        self._journal.end(footer)
        content = self._journal.read_back()
        self._journal.close()
        return parse(content, self._path or Path("evidence"))

    def leave(self) -> None:
        """Close the file as it is, under its temporary name, to be resumed."""
        self._journal.leave()


def row_record(result: Result) -> dict[str, Any]:
    """Make the record of a result."""
    record: dict[str, Any] = {"record": "row", "row": result.row}
    if any(result.content):
        record["content"] = result.content
    record["verdicts"], record["outcomes"] = dict(result.verdicts), list(map(_outcome_record, result.outcomes))
    if len(result.outcomes) > 1 or result.step:
        record["step"] = result.step + 1
    if result.diagnosis is not None:
        record["diagnosis"], record["detail"] = result.diagnosis, result.detail
    if result.differing is not None:
        record["differing"] = result.differing._asdict()
    if result.waiver is not None:
        record["waiver"] = result.waiver
    if result.resumed:
        record["resumed"] = True
    if result.case is not None:
        record["case"] = result.case
    return record


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": outcome.kind}
    if outcome.kind == "tensor":
        record["type"], record["dims"] = outcome.type, outcome.dims
    if outcome.stage is not None:
        record["stage"] = outcome.stage
    if outcome.message is not None:
        record["message"] = outcome.message
    if outcome.faults:
        record["faults"] = outcome.faults
    if outcome.shares:
        record["shares"] = True
    return record


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Evidence:
    """Read a results file, packed or not; Refused, with the reason, if it is not whole or was changed."""
    return parse(read_content(path), path)


def read_content(path: Path) -> bytes:
    """Read the bytes of a file, unpacked if its name ends in .xz or .gz; Refused if they cannot be read."""
    try:
        data = read_bytes(path, MOST)
        return unpack(data, path) if is_packed(path) else data
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def is_packed(path: Path) -> bool:
    """True if the name of a file says that its evidence is packed, as it is beside published pages."""
    return path.suffix in (PACKED, PACKED_BEFORE)


def unpack(data: bytes, path: Path) -> bytes:
    """Unpack evidence that a file holds; Refused if it is damaged or comes to more than any run writes."""
    import gzip  # slow to import, as is lzma, and only needed for packed evidence
    import lzma
    import zlib

    packed = io.BytesIO(data)
    try:
        with gzip.GzipFile(fileobj=packed) if path.suffix == PACKED_BEFORE else lzma.LZMAFile(packed) as stream:
            whole: bytes = stream.read(MOST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise Refused(f"{path}: cannot be unpacked: {error}; the file is damaged") from None
    if len(whole) > MOST:
        raise Refused(f"{path}: unpacks to more than {MOST:,} bytes, which no run writes")
    return whole


def pack(data: bytes) -> bytes:
    """Pack data, into the same bytes on every machine and at any time."""
    import lzma

    chain = {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 23, "lc": 4, "lp": 0, "pb": 0, "nice_len": 273}
    return lzma.compress(data, format=lzma.FORMAT_XZ, filters=[chain])


def parse(data: bytes, path: Path) -> Evidence:
    """Read the content of a results file; `path` is for messages."""
    reader = Reader(io.BytesIO(data), path, FORMAT)
    results = _results(path, reader)
    times = reader.footer.get("milliseconds", {})
    if unknown := times.keys() - {result.row for result in results}:
        raise Refused(f"{path}: the footer has a time of {min(unknown)}, which is no row of it; the file was changed")
    results = tuple([result._replace(milliseconds=times.get(result.row, 0)) for result in results])
    if reader.footer.get("resumed", 0) != sum(result.resumed for result in results):
        raise Refused(f"{path}: the footer does not count the resumed rows; the file was changed")
    if sum(drawn_number(result.row) is not None for result in results) > reader.footer.get("drawn", _NONE)["failures"]:
        raise Refused(f"{path}: the footer does not count the drawn rows; the file was changed")
    return Evidence(reader.header, results, reader.footer, hashlib.sha256(data).hexdigest())


def salvage(path: Path, header: Mapping[str, Any]) -> list[Result]:
    """Read the whole rows of an interrupted run, marked as resumed; `path` is the name that a whole file has.

    Refused if they are not of the run that `header` begins.
    """
    records = journal.salvage(path, FORMAT, header)
    return [result._replace(resumed=True) for result in _results(part_of(path), records)]


def _results(path: Path, records: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[Result, ...]:
    """Make the results of records; Refused if a row stands twice."""
    results: dict[str, Result] = {}
    for number, record in records:
        if record["row"] in results:
            raise Refused(f"{path}:{number}: the row {record['row']} stands twice")
        step, outcomes = record.get("step", 1), len(record["outcomes"])
        if step < 1 or (step > outcomes and outcomes != 1):  # of generated steps, only the deciding one is kept
            raise Refused(f"{path}:{number}: {record['row']} has no outcome of the step that decides it")
        results[record["row"]] = result_of(record)
    return tuple(results.values())


def result_of(record: Mapping[str, Any]) -> Result:
    """Make the result of a record that has the right form."""
    return Result(
        record["row"], record["verdicts"], _outcomes(record["outcomes"]), record.get("step", 1) - 1,
        record.get("diagnosis"), record.get("detail"), tuple(record.get("content", ())), record.get("waiver"),
        record.get("resumed", False), record.get("case"), _differing(record.get("differing")),
    )  # fmt: skip


def _differing(record: Mapping[str, Any] | None) -> Differing | None:
    return None if record is None else Differing(record["number"], tuple(record["places"]), tuple(record["got"]))


def _outcomes(records: list[Mapping[str, Any]]) -> tuple[Outcome, ...]:
    return IDLE if records == _IDLE_RECORDS else tuple(map(_outcome, records))


def _outcome(record: Mapping[str, Any]) -> Outcome:
    dims = record.get("dims")
    return Outcome(
        record["kind"], record.get("type"), None if dims is None else tuple(dims), None, record.get("stage"),
        record.get("message"), tuple(record.get("faults", ())), record.get("shares", False),
    )  # fmt: skip


def miscounts(evidence: Evidence) -> Iterator[str]:
    """Say where the verdicts that the footer counts are not those of the rows."""
    counts = Counter(verdict for result in evidence.results for verdict in result.verdicts.values())
    footer = evidence.footer["verdicts"]
    for name in dict.fromkeys((*VERDICTS, *footer)):
        if footer.get(name) != counts[name]:
            yield f"the footer counts {footer.get(name)} {name}, the rows have {counts[name]}"


def complete(evidence: Evidence, row_ids: Iterable[str], digest: str, path: Path) -> None:
    """Refuse evidence for another suite, or without exactly the rows that the suite has."""
    if evidence.header["suite"]["digest"] != digest:
        theirs = evidence.header["suite"]["digest"][:12]
        raise Refused(f"{path}: is of a suite with digest {theirs}, this one has {digest[:12]}; run again")
    wanted, present = list(row_ids), {result.row for result in evidence.results}
    if missing := [row for row in wanted if row not in present]:
        raise Refused(f"{path}: lacks {count_noun(len(missing), 'row')} of the suite, first {missing[0]}")
    if foreign := present - set(wanted):
        raise Refused(f"{path}: has rows that the suite does not, such as {min(foreign)}")
