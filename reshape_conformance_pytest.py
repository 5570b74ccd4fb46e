"""The pytest entry: adds `--adapter BACKEND` and imports the suite only where it is given.

It is not called `conformance` because many repositories have a package of that name, which may hide ours: without
`--adapter` their tests must not notice that this is installed, not even where they use the same option names. With
`--adapter` the suite is imported from beside this file, so that it runs in such a repository too.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

DISTRIBUTION = "reshape-conformance"
HERE = str(Path(__file__).absolute().parent)
"""The folder of the package `conformance` that belongs to this file."""

OPTIONS: dict[str, dict[str, Any]] = {
    "--adapter": {
        "metavar": "BACKEND", "action": "append",
        "help": "run the reshape conformance cases on BACKEND: a bundled name, package.module:Class, "
        "path/to/file.py:Class or cmd:./program",
    },
    "--operation": {"metavar": "OPERATION", "action": "append", "help": "this operation only; may be repeated"},
    "--document": {"metavar": "DOCUMENT", "action": "append", "help": "judge by this document only; may be repeated"},
    "--type": {"metavar": "TYPE", "action": "append", "help": "this element type only; may be repeated"},
    "--large": {
        "action": "store_true", "default": None, "help": "run the cases of more than 2^31 elements too",
    },
    "--drawn-rows": {
        "metavar": "N", "type": int,
        "help": "after a whole session, draw N rows at random, always the same ones, and call them (0)",
    },
    "--conformance-waivers": {
        "metavar": "FILE", "action": "append",
        "help": "known failures that are waived, as of `conformance run --waivers`; may be repeated",
    },
    "--conformance-claims": {
        "metavar": "FILE", "action": "append", "help": "what the backend must claim, exactly",
    },
    "--conformance-timeout": {"metavar": "SECONDS", "help": "limit of one call (20); until one is answered, 120"},
    "--conformance-memory": {"metavar": "MIB", "help": "limit of a process's address space (16384)"},
    "--conformance-isolation": {
        "metavar": "HOW", "help": "worker (a process for the backend, the default), row (one for each row) or none",
    },
    "--conformance-jobs": {
        "metavar": "N", "help": "number of processes of the backend at once (1), without -n of pytest-xdist",
    },
    "--conformance-suite": {
        "metavar": "DIR",
        "help": "a folder with spec/ or cases/, which replace the bundled, or extend it if they say so",
    },
    "--conformance-out": {"metavar": "DIR", "help": "write the evidence and the reports into DIR"},
}  # fmt: skip
for name, settings in OPTIONS.items():
    settings["dest"] = f"conformance_{name.removeprefix('--').removeprefix('conformance-').replace('-', '_')}"
    settings["help"] = f"{'' if name == '--adapter' else 'with --adapter: '}{settings['help']}"

INI = ("waivers", "claims", "timeout", "memory", "isolation", "jobs")
"""Options that the configuration of pytest may also have, as `conformance_waivers` and so on."""

CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files in which pytest looks for its configuration."""


LISTS = ("help", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")
"""Options with which pytest runs no test and lists nothing of a row."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the configuration, without which pytest would warn of unknown ones."""
    for name in INI:
        words = OPTIONS[f"--conformance-{name}"]["help"]
        if name == "waivers":  # a list in TOML
            parser.addini(f"conformance_{name}", words, type="linelist", default=[])
        else:
            parser.addini(f"conformance_{name}", words, type="string", default="")


def is_option(parser: pytest.Parser, name: str) -> bool:
    """Ask if the repository or another plugin has an option of that name."""
    try:
        _, unknown = parser.parse_known_and_unknown_args([f"{name}=x"])
    except pytest.UsageError:  # the option exists and rejects the value x
        return True
    return not unknown


def without_our_options(args: list[str]) -> list[str]:
    """Return a command line without our options and their values."""
    kept, value = [], False
    for arg in args:
        if not value and arg.partition("=")[0] not in OPTIONS:
            kept.append(arg)
        value = not value and arg in OPTIONS and OPTIONS[arg].get("action") != "store_true"
    return kept


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Iterator[None]:
    """Add our options after those of the repository's conftest files, which would fail if a name existed already."""
    if len(kept := without_our_options(args)) < len(args):  # pytest would take the value of --adapter for a path
        early_config.known_args_namespace = parser.parse_known_args(kept, namespace=copy.copy(early_config.option))
    yield
    group = parser.getgroup("reshape conformance")
    for name, settings in OPTIONS.items():
        if not is_option(parser, name):  # else the target is wider than the command line says
            group.addoption(name, **settings)


def pytest_configure(config: pytest.Config) -> None:
    """Hand over to the suite, if a backend was named; UsageError for two of them, and for our options without one."""
    adapters = getattr(config.option, "conformance_adapter", None)
    if adapters is None:
        given = [name for name, each in OPTIONS.items() if getattr(config.option, each["dest"], None) is not None]
        if given:
            raise pytest.UsageError(f"{given[0]} needs --adapter BACKEND, and would do nothing without it")
        return
    if isinstance(adapters, list):  # a worker of xdist receives the one that was chosen
        if len(dict.fromkeys(adapters)) > 1:
            raise pytest.UsageError(f"--adapter names {' and '.join(adapters)}; a session runs one backend")
        config.option.conformance_adapter = adapters[0]
    for name, settings in OPTIONS.items():
        if not hasattr(config.option, settings["dest"]):  # another plugin has that name
            setattr(config.option, settings["dest"], None)
        if getattr(config.option, settings["dest"]) == "":  # "$OUT" with no OUT set would name the working directory
            raise pytest.UsageError(f"{name} has an empty value; give it one, or drop it")
    if any(getattr(config.option, name, None) for name in LISTS):
        return
    check_configuration(config)
    check_text(config)
    suite().register(config)
    if config.args and (other := package_of_repository()):
        raise pytest.UsageError(
            f"{other} and the suite have the same name: run the tests {' '.join(config.args)} in another session, "
            "without --adapter"
        )


def check_configuration(config: pytest.Config) -> None:
    """Raise UsageError if pytest took a path of our options for a test, and so missed its configuration."""
    here, words = config.invocation_params.dir, map(str, config.invocation_params.args)
    folders = (here, *here.parents)
    is_found = config.option.inifilename or (config.inipath and config.inipath.parent in folders)
    if is_found or not any((folder / name).is_file() for folder in folders for name in CONFIGURATIONS):
        return
    for option, value in pairwise(words):
        path = os.path.realpath(here / value)
        if option in OPTIONS and os.path.exists(path) and not Path(path).is_relative_to(here.resolve()):
            raise pytest.UsageError(
                f"pytest looks for its configuration beside a path that follows a blank, not in {here}; write "
                f"{option}={value}"
            )


def check_text(config: pytest.Config) -> None:
    """Raise UsageError for a word or folder that pytest-xdist cannot send to its workers."""
    if not getattr(config.option, "numprocesses", None):
        return
    for text in (str(config.invocation_params.dir), *map(str, config.invocation_params.args)):
        if any("\ud800" <= character <= "\udfff" for character in text):  # bytes that the locale cannot decode
            name = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise pytest.UsageError(f"{name!a} is no text in this locale: set PYTHONUTF8=1, or run without -n")


def suite() -> Any:
    """Import `conformance.pytest_plugin.hooks` from beside this file, whatever comes first on `sys.path`.

    A package of the repository with the name `conformance`, which a conftest may have imported, is then no longer what
    that name imports in this process.
    """
    if getattr(sys.modules.get("conformance"), "DISTRIBUTION", None) != DISTRIBUTION:
        for name in [name for name in sys.modules if name.partition(".")[0] == "conformance"]:
            del sys.modules[name]
        sys.path.insert(0, HERE)
        try:
            importlib.import_module("conformance")
        finally:
            sys.path.remove(HERE)
    return importlib.import_module("conformance.pytest_plugin.hooks")


def package_of_repository() -> str | None:
    """Return the file of another package `conformance` that comes first on `sys.path`."""
    spec = PathFinder.find_spec("conformance")
    if spec is None or spec.origin is None:  # None: a folder without __init__.py, which hides nothing
        return None
    same = Path(spec.origin).resolve() == Path(sys.modules["conformance"].__file__ or "").resolve()
    return None if same else spec.origin
