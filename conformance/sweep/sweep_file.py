"""sweep.jsonl: a header, a line for each block, a footer; the same whichever processes called the blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter.digest import digest_of_adapter
from ..evidence import journal
from ..evidence.journal import HEADER_FORM, InvalidEvidence, Journal, JournalFormat, make_header, new_of, part_of
from ..model import LAYOUTS, Claims, Identity, Spec
from ..system.json_forms import COUNT, SHA256, MapOf, Number
from ..system.text import quote_json
from .blocks import SweepRequest
from .tally import EMPTY, INTEGER, TALLY_FORM, Tally, add

FILE = "sweep.jsonl"


class SweepResults(NamedTuple):
    header: Mapping[str, Any]
    total: Tally
    footer: Mapping[str, Any]


def header_of(request: SweepRequest, spec: Spec, who: tuple[Identity, Claims]) -> dict[str, Any]:
    return make_header(
        FORMAT, spec, spec.digest, *who, request.backend, digest_of_adapter(request.backend),
        domain={**request.domain._asdict(), "calls": request.domain.size}, ways=[way._asdict() for way in request.ways],
        calls=request.calls, isolation=request.isolation,
    )  # fmt: skip


class SweepWriter(Journal):
    """Writes the result file, block by block, and adds up; `close` adds the footer and gives the file its name.

    `done` are the blocks of an interrupted sweep. This file replaces its unfinished one.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], done: Sequence[Tally] = ()) -> None:
        super().__init__(folder / FILE, FORMAT, header, (_block_record(block, True) for block in done))
        self._header = header
        self.total = reduce(add, done, EMPTY)

    def write_block(self, block: Tally) -> None:
        """Write the tally of a block; whoever resumes finds every block that was written."""
        self.total = add(self.total, block)
        self.write(_block_record(block, False))
        self.flush()

    def close(self, seconds: float, planted: Mapping[str, int]) -> SweepResults:
        """Write the footer and give the file its name; Tampered if it does not hold what this writer wrote."""
        footer = self.write_footer(
            {"resumed": self.resumed, **self.total.to_json()},
            {"planted": dict(planted), "seconds": round(seconds, 3)},
        )
        self.give_name()
        return SweepResults(self._header, self.total, footer)


def _block_record(block: Tally, resumed: bool) -> dict[str, Any]:
    return {"record": "block", "resumed": resumed, **block.to_json()}


def clear(folder: Path, resuming: bool) -> None:
    """Remove the files of an earlier sweep, except, when resuming, the unfinished one."""
    path = folder / FILE
    for name in (path, new_of(path), *(() if resuming else (part_of(path),))):
        name.unlink(missing_ok=True)


def salvage(path: Path, header: Mapping[str, Any], due: Iterable[int]) -> list[Tally]:
    """Read the whole blocks of an interrupted sweep, as `journal.salvage` does; `due` are the calls of each block."""
    blocks, due = [], iter(due)
    for number, record in journal.salvage(path, FORMAT, header):
        place = f"{part_of(path)}:{number}"
        if record["calls"] != next(due, None):
            raise InvalidEvidence(f"{place}: the block does not have the calls that are due; begin a new sweep")
        if unknown := {*record["meanings"], *record["verdicts"]} - {*header["suite"]["documents"]}:
            raise InvalidEvidence(f"{place}: there is no document {quote_json(min(unknown))}; the file is damaged")
        blocks.append(Tally.from_json(record))
    return blocks


_DOMAIN_FORM = {
    "ranks": COUNT, "longest": COUNT, "entries": COUNT, "lowest": INTEGER, "highest": INTEGER, "calls": COUNT,
}  # fmt: skip
_HEADER_FORM = {
    **HEADER_FORM,
    "suite": {"version": str, "digest": SHA256, "documents": MapOf(SHA256)},
    "domain": _DOMAIN_FORM,
    "ways": [{"operation": str, "given": str, "shape_type": str, "type": str, "layout": frozenset(LAYOUTS)}],
    "calls": COUNT,
    "isolation": str,
}
_FOOTER_FORM = {
    "record": str, "blocks": COUNT, "resumed": COUNT, **TALLY_FORM, "digest": SHA256, "header": SHA256,
    "planted": MapOf(COUNT), "seconds": Number(0, 1e9), "footer": SHA256,
}  # fmt: skip
FORMAT = JournalFormat(
    "reshape-conformance-sweep-6", "sweep", "result of a sweep", f"name a file {FILE}", "block",
    {"header": _HEADER_FORM, "block": {"record": str, "resumed": bool, **TALLY_FORM}, "footer": _FOOTER_FORM}, "footer",
)  # fmt: skip
