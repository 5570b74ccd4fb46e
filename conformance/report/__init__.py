"""Results turned into something to read: a page, JUnit, Markdown, CTRF and a badge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..certify.folder import REPORTS
from ..system.files import replace_text

if TYPE_CHECKING:
    from ..certify.conclude import Conclusion
    from ..certify.evidence import Evidence
    from ..plan.rows import Plan
    from .facts import Facts


def write(folder: Path, plan: Plan, evidence: Evidence, conclusion: Conclusion) -> tuple[Path, ...]:
    """Writes every report into the folder that holds results.jsonl."""
    for name, text in texts(plan, evidence, conclusion).items():
        replace_text(folder / name, text)
    return tuple(folder / name for name in REPORTS)


def texts(
    plan: Plan, evidence: Evidence, conclusion: Conclusion, names: Collection[str] = REPORTS, brief: bool = False
) -> Mapping[str, str]:
    """The reports by the names of their files; `brief`: the page for results that lie beside it."""
    from . import badge, ctrf, junit, markdown, page
    from .facts import Facts

    writers: Mapping[str, Callable[[Facts], str]] = {
        "report.html": page.published if brief else page.of,
        "junit.xml": junit.of,
        "summary.md": markdown.of,
        "ctrf.json": ctrf.of,
        "badge.json": badge.endpoint,
        "badge.svg": badge.svg,
    }
    facts = Facts(plan, evidence, conclusion)
    return {name: writers[name](facts) for name in names}
