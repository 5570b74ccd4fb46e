"""Read tables of a FlatBuffer. Every offset is checked, so that a bad file ends with the byte of the mistake."""

from __future__ import annotations

import struct

from .nodes import UnreadableModel

MAX_ENTRIES = 1_000_000


class Buffer:
    """The bytes of a file."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def number(self, at: int, code: str) -> int:
        """Return the number at a byte; `code` is one of struct's letters."""
        size = struct.calcsize(f"<{code}")
        if not 0 <= at <= len(self._content) - size:
            raise UnreadableModel(f"byte {at:,}: past the end of the file, which has {len(self._content):,} bytes")
        number: int = struct.unpack_from(f"<{code}", self._content, at)[0]
        return number

    def bytes_at(self, at: int, size: int) -> bytes:
        if not 0 <= at <= len(self._content) - size:
            raise UnreadableModel(f"byte {at:,}: {size:,} bytes from here are past the end of the file")
        return self._content[at : at + size]

    def root(self) -> FlatTable:
        """Return the table that holds all others."""
        return FlatTable(self, self.number(0, "I"))


class FlatTable:
    """A table; its fields are numbered as in the schema."""

    def __init__(self, buffer: Buffer, at: int) -> None:
        self._buffer, self.at = buffer, at
        self._fields = at - buffer.number(at, "i")
        self._size = buffer.number(self._fields, "H")

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = self._buffer.number(self._fields + slot, "H") if slot + 2 <= self._size else 0
        return self.at + offset if offset else None

    def number(self, field: int, code: str) -> int:
        """Return a number; 0 if the field is not there."""
        place = self._place(field)
        return 0 if place is None else self._buffer.number(place, code)

    def table(self, field: int) -> FlatTable | None:
        """Return a table inside; None if there is none."""
        place = self._place(field)
        return None if place is None else FlatTable(self._buffer, place + self._buffer.number(place, "I"))

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Return the first byte and the number of entries of a list."""
        place = self._place(field)
        if place is None:
            return 0, 0
        start = place + self._buffer.number(place, "I")
        count = self._buffer.number(start, "I")
        if count * width > MAX_ENTRIES * 8 and width > 1:
            raise UnreadableModel(f"byte {start:,}: a list of {count:,} entries, at most {MAX_ENTRIES:,} are read")
        return start + 4, count

    def numbers(self, field: int) -> tuple[int, ...]:
        """Return a list of numbers of 32 bits."""
        start, count = self._vector(field, 4)
        return struct.unpack(f"<{count}i", self._buffer.bytes_at(start, count * 4)) if count else ()

    def tables(self, field: int) -> list[FlatTable]:
        start, count = self._vector(field, 4)
        self._buffer.bytes_at(start, 4 * count)
        places = range(start, start + 4 * count, 4)
        return [FlatTable(self._buffer, place + self._buffer.number(place, "I")) for place in places]

    def content(self, field: int, most: int) -> bytes | None:
        """Return a list of bytes; None if it is longer than `most`."""
        start, count = self._vector(field, 1)
        return self._buffer.bytes_at(start, count) if count <= most else None

    def text(self, field: int) -> str:
        """Return a text, cut if it is long."""
        start, count = self._vector(field, 1)
        return self._buffer.bytes_at(start, min(count, 1000)).decode("utf-8", "replace")
