"""The digest of an adapter and of the files it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from conformance.adapter.find import file_of


def digest_of_adapter(backend: str) -> str | None:
    """The sha256 of an adapter or program, its files one after another; None where none is to be found."""
    path = file_of(backend)
    if path is None or not path.is_file():
        return None
    return hashlib.sha256(b"".join(each.read_bytes() for each in _with_imported(path))).hexdigest()


def _with_imported(path: Path) -> list[Path]:
    """A file, then those beside it that it and they import relatively, by name."""
    found, left = {path}, [path] if path.suffix == ".py" else []
    while left:
        beside = {path.with_name(f"{name}.py") for name in _names_from_beside(left.pop())}
        left += (new := {each for each in beside - found if each.is_file()})
        found |= new
    return [path, *sorted(found - {path})]


def _names_from_beside(path: Path) -> Iterator[str]:
    """The modules, or what may be one, that a file imports from its own folder."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # it cannot be imported either
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]
