"""The digest of an adapter and of the files it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from .find import file_of


def digest_of_adapter(backend: str) -> str | None:
    """Return the sha256 of an adapter or program, its files one after another; None if there is no such file."""
    path = file_of(backend)
    if path is None or not path.is_file():
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in _with_imports(path))).hexdigest()


def _with_imports(path: Path) -> list[Path]:
    """Return a file, then the files that it and they import relatively, by name."""
    files, rest = {path}, [path] if path.suffix == ".py" else []
    while rest:
        new = {file for file in set(_relative_imports(rest.pop())) - files if file.is_file()}
        rest += new
        files |= new
    return [path, *sorted(files - {path})]


def _relative_imports(path: Path) -> Iterator[Path]:
    """Yield the files that a module may import from its own folder or from one above."""
    for level, name in _relative_names(path.read_bytes()):
        yield from (folder / f"{name}.py" for folder in path.parents[level - 1 : level])


@lru_cache(256)  # a run asks for the digests of several planted backends, which share most files
def _relative_names(source: bytes) -> tuple[tuple[int, str], ...]:
    """Return the level and the name of every relative import."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # it cannot be imported either
        return ()
    return tuple(
        (node.level, name)
        for node in _statements(tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for name in ([node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names])
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a node; expressions, which hold no import, are not entered."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from _statements(child)
