"""The digest of an adapter and of the files that it imports from its own folders."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from ..system.files import sha256_of
from .find import command_of, file_of, module_of


def digest_of_adapter(backend: str) -> str | None:
    """Return the SHA-256 of an adapter or program; None if there is no such file.

    If there are several files, it is that of the lines that `sha256sum` prints for them. Those of a program are its own
    and each that its command line names.
    """
    files = _list_files_of_adapter(backend)
    digests = [sha256_of(file) for file in files]
    if len(files) < 2:
        return next(iter(digests), None)
    names = [file.name if backend.startswith("cmd:") else os.path.relpath(file, files[0].parent) for file in files]
    lines = [f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _list_files_of_adapter(backend: str) -> list[Path]:
    path = file_of(backend)
    if path is None or not path.is_file():
        return []
    if backend.startswith("cmd:"):
        return [*map(Path, filter(os.path.isfile, command_of(backend)))]  # an argument may be too long for a name
    if ".py:" in backend:  # such a file can import those beside it by name alone
        return _with_imports(path, path.parent, None)
    package = module_of(backend).partition(".")[0]
    root = next((at.parent for at in path.parents if at.name == package), None)
    return _with_imports(path, None if package == "conformance" else root, package)  # the suite has another digest


def _with_imports(path: Path, root: Path | None, package: str | None) -> list[Path]:
    """Return a file, then the files that it and they import from their folders, by name.

    `root`: where an absolute import looks. `package`: the only one there that is the adapter's; None: all are.
    """
    files, rest = {path}, [path] if path.suffix == ".py" else []
    while rest:
        file = rest.pop()
        new = {found for found in {*_imports_of(file, root, package)} - files if found.is_file()}
        rest += new
        files |= new
    return [path, *sorted(files - {path})]


def _imports_of(path: Path, root: Path | None, package: str | None) -> Iterator[Path]:
    """Yield the files that a module may import from its folder or one above, and from `root` by an absolute name."""
    for level, name in _find_imported_names(path.read_bytes()):
        first, *deeper = name.split(".")
        absolute = [root] if root and package in (None, first) else []
        for folder in path.parents[level - 1 : level] if level else absolute:
            for module in accumulate(deeper, Path.joinpath, initial=folder / first):
                yield from (module.with_name(f"{module.name}.py"), module / "__init__.py")


@lru_cache(256)  # a run asks for the digests of several planted backends, which share most files
def _find_imported_names(source: bytes) -> tuple[tuple[int, str], ...]:
    """Return each name that is imported, with the level of a relative import, or 0."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # it cannot be imported either
        return ()
    names: list[tuple[int, str]] = []
    for node in _list_statements(tree):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):  # of a package it may name modules
            module = f"{node.module}." if node.module else ""
            names += [(node.level, f"{module}{alias.name}") for alias in node.names]
    return tuple(names)


def _list_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a node; expressions, which hold no import, are not entered."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from _list_statements(child)
