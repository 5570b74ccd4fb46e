"""sweep.json: what was swept, and what it showed. It is written once the backend has ended, which cannot reach it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter.digest import digest_of_adapter
from ..evidence.journal import make_header
from ..model import Claims, Identity, Spec
from ..system.files import replace_text
from .blocks import SweepRequest
from .tally import Tally

SWEEP_FILE = "sweep.json"
FORMAT = "reshape-conformance-sweep-9"


class SweepResults(NamedTuple):
    header: Mapping[str, Any]
    total: Tally
    planted: Mapping[str, int]
    """By planted backend, the number of failures."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {**self.header, **self.total.to_json(), "planted": dict(self.planted), "seconds": self.seconds}


def make_header_of_sweep(request: SweepRequest, spec: Spec, who: tuple[Identity, Claims]) -> dict[str, Any]:
    return make_header(
        FORMAT, spec, spec.digest, *who, request.backend, digest_of_adapter(request.backend),
        domain={**request.domain._asdict(), "calls": request.domain.size}, ways=[way._asdict() for way in request.ways],
        isolation=request.isolation,
    )  # fmt: skip


def write(folder: Path, results: SweepResults) -> None:
    replace_text(folder / SWEEP_FILE, json.dumps(results.to_json(), indent=1) + "\n")
