"""Group values by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def group_pairs(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    """Group values by key, both in the order in which they come."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}
