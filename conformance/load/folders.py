"""The folders that the bundled files are read from, and the digest of spec and cases."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ..model import Malformed, Place, Problem
from ..system.files import read_bytes
from ..system.text import describe_unknown
from .strict_yaml import MAX_FILE_BYTES


def find_spec_folder() -> Path:
    return Path(import_module("conformance.spec").__path__[0])


def find_cases_folder() -> Path:
    return Path(import_module("conformance.cases").__path__[0])


class Folders(NamedTuple):
    spec: Path
    cases: Path


def find_folders(suite: Path | None) -> Folders:
    """Return spec/ and cases/ of a suite, and the bundled one if one is missing; Malformed if both are."""
    bundled = Folders(find_spec_folder(), find_cases_folder())
    if suite is None:
        return bundled
    spec, cases = (folder if os.path.lexists(folder) else None for folder in (suite / "spec", suite / "cases"))
    if spec is None and cases is None:
        what = "has neither spec/ nor cases/ in it" if suite.is_dir() else "is not a folder"
        raise Malformed((Problem(Place(str(suite)), f"{what}; name a folder that holds spec/, cases/ or both"),))
    for path in sorted(suite.iterdir()) if suite.is_dir() else ():
        is_near = path.name not in Folders._fields and path.name.lower().rstrip("s") in ("spec", "case")
        if is_near and any(path.glob("*.yaml")):
            raise Malformed((Problem(Place(str(path)), describe_unknown("folder", path.name, Folders._fields)),))
    return Folders(spec or bundled.spec, cases or bundled.cases)


_EXTENDS = re.compile(rb"""^(?:\xef\xbb\xbf)?(["']?)extends\1[ \t]*:""", re.MULTILINE)
"""The key of a file, perhaps after a byte order mark."""


def layers(folder: Path, bundled: Path) -> list[Path]:
    """Return the folders to read: the bundled one or another; both if the other says `extends: bundled`."""
    if folder == bundled:
        return [bundled]
    extends = any(_EXTENDS.search(content_of(path)) for path in folder.glob("*.yaml"))
    return [bundled, folder] if extends else [folder]


def content_of(path: Path) -> bytes:
    """Return the bytes of a file of a user's folder; Malformed if it is a pipe, a device or far too large."""
    try:
        return read_bytes(path, MAX_FILE_BYTES)
    except OSError as error:
        name = f"{path.parent.name}/{path.name}"
        raise Malformed((Problem(Place(name), f"cannot be read: {error.strerror}; check the path"),)) from None


def digest_of_folders(folders: Iterable[Path]) -> str:
    """Return one sha256 over the names and bytes of every YAML and text file of some folders."""
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.txt"))):
            content = content_of(path)
            total.update(f"{path.name}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()
