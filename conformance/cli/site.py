"""`conformance site`: the documents, annotated with rules, findings, cases, and the backends that fail them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..report.finished_run import FinishedRun
from ..site.documents import INDEX, write_site
from ..site.publish import read_runs
from ..system.terminal import count_noun, say
from .arguments import check_folder, emit, load_plan
from .parser import Parser
from .run_summary import relative
from .shared_options import add_cases

DEFAULT_OUT = Path("conformance-site")


EXAMPLES = """\
  conformance site --out build/site                      a page for each document, with its rules, findings and cases
  conformance site --results reports --out build/site    with the published backends that fail them"""


def add_options(parser: Parser) -> None:
    parser.path("--out", "DIR", "where the pages go (conformance-site)")
    parser.path("--results", "DIR", "a folder of published results, such as reports/, whose failures are named")
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """Write the pages."""
    plan = load_plan(args)
    results = check_folder("--results", args.results)
    found = list(read_runs(results, plan)) if results else []
    runs = [(path, run) for path, run in found if isinstance(run, FinishedRun)]
    skipped = [path.name for path, run in found if not isinstance(run, FinishedRun)]
    out: Path = args.out or DEFAULT_OUT
    pages = write_site(out, plan, runs)
    if args.json:
        emit({"folder": str(out), "pages": [page.name for page in pages], "runs": len(runs), "skipped": skipped})
        return 0
    say(f"{count_noun(len(pages), 'page')}, with the failures of {count_noun(len(runs), 'run')}")
    if skipped:
        say(f"left out, as they are of another suite or cannot be read: {', '.join(skipped)}")
    say(f"site: {relative(out / INDEX)}")
    return 0
