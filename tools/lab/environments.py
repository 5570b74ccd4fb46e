"""Make the environment of a name in lab.yaml, and run the suite in it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile

from conformance.adapter import read_bundled_backends
from conformance.evidence.machine import environment as describe_machine
from conformance.system.exit_codes import CANNOT_START, CommandError
from conformance.system.files import replace_bytes, replace_text, temporary_folder

from .read import Environment, SharedLibrary

HOME = Path("build", "backends")
"""The folder of the environments, in the clone."""
TESTS = (
    "verdict/test_published.py", "adapters/test_repro.py", "adapters/test_adapters_*.py", "graphs/test_*.py",
    "exchange/test_*.py",
)  # fmt: skip
"""The tests that call real libraries, in the folder of the tests."""
_PIP = ("-m", "pip", "--disable-pip-version-check")
_INSTALLED = "installed"
"""A file of an environment that says what was installed, once all of it was."""


class CannotMake(CommandError):
    """An environment cannot be made or used here; the message says why."""

    exit_code = CANNOT_START


def lacking(environment: Environment) -> list[str]:
    """Return the needs of an environment that this machine does not meet."""
    needs = environment.needs if environment.python is None else (*environment.needs, f"program:{environment.python}")
    return [need for need in needs if not _has(need)]


def _has(need: str) -> bool:
    kind, _, name = need.partition(":")
    if kind == "gpu":
        return Path("/proc/driver/nvidia/version").exists()
    if kind == "program":
        return shutil.which(name) is not None
    return name in describe_machine()["instructions"].split()


class Installation:
    """The environment of a name in lab.yaml, in a clone."""

    def __init__(self, clone: Path, environment: Environment) -> None:
        self.clone, self.environment = clone, environment
        self.home = clone / HOME / environment.name
        self.python = self.home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def make(self) -> bool:
        """Install the suite and the packages, unless just these are installed; return whether something was done."""
        if not (self.clone / "pyproject.toml").is_file():
            raise CannotMake(f"{self.clone}: is no clone of the suite: it has no pyproject.toml; give its lab.yaml")
        wanted = repr((self.environment.python, self.environment.pip, self.environment.library))
        marker = self.home / _INSTALLED
        if self.python.exists() and marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
            return False
        shutil.rmtree(self.home, ignore_errors=True)
        self._call([self.environment.python or sys.executable, "-m", "venv", str(self.home)], "make")
        # with what `publish` needs for the pages of the docs
        install = [*_PIP, "install", "--quiet", "--no-compile", "--editable", ".[site]"]
        self._call([str(self.python), *install, *self.environment.pip], "install")
        if self.environment.library is not None:
            self._unpack(self.environment.library)
        replace_text(marker, wanted)
        return True

    def build(self) -> None:
        """Build the program of the environment, if it has one that must be built."""
        if self.environment.build is not None:
            self._call(shlex.split(self.environment.build), "build")

    def _unpack(self, library: SharedLibrary) -> None:
        with temporary_folder() as folder:
            download = [*_PIP, "download", "--quiet", "--no-deps", "--dest", str(folder), library.wheel]
            self._call([str(self.python), *download], "download")
            (wheel,) = folder.glob("*.whl")
            with ZipFile(wheel) as files:
                replace_bytes(self._library_path(library), files.read(library.file))

    def _library_path(self, library: SharedLibrary) -> Path:
        return self.home / Path(library.file).name

    def _call(self, command: Sequence[str], what: str) -> None:
        cannot = f"{self.environment.name}: cannot {what}: {shlex.join(command)}"
        try:
            done = subprocess.run(command, cwd=self.clone, stdin=subprocess.DEVNULL, check=False)
        except OSError as error:
            raise CannotMake(f"{cannot}: {error.strerror}") from None
        if done.returncode:
            raise CannotMake(f"{cannot} ended with an error")

    def run(self, words: Sequence[str]) -> int:
        """Run Python of the environment with some words, in the clone; return its exit code, after a signal as a shell.

        The largest of several codes counts.
        """
        named = {known.variable for known in read_bundled_backends().values()}  # an environment has its own libraries
        variables = {name: value for name, value in os.environ.items() if name not in named}
        if (library := self.environment.library) is not None:
            variables[library.variable] = str(self._library_path(library).absolute())
        code = subprocess.run(
            [str(self.python), *words], cwd=self.clone, env=variables, stdin=subprocess.DEVNULL, check=False
        ).returncode
        return 128 - code if code < 0 else code


def list_run_words(environment: Environment, backend: str, out: Path, jobs: int) -> list[str]:
    """Return the words of `conformance run` for a backend of an environment."""
    words = ["-m", "conformance", "run", environment.specifier_of(backend), "--out", str(out), "--jobs", str(jobs)]
    return [*words, "--timeout", str(environment.timeout), *words_by(environment), *_target_words(environment)]


def words_by(environment: Environment, option: str = "--tester") -> list[str]:
    """Return the words that say who runs a backend."""
    return [] if environment.by is None else [option, environment.by]


def _target_words(environment: Environment) -> Iterator[str]:
    for key, values in environment.target.items():
        if key == "large":
            yield from ["--large"] * values
        else:
            for value in values:
                yield from (f"--{key.removesuffix('s')}", value)


def words_of_tests(environment: Environment, clone: Path) -> list[str]:
    """Return the words of pytest for the suite's own tests of an environment's backends."""
    folder = clone / "tests"
    files = [str(path.relative_to(clone)) for pattern in TESTS for path in sorted(folder.glob(pattern))]
    return ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", environment.tests or "", *files]
