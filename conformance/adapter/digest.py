"""The digest of an adapter and of the files it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
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
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # it cannot be imported either
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module.partition(".")[0]] if node.module else [alias.name for alias in node.names]
            yield from (folder / f"{name}.py" for folder in path.parents[node.level - 1 : node.level] for name in names)
