"""`conformance report DIR…`: write the reports again from the evidence of a run, or of all shards of a run."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from .. import report
from ..evidence.folder import CERTIFICATE, REPORTS, RESULTS, clear, find_results_path
from ..evidence.results import Evidence, name_unfinished, read
from ..evidence.writer import Writer
from ..plan.rows import Plan
from ..report.judged_run import conclude_run
from ..runner.shards import merge_shards
from ..system.files import lock_folder
from ..system.terminal import say, verbatim
from ..verdict.rejudge import read_and_judge, read_and_judge_part, refuse_unsound
from .arguments import Stop, check_folder, emit, load_plan, write_suite_option
from .parser import Parser
from .parser import path as read_path
from .run import conclude_and_report

EXAMPLES = """\
  conformance report build/reference                  its pages; of an interrupted run, those of the rows that were run
  conformance run reference --shard 1/2 --out build/one
  conformance run reference --shard 2/2 --out build/two
  conformance report build/one build/two --out build/whole    the shards as one run, with its exit code
exit codes: 0 written, whatever the verdict is · 2 usage or evidence that proves nothing; with --out those of `run`"""


def add_options(parser: Parser) -> None:
    text = "the folder of a run, with its results.jsonl; with --out, the folders of all shards of one run"
    parser.add_argument("folders", nargs="+", type=read_path, metavar="DIR", help=text)
    parser.path("--out", "DIR", "put the shards together, conclude as `run` does, and write the whole run there")


def run(args: argparse.Namespace) -> int:
    """Write the reports of one run, or put shards together; Stop if the evidence cannot be relied on."""
    if args.out is None and len(args.folders) > 1:
        raise Stop("several folders are put together as the shards of one run; name a new folder with --out")
    plan = load_plan(args.suite)
    if args.out is None:
        check_folder("DIR", args.folders[0])
        with lock_folder(args.folders[0]):
            return _write_again(args.folders[0], plan, args.json)
    out = args.out.resolve()
    with lock_folder(out):
        return conclude_and_report(plan, _put_together(args.folders, out, plan), out, args.json)


def _write_again(folder: Path, plan: Plan, as_json: bool) -> int:
    """Judge every row again and write the reports; return 0 if they are written, whatever the verdicts are."""
    interrupted = name_unfinished(folder / RESULTS).exists()
    read_rows = read_and_judge_part if interrupted else read_and_judge
    run = conclude_run(plan, read_rows(folder / RESULTS, plan))
    conclusion, unwritten = run.conclusion, report.write(folder, run, (folder / CERTIFICATE).is_file())
    if unwritten:
        raise Stop("; ".join(unwritten))
    if as_json:
        written = [str(folder / name) for name in REPORTS]
        emit({"written": written, "exit_code": conclusion.exit_code, "why": conclusion.why})
    else:
        say(f"wrote {', '.join(REPORTS)}")
        what = "did not end, and shows" if interrupted else "ended with"
        say(f"the run that wrote the evidence {what} exit {conclusion.exit_code}: {conclusion.why}")
        path, suite = shlex.quote(str(folder)), write_suite_option(plan.suite.folder)
        resume = f"to go on, run the command of that run with --resume {path} instead of --out"
        say("this exit code says only that the reports are written")
        say(resume if interrupted else verbatim(f"next: conformance verify{suite} {path} --conforms"))
    return 0


def _put_together(folders: Sequence[Path], out: Path, plan: Plan) -> Evidence:
    """Write the evidence of all shards of one run as that of the whole run."""
    paths = [find_results_path(folder) for folder in folders]
    if any(path.resolve().parent == out for path in paths):
        raise Stop(f"--out {out} holds one of the shards; name another folder")
    clear(out)  # first, since a run that is there must not pass for the one that is refused here
    parts = [read(path) for path in paths]
    whole = merge_shards(paths, parts)
    for path, part in zip(paths, parts, strict=True):
        refuse_unsound(part, plan, path)
    writer = Writer(out / RESULTS, whole.header)
    for result in whole.results:
        writer.row(result)
    return writer.close(whole.seconds, whole.notes, whole.planted, whole.drawn)
