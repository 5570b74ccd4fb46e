"""`conformance diff OLD NEW`: what changed between two runs, and why; 1 where something got worse."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ..certify.evidence import Evidence, Refused
from ..certify.rejudge import refuse_unsound
from ..load.cases import load_suite
from ..plan.rows import Plan, plan_of
from ..report import diff_report
from ..report.diff import Difference, difference
from ..system.terminal import lines, say
from .arguments import Usage, emit, folder_given
from .compare import evidence_at

_BY_NAME = {".html": "html", ".htm": "html", ".md": "markdown", ".txt": "text"}
_TELLERS: dict[str, Callable[[Difference], str]] = {
    "text": diff_report.render_text,
    "markdown": diff_report.render_markdown,
    "html": diff_report.render_html,
}


def run(args: argparse.Namespace) -> int:
    """Compares, tells, and says by the exit code whether something got worse."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    found = difference(_judged_at(args.old, plan), _judged_at(args.new, plan), plan)
    if args.json:
        emit(_data(found))
    else:
        _tell(found, args.format, args.out)
    return 1 if found.worse else 0


def _judged_at(path: Path, plan: Plan) -> Evidence:
    """Read a run and judge every row again; of another suite's run the verdicts stand as they are, which is said."""
    evidence = evidence_at(path)
    if evidence.header["suite"]["digest"] == plan.suite.digest:
        try:
            refuse_unsound(evidence, plan, path)
        except Refused as refused:
            raise Usage(str(refused)) from None
    return evidence


def _tell(found: Difference, given: str | None, out: Path | None) -> None:
    form = given or (_BY_NAME.get(out.suffix, "") if out else "text")
    if not form:
        raise Usage(f"--out {out}: what to write does not follow from the name; add --format text, markdown or html")
    if out is None and form == "text":
        say(diff_report.format_changes(found))
        return
    told = _TELLERS[form](found)
    if out is None:
        say(lines(told.rstrip("\n").split("\n")))
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(told, encoding="utf-8", newline="\n")
        say(f"{diff_report.format_verdict(found)}; see {out}")


def _data(found: Difference) -> dict[str, object]:
    return {
        "old": found.old,
        "new": found.new,
        "worse": found.worse,
        "pinned": [each._asdict() for each in found.pinned],
        "documents": None if found.standings is None else [each._asdict() for each in found.standings],
        "counts": found.counts,
        "changes": [change._asdict() for change in found.changes],
    }
