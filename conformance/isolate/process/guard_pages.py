"""Memory beside a page that nobody may read: a read or a write past its end, or before its start, ends the process."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Literal

Edge = Literal["start", "end"]
"""The end of a memory that touches such a page."""
LARGEST = 4096
"""Bytes of a memory that can lie so: one page, as the smallest systems have them."""
_PLACES = 64
"""Memories in one mapping. A mapping for each took two and a half times as long."""


class GuardedPages:
    """A mapping in which every second page can be used; a new one when all are. It lives as long as what lies in it."""

    def __init__(self) -> None:
        self._used = _PLACES
        self._mapping = memoryview(b"")

    def place(self, content: bytes, edge: Edge) -> bytearray | memoryview:
        """Return a copy of the content with one end at a guard page; anywhere if the system has no such pages."""
        if sys.platform == "win32":
            return bytearray(content)
        page = mmap.PAGESIZE
        if self._used == _PLACES:
            self._used, self._mapping = 0, _map_pages(page)
        start = (2 * self._used + 1) * page
        self._used += 1
        if edge == "end":
            start += page - len(content)
        memory = self._mapping[start : start + len(content)]
        memory[:] = content
        return memory


def _map_pages(page: int) -> memoryview:
    mapping = mmap.mmap(-1, (2 * _PLACES + 1) * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address, protect = ctypes.addressof(ctypes.c_char.from_buffer(mapping)), ctypes.CDLL(None).mprotect
    for number in range(_PLACES + 1):
        protect(ctypes.c_void_p(address + 2 * number * page), ctypes.c_size_t(page), 0)
    return memoryview(mapping)
