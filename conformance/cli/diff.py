"""`conformance diff OLD NEW`: what changed between two runs or two documents, and why; 1 if a run got worse."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from ..evidence.command import list_run_words, list_same_run, list_suite_options
from ..evidence.folder import PAGE, find_results_path
from ..evidence.results import Evidence
from ..load.cases import with_cases
from ..plan.rows import plan_of
from ..report import diff_report
from ..report.diff import Difference, compare_runs
from ..system.files import replace_text
from ..system.terminal import say, verbatim
from ..verdict.rejudge import read_and_judge
from .arguments import Stop, emit, load_plan, load_spec_of, pick, write_suite_option
from .diff_documents import diff_documents, print_document_diff
from .parser import Parser, path

EXAMPLES = """\
  conformance diff build/before build/after           1 where something got worse
  conformance diff build/before build/after --out diff.md      for a merge request; .html for a page
  conformance diff static-graph-v0.9 static-oneapi    two documents: rules, signature, cases, and a call
exit codes: 0 nothing is worse · 1 something is · 2 usage"""


def add_options(parser: Parser) -> None:
    parser.add_argument("old", type=path, metavar="OLD", help="the folder of a run, its results.jsonl, or a document")
    parser.add_argument("new", type=path, metavar="NEW", help="those of a later run, or another document")
    parser.path("--out", "FILE", "of two runs: write a file, Markdown or a page as its name ends in .md or .html")


def run(args: argparse.Namespace) -> int:
    """Compare two runs or documents and print or write the difference; 1 if a run got worse."""
    if not (args.old.exists() and args.new.exists()):  # files go before documents of their names
        spec = load_spec_of(args.suite)
        names = [str(args.old), str(args.new)]
        if not spec.documents.keys().isdisjoint(names):
            if found := next((name for name in names if name not in spec.documents and Path(name).exists()), None):
                raise Stop(f"{found} is no document; compare two runs or two documents, not one of each")
            if args.out:
                raise Stop("--out is for two runs; what differs between documents is printed, or --json has it")
            a, b = (pick("document", name, spec.documents) for name in names)
            plan = plan_of(with_cases(spec, args.suite))
            data = diff_documents(plan, a, b, write_suite_option(args.suite))
            if args.json:
                emit(data)
            else:
                print_document_diff(spec, data)
            return 0
    if args.out and args.out.suffix not in (".md", ".html"):
        raise Stop(f"--out {args.out}: the name must end in .md or .html, which says what to write")
    plan = load_plan(args.suite)
    old, new = (read_and_judge(find_results_path(path), plan, any_suite=True) for path in (args.old, args.new))
    change = compare_runs(old, new, plan)
    if not change.tests:
        raise Stop(f"{args.old} and {args.new} have no test in common; compare runs that were asked for the same")
    if args.out:
        _write(change, (args.old, args.new), args.out)
    if args.json:
        emit(_collect_data(change))
    elif args.out:
        say(f"{diff_report.format_verdict(change)}; see {args.out}")
    else:
        say(diff_report.format_changes(change))
        say()
        say(verbatim(f"exit {int(change.worse)}; next: {_choose_next_command(change, new, args.new)}"))
    return 1 if change.worse else 0


def _choose_next_command(change: Difference, new: Evidence, path: Path) -> str:
    """Return the command that calls the first row that got worse; if none did, the one that asks for conformity."""
    groups = diff_report.group_changes(change, "worse")
    if not groups:
        return shlex.join(["conformance", "verify", *list_suite_options(new.header), str(path), "--conforms"])
    row = groups[0].first.row
    if any(each.needs_calls_before for each in new.results if each.row == row):
        return shlex.join(list_same_run(new.header))
    return shlex.join([*list_run_words(new.header), *["--large"] * new.target.large, "-k", row])


def _write(change: Difference, runs: Sequence[Path], out: Path) -> None:
    if out.suffix == ".html":
        text = diff_report.render_html(change, *(_find_link(path, out) for path in runs))
    else:
        text = diff_report.render_markdown(change)
    replace_text(out, text)


def _find_link(run: Path, page: Path) -> str | None:
    """Return the way from a page to the report of a run; None if it has none."""
    report = (run if run.is_dir() else run.parent) / PAGE
    return quote(os.path.relpath(report, page.parent).replace(os.sep, "/")) if report.is_file() else None


def _collect_data(change: Difference) -> dict[str, object]:
    return {
        "old": str(change.old),
        "new": str(change.new),
        "worse": change.worse,
        "header_changes": [each._asdict() for each in change.header_changes],
        "documents": None if change.standings is None else [each._asdict() for each in change.standings],
        "counts": change.counts,
        "asked_once": change.asked_once,
        "not_compared": change.not_compared,
        "changes": [row._asdict() for row in change.changes],
    }
