"""Report to CI that a backend did not start: junit.xml with one error, and summary.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
            from .markdown import code  # slow to import

            replace_text(folder / "junit.xml", _render_junit(backend, str(error)))
            head = f"# Reshape conformance of {code(backend)}: cannot start"
            replace_text(folder / "summary.md", f"{head}\n\nExit code 3: nothing was run. {code(error)}\n")
        raise


def _render_junit(backend: str, why: str) -> str:
    from . import junit

    name = f"reshape conformance of {backend}: cannot start"
    root = junit.make(None, "testsuites", name=name, tests=1, failures=0, errors=1, time=0)
    junit.add_error(root, "start", "the backend starts", "cannot start", why)
    return junit.write(root)
