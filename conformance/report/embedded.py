"""The evidence inside the page: results.jsonl, packed and as base64, and read back."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from ..evidence.journal import encode
from ..evidence.results import Evidence, InvalidEvidence, unpack

BEGIN, END = '<script type="application/x-xz" id="evidence">', "</script>"
"""The element of the page that holds the evidence, as its template writes it; no browser runs it."""


def dump_evidence(evidence: Evidence) -> str:
    """Return the content of results.jsonl, packed into the same bytes on every machine, as base64."""
    import lzma  # slow to import

    records = (evidence.header, *(result.to_json() for result in evidence.results))
    records = records if evidence.interrupted else (*records, evidence.footer)
    lines = "".join(f"{encode(record)}\n" for record in records)
    return base64.b64encode(lzma.compress(lines.encode(), preset=0)).decode()


def extract_lines(html: str, path: Path) -> bytes:
    """Return the content of results.jsonl from a page; InvalidEvidence if it has none, several, or a damaged one."""
    found = re.findall(f"{re.escape(BEGIN)}(.*?){re.escape(END)}", html, re.DOTALL)
    if len(found) != 1:
        raise InvalidEvidence(
            f"{path}: holds the evidence {len(found)} times, not once; it is no report of this suite, or damaged"
        )
    try:
        packed = base64.b64decode(found[0], validate=True)
    except ValueError:
        raise InvalidEvidence(f"{path}: the evidence in it is no base64; the page is damaged") from None
    return unpack(packed, path)
