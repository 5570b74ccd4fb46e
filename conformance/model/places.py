"""Places in files, and problems found there."""

from __future__ import annotations

from typing import NamedTuple

# ── places ────────────────────────────────────────────────────────────────────────────────────────


class Place(NamedTuple):
    """Where a value was written, for messages: `cases/zero.yaml:14`."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Problem(NamedTuple):
    """Something wrong in a file of ours or of a user: what it is, and what to do."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Malformed(Exception):
    """Files that cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
