"""`conformance explain CASE --backend NAME`: a script that repeats it in the library's own Python."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from ..adapter import REFERENCE, bundled_backends, name_and_device
from ..model import Suite, Unsupported
from ..plan.rows import Row
from ..report.wording import collect_wants, format_step, visible
from ..system.terminal import say_raw
from ..system.text import describe_unknown
from .arguments import Usage, emit
from .explain_case import find_rows


def print_script(suite: Suite, name: str, backend: str, as_json: bool) -> None:
    """Print the script for the row of that name, or for a row of the case."""
    rows = find_rows(suite, name)
    if not rows:
        raise Usage(describe_unknown("case", name, suite.cases, "conformance list cases"))
    rows.sort(key=lambda row: row.type != "f32")  # most libraries have f32
    row, body = _write_script(rows, backend)
    text = _add_comment(_about(row, backend), body)
    if as_json:
        emit({"row": row.id, "backend": backend, "language": "python", "text": text})
    else:
        say_raw(text)


def _write_script(rows: list[Row], backend: str) -> tuple[Row, str]:
    """Return the first row that a script can be written for, and its script."""
    name, device = name_and_device(backend)
    if name not in bundled_backends():
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
            return row, repro.WRITERS[name](row, backend)
        except Unsupported as unsupported:  # noqa: PERF203 - which row it has words for is seen by trying
            facets.append(unsupported.facet)
    raise Usage(
        f"no script for {name} can make the call of {rows[0].case.id}: it needs {', '.join(dict.fromkeys(facets))}"
    )


def _about(row: Row, backend: str) -> Iterator[str]:
    """Write the head of the script: the calls, their expected answers, and how to run it."""
    yield f"{row.id} on {backend}: what the library does, without the conformance suite."
    yield "It is made from a case: run it only if you trust where the case comes from."
    yield ""
    for number, step in enumerate(row.case.steps):
        yield f"step {number + 1}: {format_step(row.case, step)}"
        for want, documents in collect_wants([row], number).items():
            yield f"    due in {', '.join(documents)}: {want}"
    yield ""
    name = backend.partition("@")[0]
    if name == "onednn":
        yield "Run: ONEDNN_LIBRARY=PATH/libdnnl.so.3 python3 FILE.py"
    else:
        needs = (bundled_backends()[name].install or "pip install numpy").removeprefix("pip install ")
        bf16 = " ml_dtypes" if row.type == "bf16" else ""
        yield f"Run: pip install {needs}{bf16}; python3 FILE.py"


def _add_comment(about: Iterator[str], body: str) -> str:
    """Put the text before the script as a comment in ASCII; no text in it can end the comment."""
    ascii_ = (visible(line).replace("…", "...").encode("ascii", "backslashreplace").decode() for line in about)
    lines: list[str] = []
    for line in ascii_:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += wrap(line, 118, subsequent_indent=indent, drop_whitespace=True) if len(line) > 118 else [line]
    text = "\n".join(lines).rstrip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""\n\n{body}'
