"""`conformance explain CASE --backend NAME`: a script that repeats it in the library's own Python."""

from __future__ import annotations

import importlib
import shlex
from typing import Any

from ..adapter import REFERENCE, bundled_backends, name_and_device
from ..model import Suite, Unsupported
from ..plan.rows import Row, explain_drawn
from ..report.script import complete_script
from ..system.terminal import say_raw
from ..system.text import describe_unknown
from .arguments import Usage, emit
from .explain_case import find_rows


def print_script(suite: Suite, name: str, backend: str, as_json: bool, options: str) -> None:
    """Print the script for the row of that name, or for a row of the case."""
    rows = find_rows(suite, name)
    if not rows:
        raise Usage(explain_drawn(name) or describe_unknown("case", name, suite.cases, "conformance list cases"))
    rows.sort(key=lambda row: row.type != "f32")  # most libraries have f32
    row = _find_writable(rows, backend, f"conformance run {shlex.quote(backend)}{options} -k {shlex.quote(name)}")
    text = complete_script({row.case.id: row}, backend)
    if as_json:
        emit({"row": row.id, "backend": backend, "language": "python", "text": text})
    else:
        say_raw(text)


def _find_writable(rows: list[Row], backend: str, run: str) -> Row:
    """Return the first row that a script can be written for. `run`: the command that calls them without a script."""
    name, device = name_and_device(backend)
    if name not in bundled_backends():
        if ":" in backend:
            raise Usage(f"--backend takes bundled backends only; to call the case on {backend}: {run}")
        raise Usage(describe_unknown("backend", name, bundled_backends(), "conformance list backends"))
    repro: Any = importlib.import_module("conformance.adapters.repro")
    if name not in repro.WRITERS:
        own = name == REFERENCE
        why = "is the suite’s own reference and no library; try numpy" if own else "has no writer of scripts"
        raise Usage(f"--backend {name}: {name} {why}")
    if device is not None and name not in repro.WITH_DEVICE:
        raise Usage(f"--backend {backend}: {name} has no choice of device; write --backend {name}")
    facets = []
    for row in rows:
        try:
            repro.WRITERS[name](row, backend)
        except Unsupported as unsupported:  # noqa: PERF203 - which row it has words for is seen by trying
            facets.append(unsupported.facet)
        else:
            return row
    raise Usage(
        f"no script for {name} can make the call of {rows[0].case.id}: it needs {', '.join(dict.fromkeys(facets))}"
    )
