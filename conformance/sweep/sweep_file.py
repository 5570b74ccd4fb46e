"""sweep.jsonl: a header, a line for each block, a footer; the same whichever processes called the blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..evidence import journal
from ..evidence.journal import Format, Journal, Reader, Refused, encode, new_of, open_journal, part_of
from ..evidence.json_forms import CLAIMS, SMALL, TEXT, MapOf, Number, OneOf
from ..evidence.machine import environment
from ..model import LAYOUTS, Claims, Identity, Spec
from ..system.text import quote_json
from . import tally
from .blocks import SweepRequest
from .tally import EMPTY, INTEGER, Tally, add, record_of, tally_of

FILE = "sweep.jsonl"


class Results(NamedTuple):
    """A whole result file."""

    header: Mapping[str, Any]
    total: Tally
    footer: Mapping[str, Any]


def header_of(order: SweepRequest, spec: Spec, who: tuple[Identity, Claims], shard: str | None) -> dict[str, Any]:
    """Make the header of a sweep; the time stands nowhere else but in the footer's seconds."""
    identity, claims = who
    return {
        "record": "header",
        "format": FORMAT.name,
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
    """Writes the result file under a temporary name, block by block, and adds up; `close` gives it its name.

    `done` are the blocks of an interrupted sweep, whose unfinished file this one replaces. `close` returns the results
    that this writer was given, never what the file holds.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], done: Iterable[Tally] = ()) -> None:
        self._header = header
        self._blocks = self.resumed = 0
        self.total = EMPTY
        self._journal = Journal(folder / FILE, FORMAT, header, (self._count(block, True) for block in done))

    def write(self, block: Tally) -> None:
        """Write the tally of a block; whoever resumes finds every block that was written."""
        self._journal.write(self._count(block, False))
        self._journal.flush()

    def _count(self, block: Tally, resumed: bool) -> str:
        """Count a block, and return its line; `resumed` if an interrupted sweep called it."""
        self._blocks += 1
        self.resumed += resumed
        self.total = add(self.total, block)
        return encode({"record": "block", "resumed": resumed, **record_of(block)})

    def close(self, seconds: float, canaries: Mapping[str, int]) -> Results:
        """Write the footer and give the file its name; raise Tampered if the file is not what was written."""
        footer = self._journal.end(
            {
                "record": "footer",
                "blocks": self._blocks,
                "resumed": self.resumed,
                **record_of(self.total),
                "digest": self._journal.digest,
                "header": self._journal.header_digest,
                "canaries": dict(canaries),
                "seconds": round(seconds, 3),
            }
        )
        self._journal.close()
        return Results(self._header, self.total, footer)

    def leave(self) -> None:
        """Close the file as it is, to be resumed."""
        self._journal.leave()


def clear(folder: Path, resuming: bool) -> None:
    """Remove the files of an earlier sweep, except, when resuming, the unfinished one."""
    path = folder / FILE
    for name in (path, new_of(path), *(() if resuming else (part_of(path),))):
        name.unlink(missing_ok=True)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Results:
    """Read a result file; Refused, with the reason, if it is not whole, was changed, or holds what no sweep writes."""
    total, resumed = EMPTY, 0
    with open_journal(path) as stream:
        reader = Reader(stream, path, FORMAT)
        for _, record in reader:
            total, resumed = add(total, tally_of(record)), resumed + record["resumed"]
    sums = {**record_of(total), "resumed": resumed}
    if {key: reader.footer[key] for key in sums} != json.loads(json.dumps(sums)):
        raise Refused(f"{path}: the footer does not hold the sum of the blocks; the file was changed")
    due = reader.header["calls"]
    if total.calls != due and (reader.header["shard"] is None or total.calls > due):
        raise Refused(f"{path}: it holds {total.calls:,} calls, and its header says {due:,}")
    return Results(reader.header, total, reader.footer)


def salvage(path: Path, header: Mapping[str, Any], due: Iterable[int]) -> list[Tally]:
    """Read the whole blocks of an interrupted sweep; `path` is the name that a whole file has.

    Refused if they are not of the sweep that `header` begins, or do not have the calls that are `due`, block by block.
    """
    return list(_salvaged_blocks(path, header, iter(due)))


def _salvaged_blocks(path: Path, header: Mapping[str, Any], due: Iterator[int]) -> Iterator[Tally]:
    for number, record in journal.salvage(path, FORMAT, header):
        place = f"{part_of(path)}:{number}"
        if record["calls"] != next(due, None):
            raise Refused(f"{place}: the block does not have the calls that are due; begin a new sweep")
        if unknown := {*record["meanings"], *record["verdicts"]} - {*header["suite"]["documents"]}:
            raise Refused(f"{place}: there is no document {quote_json(min(unknown))}; the file is damaged")
        yield tally_of(record)


# ── the form of each record ───────────────────────────────────────────────────────────────────────

_DIGEST = re.compile("[0-9a-f]{64}")
_HEADER = {
    "record": str,
    "format": str,
    "suite": {"version": str, "digest": _DIGEST, "documents": MapOf(_DIGEST)},
    "domain": {
        "ranks": SMALL, "longest": SMALL, "entries": SMALL, "lowest": INTEGER, "highest": INTEGER, "calls": SMALL,
    },
    "ways": [{"operation": str, "given": str, "shape_type": str, "type": str, "layout": frozenset(LAYOUTS)}],
    "calls": SMALL,
    "shard": OneOf(TEXT),
    "backend": {"name": str, "version": str, "adapter": str, "detail": MapOf(str)},
    "claims": CLAIMS,
    "isolation": str,
    "environment": MapOf(str),
    "started": str,
}  # fmt: skip
_FOOTER = {
    "record": str, "blocks": SMALL, "resumed": SMALL, **tally.FORM, "digest": _DIGEST, "header": _DIGEST,
    "canaries": MapOf(SMALL), "seconds": Number(0, 1e9), "footer": _DIGEST,
}  # fmt: skip
FORMAT = Format(
    "reshape-conformance-sweep-3", "sweep", "result of a sweep", f"name a file {FILE}", "block",
    {"header": _HEADER, "block": {"record": str, "resumed": bool, **tally.FORM}, "footer": _FOOTER}, "footer",
)  # fmt: skip
