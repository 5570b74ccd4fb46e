"""The evidence in `reports/`, with the names that documents and backends have today."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.evidence.folder import find_published_results
from conformance.evidence.results import Evidence, read

from .small import ROOT

REPORTS = ROOT / "reports"
"""Only in a clone."""
_DOCUMENTS = {
    "static-2022": "static-oneapi",
    "static-2021": "static-graph-v0.9",
    "static-2020": "static-spec-v0.9",
    "dynamic-2021": "dynamic-spec-v0.9",
    "reshape-2020": "reshape-spec-v0.7",
}
_OLD = re.compile("|".join(_DOCUMENTS))
_BACKENDS = {"numpy": "reference", "numpy-raw": "numpy"}


def published() -> Iterator[tuple[Path, Evidence]]:
    """Yield each folder of `reports/` that holds evidence, and that evidence under today's names."""
    for folder in sorted(REPORTS.glob("*/")):
        if (path := find_published_results(folder)) is not None:
            yield folder, translate(read(path))


def translate(evidence: Evidence) -> Evidence:
    """Return evidence under today's names; what was written under them stays as it is."""
    if not _OLD.search(" ".join(evidence.header["suite"]["documents"])):
        return evidence
    header = _translate_texts(evidence.header)
    backend = header["backend"]
    header["backend"] = {**backend, **{key: _BACKENDS.get(backend[key], backend[key]) for key in ("name", "adapter")}}
    results = tuple(
        each._replace(
            verdicts=_translate_texts(each.verdicts),
            case=_translate_texts(each.case),
            detail=_translate_texts(each.detail),
        )
        for each in evidence.results
    )
    return replace(evidence, header=header, results=results, footer=_translate_texts(evidence.footer))


def _translate_texts(value: Any) -> Any:
    """Replace old document ids in all texts of a JSON value, and in its keys."""
    text = json.dumps(value)
    return json.loads(_OLD.sub(lambda found: _DOCUMENTS[found[0]], text)) if _OLD.search(text) else value
