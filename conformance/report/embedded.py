"""The evidence inside the page: written as JSON that no browser runs, and read back as results.jsonl was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from ..evidence import Evidence, Refused, row_record
from ..model import Result

BEGIN, END = '<script type="application/json" id="evidence">', "</script>"
_DENSE = (",", ":")


def element(evidence: Evidence) -> str:
    """The whole element.

    A row’s id is that of its case and a suffix. `rows` has, for each case, its id, which list of `suffixes` it has,
    and which entry of `findings` holds the rest of each row’s record: one number where all share it.
    """
    findings: dict[str, int] = {}
    suffixes: dict[tuple[str, ...], int] = {}
    rows: list[tuple[str, int, int | list[int]]] = []
    for case, results in groupby(evidence.results, lambda result: result.row.partition("[")[0]):
        tails, numbers = [], []
        for result in results:
            record = {key: value for key, value in row_record(result).items() if key not in ("record", "row")}
            tails.append(result.row[len(case) :])
            numbers.append(findings.setdefault(json.dumps(record, separators=_DENSE), len(findings)))
        which = suffixes.setdefault(tuple(tails), len(suffixes))
        rows.append((case, which, numbers[0] if len(set(numbers)) == 1 else numbers))
    parts = {
        "header": json.dumps(evidence.header, separators=_DENSE),
        "suffixes": json.dumps(list(suffixes), separators=_DENSE),
        "findings": f"[{','.join(findings)}]",
        "rows": json.dumps(rows, separators=_DENSE),
        "footer": json.dumps(evidence.footer, separators=_DENSE),
    }
    text = ",".join(f'"{name}":{part}' for name, part in parts.items())
    inert = text.replace("<", "\\u003c").replace(">", "\\u003e")
    return f"{BEGIN}{{{inert}}}{END}"


def records_in(html: str, path: Path) -> Iterator[Mapping[str, Any]]:
    """The records of results.jsonl, from a page; Refused where it has none or several."""
    found = re.findall(f"{re.escape(BEGIN)}(.*?){re.escape(END)}", html, re.DOTALL)
    if len(found) != 1:
        raise Refused(f"{path}: holds the evidence {len(found)} times, not once; it is no report of this suite, or damaged")
    try:
        data = json.loads(found[0])
        yield data["header"]
        for case, which, numbers in data["rows"]:
            tails = data["suffixes"][which]
            each = numbers if isinstance(numbers, list) else [numbers] * len(tails)
            for tail, number in zip(tails, each, strict=True):
                yield {"record": "row", "row": case + tail, **data["findings"][number]}
        yield data["footer"]
    except (ValueError, TypeError, LookupError) as error:
        raise Refused(f"{path}: the evidence in it cannot be read ({type(error).__name__}); the page is damaged") from None


def lines_in(html: str, path: Path) -> bytes:
    """results.jsonl, from a page."""
    return "".join(json.dumps(record, separators=_DENSE) + "\n" for record in records_in(html, path)).encode()



def loosely(lines: bytes) -> Evidence | None:
    """What can be made of results though they were changed; None where that is nothing."""
    try:
        header, *rows, footer = map(json.loads, lines.decode("utf-8", "replace").splitlines())
        results = (Result(r["row"], r["verdicts"], r["outcome"], r.get("diagnosis"), r.get("detail")) for r in rows)
        return Evidence(header, tuple(results), footer)
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
