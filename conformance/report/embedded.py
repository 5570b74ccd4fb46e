"""The evidence inside the page: written as JSON that no browser runs, and read back as results.jsonl was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evidence.json_forms import decode
from ..evidence.results import MOST, Evidence, Refused, row_record
from ..model import Result

if TYPE_CHECKING:
    from markupsafe import Markup

BEGIN, END = '<script type="application/json" id="evidence">', "</script>"
"""The element of the page that holds the evidence, as its template writes it."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


class _Table:
    """Values as JSON, each once, by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[str] = []

    def number(self, value: object) -> int:
        """The number of a value; it is found by its repr, which costs less than its JSON."""
        number = self._numbers.setdefault(repr(value), len(self._values))
        if number == len(self._values):
            self._values.append(_encode(value))
        return number

    def __str__(self) -> str:
        return f"[{','.join(self._values)}]"


def dump_evidence(evidence: Evidence) -> Markup:
    """The evidence as JSON that ends no element of a page.

    A row's id is that of its case and a suffix. `rows` has, for each case, its id, which list of `suffixes` it has,
    which entry of `findings` holds the rest of each row's record, and which of `contents` its content: one number if
    all rows share it. A finding is the number of its verdicts, that of its outcomes and its other keys, if any.
    """
    tables = {name: _Table() for name in ("suffixes", "verdicts", "outcomes", "findings", "contents")}
    rows: list[tuple[str, int, int | list[int], int | list[int]]] = []
    for case, results in groupby(evidence.results, lambda result: result.row.partition("[")[0]):
        tails, numbers, contents = [], [], []
        for result in results:
            tails.append(result.row[len(case) :])
            numbers.append(_number_finding(result, tables))
            contents.append(tables["contents"].number(result.content))
        rows.append((case, tables["suffixes"].number(tails), _one_or_all(numbers), _one_or_all(contents)))
    parts = {
        "header": _encode(evidence.header),
        **{name: str(table) for name, table in tables.items()},
        "rows": _encode(rows),
        "footer": _encode(evidence.footer),
    }
    text = ",".join(f'"{name}":{part}' for name, part in parts.items())
    return _make_inert(f"{{{text}}}")


def _one_or_all(numbers: list[int]) -> int | list[int]:
    return numbers[0] if len(set(numbers)) == 1 else numbers


def _number_finding(result: Result, tables: Mapping[str, _Table]) -> int:
    record = row_record(result)
    finding: list[Any] = [tables["verdicts"].number(record["verdicts"]), tables["outcomes"].number(record["outcomes"])]
    if others := {key: value for key, value in record.items() if key not in _ELSEWHERE}:
        finding.append(others)
    return tables["findings"].number(finding)


_ELSEWHERE = ("record", "row", "content", "verdicts", "outcomes")
"""The keys of a row's record that its finding does not hold itself."""


def dump_inert(value: object) -> Markup:
    """A value as JSON that ends no element of a page."""
    return _make_inert(_encode(value))


def _make_inert(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))


def records_in(html: str, path: Path) -> Iterator[Mapping[str, Any]]:
    """The records of results.jsonl, from a page; Refused where it has none or several."""
    found = re.findall(f"{re.escape(BEGIN)}(.*?){re.escape(END)}", html, re.DOTALL)
    if len(found) != 1:
        raise Refused(
            f"{path}: holds the evidence {len(found)} times, not once; it is no report of this suite, or damaged"
        )
    try:
        data = decode(found[0])
        yield data["header"]
        for case, which, *numbers in data["rows"]:
            tails = data["suffixes"][which]
            findings, contents = (each if isinstance(each, list) else [each] * len(tails) for each in numbers)
            for tail, finding, content in zip(tails, findings, contents, strict=True):
                verdicts, outcomes, *others = data["findings"][finding]
                held = {"content": data["contents"][content]} if data["contents"][content] else {}
                record = {"verdicts": data["verdicts"][verdicts], "outcomes": data["outcomes"][outcomes]}
                yield {"record": "row", "row": case + tail, **held, **record, **(others[0] if others else {})}
        yield data["footer"]
    except (ValueError, TypeError, LookupError) as error:
        raise Refused(
            f"{path}: the evidence in it cannot be read ({type(error).__name__}); the page is damaged"
        ) from None


def lines_in(html: str, path: Path) -> bytes:
    """The content of results.jsonl, from a page; Refused if it comes to more than any run writes."""
    lines, size = [], 0
    for record in records_in(html, path):
        lines.append(_encode(record) + "\n")
        size += len(lines[-1])
        if size > MOST:
            raise Refused(f"{path}: its evidence comes to more than {MOST:,} bytes, which no run writes")
    return "".join(lines).encode()
