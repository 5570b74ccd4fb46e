"""Read lab.yaml: the environments, with the backends, packages and needs of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from conformance.adapter import find_bundled, read_bundled_backends
from conformance.load.schema import read_file
from conformance.load.strict_yaml import raise_problems
from conformance.model import Place, Problem
from conformance.system.text import describe_unknown

SCHEMA = str(Path(__file__).with_name("lab"))
TIMEOUT = 10
"""Seconds that one call may take, unless an environment says otherwise."""
_PINNED = re.compile(r"(?P<package>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^,;\s]+)")


class SharedLibrary(NamedTuple):
    """A library that is one file of a wheel."""

    wheel: str
    file: str
    variable: str
    """The environment variable that names the library."""


class Environment(NamedTuple):
    """Backends that run in one installation."""

    name: str
    backends: tuple[str, ...]
    pip: tuple[str, ...] = ()
    python: str | None = None
    """The command of another Python than the one that runs the lab."""
    program: str | None = None
    """The command line of a backend that is not bundled."""
    build: str | None = None
    """The command line that builds the program, or installs what it needs."""
    library: SharedLibrary | None = None
    version: str | None = None
    needs: tuple[str, ...] = ()
    target: Mapping[str, Any] = {}
    timeout: int = TIMEOUT
    tests: str | None = None
    by: str | None = None
    """Who runs it, as the lab says for all."""

    @property
    def is_part(self) -> bool:
        """Ask whether only a part of the suite is run: it is not published, since one part would keep all from that."""
        return bool(self.target.keys() - {"large"})

    def specifier_of(self, backend: str) -> str:
        """Return what `conformance run` calls a backend."""
        return backend if self.program is None else f"cmd:{self.program}"

    def version_of(self, backend: str) -> str | None:
        """Return the version that a backend will report; None if lab.yaml does not pin it."""
        if self.version is not None:
            return self.version
        bundled = find_bundled(backend)
        for requirement in self.pip:
            pin = _PINNED.fullmatch(requirement)
            if bundled and pin and pin["package"].lower() == bundled.package.lower():
                return pin["version"]
        return None


class LabFile(NamedTuple):
    """The content of lab.yaml."""

    runners: Mapping[str, tuple[str, ...]]
    """What a machine must have → labels of the CI runner that has it."""
    environments: Mapping[str, Environment]

    def labels(self, environment: Environment) -> tuple[str, ...]:
        """Return the labels of the runner for an environment: those of its first need that has some."""
        return next((self.runners[need] for need in environment.needs if need in self.runners), self.runners["default"])


def load_lab(path: Path) -> LabFile:
    """Read a lab.yaml; Malformed, with every problem, if it does not fit its schema or names unknown backends."""
    content, problems = read_file(path, SCHEMA)
    raise_problems([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    by, entries = content.get("by"), content["environments"].items()
    environments = {name: _environment(name, entry, by) for name, entry in entries}
    raise_problems([*_unknown_backends(environments, content, path)])
    return LabFile({need: tuple(labels) for need, labels in content["runners"].items()}, environments)


def _environment(name: str, entry: Mapping[str, Any], by: str | None) -> Environment:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    if "library" in fields:
        fields["library"] = SharedLibrary(**fields["library"])
    return Environment(name, by=by, **fields)


def _unknown_backends(environments: Mapping[str, Environment], content: Any, path: Path) -> list[Problem]:
    return [
        Problem(
            Place(str(path), content["environments"].lines[environment.name]),
            f"environments.{environment.name}: {describe_unknown('backend', backend, read_bundled_backends())}",
        )
        for environment in environments.values()
        for backend in environment.backends
        if environment.program is None and find_bundled(backend) is None
    ]
