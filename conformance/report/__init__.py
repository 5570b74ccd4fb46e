"""Evidence as something to read: a page, JUnit, Markdown, CTRF and a badge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..certify.folder import REPORTS
from ..system.files import replace_text

if TYPE_CHECKING:
    from ..certify.conclude import Conclusion
    from ..certify.evidence import Evidence
    from ..plan.rows import Plan
    from .finished_run import FinishedRun


def write(folder: Path, plan: Plan, evidence: Evidence, conclusion: Conclusion) -> tuple[Path, ...]:
    """Writes every report into the folder that holds results.jsonl."""
    for name, text in texts(plan, evidence, conclusion).items():
        replace_text(folder / name, text)
    return tuple(folder / name for name in REPORTS)


def texts(
    plan: Plan, evidence: Evidence, conclusion: Conclusion, names: Collection[str] = REPORTS, packed: bytes = b""
) -> Mapping[str, str]:
    """The reports by the names of their files; `packed`: the results as they are published beside a page."""
    from ..certify.drawn import plan_of_run
    from . import badge, ctrf, junit, markdown, report_page
    from .finished_run import FinishedRun

    renderers: Mapping[str, Callable[[FinishedRun], str]] = {
        "report.html": partial(report_page.render, packed=packed),
        "junit.xml": junit.render,
        "summary.md": markdown.render,
        "ctrf.json": ctrf.render,
        "badge.json": badge.render_endpoint,
        "badge.svg": badge.render_svg,
    }
    run = FinishedRun(plan_of_run(plan, evidence), evidence, conclusion)
    return {name: renderers[name](run) for name in names}
