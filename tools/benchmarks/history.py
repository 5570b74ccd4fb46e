"""The ratios of the last releases, in history.json, so that a slip is seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from conformance.system.files import replace_text

FILE = Path(__file__).with_name("history.json")
_KEPT = 8
"""Releases that are kept."""


def read() -> dict[str, dict[str, float]]:
    """Return the ratios by release and measurement, the oldest release first."""
    releases: dict[str, dict[str, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    return releases


def last_ratios() -> dict[str, float]:
    """Return, for each measurement, the ratio of the last release that has it."""
    return {what: ratio for ratios in read().values() for what, ratio in ratios.items()}


def record(release: str, ratios: Mapping[str, float]) -> None:
    """Write the ratios of a release; those that it has from before stay if they were not measured again."""
    releases = read()
    known = releases.pop(release, {})
    releases[release] = {**known, **{what: float(f"{ratio:.3g}") for what, ratio in ratios.items()}}
    kept = dict(list(releases.items())[-_KEPT:])
    replace_text(FILE, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
