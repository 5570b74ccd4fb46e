"""The files of a run's folder: results.jsonl and the reports on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .results import PACKED, PACKED_BEFORE, part_of

RESULTS = "results.jsonl"
PUBLISHED = f"{RESULTS}{PACKED}"
"""The results beside a published page."""
PAGE = "report.html"
REPORTS = (PAGE, "junit.xml", "summary.md", "badge.svg")


def find_results(folder: Path, names: Sequence[str] = (RESULTS, PUBLISHED, f"{RESULTS}{PACKED_BEFORE}")) -> list[Path]:
    """Return the files in a folder that hold results, packed or not."""
    return [path for name in names if (path := folder / name).exists()]


def find_published_results(folder: Path) -> Path | None:
    """Return the packed results in a folder; None if it has none."""
    return next(iter(find_results(folder, (PUBLISHED, f"{RESULTS}{PACKED_BEFORE}"))), None)


def clear(folder: Path) -> None:
    """Remove the results and reports of an earlier run, so that nobody mistakes them for those of this one."""
    remove_reports(folder)
    for path in (folder / RESULTS, part_of(folder / RESULTS)):
        path.unlink(missing_ok=True)


def remove_reports(folder: Path) -> None:
    """Remove the reports on an earlier run, so that nobody mistakes them for reports on a run that has only begun."""
    for name in REPORTS:
        (folder / name).unlink(missing_ok=True)
