"""The answer of one check of an adapter, which every module here gives and the command prints."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Check(NamedTuple):
    """The finding of one check, in a line."""

    word: Literal["ok", "mend", "note"]
    check: str
    text: str

    @classmethod
    def of(cls, check: str, sound: str, problem: str | None) -> Check:
        """Return a check that is ok and says what is sound, or names the problem to mend."""
        return cls("mend", check, problem) if problem else cls("ok", check, sound)
