"""Results files of a few rows, for the tests of these."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence import results as evidence_module
from conformance.evidence.results import Target, Writer, header_of
from conformance.load.cases import load_suite
from conformance.model import Claims, Identity, Outcome, Result

from .. import builders

ROWS = [f"row-{number}[StaticReshape-f32]" for number in range(8)]


def write(path: Path, backend: str = "it", rows: list[str] = ROWS, close: bool = True) -> dict[str, Any]:
    """A results file of a few rows, and its header."""
    suite = load_suite(None, builders.write_cases(path.parent / "suite"))
    header = header_of(suite, Identity(backend, "1"), Claims(("StaticReshape",)), Target(), backend)
    writer = Writer(path, header)
    for row in rows:
        outcomes = (Outcome("tensor", "f32", (2,)),)
        writer.row(Result(row, {"static-oneapi": "pass"}, outcomes, content=("0123456789abcdef",)))
    if close:
        writer.close(1.0, (), {"Planted": 3})
    else:
        writer.leave()
    return header


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl"
    write(path)
    return path


Lines = list[bytes]


def lines_of(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


def signed(lines: Lines) -> bytes:
    """The lines with a footer that is true of them."""
    footer = json.loads(lines[-1])
    footer |= {"rows": len(lines) - 2, "digest": hashlib.sha256(b"".join(lines[1:-1])).hexdigest()}
    footer["seal"] = evidence_module.seal_of(footer)
    return b"".join([*lines[:-1], json.dumps(footer).encode() + b"\n"])


def rows_in(path: Path) -> list[bytes]:
    """The rows of a results file, whether resumed or not."""
    return [line.replace(b',"resumed":true}', b"}") for line in path.read_bytes().splitlines()[1:-1]]
