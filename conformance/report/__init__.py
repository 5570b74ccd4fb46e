"""Results turned into something to read: a page, JUnit and Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..conclude import Conclusion
    from ..evidence import Evidence
    from ..plan import Plan


def write(folder: Path, plan: Plan, evidence: Evidence, conclusion: Conclusion) -> tuple[Path, ...]:
    """Writes report.html, junit.xml and summary.md into the folder that holds results.jsonl."""
    from . import junit, markdown, page

    texts = {
        "report.html": page.html(plan, evidence, conclusion),
        "junit.xml": junit.xml(plan, evidence, conclusion),
        "summary.md": markdown.summary(plan, evidence, conclusion),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return tuple(folder / name for name in texts)
