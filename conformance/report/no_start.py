"""Report to CI that a backend did not start: junit.xml with one error, and summary.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from ..adapter import CannotStart
from ..evidence.folder import find_results
from ..system.files import replace_text


@contextmanager
def report_no_start(folder: Path | None, backend: str) -> Iterator[None]:
    """If a backend cannot start in a `with` block, write that into the folder: a job without a result looks green."""
    try:
        yield
    except CannotStart as error:
        if folder is not None and not find_results(folder):  # else it holds a certificate, which stays as it is
            from .markdown import code  # slow to import, as is `visible`

            replace_text(folder / "junit.xml", _render_junit(backend, str(error)))
            head = f"# Reshape conformance of {code(backend)}: cannot start"
            replace_text(folder / "summary.md", f"{head}\n\nExit code 3: nothing was run. {code(error)}\n")
        raise


def _render_junit(backend: str, why: str) -> str:
    from .wording import visible

    name, message = (escape(visible(text)) for text in (backend, why))
    numbers = 'tests="1" failures="0" errors="1"'
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="reshape conformance of {name}: cannot start" {numbers} time="0">
<testsuite name="start" {numbers} skipped="0" time="0">
<testcase classname="start" name="the backend starts" time="0">
<properties><property name="rule" value="start"/></properties>
<error type="cannot start" message="{message}">{message}</error>
</testcase>
</testsuite>
</testsuites>
"""
