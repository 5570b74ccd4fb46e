"""The files under test: shared libraries that the backend's processes have mapped, and packages that it imports."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ..system.files import sha256_of
from .journal import InvalidEvidence

_PROC = Path("/proc")
_STANDARD_LIBRARY = Path(os.__file__).parent
_RUNTIME = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|util|pthread|resolv|stdc\+\+|gcc_s|z|uuid|nss_\w+))[-.].*")
"""The libraries of C and C++ that every program has or that the C library loads, which differ from system to system."""
_NO_FILES = ("/memfd:", "/dev/", "/SYSV", "/proc/")
"""Beginnings of names of memory that is no file, as compilers and shared memory make it."""
_OF_SUITE = ("ml_dtypes/", "yaml/")
"""Packages that our workers load when a row asks for them."""
_MODULES_OF_SUITE = {"conformance", *(folder.rstrip("/") for folder in _OF_SUITE)}
_LOADING = ("bz2", "ctypes", "dbm", "lzma", "readline", "sqlite3", "ssl", "uuid", "zlib")
"""The modules of the standard library that load libraries of the system."""
_PACKAGES = ("site-packages", "dist-packages")


class Listed(NamedTuple):
    """A line about one file in the RECORD of a package."""

    record: str
    """The name of the RECORD."""
    sha256: str
    """As `in_record` writes it; empty if the line has none."""


class Subject(NamedTuple):
    """The code under test, as far as it is known."""

    files: Mapping[str, str]
    """The SHA-256 of each file, by a name without the places of this machine."""
    unnamed_code: bool
    """Whether there is also code that is in no file, as a compiler at run time makes it."""
    listed: Mapping[str, Listed]
    """By path, what the packages say of each of their files."""


NO_SUBJECT = Subject({}, False, {})


def read_subject(pid: int, modules: Iterable[str] = ()) -> Subject:
    """Return the files under test of a process with a backend that imports some modules.

    These are the files with code that the process and its children have mapped, without those of Python, the system
    and the suite. The packages that this process has loaded make no difference. For a package, its RECORD is added,
    which lists all its files with their digests; the Python files are compared with it. Python files are not mapped,
    so the RECORD of each package that has one of the modules is added, too. Nothing is found if the system has no
    /proc.
    """
    processes = list(_with_children(pid))
    mapped = {path for process in processes for path in _mapped_files(process)}
    of_python = _files_of_python()
    tested = {path for path in mapped if _is_under_test(path, of_python)}
    names: dict[str, str] = {}
    listed: dict[str, Listed] = {}
    for path in sorted({*tested, *_records(tested), *_records_of_modules(modules if mapped else ())}):
        name = _free_name(_in_package(path) or path.name, names)
        names[name] = _digest_of_package(path) if path.name == "RECORD" else sha256_of(path)
        if path.name == "RECORD":
            listed |= {file: Listed(name, digest) for file, digest in _lines_of(path)}
    return Subject(dict(sorted(names.items())), any(map(_has_unnamed_code, processes)), listed)


def _files_of_python() -> set[Path]:
    """Return the files that Python and its standard library map outside of packages: the interpreter, OpenSSL, …"""
    for name in _LOADING:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return {path for path in _mapped_files(os.getpid()) if _in_package(path) is None}


def _is_under_test(path: Path, of_python: Set[Path]) -> bool:
    if name := _in_package(path):
        return not name.startswith(_OF_SUITE)
    is_of_system = path.is_relative_to(_STANDARD_LIBRARY) or _RUNTIME.fullmatch(path.name) is not None
    return path not in of_python and not is_of_system


def digest_of_subject(subject: Mapping[str, str]) -> str:
    """Return one SHA-256 for all files: of the lines that `sha256sum` would print for them."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(subject.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    for children in sorted(_PROC.glob(f"{pid}/task/*/children")):
        for child in _read(children).split():
            yield from _with_children(int(child))


def _mapped_files(pid: int) -> Iterator[Path]:
    """Yield the files with code that a process has mapped; InvalidEvidence if one of them is gone."""
    for name in _mapped_code(pid):
        if name.startswith("/") and not name.startswith(_NO_FILES):
            if not os.path.isfile(name):
                gone = os.path.basename(name)
                raise InvalidEvidence(f"{gone}: the backend runs code of this file, which is gone, so it has no digest")
            yield Path(name)


def _has_unnamed_code(pid: int) -> bool:
    """Ask whether a process may run memory that is in no file. That of the kernel does not count, such as [vdso]."""
    return any(not name or name.startswith(_NO_FILES) or name in ("[heap]", "[stack]") for name in _mapped_code(pid))


def _mapped_code(pid: int) -> Iterator[str]:
    """Yield the name of each part of a process's memory that holds code; it may be empty."""
    for line in _read(_PROC / str(pid) / "maps").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) >= 5 and "x" in fields[1]:
            yield fields[5] if len(fields) == 6 else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:  # the process has ended, or is not ours
        return ""


def _in_package(path: Path) -> str | None:
    """Return the path within the folder of packages; None for a file elsewhere."""
    for at, part in enumerate(path.parts):
        if part in _PACKAGES:
            return "/".join(path.parts[at + 1 :])
    return None


def _records(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the RECORD of each package that has one of these files."""
    wanted: dict[Path, set[str]] = {}
    for path in paths:
        if name := _in_package(path):
            wanted.setdefault(Path(str(path)[: -len(name)]), set()).add(name)
    for folder, names in wanted.items():
        for record in folder.glob("*.dist-info/RECORD"):
            if names & {name for name, _ in _lines_of(record)}:
                yield record


def _records_of_modules(modules: Iterable[str]) -> Iterator[Path]:
    """Yield the RECORD of each package that has one of these modules, except the suite's own."""
    wanted = {*modules} - _MODULES_OF_SUITE
    for folder in {Path(path).resolve() for path in sys.path if path} if wanted else ():
        for record in folder.glob("*.dist-info/RECORD"):
            if not wanted.isdisjoint(re.split("[/.]", name, maxsplit=1)[0] for name, _ in _lines_of(record)):
                yield record


def _lines_of(record: Path) -> Iterator[tuple[str, str]]:
    """Yield each file of a RECORD and its SHA-256 as written there, empty if it has none."""
    for line in _read(record).splitlines():
        name, digest, _ = [*line.rsplit(",", 2), "", ""][:3]
        method, _, encoded = digest.partition("=")
        yield name, encoded if method == "sha256" else ""


def in_record(sha256: str) -> str:
    """Return a SHA-256 as a RECORD writes it."""
    return base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()


def _digest_of_package(record: Path) -> str:
    """Return the SHA-256 of a RECORD; another one if a Python file of the package is not as it lists it."""
    changed = ""
    for name, due in _lines_of(record):
        if name.endswith(".py") and due:
            path = record.parent.parent / name
            digest = sha256_of(path) if path.is_file() else ""
            if in_record(digest) != due:
                changed += f"{digest}  {name}\n"
    return hashlib.sha256(record.read_bytes() + changed.encode()).hexdigest()


def _free_name(name: str, taken: Mapping[str, str]) -> str:
    """Return the name, or if it is taken the name with a number."""
    return next(free for number in count(1) if (free := name if number == 1 else f"{name} ({number})") not in taken)
