"""Helpers that the commands share: mistakes in arguments, names that are nearly right, JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.exit_codes import USAGE, CommandError
from ..system.terminal import say, say_raw
from ..system.text import describe_unknown

if TYPE_CHECKING:
    from ..model import Case, Place, Problem, Spec, Suite
    from ..plan.rows import Plan


class Stop(CommandError):
    """The command ends here; the message says in one line why, and what to do."""

    def __init__(self, what: str, code: int = USAGE) -> None:
        super().__init__(what)
        self.exit_code = code


def check_folder(option: str, path: Path | None) -> Path | None:
    """Return `path`; Stop if it is not a folder."""
    if path is not None and not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise Stop(f"{option} {str(path)!r} {what}; give the folder that holds the files")
    return path


def load_spec_of(suite: Path | None) -> Spec:
    from ..load.folders import find_folders
    from ..load.spec import load_spec

    return load_spec(find_folders(suite).spec)


def load_plan(suite: Path | None) -> Plan:
    from ..load.cases import load_suite
    from ..plan.rows import plan_of

    return plan_of(load_suite(suite))


def locate(problem: Problem, suite: Path | None) -> Problem:
    """Return the problem with a path that can be opened, if its file is in the folder of --suite, or bundled."""
    from ..load.folders import find_folders

    folder, _, name = problem.place.path.partition("/")
    bundled = find_folders(None)._asdict().get(folder)  # None for a file of --waivers or --claims
    paths = () if suite is None or bundled is None else (suite / folder / name, bundled / name)
    path = next(filter(os.path.exists, paths), problem.place.path)
    return problem._replace(place=problem.place._replace(path=str(path)))


def locate_case(case: Case, suite: Suite) -> Place:
    """Return the place of a case, as a path that can be opened if it is in the folder of --suite."""
    path = Path() if suite.folder is None else suite.folder / case.place.path
    is_own = path.is_file() and (case.id in suite.added or not suite.added)
    return case.place._replace(path=str(path)) if is_own else case.place


def pick(what: str, name: str, names: Iterable[str]) -> str:
    """Return `name`; Stop if it is not among `names`."""
    known = list(names)
    if name not in known:
        raise Stop(describe_unknown(what, name, known))
    return name


def refuse_unknown(what: str, names: Iterable[str] | None, known: Collection[str], see: str = "") -> None:
    """Raise Stop for the first name that is not known."""
    for name in names or ():
        if name not in known:
            raise Stop(describe_unknown(what, name, sorted(known), see))


def write_suite_option(suite: Path | None, option: str = "--suite ") -> str:
    """Return the option with the folder of a suite, after a space, for commands that people paste; "" for ours."""
    return "" if suite is None else f" {option}{shlex.quote(str(suite))}"


def say_error(what: str) -> None:
    """Print a line on stderr, if it can be written there."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            say(f"conformance: {what}", sys.stderr)


def emit(data: Any) -> None:
    """Print JSON for machines. It is ASCII, and no terminal or CI service takes a part of it for a command."""
    say_raw(json.dumps(data, indent=2).replace("##", "\\u0023#") + "\n")  # `##` occurs only in texts
