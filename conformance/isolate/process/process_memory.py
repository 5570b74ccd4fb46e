"""Read the memory of a worker from outside, so that the suite need not rely on what the worker reports."""

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
def _load_function() -> Any:
    """Load `process_vm_readv`; None if this system has no such function."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "process_vm_readv", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, *(ctypes.c_void_p, ctypes.c_ulong) * 2, ctypes.c_ulong]
        function.restype = ctypes.c_ssize_t
    return function


class MemoryReader:
    """Reads spans of the memory of one other process."""

    def __init__(self, pid: int) -> None:
        self._pid, self._read = pid, _load_function()
        self._allocate(1 << 16, 16)

    def _allocate(self, size: int, count: int) -> None:
        """Allocate buffers for so many bytes of so many spans."""
        self._room, self._parts = bytearray(size), bytearray(16 * (count + 1))  # ours first, then theirs
        buffers = (self._room, self._parts)
        self._at, self._list = (ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in buffers)

    def read(self, spans: Sequence[Span]) -> list[bytearray] | None:
        """Return the content of each span; None if the kernel forbids it, or there is no such memory."""
        total = sum([length for _, length in spans])
        if self._read is None or not total:
            return None
        if total > len(self._room) or 16 * len(spans) >= len(self._parts):
            self._allocate(2 * total, 2 * len(spans))
        flat = [number for span in spans for number in span]
        struct.pack_into(f"{2 + len(flat)}Q", self._parts, 0, self._at, total, *flat)
        if self._read(self._pid, self._list, 1, self._list + 16, len(spans), 0) != total:
            return None
        contents, at = [], 0
        for _, length in spans:
            contents.append(self._room[at : at + length])
            at += length
        return contents
