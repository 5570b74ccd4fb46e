"""Evidence as something to read: a page, JUnit, Markdown and a badge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..evidence.folder import REPORTS
from ..system.files import replace_text
from ..system.go_on import go_on
from ..system.progress import track

if TYPE_CHECKING:
    from .judged_run import JudgedRun


def write(folder: Path, run: JudgedRun, certified: bool = False) -> tuple[str, ...]:
    """Write every report into the folder that holds results.jsonl, and say which were not written, and why.

    Each is made and written by itself, so that one that fails takes no other with it. `certified`: the page leads to
    the certificate beside it.
    """
    unwritten: list[str] = []
    for name, render in _load_renderers(certified=certified).items():
        with go_on(f"{name} is not written", unwritten.append):
            replace_text(folder / name, render(run.with_drawn))
    return tuple(unwritten)


def render_reports(
    run: JudgedRun, names: Collection[str] = REPORTS, packed: bytes = b"", certified: bool = False
) -> Mapping[str, str]:
    """Render reports, by the names of their files; `packed`: the results as they are published beside a page."""
    renderers = _load_renderers(packed, certified)
    return {name: renderers[name](run.with_drawn) for name in track("making reports", names, len(names))}


def _load_renderers(packed: bytes = b"", certified: bool = False) -> Mapping[str, Callable[[JudgedRun], str]]:
    from . import badge, junit, markdown, report_page

    return {
        "report.html": partial(report_page.render, packed=packed, certified=certified),
        "junit.xml": junit.render,
        "summary.md": markdown.render,
        "badge.svg": badge.render_svg,
    }
