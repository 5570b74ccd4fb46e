"""Read files that anybody may have written, replace files safely, and lock a folder while it is written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from .exit_codes import CommandError

if sys.platform != "win32":
    import fcntl

MAX_BYTES = 1 << 30
"""Bytes to read of one file, unless the caller gives another limit."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a new folder, and remove it at the end."""
    import tempfile  # slow to import, and few commands need it

    with tempfile.TemporaryDirectory(prefix="reshape-conformance-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def find_adapters_folder() -> Path:
    return Path(import_module("conformance.adapters").__path__[0])


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raise OSError for anything else, such as a pipe, a device or a folder. This never waits for a writer.
    """
    with open_regular(path) as stream:
        status = os.fstat(stream.fileno())
        size = status.st_size
        content = stream.read(size + 1) if size <= most else b""  # read() takes as much memory as it is asked for
        if content[size:]:  # the file grows, or has no size, like those of /proc
            content += stream.read(most + 1 - len(content))
        if len(content) > most or size > most:
            raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
        return content


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a regular file of any size; OSError for anything else."""
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def replace_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Write the pages of a folder by name, and remove its other pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        replace_text(folder / name, text)
    for path in {*folder.glob("*.html")} - {folder / name for name in pages}:
        path.unlink()


def leaves_its_folder(path: Path) -> bool:
    """Ask whether a path is a symbolic link to another folder, so that the content must not be shown."""
    folder = path / ".." if path.name in ("", "..") else path.parent  # the parent of Path(".") is Path(".")
    try:
        return os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder)
    except (OSError, ValueError):
        return True


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; OSError for anything else. This never waits for a writer."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def create(path: Path, buffering: int = -1) -> BinaryIO:
    """Create a file for writing and reading; replace any file of that name, without following a link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "w+b", buffering)


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file; replace any file of that name at once, without following a symbolic link.

    OSError if the name is that of a folder or a device: root would replace `/dev/null` by a file.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EISDIR, "is a folder or a device; name a file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    import tempfile  # slow to import, and only needed here

    name = ""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        os.umask(mask := os.umask(0o077))
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def replace_text(path: Path, text: str) -> None:
    """Do what `replace_bytes` does, for text, written as UTF-8; half of a surrogate pair is written out."""
    replace_bytes(path, text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for one run. Raise CommandError if it is a file, or another process holds it.

    The folder is created if it is not there, and removed again if it was and nothing was written into it. The kernel
    drops the lock when its process ends, however it ends. On Windows, and on a file system without locks, a second run
    is not noticed.
    """
    if folder.is_file():
        raise CommandError(f"{folder} is a file; name a folder")
    created = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as at_the_end:
        if sys.platform != "win32":
            descriptor = os.open(folder, os.O_RDONLY)
            at_the_end.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_held = os.path.samestat(os.fstat(descriptor), folder.stat())  # a run that ends may have removed it
            except (BlockingIOError, FileNotFoundError):
                is_held = False
            except OSError:  # no locks here
                is_held = True
            if not is_held:
                raise CommandError(f"{folder} is in use by another run; wait for it, or name another folder")
        try:
            yield
        finally:
            if created:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)  # only if nothing was written there
