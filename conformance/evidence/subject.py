"""The files under test: what the backend's processes have mapped, and what the Python of its workers opened.

A file is left out only if its place shows that it is of the system or of the suite. What should have a name and cannot
get one is listed, too. docs/certify.md has the rules.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import re
import site
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache, lru_cache
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from ..adapter import command_of
from ..isolate.protocol.opened import OpenedFiles, with_children
from ..system.files import find_adapters_folder, sha256_of
from ..system.terminal import count_noun, printable

_PROC = Path("/proc")
_STANDARD_LIBRARY, _BASE = Path(os.__file__).resolve().parent, Path(sys.base_prefix).resolve()
_PACKAGES = {"site-packages", "dist-packages"}
_SUITE, _SUITE_PACKAGE = Path(__file__).resolve().parents[1], "reshape_conformance-"
_SITE = {os.path.realpath(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())}
"""Where the suite is installed: a folder of somebody else may hold a package with the suite's name."""
_RUNTIME = re.compile(
    r"(ld-linux[\w-]*\.so|lib(c|m|dl|rt|util|pthread|resolv|stdc\+\+|gcc_s|z|uuid|nss_\w+)(-[\d.]+)?\.so)[\d.]*"
)
"""The libraries of C and C++ that every program has or that the C library loads, which differ from system to system."""
_LOAD_ALL = """
for name in "bz2 ctypes dbm lzma readline sqlite3 ssl uuid zlib".split():
    try: __import__(name)
    except ImportError: pass
print(open("/proc/self/maps").read())
"""
"""A program that loads what the standard library has of the system, and prints its own map."""
_CODE = frozenset((".py", ".pyc", ".pth", ".so"))
_OF_MACHINE = re.compile(
    r"/(proc/(?!\d+/root/)|sys/).*|/etc/ld\.so\.cache|/usr/lib\d*/([^/]+-linux-[^/]+/)?(locale|gconv)/.*"
)
"""Data that each machine makes for itself."""
_STARTS_PYTHON = {"popen_spawn_posix.py", "popen_forkserver.py"}
"""Modules that multiprocessing imports when it starts a process; no event of Python tells of that process."""
_OF_DISTRIBUTION = ("_sysconfigdata_", "_distutils_system_mod", "config-", "EXTERNALLY-MANAGED", "LICENSE")
"""Beginnings of what a distribution of Python adds to the modules of its standard library."""
_METADATA = re.compile(
    r".*\.(dist-info|egg-info)/(METADATA|RECORD|WHEEL|INSTALLER|REQUESTED|PKG-INFO|(not-)?zip-safe|direct_url\.json|"
    r"(entry_points|top_level|requires|SOURCES|dependency_links|namespace_packages|installed-files)\.txt)"
)
"""What installers write about a package."""
_LOST_WITH_PROCESS = "what native code loaded in processes that ended"
"""Said if a process ended by itself, as in a crash, or is no child any more: nothing shows its map of memory."""


class PackageFile(NamedTuple):
    """A file of a package that is named as a whole."""

    package: str
    sha256: str


class Subject(NamedTuple):
    """The code under test, as far as it is known."""

    files: Mapping[str, str]
    """The SHA-256 of each file, or of the files of a package, by a name without the places of this machine."""
    unnamed_code: bool
    """Whether there is also code that the named files made, as a compiler at run time does."""
    not_named: tuple[str, ...]
    """What else was used and has no digest."""
    listed: Mapping[str, PackageFile]
    """By name, each file of the packages, used or not."""


NO_SUBJECT = Subject({}, False, (), {})


def read_subject(pid: int, backend: str, opened: OpenedFiles) -> Subject:
    """Return the files under test of a process of a backend and of its children; none on a system without /proc."""
    _read_records.cache_clear()
    processes = {process: list(_mappings_of(process)) for process in with_children(pid)}
    if not processes[pid]:
        return NO_SUBJECT
    notes = opened.noted()
    read, made, started, asked, replaced = ({path.resolve() for path in paths} for paths in notes[:5])
    names = _NamedFiles(opened.began, made, replaced)
    ended = (_mapping_of(0, f"0-0 {line}") for line in opened.maps_of_ended if line)  # no process has the pid 0
    mapped = _find_mapped(chain(*processes.values(), ended), names)
    hidden = [process for process, mappings in processes.items() if not mappings]
    commands = filter(None, (_read(_PROC / str(process) / "cmdline") for process in hidden))  # one that ended has none
    names.lost |= {f"the files of {os.path.basename(command.partition(chr(0))[0])}" for command in commands}
    unknown = notes.forked - opened.seen - {str(process) for process in processes.keys() - hidden}
    names.lost |= notes.unseen | ({_LOST_WITH_PROCESS} if unknown or "" in opened.maps_of_ended else set())
    started |= {path for path in asked if not _is_packaged(path)}
    command = [Path(word).resolve() for word in command_of(backend)]
    if len(command) > 1 or (command and command[0] not in mapped):
        started.add(command[0])
    elif not command and not read:
        started.add(Path(sys.executable))
    started |= {Path(sys.executable).resolve() for path in read if path.name in _STARTS_PYTHON}
    started |= {(_PROC / str(process) / "exe").resolve() for process in processes if _was_started(process, pid)}
    names.lost |= {f"the files that {path.name} read" for path in started if os.access(path, os.X_OK)}
    read |= {file for process in processes for file in _open_files(process, names)}
    used = {**dict.fromkeys(read, False), **mapped}
    tested = {
        path for path, is_code in used.items()
        if not _is_left_out(path, is_code or not _CODE.isdisjoint(path.suffixes))
    }  # fmt: skip
    modules = defaultdict[_Package, set[str]](set)
    for path in {*tested, *started, *filter(os.path.isfile, command)}:  # an argument may be too long
        package = _package_of(path)
        if package and package.name.startswith(_SUITE_PACKAGE) and str(package.folder) in _SITE:
            continue
        name = path.relative_to(package.folder).as_posix() if package else path.name
        if package:
            modules[package].add(name)
        if path in mapped or not package:
            names.give(name, path)
    for package, files in modules.items():
        names.give_package(package, files)
    return names.subject()


class _NamedFiles:
    """The names that were given, and what could not get one."""

    def __init__(self, began: float, made: Set[Path], replaced: Set[Path]) -> None:
        self.lost, self.made, self._given = set[str](), False, set[tuple[str, tuple[str, ...], str]]()
        self._listed: dict[str, PackageFile] = {}
        self._began, self._made, self._replaced, self._digests = began, made, replaced, dict[Path, str]()

    def give(self, name: str, path: Path) -> None:
        if digest := self._digest(name, path):
            self._given.add((name, path.parts[::-1], digest))

    def give_package(self, package: _Package, used: Set[str]) -> None:
        """Name all files that a package lists and those that were used, by one digest."""
        files = {*used, *(file for file in package.files if (package.folder / file).is_file())}
        digests = {file: digest for file in files if (digest := self._digest(file, package.folder / file))}
        name = f"{package.name} ({count_noun(len(digests), 'file')})"
        self._given |= {(name, package.folder.parts[::-1], digest_of_subject(digests))} if digests else set()
        if package.files:
            self._listed |= {file: PackageFile(name, digest) for file, digest in digests.items()}

    def subject(self) -> Subject:
        files: dict[str, str] = {}
        # files of one name come in the order of their folders, so that a swap of their contents shows
        for given, digest in dict.fromkeys((name, digest) for name, _, digest in sorted(self._given)):
            name = printable(given)
            others = (f"{name} ({number})" for number in count(2))
            files[next(free for free in chain([name], others) if free not in files)] = digest
        return Subject(files, self.made, tuple(sorted(map(printable, self.lost))), self._listed)

    def is_older(self, path: Path) -> bool:
        """Ask whether a file has not changed since the run began."""
        return path.stat().st_ctime < self._began

    def _digest(self, name: str, path: Path) -> str:
        """Return the SHA-256 of a file; nothing if it changed since the run began: the backend may have loaded both."""
        if path not in self._digests:
            self._digests[path] = ""
            try:
                digest = sha256_of(path)
                if path in self._made:
                    self.made = True
                elif self.is_older(path) and path not in self._replaced:
                    self._digests[path] = digest
                else:
                    self.lost.add(f"{name} (changed during the run)")
            except OSError:
                self.lost |= set() if path in self._made else {f"{name} (cannot be read)"}
        return self._digests[path]


def digest_of_subject(subject: Mapping[str, str]) -> str:
    """Return one SHA-256 for all files: of the lines that `sha256sum` would print for them.

    The end of a line in a name is written out, or the name could pose as a second file.
    """
    lines = "".join(f"{digest}  {printable(name)}\n" for name, digest in sorted(subject.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


# ── what a process uses ───────────────────────────────────────────────────────────────────────────


class _Mapping(NamedTuple):
    """A part of the memory of a process, as /proc/PID/maps describes it."""

    pid: int
    start: str
    rights: str
    offset: str
    inode: tuple[str, str]
    """The device and the number."""
    name: str


def _was_started(child: int, pid: int) -> bool:
    """Ask whether a child began as another program, in which nothing is noted; a copy has the same words."""
    words, own = (_read(_PROC / str(process) / "cmdline") for process in (child, pid))
    return words not in ("", own) and not re.search("multiprocessing.resource_tracker import main;main", words)


def _mappings_of(pid: int, beginning: str = "") -> Iterator[_Mapping]:
    """Read the mappings of a process; `beginning`: of their lines."""
    for line in _read(_PROC / str(pid) / "maps").split("\n"):  # a name may have other ends of lines
        if line and line.startswith(beginning):
            yield _mapping_of(pid, line)


def _mapping_of(pid: int, line: str) -> _Mapping:
    span, rights, offset, device, number, *name = line.split(maxsplit=5)
    return _Mapping(pid, span.partition("-")[0], rights, offset, (device, number), "".join(name))


def _find_mapped(mappings: Iterable[_Mapping], names: _NamedFiles) -> dict[Path, bool]:
    """Return the files that are mapped, and whether as code; tell `names` of code that is in none."""
    files = dict[Path, bool]()
    of_file = defaultdict[tuple[tuple[str, str], str], list[_Mapping]](list)
    for mapping in mappings:
        of_file[mapping.inode, mapping.name].append(mapping)
    for (inode, name), parts in of_file.items():
        is_code = any("x" in part.rights for part in parts)
        if inode[1] == "0":
            names.made |= is_code and name not in ("[vdso]", "[vsyscall]")
        elif path := _find_file(parts[0]):
            writes = not is_code and any("w" in part.rights and "s" in part.rights for part in parts)
            if not writes or names.is_older(path):
                files[path] = is_code
        elif is_code and any(map(_begins_library, parts)):
            names.lost.add(f"{os.path.basename(name)} (not at its path any more)")
        else:
            names.made |= is_code
    return files


def _find_file(mapping: _Mapping) -> Path | None:
    """Return a path of the very file that is mapped; by its name there may be another by now, or none."""
    seen_by_it = f"{_PROC}/{mapping.pid}/root{mapping.name}"  # a container may have other files at its paths
    return next((Path(path) for path in (mapping.name, seen_by_it) if _inode_of(path) == mapping.inode), None)


def _inode_of(path: str) -> tuple[str, str] | None:
    """Return device and number of a regular file as maps have them, which on some file systems are not those of stat.

    To see them, map it here.
    """
    with contextlib.suppress(OSError, ValueError):
        if os.path.isfile(path):
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_COPY) as memory:
                start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
                return next(_mappings_of(os.getpid(), f"{start:x}-")).inode
    return None


def _begins_library(mapping: _Mapping) -> bool:
    """Ask whether the beginning of a file may be that of a library; a compiler's memory has a file without a name."""
    if int(mapping.offset, 16):
        return False
    try:
        with open(_PROC / str(mapping.pid) / "mem", "rb", 0) as memory:
            memory.seek(int(mapping.start, 16))
            return memory.read(4) == b"\x7fELF"
    except OSError:
        return True


def _open_files(pid: int, names: _NamedFiles) -> Iterator[Path]:
    """Yield the files that a process has open for reading, and has not changed if it may."""
    for link in _PROC.glob(f"{pid}/fd/*"):
        flags = re.search(r"flags:\s+(\d+)", _read(_PROC / str(pid) / "fdinfo" / link.name))
        with contextlib.suppress(OSError):
            path, mode = Path(os.readlink(link)), int(flags[1], 8) & os.O_ACCMODE if flags else os.O_WRONLY
            is_used = mode == os.O_RDONLY or (mode == os.O_RDWR and names.is_older(path))
            if is_used and path.is_file() and path.samefile(link):
                yield path


def _read(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:  # the process has ended, or is not ours
        return ""


# ── what is left out ──────────────────────────────────────────────────────────────────────────────


def _is_left_out(path: Path, is_code: bool) -> bool:
    """Ask whether a file is of the system or of the suite, or data that says nothing about the backend."""
    if path.is_relative_to(_SUITE):
        return not path.is_relative_to(find_adapters_folder().resolve())
    if path.is_relative_to(_STANDARD_LIBRARY) and _PACKAGES.isdisjoint(path.parts):
        first = path.relative_to(_STANDARD_LIBRARY).as_posix().removeprefix("lib-dynload/")
        module = re.split("[./]", first)[0]  # a wheel may put others there, too
        return module in sys.stdlib_module_names or module.startswith(_OF_DISTRIBUTION)
    if is_code:
        by_python = path in _find_mapped_by_python()
        if path.suffix == ".pth" and all(
            line[:1] in ("", "#") or (line[:6] != "import" and Path(path.parent, line).is_dir())
            for line in _read(path).splitlines()
        ):
            return True  # it only adds folders to the path of modules
        return (by_python and path.is_relative_to(_BASE)) or (
            (by_python or _RUNTIME.fullmatch(path.name) is not None) and _is_packaged(path)
        )
    is_metadata = _METADATA.fullmatch(str(path)) is not None or path == Path(sys.prefix, "pyvenv.cfg").resolve()
    return is_metadata or _OF_MACHINE.fullmatch(str(path)) is not None or _is_packaged(path)


@cache
def _find_mapped_by_python() -> frozenset[Path]:
    """Return the files that our Python and its standard library map, in a process that has loaded nothing else."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    command = [sys.executable, "-I", "-S", "-c", _LOAD_ALL]
    lines = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
    return frozenset(Path(fields[5]) for line in lines if len(fields := line.split(maxsplit=5)) == 6)


def _is_packaged(path: Path) -> bool:
    """Ask whether a package of Debian's kind has this file at this path, and it was not changed."""
    sums = _read_md5_sums()
    for name in {str(path)[1:], str(path)[1:].removeprefix("usr/")}:  # many systems moved all to /usr
        at = sums.find(f"  {name}\n".encode(errors="surrogateescape"))
        if at >= 0:
            digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
            return sums.endswith(digest.encode(), 0, at)
    return False


@cache
def _read_md5_sums() -> bytes:
    return b"".join(path.read_bytes() for path in Path("/var/lib/dpkg/info").glob("*.md5sums"))


# ── packages ──────────────────────────────────────────────────────────────────────────────────────


class _Package(NamedTuple):
    """An installed package, or a folder of modules that no package lists."""

    name: str
    folder: Path
    """The folder to which the names of its files belong."""
    files: tuple[str, ...]
    """Those that its RECORD lists; none without a RECORD."""


def _package_of(path: Path) -> _Package | None:
    adapters = find_adapters_folder().resolve()  # installed, or in a working copy of the suite: the name is the same
    if path.is_relative_to(adapters):
        return _Package("adapters", adapters.parent, ())
    for folder in path.parents:
        if package := _read_records(folder).get(path.relative_to(folder).as_posix()):
            return package
    top = path.parent
    while (top / "__init__.py").is_file() and (top.parent / "__init__.py").is_file():
        top = top.parent
    return _Package(top.name, top.parent, ()) if (top / "__init__.py").is_file() else None


@lru_cache(None)
def _read_records(folder: Path) -> Mapping[str, _Package]:
    """Return the package that lists each file below a folder.

    Not listed are what the installer writes, which differs from machine to machine, and byte code, which is not read.
    """
    packages = dict[str, _Package]()
    for record in folder.glob("*.dist-info/RECORD"):
        names = (line.rsplit(",", 2)[0] for line in _read(record).splitlines())
        names = (name[1:-1].replace('""', '"') if name.startswith('"') else name for name in names)
        files = tuple(sorted(name for name in names if not re.match(r"\.\./|/|[^/]*\.dist-info/", name)))
        files = tuple(name for name in files if not name.endswith(".pyc"))
        packages |= dict.fromkeys(files, _Package(record.parent.stem, folder, files))
    return packages
