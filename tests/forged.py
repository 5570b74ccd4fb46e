"""Evidence that somebody changed and signed again: the digests are right, what they cover is not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.evidence.results import seal_of

Records = list[dict[str, Any]]


def rewrite(path: Path, change: Callable[[Records], object]) -> None:
    """Change the records of a results file, and make every digest right again."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(records)
    path.write_bytes(signed(records))


def signed(records: Records) -> bytes:
    """Records as a results file whose footer is true of them."""
    header, *rows = [_line(record) for record in records[:-1]]
    footer = dict(records[-1])
    if isinstance(footer.get("rows"), int):
        footer |= {"rows": len(rows)}
    footer |= {"digest": hashlib.sha256(b"".join(rows)).hexdigest(), "header": hashlib.sha256(header).hexdigest()}
    footer.pop("seal", None)
    footer["seal"] = seal_of(footer)
    return b"".join([header, *rows, _line(footer)])


def _line(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def flatter(records: Records) -> None:
    """Call every verdict a pass."""
    for record in records[1:-1]:
        record["verdicts"] = dict.fromkeys(record["verdicts"], "pass")
        record.pop("diagnosis", None)
        record.pop("detail", None)
    count(records)


def count(records: Records) -> None:
    """Make the counts in the footer those of the rows."""
    said = dict.fromkeys(records[-1]["verdicts"], 0)
    for record in records[1:-1]:
        for verdict in record["verdicts"].values():
            said[verdict] += 1
    records[-1]["verdicts"] = said


HOSTILE: Sequence[Any] = (None, True, -1, 1e308, 10**30, "x", "\n::error::x", [], {}, ["x"], {"x": []}, [[1]])


def mutations(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places in a record and what may be put there instead; `extra` is a key that no record has."""
    if isinstance(record, dict):
        yield (*path, "extra"), "x"
    if path:
        for value in HOSTILE:
            yield path, value
    if isinstance(record, dict | list):
        for key in record if isinstance(record, dict) else range(len(record)):
            yield from mutations(record[key], (*path, key))


def put(record: Any, path: tuple[Any, ...], value: Any) -> None:
    """Put a value at a place in a record."""
    *outer, last = path
    for key in outer:
        record = record[key]
    record[last] = value
