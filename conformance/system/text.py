"""Cut texts short for messages."""

from __future__ import annotations

LONGEST_TEXT = 2000


def short(value: object) -> str:
    """Return the value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text of a backend, cut if it is long."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
