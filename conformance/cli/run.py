"""`conformance run BACKEND`: run every row on one backend and write evidence, reports and verdict."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

from ..adapter import FACETS, CannotStart
from ..draw.challenge import challenge
from ..evidence.drawn import WriteCase
from ..evidence.folder import RESULTS, clear
from ..evidence.results import Evidence, Refused, Tampered, Target, part_of, read
from ..isolate.backend import isolation_of
from ..isolate.process.launch import Limits
from ..isolate.process.supervise import Terminated
from ..load.schema import read_file
from ..load.strict_yaml import require
from ..model import Claims, Place, Suite, covers, fails
from ..plan.rows import Plan, Row, plan_of, plan_of_case
from ..plan.select import BadExpression, case_of, ids, parse_selection
from ..runner.run_suite import ClaimsDiffer, RunRequest, chosen_rows, describe_difference, run_suite
from ..runner.shards import find_shard_gap
from ..system import exit_codes
from ..system.exit_codes import CANNOT_START, CONFORMS, INCOMPLETE, UNTRUSTED
from ..system.files import InUse, lock_folder
from ..system.late import describe_failure, go_on
from ..system.progress import Progress
from ..system.text import describe_unknown
from ..verdict.conclude import Conclusion, conclude_evidence
from ..verdict.sentences import describe_missing_cases
from .arguments import Usage, emit, load_suite_of, say_error
from .parser import Parser, nonce, one_line, positive, seconds, shard, whole
from .run_summary import Amount, data_of, relative, show, show_answer, show_part
from .shared_options import BACKEND, add_cases, add_jobs, add_memory, add_timeout

__all__ = ["check_requirements", "conclude_and_report", "describe_difference", "read_claims", "run"]

DEFAULT_OUT = "conformance-report"
_DRAWN = 500
"""Calls that are drawn without --hunt."""


EXAMPLES = f"""\
  conformance run reference                                    everything on the reference
  conformance run ./mine.py:Mine --out build/mine              a class in a file of yours
  conformance run cmd:./reshape --jobs 2                       a program in any language
  conformance run onednn --document static-oneapi --type bf16    a part of the target
  conformance run mine.py:Mine -k copies-by-index              some cases only; never conforms
  conformance run reference --spec my/spec --cases my/cases    with rules and cases of yours beside ours
exit codes: {exit_codes.SUMMARY}"""


def add_options(parser: Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)
    parser.many("--operation", "ID", "this operation only")
    parser.many("--document", "ID", "judge by this document only")
    parser.many("--type", "TYPE", "this element type only")
    parser.once("-k", "EXPR", "only rows whose ids have these words; never conforms", dest="select")
    parser.path("--lf", "DIR", "only rows that failed in the run of that folder; never conforms")
    text = "call no further row after N rows of the target failed; the others are not run"
    parser.add_argument("--maxfail", type=positive, metavar="N", help=text)
    parser.many("--require", "FACET", "a document, type or facet that must be shown")
    parser.add_argument(
        "--shard", type=shard, metavar="I/N", help="the I-th of N parts of the rows; `report` joins them"
    )
    text = "exit with 0, instead of 4, if all rows of the shard ran and none failed; `report` decides"
    parser.add_argument("--partial-ok", action="store_true", help=text)
    text = "64 hex digits that change the contents of src and add calls, as `certify` does"
    parser.add_argument("--nonce", type=nonce, metavar="HEX", help=text)
    parser.path("--waivers", "FILE", "known failures that are waived")
    parser.path("--claims", "FILE", "what the backend must claim, exactly")
    parser.path("--resume", "DIR", "go on with a run that was interrupted")
    text = "worker: a process for the backend (the default); case: a process for each row; none: this process"
    parser.add_argument("--isolation", choices=("worker", "case", "none"), help=text)
    add_jobs(parser)
    parser.once("--dask", "ADDRESS", "run on the Dask cluster of that scheduler")
    add_timeout(parser)
    text = "time that calls may lose by timing out, for each of --jobs (1800); later rows are not run"
    parser.add_argument("--budget", type=seconds, default=1800.0, metavar="SECONDS", help=text)
    text = "rows of a case and operation that hang before its other rows are not run (3; 0: no limit)"
    parser.add_argument("--maxhang", type=whole, default=3, metavar="N", help=text)
    add_memory(parser)
    parser.add_argument("--large", action="store_true", help="also tensors of more than 2^31 elements (some 16 GiB)")
    text = "rows to draw at random, always the same ones, after the cases (500); a part of the rows has none"
    parser.add_argument("--hunt", type=whole, metavar="N", help=text)
    parser.once("--by", "NAME", "who runs this, for the evidence and the report; it is not signed", type=one_line)
    parser.path("--out", "DIR", "where results and reports go (conformance-report/NAME)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")
    shown.add_argument("-v", "--verbose", action="store_true", help="print every row that failed, not twelve kinds")
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """Run, write, and print the conclusion; return its exit code."""
    suite = load_suite_of(args)
    if suite.lost:
        raise Usage(describe_missing_cases(suite))
    plan = _plan_of_one_case(args, suite) or challenge(plan_of(suite), args.nonce)
    order = make_order(args, plan)
    with ExitStack() as locks:
        return _run(args, plan, order, _Folder(args, locks))


def _plan_of_one_case(args: argparse.Namespace, suite: Suite) -> Plan | None:
    """Return the plan of the case that -k names; None if it names none, or if more than its rows will be looked at."""
    options = (
        args.out, args.resume, args.lf, args.nonce, args.shard, args.operation, args.document, args.type, args.waivers,
        args.dask,
    )  # fmt: skip
    if args.select is None or args.json or args.require or any(option is not None for option in options):
        return None
    name = case_of(args.select, suite.cases)
    plan = None if name is None else plan_of_case(suite, name)
    return plan if plan and args.select.strip().rpartition("::")[2] in ids(plan.rows) else None


class _Folder:
    """The folder of a run: locked and cleared before the run begins."""

    def __init__(self, args: argparse.Namespace, locks: ExitStack) -> None:
        self._args, self._locks = args, locks
        self.path: Path | None = None
        if args.out is not None or args.resume is not None:
            self.claim("")

    def claim(self, backend: str) -> Path:
        """Lock and clear the folder and return its path, which is named after the backend without --out."""
        if self.path is None:
            path = _folder(self._args, backend)
            if self._args.resume is not None and not path.is_dir():
                raise Usage(f"--resume {self._args.resume}: is not a folder; there is no run to resume")
            try:
                self._locks.enter_context(lock_folder(path, f"conformance run {self._args.backend}"))
            except InUse as in_use:
                raise Usage(str(in_use)) from None
            if self._args.resume is None:
                clear(path)
            self.path = path
        return self.path


def _run(args: argparse.Namespace, plan: Plan, order: RunRequest, folder: _Folder) -> int:
    progress = Progress("running", sum(chosen_rows(order)) + order.drawn)
    evidence: Evidence | None = None
    keep = not order.target.filter or args.out is not None or args.resume is not None
    try:
        with closing(progress), report_mistakes(args):
            evidence = run_suite(order, folder.claim if keep else None, args.resume is not None, progress.at)
        amount: Amount = "answer" if args.quiet else "all" if args.verbose else "usual"
        return conclude_and_report(args, plan, evidence, folder.path, amount, args.partial_ok)
    except Refused as refused:
        raise Usage(f"--resume: {refused}") from None
    except KeyboardInterrupt as error:
        if folder.path is None:
            raise
        how, code = ("terminated", error.exit_code) if isinstance(error, Terminated) else ("interrupted", 130)
        raise Usage(f"{how}; {_how_to_continue(folder.path, evidence)}", code=code) from None


@contextmanager
def report_mistakes(args: argparse.Namespace) -> Iterator[None]:
    """Turn what a run raises into Usage: a backend that does not start or claims otherwise, results that changed."""
    try:
        yield
    except CannotStart as cannot:
        raise Usage(str(cannot), code=CANNOT_START) from None
    except ClaimsDiffer as differs:
        raise Usage(f"--claims {args.claims}: {differs}", code=CANNOT_START) from None
    except Tampered as tampered:
        raise Usage(str(tampered), code=UNTRUSTED) from None


def _accept_shard(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> Conclusion:
    """Give 0 to a shard in which nothing failed, unless it lacks rows. What it shows of documents stays incomplete."""
    if conclusion.exit_code != INCOMPLETE:
        return conclusion
    shard = f"shard {evidence.header['target']['shard']}"
    if gap := find_shard_gap(plan, evidence):
        return replace(conclusion, why=f"incomplete, also with --partial-ok: {shard}: {gap}")
    why = f"--partial-ok: {shard}: all its rows ran and none failed; `conformance report` decides"
    return replace(conclusion, exit_code=CONFORMS, why=why)


def _how_to_continue(folder: Path, evidence: Evidence | None) -> str:
    path = shlex.quote(relative(folder))
    if evidence is not None or (folder / RESULTS).exists():
        return f"the results are whole; `conformance report {path}` writes their reports"
    return f"to go on, give --resume {path} in place of --out" if part_of(folder / RESULTS).exists() else "nothing ran"


def conclude_and_report(
    args: argparse.Namespace,
    plan: Plan,
    evidence: Evidence,
    out: Path | None,
    amount: Amount = "usual",
    partial_ok: bool = False,
) -> int:
    """Write the reports on evidence into a folder, if there is one, print what it shows, and return the exit code.

    `partial_ok`: a good shard gives 0. Its reports say that it is incomplete.
    """
    try:
        conclusion = conclude_evidence(plan, evidence)
    except Exception as error:  # the evidence is whole, and says nothing of what is wrong with the suite
        then = f"; {_how_to_continue(out, evidence)}" if out is not None else ""
        raise Usage(f"no verdict is shown: {describe_failure(error)}{then}", code=UNTRUSTED) from error
    if out is not None:
        write_reports(out, plan, evidence, conclusion)
    conclusion = _accept_shard(plan, evidence, conclusion) if partial_ok else conclusion
    with go_on(f"exit {conclusion.exit_code}: {conclusion.why}; no more of it is shown", say_error):
        if args.json:
            emit(data_of(plan, conclusion, evidence, out))
        elif amount == "answer":
            show_answer(conclusion, out)
        elif out is not None:
            show(plan, evidence, conclusion, out, amount)
        else:
            show_part(plan, evidence, conclusion, amount)
    return conclusion.exit_code


def write_reports(out: Path, plan: Plan, evidence: Evidence, conclusion: Conclusion) -> None:
    """Write the reports into the folder of a run, and say which are not written, and why.

    The exit code stays that of the verdict. The evidence shows the verdict, with or without a page about it, and no
    other code would be true: the command and its files were read, all rows ran, and nobody changed them.
    """
    from .. import report  # slow to import

    unwritten = report.write(out, plan, evidence, conclusion)
    for line in unwritten:
        say_error(line)
    if unwritten:
        say_error(_how_to_continue(out, evidence))


# ── what to run ───────────────────────────────────────────────────────────────────────────────────


def make_order(args: argparse.Namespace, plan: Plan, with_subject: bool = False) -> RunRequest:
    """Make the order of a run from its options; Usage if they contradict one another."""
    if args.partial_ok and (not args.shard or args.select is not None or args.lf):
        raise Usage("--partial-ok is for a shard of all rows; give --shard I/N, without -k and --lf")
    isolation = isolation_of(args.backend, args.isolation)
    if args.jobs > 1 and isolation == "none":
        raise Usage(f"--jobs {args.jobs} needs processes, and {args.backend} runs in this one; add --isolation worker")
    for option, folder in (("--out", args.out), ("--resume", args.resume)):
        if folder is not None and folder.is_file():
            raise Usage(f"{option} {str(folder)!r} is a file; name a folder")
    if args.out is not None and args.resume is not None:
        raise Usage("--resume names the folder already; drop --out")
    try:
        chosen = parse_selection(args.select, ids(plan.rows)) if args.select is not None else lambda row: True
    except BadExpression as bad:
        raise Usage(f"-k: {bad}") from None
    drawn = _drawn_calls(args)
    return RunRequest(
        backend=args.backend,
        plan=plan,
        target=_target(args, plan),
        chosen=chosen if args.lf is None else _choose_failures(args.lf, chosen),
        isolation=isolation,
        limits=Limits(seconds=args.timeout, memory=args.memory << 20, budget=args.budget, maxhang=args.maxhang),
        jobs=args.jobs,
        waivers=args.waivers,
        pinned=None if args.claims is None else read_claims(args.claims),
        dask=args.dask,
        spec=args.spec,
        cases=args.cases,
        maxfail=args.maxfail,
        drawn=drawn,
        write=_writer_of_drawn() if drawn else None,
        with_subject=with_subject,
        by=args.by,
    )


def _choose_failures(folder: Path, chosen: Callable[[Row], bool]) -> Callable[[Row], bool]:
    """Narrow a choice to the rows that failed in the run of a folder."""
    try:
        results = read(folder / RESULTS if folder.is_dir() else folder).results
    except Refused as refused:
        raise Usage(f"--lf: {refused}") from None
    failed = {result.row for result in results if fails(result.verdicts.values())}
    if not failed:
        raise Usage(f"--lf {folder}: no row failed in that run; drop --lf to run all rows", code=INCOMPLETE)
    return lambda row: row.id in failed and chosen(row)


def _writer_of_drawn() -> WriteCase:
    from ..hunt.write_drawn import write_drawn  # slow to import, and not every run draws calls

    return write_drawn


def _drawn_calls(args: argparse.Namespace) -> int:
    """Return the number of calls to draw: none if only a part of the rows is run.

    With waivers there are none unless --hunt asks for them, because a waiver cannot name a call that nobody wrote.
    """
    partial = args.select is not None or args.lf or args.shard or args.operation or args.document or args.type
    if partial and args.hunt:
        raise Usage(f"--hunt {args.hunt} draws calls of the whole target; drop the options that choose a part of it")
    if args.hunt is None:
        return 0 if partial or args.waivers else _DRAWN
    return int(args.hunt)


def _target(args: argparse.Namespace, plan: Plan) -> Target:
    spec = plan.suite.spec
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    for what, names, known in (
        ("operation", args.operation, spec.operations),
        ("document", args.document, spec.documents),
        ("type", args.type, types),
    ):
        for name in names or ():
            if name not in known:
                raise Usage(describe_unknown(what, name, sorted(known)))
    return Target(
        operations=tuple(args.operation or ()),
        documents=tuple(args.document or ()),
        types=tuple(args.type or ()),
        select=args.select,
        large=args.large,
        require=check_requirements(args.require, plan),
        shard=args.shard,
        lf=None if args.lf is None else str(args.lf),
    )


def check_requirements(names: Sequence[str] | None, plan: Plan) -> tuple[str, ...]:
    """Check the names given with --require; Usage if there is no such document, operation, type or facet."""
    spec = plan.suite.spec
    facets = {facet for row in plan.rows for facet in row.facets}
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    claimable = {name for name in FACETS if any(covers(name, facet) for facet in facets)}
    known = {*claimable, *spec.operations, *spec.documents, *types}
    for name in names or ():
        if name not in known:
            raise Usage(describe_unknown("requirement", name, sorted(known)))
    return tuple(names or ())


def read_claims(path: Path) -> Claims:
    """Read the claims in a file."""
    content, problems = read_file(path, "claims")
    require([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    return Claims.from_json(content)


def _folder(args: argparse.Namespace, name: str) -> Path:
    return Path(args.resume or args.out or Path(DEFAULT_OUT) / _folder_name(name)).resolve()


def _folder_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return kept.strip(".-")[:80] or "backend"
