"""Known faults of backends on single legal calls."""

from __future__ import annotations

from typing import NamedTuple

from .rules import Expression


class KnownFault(NamedTuple):
    """One fault of a backend, and the calls that it may hit."""

    id: str
    backend: str
    versions: tuple[str, ...]
    """The versions with evidence that shows it."""
    words: str
    when: Expression
    """A condition on a legal call and its answer."""


class LegalCall(NamedTuple):
    """A call with exactly one right answer."""

    src_type: str
    src: tuple[int, ...]
    shape: tuple[int, ...]
    special_zero: bool
    dst: tuple[int, ...]
