"""`conformance compare DIR…`: several runs of one suite on one page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..evidence.folder import find_results_path
from ..model.verdicts import MARKS
from ..report.judged_run import JudgedRun, conclude_run
from ..site.compare_page import differs, does_one_fail, is_shared, name_runs, render
from ..system.files import replace_text
from ..system.progress import track
from ..system.terminal import count_noun, say, table
from ..verdict.rejudge import read_and_judge
from .arguments import emit, load_plan
from .parser import Parser, output_file, path

DEFAULT_OUT = Path("conformance-compare.html")

EXAMPLES = """\
  conformance compare build/reference build/onednn --out compare.html"""


def add_options(parser: Parser) -> None:
    text = "folders of runs, or their results.jsonl"
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help=text)
    parser.once("--out", "FILE", "the page to write (conformance-compare.html)", type=output_file)


def run(args: argparse.Namespace) -> int:
    """Write the page; 0 whatever the verdicts are."""
    plan = load_plan(args.suite)
    folders = track("reading", args.folders, len(args.folders))
    evidence = [read_and_judge(find_results_path(folder), plan) for folder in folders]
    runs = [conclude_run(plan, each) for each in evidence]
    out = args.out or DEFAULT_OUT
    replace_text(out, render(runs))
    data = _collect_data(runs, out)
    if args.json:
        emit(data)
    else:
        _show(runs, data)
    return 0


def _collect_data(runs: Sequence[JudgedRun], out: Path) -> dict[str, Any]:
    rows = {case: [run.rows_by_case[case] for run in runs] for case in runs[0].rows_by_case}
    shared = {case: cells for case, cells in rows.items() if is_shared(cells)}
    return {
        "out": str(out),
        "backends": [
            {
                "name": name,
                "exit_code": run.conclusion.exit_code,
                "documents": {d: w for d, (w, _) in run.verdict_by_document.items()},
                "drawn_rows_that_fail": run.evidence.drawn.failed,
            }
            for name, run in zip(name_runs(runs), runs, strict=True)
        ],
        "cases": len(shared),
        "disagreements": [case for case, cells in shared.items() if differs(cells)],
        "one_fails": [case for case, cells in shared.items() if does_one_fail(cells)],
    }


def _show(runs: Sequence[JudgedRun], data: dict[str, Any]) -> None:
    documents = runs[0].plan.suite.spec.documents
    rows = [(d, *(f"{MARKS[w]} {w}" for w, _ in (run.verdict_by_document[d] for run in runs))) for d in documents]
    say(table(rows, ("document", *name_runs(runs))))
    say()
    differ, one_fails = len(data["disagreements"]), len(data["one_fails"])
    if data["cases"]:
        called = f"of {count_noun(data['cases'], 'case')} called in two backends or more"
        say(f"{called}: {differ:,} differ, {one_fails:,} fail in one backend only")
    else:
        say("no case was called in two of them: nothing to compare; choose runs of the same operations and cases")
    for backend in data["backends"]:
        if drawn := backend["drawn_rows_that_fail"]:
            are = "is" if drawn == 1 else "are"
            say(f"{count_noun(drawn, 'drawn row')} of {backend['name']} failed, and {are} not compared")
    say(f"page: {data['out']}")
