"""The folders that the bundled files are read from, and the digest of spec and cases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from ..model import Malformed, Place, Problem
from ..system.files import read_bytes
from .strict_yaml import MAX_FILE_BYTES


def spec_folder() -> Path:
    """Return the bundled spec/."""
    return Path(import_module("conformance.spec").__path__[0])


def cases_folder() -> Path:
    """Return the bundled cases/."""
    return Path(import_module("conformance.cases").__path__[0])


def adapters_folder() -> Path:
    """Return the bundled adapters/."""
    return Path(import_module("conformance.adapters").__path__[0])


def layers(folder: Path | None, bundled: Path) -> list[Path]:
    """Return the folders to read: the bundled one or another; both if the other says `extends: bundled`."""
    if folder is None:
        return [bundled]
    extends = any(b"\nextends:" in b"\n" + content_of(path) for path in folder.glob("*.yaml"))
    return [bundled, folder] if extends else [folder]


def content_of(path: Path) -> bytes:
    """Return the bytes of a file of a user's folder; Malformed if it is a pipe, a device or far too large."""
    try:
        return read_bytes(path, MAX_FILE_BYTES)
    except OSError as error:
        name = f"{path.parent.name}/{path.name}"
        raise Malformed((Problem(Place(name, 1), f"cannot be read: {error.strerror}; check the path"),)) from None


def digest_of(folders: Iterable[Path]) -> str:
    """Return one sha256 over the names and bytes of every YAML file of some folders."""
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            content = content_of(path)
            total.update(f"{path.name}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()
