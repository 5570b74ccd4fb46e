"""`conformance run BACKEND`: run every row on one backend and write evidence, reports and verdict."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from .. import report
from ..draw.nonce import plan_under_nonce
from ..evidence.folder import RESULTS, clear, find_results_path, name_of_folder
from ..evidence.results import Evidence, InvalidEvidence, name_unfinished, read
from ..isolate.backend import Isolation
from ..isolate.process.own_command import describe_end
from ..load.cases import load_suite
from ..model import Suite
from ..plan.quick import QUICK, quick_rows
from ..plan.rows import Plan, Row, find_drawn, parse_drawn_id, plan_of, plan_of_cases
from ..plan.select import BadExpression, find_case, ids, select_rows
from ..report.judged_run import JudgedRun, conclude_run
from ..report.no_start import report_no_start
from ..run.ended_process import DEFAULT_HANGS, HangPolicy
from ..runner.run_suite import OpenFolder, RunRequest, choose_rows, run_suite
from ..system import exit_codes
from ..system.exit_codes import INCOMPLETE, UNTRUSTED
from ..system.files import lock_folder
from ..system.go_on import describe_failure, go_on
from ..system.progress import Progress
from ..system.text import name_first
from ..verdict.conclude import Conclusion
from ..verdict.sentences import describe_missing_cases
from .arguments import Stop, emit, say_error, write_suite_option
from .parser import Parser, nonce, positive, seconds, shard, whole
from .request import add_request_options, check_names, read_common_options
from .run_summary import data_of, relative, show, show_part
from .shared_options import add_jobs, add_operation_and_type

DEFAULT_OUT = "conformance-report"
Accept = Callable[[JudgedRun], Conclusion]
"""Gives a conclusion the exit code and the reason of a command, after the reports are written."""
EXAMPLES = f"""\
  conformance run reference                                    everything on the reference
  conformance run ./mine.py:Mine --out build/mine              a class in a file of yours
  conformance run cmd:./reshape --jobs 2                       a program in any language
  conformance run onednn --document static-oneapi --type bf16    a part of the target
  conformance run mine.py:Mine -k 'zero and not facet:chain'   some cases only; never conforms
  conformance run mine.py:Mine --drawn-rows 20000              also random calls; a small case of each kind that fails
  conformance run reference --suite my                         rules and cases of yours, in my/spec and my/cases
exit codes: {exit_codes.SUMMARY}"""


def add_options(parser: Parser) -> None:
    add_request_options(parser)
    add_operation_and_type(parser)
    parser.many("--document", "ID", "judge by this document only")
    text = "only rows with these words in id, file or rule, joined by and, or, not; also facet:NAME and level:NAME, or"
    text += " one drawn row; never conforms"
    parser.once("-k", "EXPR", text, dest="select")
    text = "only a few hundred rows, which notice almost every planted backend; never conforms"
    parser.add_argument("--quick", action="store_true", help=text)
    text = "only rows that failed in the run of that folder; never conforms"
    parser.path("--last-failed", "DIR", text, "--lf")
    text = "call no further row after N rows of the target failed; the others are not run"
    parser.add_argument("--maxfail", type=positive, metavar="N", help=text)
    text = "drawn rows to call (all combinations; none for a part); with more, such as 20000, random ones too"
    parser.add_argument("--drawn-rows", type=whole, metavar="N", help=text)
    text = "64 hex digits that change the contents of src and add calls, as `certify` does"
    parser.add_argument("--nonce", type=nonce, metavar="HEX", help=text)
    text = "worker: a process for the backend (the default); row: one for each row; "
    text += "none: this process, which ends no call"
    parser.add_argument("--isolation", choices=get_args(Isolation), help=text)
    add_jobs(parser)
    text = "rows of a case and operation that hang in turn before the others are not run (%(default)s; 0: no limit)"
    parser.add_argument("--max-hangs", type=whole, default=DEFAULT_HANGS.max_hangs, metavar="N", help=text)
    text = "time that calls may lose by timing out, for each of --jobs (%(default)g); later rows are not run"
    budget = DEFAULT_HANGS.budget_seconds
    parser.add_argument("--hang-budget", type=seconds, default=budget, metavar="SECONDS", help=text)
    text = "the I-th of N parts of the rows; `report` joins them"
    parser.add_argument("--shard", type=shard, metavar="I/N", help=text)
    parser.path("--resume", "DIR", "go on with a run that was interrupted")
    text = "where results and reports go (conformance-report/NAME; with -k, --quick or --last-failed nowhere)"
    parser.path("--out", "DIR", text)
    text = "print every row that failed, not twelve kinds"
    parser.add_argument("-v", "--verbose", action="store_true", help=text)


def run(args: argparse.Namespace, accept: Accept | None = None) -> int:
    """Run, write, and print the conclusion; return its exit code."""
    request = request_of(args)
    with ExitStack() as locks:
        return _run(request, RunFolder(args.out, args.resume, locks), args, accept)


def request_of(args: argparse.Namespace) -> RunRequest:
    """Return what the options ask for; Stop if they cannot be carried out."""
    if args.quick:
        if args.select is not None:
            raise Stop("-k and --quick both choose rows; give one of them")
        args.select = QUICK
    if args.select == QUICK and args.suite:
        raise Stop("--quick lists rows of the bundled suite; drop --suite, or choose rows with -k")
    suite = load_suite(args.suite)
    if suite.lost:
        raise Stop(describe_missing_cases(suite))
    try:
        plan = select_rows(_plan_of_few_cases(args, suite) or plan_under_nonce(plan_of(suite), args.nonce), args.select)
    except BadExpression as bad:
        raise Stop(f"-k: {bad}") from None
    return _read_request(args, plan)


def _plan_of_few_cases(args: argparse.Namespace, suite: Suite) -> Plan | None:
    """Return the plan of the cases of --quick, or of the one that -k names, without reading others; or None."""
    if args.select is None or args.nonce:
        return None
    if args.select == QUICK:
        return plan_of_cases(suite, quick_rows().cases)
    if find_drawn(args.select) is not None:
        return plan_of_cases(suite, ())
    name = find_case(args.select, suite.cases)
    plan = None if name is None else plan_of_cases(suite, [name])
    return plan if plan and args.select.strip().rpartition("::")[2] in ids(plan.rows) else None


class RunFolder:
    """The folder of a run: locked and cleared before the run begins."""

    def __init__(self, out: Path | None, resume: Path | None, locks: ExitStack) -> None:
        self._resume, self._locks = resume, locks
        self.named = resume or out
        self.path: Path | None = None
        if out is not None and resume is not None:
            raise Stop("--resume names the folder already; drop --out")
        if self.named is not None:
            self.lock_and_clear({})

    def lock_and_clear(self, header: Mapping[str, Any]) -> Path:
        """Lock and clear the folder and return its path, which is named after the backend without --out."""
        if self.path is None:
            own = self.named or Path(DEFAULT_OUT, name_of_folder(header["backend"]["name"], "") or "backend")
            path = own.resolve()
            if self._resume is not None and not path.is_dir():
                raise Stop(f"--resume {self._resume}: is not a folder; there is no run to resume")
            self._locks.enter_context(lock_folder(path))
            if self._resume is None:
                clear(path)
            self.path = path
        return self.path


def _run(request: RunRequest, folder: RunFolder, args: argparse.Namespace, accept: Accept | None) -> int:
    evidence: Evidence | None = None
    keep = not request.target.row_options or folder.named is not None
    try:
        evidence = run_with_progress(request, folder.lock_and_clear if keep else None, args.out)
        return conclude_and_report(request.plan, evidence, folder.path, args.json, args.verbose, accept)
    except InvalidEvidence as refused:
        raise Stop(f"--resume: {refused}") from None
    except KeyboardInterrupt as error:
        how, code = describe_end(error)
        then = _advise(folder.path, evidence, request.plan) if folder.path else "nothing is written; run again"
        raise Stop(f"{how}; {then}", code=code) from None


def run_with_progress(request: RunRequest, open_folder: OpenFolder | None, out: Path | None) -> Evidence:
    """Run what is requested. `out`: the folder that says so if the backend cannot start."""
    progress = Progress("running", len(choose_rows(request)) + request.drawn_rows)
    with report_no_start(out, request.backend), closing(progress):
        return run_suite(request, open_folder, progress.at)


def _advise(folder: Path, evidence: Evidence | None, plan: Plan) -> str:
    path = shlex.quote(relative(folder))
    command = f"`conformance report{write_suite_option(plan.suite.folder)} {path}`"
    if evidence is not None or (folder / RESULTS).exists():
        return f"the results are whole; {command} writes their reports"
    if not name_unfinished(folder / RESULTS).exists():
        return "nothing ran"
    return f"to go on, give --resume {path} instead of --out; {command} shows what was run"


def conclude(plan: Plan, evidence: Evidence, out: Path | None) -> JudgedRun:
    """Say what evidence shows. If the suite fails at that, the evidence is whole, and Stop says how to go on."""
    try:
        return conclude_run(plan, evidence)
    except Exception as error:
        then = f"; {_advise(out, evidence, plan)}" if out is not None else ""
        raise Stop(f"no verdict is shown: {describe_failure(error)}{then}", code=UNTRUSTED) from error


def conclude_and_report(
    plan: Plan, evidence: Evidence, out: Path | None, as_json: bool, every_row: bool = False,
    accept: Accept | None = None,
) -> int:  # fmt: skip
    """Write the reports on evidence into a folder, if there is one, print what it shows, and return the exit code."""
    judged = conclude(plan, evidence, out)
    if out is not None:
        write_reports(out, judged)
    accepted = accept(judged) if accept else judged.conclusion
    with go_on(f"exit {accepted.exit_code}: {accepted.why}; no more of it is shown", say_error):
        if as_json:
            emit(data_of(replace(judged, conclusion=accepted), out))
        elif out is not None:
            show(judged, out, every_row, accepted)
        else:
            show_part(replace(judged, conclusion=accepted), every_row)
    return accepted.exit_code


def write_reports(out: Path, judged: JudgedRun, certified: bool = False) -> None:
    """Write the reports into the folder of a run, and say which are not written, and why.

    The exit code stays that of the verdict. The evidence shows the verdict, with or without a page about it, and no
    other code would be true: the command and its files were read, all rows ran, and nobody changed them.
    """
    unwritten = report.write(out, judged, certified)
    for line in unwritten:
        say_error(line)
    if unwritten:
        say_error(_advise(out, judged.evidence, judged.plan))


def _read_request(args: argparse.Namespace, plan: Plan) -> RunRequest:
    """Return the request of a run; Stop if its options contradict one another."""
    request = read_common_options(args, plan)
    if args.jobs > 1 and request.isolation == "none":
        raise Stop(f"--jobs {args.jobs} needs processes, and {args.backend} runs in this one; add --isolation worker")
    check_names(plan.suite.spec, args.operation, args.type, args.document)
    partial = args.last_failed or args.operation or args.document or args.type
    if (partial or args.select is not None) and args.drawn_rows:
        what = f"--drawn-rows {args.drawn_rows} draws calls of all that is claimed"
        raise Stop(f"{what}; drop -k, --quick, --last-failed, --operation, --document and --type")
    drawn_rows = request.drawn_rows if args.drawn_rows is None else args.drawn_rows
    if partial:
        drawn_rows = 0
    elif args.select == QUICK:
        drawn_rows = min(drawn_rows, len(quick_rows().drawn))
    elif args.select is not None:
        drawn_rows = int(find_drawn(args.select) is not None)
    return replace(
        request,
        target=replace(
            request.target,
            operations=tuple(args.operation or ()),
            documents=tuple(args.document or ()),
            types=tuple(args.type or ()),
            select=args.select,
            shard=args.shard,
            last_failed=None if args.last_failed is None else str(args.last_failed),
        ),
        chosen=_read_failed(args.last_failed, args.out),
        hangs=HangPolicy(args.max_hangs, args.hang_budget),
        jobs=args.jobs,
        maxfail=args.maxfail,
        drawn_rows=drawn_rows,
        resume=args.resume is not None,
    )


def _read_failed(last_failed: Path | None, out: Path | None) -> Callable[[Row], bool]:
    """Return the test that chooses rows by what failed in the run of a folder."""
    if last_failed is None:
        return lambda row: True
    path = find_results_path(last_failed)
    if out is not None and path.parent.resolve() == out.resolve():
        raise Stop(f"--out {out} would be cleared, and --last-failed reads it; give --out another folder")
    try:
        results = read(path).results
    except InvalidEvidence as refused:
        raise Stop(f"--last-failed: {refused}") from None
    failed = {result.row: None for result in results if result.is_failure}
    if not failed:
        raise Stop(f"--last-failed {last_failed}: no row failed in that run; run all rows", code=INCOMPLETE)
    if drawn := [row.partition("[")[0] for row in failed if parse_drawn_id(row) is not None]:
        say_error(f"--last-failed calls no drawn rows: {name_first(drawn, 3)} failed, too; -k {drawn[0]} calls one")
    return lambda row: row.id in failed
