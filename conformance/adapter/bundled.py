"""The backends that have a name: those of adapters/bundled.yaml, and those that installed packages register."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from typing import NamedTuple

from .. import __version__
from ..system.files import find_adapters_folder


class Bundled(NamedTuple):
    module: str
    """In adapters/."""
    class_name: str
    install: str | None = None
    """The command that installs what it needs; None if it needs nothing."""
    variable: str | None = None
    """The environment variable that may name the library instead."""
    device: str = "cpu"
    """The device that it takes if none is named."""
    library: str = ""
    """The name of the library: the module's, unless several modules call one library."""
    also: str = ""
    """Other names of the library; only its first backend has them."""
    not_tried: tuple[str, ...] = ()
    """Other public ways into the library's reshape that no bundled backend takes, in words."""

    @property
    def package(self) -> str:
        """The package that is the library."""
        wanted = (self.install or "numpy").removeprefix("pip install").strip(" \"'")
        return re.split(r"[\[=<>\"' ]", wanted)[0]

    @property
    def version(self) -> str | None:
        """The version of the installed library, or its path; None if it is missing. Nothing is imported."""
        from importlib import metadata  # slow to import, and only needed here

        if self.module == "reference":
            return __version__
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            path = os.environ.get(self.variable) if self.variable else None
            return f"by {self.variable} ({path})" if path else None

    @property
    def about(self) -> str:
        """The first line of the class's docstring."""
        path = find_adapters_folder() / f"{self.module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == self.class_name:
                return (ast.get_docstring(node) or "").partition("\n")[0]
        return ""


@cache
def read_bundled_backends() -> dict[str, Bundled]:
    import yaml  # only for names of bundled backends

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = yaml.load((find_adapters_folder() / "bundled.yaml").read_text(encoding="utf-8"), loader)
    backends = {}
    for name, entry in entries.items():
        module, _, class_name = entry["class"].partition(":")
        install = f"pip install {entry['pip']}" if "pip" in entry else None
        others = {key: entry[key] for key in ("variable", "device", "also") if key in entry}
        others |= {"library": entry.get("library", module), "not_tried": tuple(entry.get("not_tried", ()))}
        backends[name] = Bundled(module, class_name, install, **others)
    return backends


@cache
def find_registered_backends() -> dict[str, str]:
    """Return the backends that installed packages register by an entry point, by name, each as `module:Class`.

    A bundled backend keeps its name. An entry point may name extras after the class.
    """
    from importlib import metadata  # slow to import, and only needed here

    found = metadata.entry_points(group="reshape_conformance.backends")
    values = {
        each.name: each.value.partition("[")[0].strip() for each in found if each.name not in read_bundled_backends()
    }
    return {name: value if ":" in value else f"{value}:" for name, value in values.items()}


def list_backend_names() -> list[str]:
    return sorted({*read_bundled_backends(), *find_registered_backends()})
