"""results.jsonl: a header, a line for each row of the plan, a footer. It is refused if anything is missing."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter import digest_of_adapter
from ..draw.nonce import NONCE
from ..model import VERDICTS, Claims, Identity, Result, Suite
from ..model.results import RESULT_FORM
from ..plan.quick import QUICK
from ..plan.rows import SEED, find_drawn, parse_drawn_id
from ..system.files import read_bytes
from ..system.json_forms import COUNT, SHA256, MapOf, Number, OrNull, is_date, is_time, with_tuples
from ..system.terminal import count_noun
from . import journal
from .journal import (
    FORMAT,
    HEADER_FORM,
    InvalidEvidence,
    JournalReader,
    OtherFormat,
    Tampered,
    make_header,
    name_unfinished,
    seal_of,
)

__all__ = [
    "FORMAT", "FORMS", "MAX_BYTES", "PACKED", "DrawnCounts", "Evidence", "InvalidEvidence", "OtherFormat", "Tampered",
    "Target", "find_miscounts", "header_of", "is_packed", "name_unfinished", "pack", "parse", "read", "read_content",
    "read_unfinished", "refuse_incomplete", "salvage", "seal_of", "unpack",
]  # fmt: skip
PACKED = ".xz"
"""The ending of the name of packed evidence."""
MAX_BYTES = 1 << 28
"""Bytes of evidence that are read, packed or not; a run of the whole suite writes some 3 MB."""
_MAX_BYTES_TO_UNPACK = 1 << 27
"""Bytes of memory beside them; a file can ask for 4 GiB."""


@dataclass(frozen=True)
class Evidence:
    """A whole results file."""

    header: Mapping[str, Any]
    results: tuple[Result, ...]
    footer: Mapping[str, Any]
    sha256: str = ""
    """The SHA-256 of its file, unpacked."""

    @property
    def interrupted(self) -> bool:
        """Ask whether the run did not end, so that its file has no footer."""
        return bool(self.footer.get("interrupted"))

    def can_be_judged_by(self, suite: Suite) -> bool:
        """Ask whether a suite has the rows that were run. What a waiver covers can depend on more than the rows."""
        is_known = suite.find_earlier(self.suite_digest) is not None
        return is_known and (self.suite_digest == suite.digest or not self.header.get("waivers"))

    @property
    def suite_digest(self) -> str:
        return str(self.header["suite"]["digest"])

    @property
    def claims(self) -> Claims:
        return Claims.from_json(self.header["claims"])

    @property
    def answered_by_adapter(self) -> list[str]:
        """What the adapter answers instead of the library: special_zero, and what the details of its identity name."""
        detail = self.header["backend"]["detail"]
        named = [key for key, value in detail.items() if value == "answered by the adapter"]
        return ["special_zero"] * self.claims.answers_special_zero + named

    @property
    def target(self) -> Target:
        return Target.from_json(self.header["target"])

    @property
    def rows_to_draw(self) -> int:
        """The number of drawn rows that were asked for; -1 if drawn rows were not."""
        return int(self.header.get("drawn", {"rows": -1})["rows"])

    @property
    def drawn(self) -> DrawnCounts:
        return DrawnCounts(**self.footer.get("drawn", {}))

    def with_target(self, **changes: Any) -> Evidence:
        """Return this evidence as if the run had been asked for something else."""
        return replace(self, header={**self.header, "target": {**self.header["target"], **changes}})


@dataclass(frozen=True)
class Target:
    """The part of the suite that a run covers. An empty tuple means all; claims then say what of it is required."""

    operations: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    select: str | None = None
    """The expression given with -k, or `--quick`; either makes a run incomplete."""
    large: bool = False
    require: tuple[str, ...] = ()
    """Facets, operations and types that the backend must claim, and documents to which it must conform."""
    shard: str | None = None
    """`2/3`: the second of three parts of the rows."""
    last_failed: str | None = None
    """The folder given with --last-failed: only the rows that failed there are run, which makes a run incomplete."""

    @property
    def is_part(self) -> bool:
        """Ask whether the run leaves out something that the backend claims, except for large tensors."""
        return bool(self.row_options or self.shard or self.operations or self.documents or self.types)

    def has_in_shard(self, number: int) -> bool:
        """Ask whether the shard, if one was asked for, has the row of this number."""
        part, _, count = (self.shard or "1/1").partition("/")
        return number % int(count) == int(part) - 1

    @property
    def row_options(self) -> str:
        """The options that chose single rows, as they were given, such as `-k 'infer'`; empty if none did."""
        select = QUICK if self.select == QUICK else f"-k {self.select!r}"
        return " ".join([select] * bool(self.select) + [f"--last-failed {self.last_failed}"] * bool(self.last_failed))

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "last_failed" or value is not None}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Target:
        return cls(**with_tuples(record))


_SHARD = re.compile(r"[1-9][0-9]{0,4}/[1-9][0-9]{0,4}")
TARGET_FORM = {
    "operations": [str], "documents": [str], "types": [str], "select": OrNull(str), "large": bool, "require": [str],
    "shard": OrNull(_SHARD), "last_failed?": str,
}  # fmt: skip


class DrawnCounts(NamedTuple):
    """The numbers of drawn rows that were called and that failed. Evidence holds the first failure of each kind."""

    called: int = 0
    failed: int = 0
    not_called: int = 0
    """They show nothing more of what the backend claims, a waiver says `run: false`, or they
    are of another shard. 0 if the run ended before."""
    waived: int = 0
    """Rows that a waiver covers. Evidence holds the first failure of each kind of them, too."""

    def to_json(self) -> dict[str, int]:
        return {name: value for name, value in self._asdict().items() if value or name in ("called", "failed")}


def name_with_version(backend: Mapping[str, Any]) -> str:
    """Name the backend of a header or of another record, with its version if it has one."""
    return f"{backend['name']} {backend['version']}".strip()


def header_of(
    suite: Suite, identity: Identity, claims: Claims, target: Target, backend: str, with_digest: bool = True
) -> dict[str, Any]:
    """Make the header of a run. `with_digest`: whether to compute the digest of the adapter, which takes a while."""
    of_adapter = digest_of_adapter(backend) if with_digest else None
    header = {"record": "header"} | make_header(
        FORMAT, suite.spec, suite.digest, identity, claims, backend, of_adapter, target=target.to_json()
    )
    if suite.folder is not None:
        header["folders"] = {"suite": str(suite.folder)}
    return header


_WAIVER_FORM = {
    "number": COUNT, "place": str, "reason": str, "link": str, "owner": str, "expires": is_date,
    "case?": str, "rule?": str, "row?": str, "breaks?": str, "backend?": str, "versions?": str, "run?": bool,
}  # fmt: skip
_HEADER_FORM = {
    **HEADER_FORM,
    "target": TARGET_FORM,
    "tester?": str,
    "isolation?": frozenset(("worker", "row", "none")),
    "waivers?": [_WAIVER_FORM],
    "folders?": MapOf(str),
    "limits?": {"timeout?": Number(0, 1e9), "memory?": COUNT},
    "shards?": [{"shard": _SHARD, "started": is_time, "drawn?": COUNT}],
    "drawn?": {"seed": COUNT, "rows": COUNT},
    "nonce?": NONCE,
}


_FOOTER_FORM = {
    "record": frozenset(("footer",)),
    "rows": COUNT,
    "verdicts": MapOf(COUNT),
    "digest": str,
    "header": str,
    "notes": [str],
    "planted": MapOf(COUNT),
    "seconds": Number(0, 1e9),
    "milliseconds?": MapOf(COUNT),
    "resumed?": COUNT,
    "drawn?": {"called": COUNT, "failed": COUNT, "not_called?": COUNT, "waived?": COUNT},
    "subject?": MapOf(SHA256),
    "unnamed_code?": bool,
    "not_named?": [str],
    "processes?": [
        {
            "exit": OrNull(str),
            "calls": COUNT,
            "growth_per_1000_calls": OrNull({"memory": COUNT, "files": Number(0, 1e9), "threads": Number(0, 1e9)}),
        }
    ],
    "seal": str,
}
FORMS = {"header": _HEADER_FORM, "row": RESULT_FORM, "footer": _FOOTER_FORM}


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Evidence:
    """Read a results file, packed or not; InvalidEvidence, with the reason, if it is not whole or was changed."""
    return parse(read_content(path), path)


def read_content(path: Path) -> bytes:
    """Read the bytes of a file, unpacked if its name ends in .xz; InvalidEvidence if they cannot be read."""
    with journal.refuse_unreadable(path):
        data = read_bytes(path, MAX_BYTES)
    return unpack(data, path) if is_packed(path) else data


def is_packed(path: Path) -> bool:
    """Ask whether the name of a file says that it is packed, as evidence beside published pages is."""
    return path.suffix == PACKED


def unpack(data: bytes, path: Path) -> bytes:
    """Unpack evidence; InvalidEvidence if it is damaged or larger than any run writes."""
    import lzma  # slow to import, and only needed for packed evidence

    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_BYTES_TO_UNPACK)
    try:
        whole = unpacker.decompress(data, MAX_BYTES + 1)
    except lzma.LZMAError as error:
        raise InvalidEvidence(f"{path}: cannot be unpacked: {error}; the file is damaged") from None
    if len(whole) > MAX_BYTES:
        raise InvalidEvidence(f"{path}: unpacks to more than {MAX_BYTES:,} bytes, which no run writes")
    if not unpacker.eof or unpacker.unused_data:
        raise InvalidEvidence(f"{path}: cannot be unpacked: it is cut, or something follows; the file is damaged")
    return whole


def pack(data: bytes) -> bytes:
    """Pack data into bytes that are the same on every machine."""
    import lzma

    chain = {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 23, "lc": 4, "lp": 0, "pb": 0, "nice_len": 273}
    return lzma.compress(data, format=lzma.FORMAT_XZ, filters=[chain])


def parse(data: bytes, path: Path) -> Evidence:
    """Read the content of a results file; `path` is for messages."""
    reader = JournalReader(io.BytesIO(data), path, FORMS)
    results = _make_results(path, reader)
    times = reader.footer.get("milliseconds", {})
    if unknown := times.keys() - {result.row for result in results}:
        raise InvalidEvidence(
            f"{path}: the footer has a time of {min(unknown)}, which is no row of it; the file was changed"
        )
    results = tuple([result._replace(milliseconds=times.get(result.row, 0)) for result in results])
    if reader.footer.get("resumed", 0) != sum(result.resumed for result in results):
        raise InvalidEvidence(f"{path}: the footer does not count the resumed rows; the file was changed")
    evidence = Evidence(reader.header, results, reader.footer, hashlib.sha256(data).hexdigest())
    drawn_rows, counts = [each for each in results if parse_drawn_id(each.row) is not None], evidence.drawn
    named = find_drawn(reader.header["target"]["select"])  # without a name only failures are held
    seed, _ = named or (SEED, 0)
    if reader.header.get("drawn", {"seed": seed})["seed"] != seed:  # else anybody could look for rows that pass
        raise InvalidEvidence(f"{path}: the header has another seed than {seed}, with which every run draws; run again")
    is_miscounted = bool(counts.failed) != any(each.is_failure for each in drawn_rows)
    if is_miscounted or len(drawn_rows) > (counts.called if named else counts.failed + counts.waived):
        raise InvalidEvidence(f"{path}: the footer does not count the drawn rows; the file was changed")
    if "drawn" in reader.footer and counts.called + counts.not_called > evidence.rows_to_draw:
        raise InvalidEvidence(
            f"{path}: the footer counts more drawn rows than the header asks for; the file was changed"
        )
    if shards := reader.header.get("shards"):
        every = {f"{part}/{len(shards)}" for part in range(1, len(shards) + 1)}
        drawn = sum(shard.get("drawn", 0) for shard in shards)
        if {shard["shard"] for shard in shards} != every or drawn != counts.called:
            raise InvalidEvidence(f"{path}: the header does not name all shards of the run; the file was changed")
    return evidence


def read_unfinished(path: Path) -> Evidence:
    """Read the whole rows of a run that did not end; `path` is the name that its file would have got."""
    data = read_content(part := name_unfinished(path))
    reader = JournalReader(io.BytesIO(data), part, FORMS)
    results = _make_results(part, reader.salvage_records())
    footer = {"notes": [], "planted": {}, "seconds": 0, "interrupted": True}
    return Evidence(reader.header, results, footer, hashlib.sha256(data).hexdigest())


def salvage(path: Path, header: Mapping[str, Any]) -> list[Result]:
    """Read the whole rows of an interrupted run, as `journal.salvage` does."""
    return list(_make_results(name_unfinished(path), journal.salvage(path, FORMS, header)))


def _make_results(path: Path, records: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[Result, ...]:
    """Make the results of records; InvalidEvidence if a row occurs twice."""
    results: dict[str, Result] = {}
    for number, record in records:
        if record["row"] in results:
            raise InvalidEvidence(f"{path}:{number}: the row {record['row']} occurs twice")
        step, outcomes = record.get("step", 1), len(record["outcomes"])
        if step < 1 or (step > outcomes and outcomes != 1):  # only the deciding step of generated ones is kept
            raise InvalidEvidence(f"{path}:{number}: {record['row']} has no outcome of the step that decides it")
        results[record["row"]] = Result.from_json(record)
    return tuple(results.values())


def find_miscounts(evidence: Evidence) -> Iterator[str]:
    """Say where the footer counts other verdicts than the rows have."""
    counts = Counter(verdict for result in evidence.results for verdict in result.verdicts.values())
    footer = evidence.footer["verdicts"]
    for name in dict.fromkeys((*VERDICTS, *footer)):
        if footer.get(name) != counts[name]:
            yield f"the footer counts {footer.get(name)} {name}, the rows have {counts[name]}"


def refuse_incomplete(evidence: Evidence, row_ids: Iterable[str], suite: Suite, path: Path) -> None:
    """Refuse evidence of a suite with other rows, or without exactly the rows that the suite has."""
    if not evidence.can_be_judged_by(suite):
        theirs, ours = evidence.header["suite"]["digest"][:12], suite.digest[:12]
        what = f"is of a suite with digest {theirs}, this one has {ours}"
        raise InvalidEvidence(f"{path}: {what}; name its folder with --suite, or run again")
    wanted, present = list(row_ids), {result.row for result in evidence.results}
    if missing := [row for row in wanted if row not in present]:
        raise InvalidEvidence(f"{path}: lacks {count_noun(len(missing), 'row')} of the suite, first {missing[0]}")
    if foreign := present - set(wanted):
        raise InvalidEvidence(f"{path}: has rows that the suite does not, such as {min(foreign)}")
