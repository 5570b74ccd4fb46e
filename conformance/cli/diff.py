"""`conformance diff OLD NEW`: what changed between two runs, and why; 1 if something got worse."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ..certify.evidence import Evidence, Refused
from ..certify.rejudge import refuse_unsound
from ..plan.rows import Plan
from ..report import diff_report
from ..report.diff import Difference, difference
from ..system.terminal import lines, say
from .arguments import Usage, emit, load_plan
from .compare import read_evidence

_BY_NAME = {".html": "html", ".htm": "html", ".md": "markdown", ".txt": "text"}
_FORMATS: dict[str, Callable[[Difference], str]] = {
    "text": diff_report.render_text,
    "markdown": diff_report.render_markdown,
    "html": diff_report.render_html,
}


def run(args: argparse.Namespace) -> int:
    """Compare two runs and print or write the difference; 1 if something got worse."""
    plan = load_plan(args)
    change = difference(_judged_at(args.old, plan), _judged_at(args.new, plan), plan)
    if args.json:
        emit(_data(change))
    else:
        _write(change, args.format, args.out)
    return 1 if change.worse else 0


def _judged_at(path: Path, plan: Plan) -> Evidence:
    """Read a run and judge every row again. The verdicts of another suite's run are taken as they are."""
    evidence = read_evidence(path)
    if evidence.header["suite"]["digest"] == plan.suite.digest:
        try:
            refuse_unsound(evidence, plan, path)
        except Refused as refused:
            raise Usage(str(refused)) from None
    return evidence


def _write(change: Difference, format_: str | None, out: Path | None) -> None:
    form = format_ or (_BY_NAME.get(out.suffix, "") if out else "text")
    if not form:
        raise Usage(f"--out {out}: what to write does not follow from the name; add --format text, markdown or html")
    if out is None and form == "text":
        say(diff_report.format_changes(change))
        return
    text = _FORMATS[form](change)
    if out is None:
        say(lines(text.rstrip("\n").split("\n")))
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", newline="\n")
        say(f"{diff_report.format_verdict(change)}; see {out}")


def _data(change: Difference) -> dict[str, object]:
    return {
        "old": change.old,
        "new": change.new,
        "worse": change.worse,
        "pinned": [each._asdict() for each in change.pinned],
        "documents": None if change.standings is None else [each._asdict() for each in change.standings],
        "counts": change.counts,
        "changes": [row._asdict() for row in change.changes],
    }
