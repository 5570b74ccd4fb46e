"""The files that the Python of a backend's workers opens, noted from before start-up files of packages are read.

Nothing else shows a module, which no process maps, or a library that is loaded and closed within a call. What native
code loads is in the map of memory of its process, which is kept here if the process is ended before the last row.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import unquote

_FOLDER = "RESHAPE_CONFORMANCE_OPENED"
BEGIN = "import site, conformance.isolate.protocol.opened as opened; opened.note(); site.main(); "
"""What a worker of Python's option -S does first, so that start-up files of packages are noted too."""
_LOG = "opened"
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec")
"""Events with the program and its arguments."""
_ASKS = re.compile(
    r"(uname|ldconfig)( .*)?|g?cc -Wl,-t -o \S+ -l\S+|ld -t (-L \S+ )*-o \S+ -l\S+|objdump -p -j \.dynamic \S+"
)
"""Commands by which the standard library asks about the system. A compiler that compiles reads what it includes."""
_SUBINTERPRETERS = ("_interp", "_xxinterp", "_xxsubinterp")
"""Beginnings of the modules that start other interpreters, in which nothing is noted."""
_PREFORK = "conformance.isolate.protocol.prefork"
_How = Literal["read", "made", "started", "asked", "unseen", "forked", "moved"]


class NotedFiles(NamedTuple):
    """What workers noted, by how it was used."""

    read: set[Path]
    made: set[Path]
    """Those that were not there before."""
    started: set[Path]
    """Those in the command lines of programs."""
    asked: set[Path]
    """Programs that the standard library asked about the system."""
    replaced: set[Path]
    """Those of the others that were another file when they were used."""
    unseen: set[str]
    """What was used without a path, in words."""
    forked: set[str]
    """The pids of processes that the backend forked."""


class OpenedFiles(NamedTuple):
    """A folder in which workers note what they open."""

    folder: Path
    began: float
    """The time before any of them was started."""
    maps_of_ended: set[str]
    """The lines of the maps of memory of processes that were ended, without addresses.

    An empty one is of a process that had ended by itself, with its map.
    """
    seen: set[str]
    """The pids of those with a map that was read."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables for a worker. Byte code is made again from its source, once a run, so that no other is read."""
        cache = str(self.folder / "pycache")
        return {_FOLDER: str(self.folder), "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}

    def keep_maps(self, pid: int) -> None:
        """Keep what a process and its children have mapped; called before it is ended."""
        for process in with_children(pid):
            try:
                lines = os.fsdecode(Path(f"/proc/{process}/maps").read_bytes()).split("\n")[:-1]
            except OSError:
                lines = []
            self.maps_of_ended.update(line.partition(" ")[2] for line in lines)
            if lines:
                self.seen.add(str(process))
            elif process == pid:
                self.maps_of_ended.add("")

    def noted(self) -> NotedFiles:
        try:
            log = os.fsdecode((self.folder / _LOG).read_bytes())
        except OSError:
            log = ""
        notes: dict[str, set[str]] = {how: set() for how in get_args(_How)}
        replaced = set[Path]()
        for how, inode, name in re.findall(rf"({'|'.join(notes)}) (\S*) ([^\0]*)\0", log):
            notes[how].add(name)
            if inode and inode != _inode_of(name):
                replaced.add(Path(name))
        read, made, started, asked = (set(map(Path, notes[how])) for how in ("read", "made", "started", "asked"))
        made -= set(map(Path, notes["moved"]))
        return NotedFiles(read, made, started, asked, replaced, notes["unseen"], notes["forked"])


def with_children(pid: int) -> Iterator[int]:
    """Yield the pid of a process and of those that it started; only the first where there is no /proc."""
    yield pid
    for children in sorted(Path("/proc").glob(f"{pid}/task/*/children")):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from with_children(int(child))


def _inode_of(name: Any) -> str:
    """Return device and number of a regular file; an empty text if none is there."""
    try:
        status = os.stat(name)
    except (OSError, ValueError):
        return ""
    return f"{status.st_dev}:{status.st_ino}" if stat.S_ISREG(status.st_mode) else ""


# ── in the worker ──


def note() -> None:
    """Note each file that this process has imported, and from here on opens or loads, if it is there, once."""
    log, parent = _Log(os.path.realpath(os.environ[_FOLDER])), os.getpid()
    for path in [getattr(module, "__file__", None) for module in sys.modules.values()]:
        if path:
            log.use("read", path)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):  # what is opened may be a descriptor, or no path
            if event == "open":
                log.open(*arguments)
            elif event == "ctypes.dlopen" and os.sep in arguments[0]:
                log.use("read", arguments[0])
            elif event in ("os.rename", "os.link"):
                log.move(*arguments[:2])
            elif event == "ctypes.dlsym":
                log.use_library(arguments[0]._name)
            elif event == "sqlite3.connect":
                name = os.fsdecode(arguments[0])
                log.use_or_make(
                    unquote(re.sub(r"^file:(//[^/]*)?|[?#].*", "", name)) if name.startswith("file:") else name
                )
            elif event == "import":
                if arguments[0].startswith(_SUBINTERPRETERS):
                    log.write("unseen", "the files that a subinterpreter read")
                log.use("read", arguments[1])
            elif event == "os.system":
                log.start("sh", arguments)
            elif event in _STARTS:
                log.start(*(arguments if len(arguments) > 3 else arguments[:2]))

    def note_fork() -> None:
        if os.getppid() != parent or _PREFORK not in sys.modules:  # otherwise it is a copy that the suite made
            log.write("forked", str(os.getpid()))

    sys.addaudithook(hook)
    os.register_at_fork(after_in_child=note_fork)


class _Log:
    """What this process noted, and the file in which it does."""

    def __init__(self, folder: str) -> None:
        self._folder, self._log = folder, os.path.join(folder, _LOG)
        self._noted, self._libraries = set[str](), set[str]()
        self._used: Mapping[str, set[str]] = {"read": set(), "made": set()}

    def open(self, path: Any, mode: str | None, flags: int) -> None:
        if mode is None and _is_in_open_folder(path):  # as os.open has it, which may be told of a folder
            self.write("unseen", f"a file {os.fsdecode(path)} opened by a descriptor of a folder")
        if flags & (os.O_WRONLY | os.O_TRUNC):
            self.use("made", path)
        elif flags & os.O_CREAT:
            self.use_or_make(path)
        else:
            self.use("read", path)

    def start(self, program: Any, arguments: Any, there: Any = None, env: Any = None) -> None:
        words = " ".join(map(os.fsdecode, [arguments] if isinstance(arguments, str) else arguments)).split()
        there, program = os.fsdecode(there or ""), os.fsdecode(program)
        asks = _ASKS.fullmatch(" ".join([os.path.basename(program), *words[1:]]))
        if os.path.dirname(program):
            program = os.path.join(there, program)
        found = shutil.which(program, path=os.pathsep.join(os.get_exec_path(env))) or program
        self.use("asked" if asks else "started", found)
        for word in words[1:] if asks else words:
            self.use("read" if asks else "started", os.path.join(there, word))

    def move(self, source: Any, target: Any) -> None:
        """Note that the target is made if the source was, and otherwise that it is not."""
        if os.path.realpath(os.fsdecode(source)) in self._used["made"]:
            self.use("made", target)
        else:
            self.write("moved", os.path.realpath(os.fsdecode(target)))

    def use_library(self, name: str | None) -> None:
        """Note what is mapped when something in a library is first looked up: it may have no path, or load others."""
        if name and name not in self._libraries:
            self._libraries.add(name)
            for path in set(re.findall(rb"/.*", Path("/proc/self/maps").read_bytes())):
                self.use("read", path)

    def use_or_make(self, path: Any) -> None:
        self.use("read", path)
        self.use("made", path)

    def use(self, how: _How, path: Any) -> None:
        name = os.path.realpath(os.fsdecode(path))  # now: a link may lead elsewhere later
        inode = _inode_of(name)  # now, too: another folder may be at its path later
        if how != "made" and inode != _inode_of(path) and not name.startswith("/memfd:"):
            self.write("unseen", "a file that no path leads to")  # it is deleted, of another root, or at a long path
        if name.startswith(self._folder) and name != self._log:
            with contextlib.suppress(ValueError):
                name = importlib.util.source_from_cache(name)
                inode = _inode_of(name)
        if name == self._log or (how == "made" and name in self._used["read"]) or bool(inode) == (how == "made"):
            return
        if how in self._used:
            self._used[how].add(name)
        self.write(how, name, inode)

    def write(self, how: _How, what: str, inode: str = "") -> None:
        entry = f"{how} {inode} {what}\0"
        if entry not in self._noted:
            try:
                with open(self._log, "ab") as file:  # not kept open: a backend may close what it does not know
                    file.write(os.fsencode(entry))
            except OSError as error:  # as after chroot: the backend cannot use what is not noted
                raise RuntimeError(f"the suite cannot note a file that is opened: {error}") from None
            self._noted.add(entry)


def _is_in_open_folder(path: Any) -> bool:
    """Ask whether a relative name is that of a file in a folder with a descriptor, and of another one here, or none."""
    name = os.fsdecode(path)
    if os.path.isabs(name):
        return False
    paths = (f"/proc/self/fd/{each}/{name}" for each in os.listdir("/proc/self/fd"))
    return any(_inode_of(path) not in ("", _inode_of(name)) for path in paths)
