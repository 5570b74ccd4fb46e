"""Cut texts short for messages."""

from __future__ import annotations

LONGEST_TEXT = 2000


def shorten(text: str, most: int = 80) -> str:
    """Return at most `most` characters of a text."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def short(value: object) -> str:
    """Return the value for a message, cut if it is long."""
    return shorten(repr(value), 120)


def cut(text: str, most: int = LONGEST_TEXT) -> str:
    """Return the beginning of a text, and how long it is if that is not all."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
