"""The files of a run's folder: results.jsonl and the reports on it."""

from __future__ import annotations

import re
from pathlib import Path

from ..system.exit_codes import CommandError
from ..system.text import quote_json
from .results import PACKED, name_unfinished

RESULTS = "results.jsonl"
PUBLISHED = f"{RESULTS}{PACKED}"
"""The results beside a published page."""
PAGE = "report.html"
REPORTS = (PAGE, "junit.xml", "summary.md", "badge.svg")
CERTIFICATE = "certificate.html"
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
"""What is in no name of a published folder: pages link these names, and some names would lead elsewhere."""


def name_of_folder(name: str, version: str) -> str:
    """Return the folder of a backend and its version: `onednn-3.6.2`; an empty text if the name allows none."""
    plain = _OTHER.sub("-", name).strip(".-")
    whole = _OTHER.sub("-", f"{plain}-{version.partition('+')[0]}")
    return whole.strip(".-")[:80] if plain else ""


def explain_bad_name(folder: Path) -> str | None:
    """Say why a folder cannot be on a page; None if it can."""
    if not _OTHER.search(folder.name) and folder.name[0] not in ".-":
        return None
    return f"{quote_json(folder.name)} is no name for a link; rename the folder, in letters, digits and `._-`"


def find_results(folder: Path) -> list[Path]:
    """Return the files in a folder that hold results, packed or not."""
    return [path for name in (RESULTS, PUBLISHED) if (path := folder / name).exists()]


def find_results_path(path: Path) -> Path:
    """Return the path of the results in a folder, also of an unfinished run; any other path is returned as it is."""
    if not path.is_dir():
        return path
    unfinished = name_unfinished(path / RESULTS)
    return next(iter(find_results(path)), unfinished if unfinished.exists() else path / RESULTS)


def find_published_results(folder: Path) -> Path | None:
    """Return the packed results in a folder; None if it has none."""
    path = folder / PUBLISHED
    return path if path.exists() else None


def clear(folder: Path) -> None:
    """Remove the results and reports of an earlier run, so that nobody mistakes them for those of this one.

    CommandError if the folder holds a certificate: results of another run would lie beside it.
    """
    if (folder / CERTIFICATE).exists():
        raise CommandError(f"{folder}: holds a certificate; name another folder, or remove this one")
    remove_reports(folder)
    for path in (folder / RESULTS, name_unfinished(folder / RESULTS)):
        path.unlink(missing_ok=True)


def remove_reports(folder: Path) -> None:
    """Remove the reports on an earlier run, so that nobody mistakes them for reports on a run that has only begun."""
    for name in REPORTS:
        (folder / name).unlink(missing_ok=True)
