"""Read the memory of a worker from outside, so that the suite need not believe what the worker says of it."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

Span = tuple[int, int]
"""An address in the other process, and how many bytes."""


@cache
def _reader() -> Any:
    """`process_vm_readv`; None where there is no such function."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "process_vm_readv", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, *(ctypes.c_void_p, ctypes.c_ulong) * 2, ctypes.c_ulong]
        function.restype = ctypes.c_ssize_t
    return function


class Window:
    """Reads spans of one other process's memory."""

    def __init__(self, pid: int) -> None:
        self._pid, self._read = pid, _reader()
        self._make(1 << 16, 16)

    def _make(self, size: int, count: int) -> None:
        """Take room for so many bytes of so many spans."""
        self._room, self._parts = bytearray(size), bytearray(16 * (count + 1))  # ours first, then theirs
        self._at, self._list = (ctypes.addressof(ctypes.c_char.from_buffer(each)) for each in (self._room, self._parts))

    def read(self, spans: Sequence[Span]) -> list[bytearray] | None:
        """The content of each span; None if the kernel does not let us, or there is no such memory."""
        total = sum([length for _, length in spans])
        if self._read is None or not total:
            return None
        if total > len(self._room) or 16 * len(spans) >= len(self._parts):
            self._make(2 * total, 2 * len(spans))
        flat = [number for span in spans for number in span]
        struct.pack_into(f"{2 + len(flat)}Q", self._parts, 0, self._at, total, *flat)
        if self._read(self._pid, self._list, 1, self._list + 16, len(spans), 0) != total:
            return None
        found, at = [], 0
        for _, length in spans:
            found.append(self._room[at : at + length])
            at += length
        return found
