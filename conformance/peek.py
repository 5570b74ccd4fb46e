"""Read the memory of a worker from outside, so that the suite need not believe what the worker says of it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

Span = tuple[int, int]
"""An address in the other process, and how many bytes."""


class _Part(ctypes.Structure):
    """What the C interface calls an iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@cache
def _reader() -> Any:
    """`process_vm_readv`; None where there is no such function."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "process_vm_readv", None)
    if function is not None:
        part, count = ctypes.POINTER(_Part), ctypes.c_ulong
        function.argtypes = [ctypes.c_int, part, count, part, count, count]
        function.restype = ctypes.c_ssize_t
    return function


def peek(pid: int, spans: Sequence[Span]) -> list[bytes] | None:
    """Read spans of another process's memory; None if the kernel does not let us, or there is no such memory."""
    function, total = _reader(), sum(length for _, length in spans)
    if function is None or not total:
        return None
    room = bytearray(total)
    ours = _Part(ctypes.addressof(ctypes.c_char.from_buffer(room)), total)
    theirs = (_Part * len(spans))(*[_Part(address, length) for address, length in spans])
    if function(pid, ctypes.byref(ours), 1, theirs, len(spans), 0) != total:
        return None
    found, at = [], 0
    for _, length in spans:
        found.append(bytes(room[at : at + length]))
        at += length
    return found
