"""Python imports this first and then takes the system for one without /proc, prctl, prlimit, memfd and F_SETSIG."""

import builtins
import ctypes
import fcntl
import io
import os
import resource
import sys
from collections.abc import Callable
from typing import Any

sys.platform = "darwin"
for module, names in (
    (resource, ("prlimit",)),
    (os, ("memfd_create", "pidfd_open", "sched_getaffinity")),
    (fcntl, ("F_SETSIG", "F_SETOWN", "F_SETPIPE_SZ", "F_GETPIPE_SZ")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def without_proc(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any = ".", *args: Any, **options: Any) -> Any:
        if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", os.fsdecode(path))
        return real(path, *args, **options)

    return call


builtins.open = io.open = without_proc(open)
for name in ("listdir", "stat", "readlink", "scandir"):
    setattr(os, name, without_proc(getattr(os, name)))


class CLibrary(ctypes.CDLL):
    """The C library without the functions that only Linux and glibc have."""

    def __getattr__(self, name: str) -> Any:
        if name in ("prctl", "process_vm_readv", "mallopt", "malloc_trim"):
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = CLibrary  # type: ignore[misc]
