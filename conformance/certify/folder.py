"""The files of a run's folder: results.jsonl and the reports on it."""

from __future__ import annotations

from pathlib import Path

from .evidence import part_of

RESULTS = "results.jsonl"
PAGE = "report.html"
REPORTS = (PAGE, "junit.xml", "summary.md", "ctrf.json", "badge.json", "badge.svg")


def clear(folder: Path) -> None:
    """Remove the results and reports of an earlier run, so that they cannot pass for those of this one."""
    remove_reports(folder)
    for path in (folder / RESULTS, part_of(folder / RESULTS)):
        path.unlink(missing_ok=True)


def remove_reports(folder: Path) -> None:
    """Remove the reports on an earlier run, so that they cannot pass for those on one that has only begun."""
    for name in REPORTS:
        (folder / name).unlink(missing_ok=True)
