"""Memory of tensors across processes: beside a page that nobody may read, shared with a worker, read in a worker."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
import sys
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

if sys.platform != "win32":
    import fcntl

Edge = Literal["start", "end"]
"""The end of a memory that touches a page that nobody may read."""
MAX_BYTES_AT_PAGE = 4096
"""Bytes of a memory that can lie so: one page, as the smallest systems have them."""
_PLACES = 64
"""Memories in one mapping. A mapping for each took two and a half times as long."""
_BLOCK = 1 << 20
"""The size of shared memory is a multiple of this."""
_KEEP_BELOW = 1 << 27
"""Shared memory of fewer bytes is kept for the next call."""
TRIM, MMAP = 1 << 28, 1 << 25
"""Bytes that glibc keeps for the next large tensor: mapping pages again takes ten times as long as copying them."""
Span = tuple[int, int]
"""An address in the other process, and how many bytes."""


class GuardedPages:
    """A mapping in which every second page can be used; a new one when all are. It lives as long as what lies in it.

    A read or a write past the end of what lies in such a page, or before its start, ends the process.
    """

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


class SharedMemory:
    """Memory that both processes map. It has no name, so no file is left behind."""

    def __init__(self) -> None:
        self.path: str | None = None
        self._map: mmap.mmap | None = None
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("reshape-conformance", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)  # a worker that shrinks it could crash us
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
            weakref.finalize(self, os.close, self._file)

    def room(self, size: int) -> mmap.mmap:
        """Return the memory, enlarged to at least so many bytes."""
        if self._map is None or len(self._map) < size:
            keep_memory()
            size = -(-size // _BLOCK) * _BLOCK
            os.ftruncate(self._file, max(size, os.fstat(self._file).st_size))
            self._map = mmap.mmap(self._file, size)
        return self._map

    def forget(self) -> None:
        """Give the memory back to the system; its content is lost."""
        if self._map is not None and len(self._map) >= _KEEP_BELOW:
            self._map.madvise(mmap.MADV_REMOVE)


@cache
def keep_memory() -> None:
    """Make the glibc of this process, if it has one, keep large memory."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-1, TRIM)
        mallopt(-3, MMAP)


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
    """Reads spans of the memory of one other process, so that the suite need not rely on what a worker reports."""

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
