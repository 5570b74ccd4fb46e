"""Read ids.lock, the ids that cases have ever had, and suites.lock, the suites with the same rows."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ..model import EarlierSuite
from .folders import content_of

LOCK = "ids.lock"
SUITES_LOCK = "suites.lock"
"""For each number of rows their digest and the digests of the suites that have had them, the newest last."""


def read_lock(folder: Path, name: str = LOCK) -> list[str]:
    """Return the ids that the cases of a folder have ever had, or the words of another such file."""
    path = folder / name
    return content_of(path).decode("utf-8", "replace").split() if path.exists() else []


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
    found, words = [], read_lock(folder, SUITES_LOCK)
    for begin in (at for at, word in enumerate(words) if word == "rows"):
        digest, cases, combinations = words[begin + 1], int(words[begin + 3]), int(words[begin + 6])
        suites = takewhile(lambda word: word != "rows", words[begin + 8 :])
        found.append(LockedRows(digest, cases, combinations, tuple(suites)))
    return found


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
