"""One module a command; here is what all of them share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.terminal import say_raw

if TYPE_CHECKING:
    from ..model import Problem, Spec


class Usage(Exception):
    """What a person typed cannot be done: one line that says why and what to type instead."""

    def __init__(self, what: str, code: int = 2) -> None:
        super().__init__(what)
        self.code = code


def folder_given(option: str, path: Path | None) -> Path | None:
    """A folder named on the command line, known to be one."""
    if path is not None and not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise Usage(f"{option} {str(path)!r} {what}; give the folder that holds the files")
    return path


def spec_of(args: argparse.Namespace) -> Spec:
    """The specification that the command is about: the bundled one, or that of --spec."""
    from ..load.spec import load_spec

    return load_spec(folder_given("--spec", args.spec))


def located(problem: Problem, folders: Iterable[Path | None]) -> Problem:
    """The problem with its path as a person can open it, where the folder was named on the command line."""
    first, _, rest = problem.place.path.partition("/")
    for folder in folders:
        if folder is not None and rest and folder.name == first and (folder / rest).exists():
            return problem._replace(place=problem.place._replace(path=str(folder / rest)))
    return problem


def unknown(what: str, name: str, names: Iterable[str], else_type: str = "") -> str:
    """`unknown rule 'one-infre'; did you mean 'one-infer'?`"""
    import difflib  # only needed here

    known = list(names)
    plain = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), plain, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {plain[near[0]]!r}?"
    elif else_type:
        hint = f"see `{else_type}`"
    else:
        hint = f"one of {', '.join(known)} is meant"
    return f"unknown {what} {_short(name)}; {hint}"


def pick(what: str, name: str, names: Iterable[str], else_type: str = "") -> str:
    """The one of `names` that a person means; capitals, underscores and blanks around it do not matter."""
    known = list(names)
    found = resembling(name, known)
    if len(found) != 1:
        raise Usage(unknown(what, name, known, else_type))
    return found[0]


def resembling(name: str, names: Iterable[str]) -> list[str]:
    """Those of `names` that differ from `name` in nothing but capitals, underscores and blanks around it."""

    def plain(text: str) -> str:
        return text.strip().lower().replace("_", "-").replace(" ", "-")

    return [each for each in names if plain(each) == plain(name)]


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def emit(data: Any) -> None:
    """Print JSON for machines. It is ASCII, and holds nothing that a terminal or a CI service acts on."""
    say_raw(json.dumps(data, indent=2).replace("##", "\\u0023#") + "\n")  # `##` stands nowhere but in texts
