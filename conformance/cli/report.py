"""`conformance report DIR`: write the reports again from the evidence in a folder."""

from __future__ import annotations

import argparse

from .. import report
from ..evidence.folder import REPORTS, RESULTS
from ..evidence.results import Refused
from ..system.files import InUse, lock_folder
from ..system.terminal import say
from ..verdict.conclude import conclude_evidence
from ..verdict.rejudge import read_and_judge
from .arguments import Usage, check_folder, emit, load_plan
from .parser import Parser, path
from .shared_options import add_cases

EXAMPLES = """\
  conformance report build/reference                  its pages, if the run was interrupted before they were written"""


def add_options(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="DIR", help="the folder of a run, with its results.jsonl")
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """Judge every row again and write the reports; 0 if they are written, whatever the verdicts are."""
    plan = load_plan(args)
    folder = check_folder("DIR", args.folder)
    assert folder is not None
    try:
        with lock_folder(folder, "conformance report"):
            evidence = read_and_judge(folder / RESULTS, plan)
            conclusion = conclude_evidence(plan, evidence)
            unwritten = report.write(folder, plan, evidence, conclusion)
    except Refused as refused:
        raise Usage(str(refused)) from None
    except InUse as in_use:
        raise Usage(str(in_use)) from None
    if unwritten:
        raise Usage("; ".join(unwritten))
    if args.json:
        written = [str(folder / name) for name in REPORTS]
        emit({"written": written, "exit_code": conclusion.exit_code, "why": conclusion.why})
    else:
        say(f"wrote {', '.join(REPORTS)}")
        say(f"the run that wrote the evidence ended with exit {conclusion.exit_code}: {conclusion.why}")
        say(f"this exit code says only that the reports are written; next: conformance verify {folder} --conforms")
    return 0
