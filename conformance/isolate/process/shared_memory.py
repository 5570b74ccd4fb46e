"""Memory that the suite shares with a worker, and how long glibc keeps large memory."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import weakref
from functools import cache

if sys.platform != "win32":
    import fcntl

_BLOCK = 1 << 20
"""The size of shared memory is a multiple of this."""
_KEEP_BELOW = 1 << 27
"""Shared memory of fewer bytes is kept for the next call."""
TRIM, MMAP = 1 << 28, 1 << 25
"""Bytes that glibc keeps for the next large tensor: mapping pages again takes ten times as long as copying them."""


class SharedMemory:
    """Memory that both processes map. It has no name, so no file is left behind."""

    def __init__(self) -> None:
        self.path: str | None = None
        self._map: mmap.mmap | None = None
        self._size = 0
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("reshape-conformance", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(
                self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK
            )  # else a worker that shrinks it could crash us
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
            weakref.finalize(self, os.close, self._file)

    def room(self, size: int) -> mmap.mmap:
        """Return the memory, enlarged to at least so many bytes."""
        if self._map is None or self._size < size:
            keep_memory()
            size = -(-size // _BLOCK) * _BLOCK
            os.ftruncate(self._file, max(size, os.fstat(self._file).st_size))
            self._map = mmap.mmap(self._file, size)
            self._size = size
        return self._map

    def forget(self) -> None:
        """Give the memory back to the system; its content is lost."""
        if self._map is not None and self._size >= _KEEP_BELOW:
            self._map.madvise(mmap.MADV_REMOVE)


@cache
def keep_memory() -> None:
    """Make the glibc of this process, if it has one, keep large memory."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-1, TRIM)
        mallopt(-3, MMAP)
