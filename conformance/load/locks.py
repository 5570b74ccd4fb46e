"""Read ids.lock, the ids that cases have ever had, and suites.lock, the suites with the same rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..model import EarlierSuite
from .folders import content_of

LOCK = "ids.lock"
SUITES_LOCK = "suites.lock"
"""For each number of rows their digest and the digests of the suites that have had them, the newest last."""

_LOCKED = re.compile(r"rows (\w+) of (\d+) cases and (\d+) combinations((?:\s+(?!rows\b)\w+)*)")


def read_lock(folder: Path) -> list[str]:
    """Return the ids that the cases of a folder have ever had."""
    return _read(folder / LOCK).split()


class LockedRows(NamedTuple):
    """The rows that some suites have had: of the first cases of the lock, and of the first combinations."""

    digest: str
    cases: int
    combinations: int
    suites: tuple[str, ...]
    """Digests, the newest last."""

    @property
    def lines(self) -> list[str]:
        return [f"rows {self.digest} of {self.cases} cases and {self.combinations} combinations", *self.suites]


def read_locked_rows(folder: Path) -> list[LockedRows]:
    """Read which suites have had which rows. Later ones have all rows of those before."""
    return [
        LockedRows(digest, int(cases), int(combinations), tuple(suites.split()))
        for digest, cases, combinations, suites in _LOCKED.findall(_read(folder / SUITES_LOCK))
    ]


def find_earlier_suites(folder: Path, digest: str) -> dict[str, EarlierSuite]:
    """Find the suites with no other rows than a suite, by digest; none if the list lacks the suite itself."""
    locked, ids = read_locked_rows(folder), read_lock(folder)
    if not locked or digest not in locked[-1].suites:
        return {}
    now = locked[-1]
    return {
        suite: EarlierSuite(
            frozenset(ids[each.cases : now.cases]),
            each.combinations if each.combinations < now.combinations else None,
        )
        for each in locked
        for suite in each.suites
    }


def _read(path: Path) -> str:
    return content_of(path).decode("utf-8", "replace") if path.exists() else ""
