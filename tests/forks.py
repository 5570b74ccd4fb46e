"""What fails on a backend that may take its process down: rows are run in a fork, and after a crash on in the next.

A worker would do too, and does in a real run; forks need no second start of Python for each of many crashes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.adapter import load_adapter
from conformance.plan.rows import Row
from conformance.run.row import run

POSSIBLE = hasattr(os, "fork")
CANNOT_START = 3


def records(rows: Sequence[Row], backend: str) -> Iterator[Any]:
    """The identity's detail, then a diagnosis for each row or None."""
    begin, told = 0, False
    while begin < len(rows) or not told:
        lines = _forked(rows[begin:], backend)
        if not lines:
            raise SystemExit(CANNOT_START)
        if not told:
            yield json.loads(lines[0])
            told = True
        yield from map(json.loads, lines[1:])
        begin += len(lines) - 1
        if begin < len(rows):
            yield "crash"
            begin += 1


def _forked(rows: Sequence[Row], backend: str) -> list[bytes]:
    """The lines that a child writes before it is through, or dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "wb", buffering=0) as out:
                _child(rows, backend, out)
            status = 0
        except (Exception, SystemExit) as error:  # nobody would see it otherwise
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        told = lines.read().splitlines()
    os.waitpid(child, 0)
    return told


def _child(rows: Sequence[Row], backend: str, out: Any) -> None:
    adapter = load_adapter(backend)
    out.write(json.dumps(dict(adapter.identity.detail, version=adapter.identity.version)).encode() + b"\n")
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    for result in run(rows, adapter):
        out.write(json.dumps(result.diagnosis).encode() + b"\n")
