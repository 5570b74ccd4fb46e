"""A script that repeats rows in the library's own Python, as it is printed by the terminal and on pages."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any

from ..adapter import name_and_device, read_bundled_backends
from ..evidence.command import make_script_parts
from ..plan.rows import Row
from .wording import collect_wants, format_step, visible

_TESTED = re.compile(r"(.+)-(\d[\w.]*)(?:\+[\w.]+)? \([\d,]+ files?\)")
"""A package among the files under test, such as `candle_nn-0.4.2 (14 files)`."""
_PACKAGE = re.compile(r"(?<=[ \"])([a-z][\w.-]*)(?:\[\w+\])?(?=[ \"]|$)", re.IGNORECASE)
"""A package without a version in a command of pip."""


def complete_script(rows: Mapping[str, Row], backend: str, tested: Iterable[str] = ()) -> str:
    """Return the script of rows by name, after a comment: the calls, and how to run it.

    The comment is in ASCII, and no text in it can end it. `tested`: the files under test, by which it names versions.
    """
    frame: Any = importlib.import_module("conformance.adapters.repro.script")
    parts = {name: make_script_parts(row, backend) for name, row in rows.items()}
    body = frame.join_parts(parts, {name: list_due(row) for name, row in rows.items()})
    head = (visible(line).replace("…", "...") for line in _write_head(rows, backend, body, tested))
    lines: list[str] = []
    for line in (line.encode("ascii", "backslashreplace").decode() for line in head):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += wrap(line, 118, subsequent_indent=indent, drop_whitespace=True) if len(line) > 118 else [line]
    text = "\n".join(lines).rstrip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""\n\n{body}'


def list_due(row: Row) -> list[list[str]]:
    """Say what is due of each step of a row, and in which documents."""
    return [
        [f"due in {', '.join(documents)}: {visible(want)}" for want, documents in collect_wants([row], number).items()]
        for number in range(len(row.case.steps))
    ]


def _write_head(rows: Mapping[str, Row], backend: str, body: str, tested: Iterable[str]) -> Iterator[str]:
    """Yield the calls, and how to run the script."""
    what, name = (f"{len(rows)} rows", " [NAME]") if len(rows) > 1 else (next(iter(rows.values())).id, "")
    yield f"{what} on {backend}: what the library does, without the conformance suite."
    yield "It is made from cases: run it only if you trust where they come from."
    yield ""
    for key, row in rows.items():
        if name:
            yield f"{key}: {row.id}"
        for number, step in enumerate(row.case.steps, 1):
            yield f"step {number}: {format_step(row.case, step)}"
    yield ""
    known = read_bundled_backends()[name_and_device(backend)[0]]
    needs = (f" {package}" for package in ("numpy", "ml_dtypes") if f"import {package}" in body)
    install = _pin(known.install or "pip install", tested)
    yield f"Run: python3 -m {install}{''.join(needs)} && python3 repeat.py{name}"
    if known.variable:
        yield f"For another build: set {known.variable} to its file."


def _pin(install: str, tested: Iterable[str]) -> str:
    """Add to each package the version that was tested: another one may do something else."""
    packages = (match.groups() for file in tested if (match := _TESTED.fullmatch(file)))
    versions = {name.lower(): version for name, version in packages}

    def pin(package: re.Match[str]) -> str:
        version = versions.get(re.sub("[-.]", "_", package[1]).lower())
        return f"{package[0]}=={version}" if version else package[0]

    return _PACKAGE.sub(pin, install)
