"""Places in files, and problems found there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The file and line of a value, for messages: `cases/zero.yaml:14`. The line is 0 for all of a file or folder."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class Problem(NamedTuple):
    """A problem in a file: its place, what is wrong, and what to do."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Malformed(Exception):
    """Files cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
