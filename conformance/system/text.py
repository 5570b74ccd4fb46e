"""Cut texts short for messages."""

from __future__ import annotations

LONGEST_TEXT = 2000


def short(value: object) -> str:
    """A value in messages, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """A text of a backend's, cut where it is long."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
