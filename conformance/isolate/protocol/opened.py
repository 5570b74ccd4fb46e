"""The files that the Python of a backend's workers opens, noted from before start-up files of packages are read.

Nothing else shows a module, which no process maps, or a library that is loaded and closed within a call.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

_FOLDER = "RESHAPE_CONFORMANCE_OPENED"
BEGIN = "import site, conformance.isolate.protocol.opened as opened; opened.note(); site.main(); import ml_dtypes; "
"""What a worker of Python's option -S does first, so that start-up files of packages are noted too.

The suite loads ml_dtypes for some rows: now, so that a run of a part of the rows uses the same files.
"""
_LOG = "opened"
_STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")
"""Events with the program and its arguments, or the command line of a shell."""
How = Literal["read", "made", "started"]


class OpenedFiles(NamedTuple):
    """A folder in which workers note what they open."""

    folder: Path
    began: float
    """The time before any of them was started."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables for a worker. Byte code is made again from its source, once a run, so that no other is read."""
        cache = str(self.folder / "pycache")
        return {_FOLDER: str(self.folder), "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}

    def noted(self) -> Mapping[How, set[Path]]:
        """Return the files by how they were used.

        Those that were `made` were not there before. Those that were `started` are in the command lines of programs.
        """
        try:
            entries = os.fsdecode((self.folder / _LOG).read_bytes()).split("\0")
        except OSError:
            entries = []
        return {
            how: {Path(entry.removeprefix(f"{how} ")) for entry in entries if entry.startswith(f"{how} ")}
            for how in get_args(How)
        }


# ── in the worker ──


def note() -> None:
    """From here on note each file that this process opens or loads and that is there, once."""
    folder = os.path.realpath(os.environ[_FOLDER])
    log, noted = os.path.join(folder, _LOG), set[str]()

    def write(how: How, path: Any) -> None:
        name = os.path.realpath(os.fsdecode(path))  # now: a link may lead elsewhere later
        if name.startswith(folder) and name != log:
            with contextlib.suppress(ValueError):
                name = importlib.util.source_from_cache(name)
        entry = f"{how} {name}\0"
        if how == "made" and f"read {name}\0" in noted:
            return
        if name != log and entry not in noted and os.path.isfile(name) == (how != "made"):
            noted.add(entry)
            with open(log, "ab", 0) as file:  # not kept open: a backend may close what it does not know
                file.write(os.fsencode(entry))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        with contextlib.suppress(OSError, TypeError, ValueError):  # what is opened may be a descriptor, or no path
            if event == "open" and arguments[2] & os.O_RDWR and not arguments[2] & os.O_CREAT:
                write("read", arguments[0])
            elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
                write("made", arguments[0])
            elif event == "open" or (event == "ctypes.dlopen" and os.sep in arguments[0]):
                write("read", arguments[0])
            elif event == "import":
                write("read", arguments[1])
            elif event in _STARTS:
                program, words = arguments[:2] if len(arguments) > 1 else ("sh", [arguments[0]])
                there, env = (arguments[2] or "", arguments[3]) if len(arguments) > 3 else ("", None)
                if os.path.dirname(program):
                    program = os.path.join(there, program)
                write("started", shutil.which(program, path=os.pathsep.join(os.get_exec_path(env))) or program)
                for word in " ".join(map(os.fsdecode, [words] if isinstance(words, str) else words)).split():
                    write("started", os.path.join(there, word))

    sys.addaudithook(hook)
