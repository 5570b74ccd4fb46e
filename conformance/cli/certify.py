"""`conformance certify BACKEND`: a whole run with a statement that can be signed, challenged and run again."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..adapter import REFERENCE, is_reference
from ..certificate import statement as records
from ..certificate.check import refuse_uncommitted, why_not_now
from ..certificate.page import BADGE, PAGE, render_pages, verify_command
from ..certificate.signature import TESTER, sign, signature_of, try_key
from ..draw.nonce import plan_under_nonce
from ..evidence.command import list_suite_options
from ..evidence.folder import RESULTS, clear
from ..evidence.results import Evidence, InvalidEvidence
from ..report.badge import describe_run
from ..report.judged_run import JudgedRun
from ..run.ended_process import HangPolicy
from ..runner.run_suite import RunRequest
from ..system.files import lock_folder, replace_bytes, replace_text
from ..system.go_on import go_on
from ..system.terminal import say, verbatim
from ..verdict.sentences import describe_missing_cases
from .arguments import Stop, emit, load_plan, say_error
from .parser import Parser, days, existing_file
from .printing import print_conclusion
from .request import add_request_options, read_common_options, refusals_fail
from .run import conclude, run_with_progress, write_reports
from .run_summary import relative
from .shared_options import add_key

DEFAULT_OUT = Path("conformance-certificate")
_WRITTEN = (records.STATEMENT, PAGE, BADGE, records.AUDIT, records.CHALLENGE)

EXAMPLES = """\
  conformance certify ./mine.py:Mine --tester "Mine Ltd" --key mine-key    self-tested and signed
  conformance certify ./mine.py:Mine --commit                          names what will be tested, for an issuer
  conformance certify ./mine.py:Mine --challenge challenge.json --key mine-key
docs/certify.md has the whole conversation of tester and issuer
exit codes: those of `run`; 1 also if a challenge is refused"""


def add_options(parser: Parser) -> None:
    add_request_options(parser)
    text = "write commitment.json, which names what will be tested, for an issuer to challenge"
    parser.add_argument("--commit", action="store_true", help=text)
    parser.once("--challenge", "FILE", "the issuer's challenge to the commitment in --out", type=existing_file)
    add_key(parser)
    parser.add_argument("--days", type=days, default=365, metavar="N", help="days of validity (365)")
    text = "worker: a process for the backend (the default); row: a process for each row"
    parser.add_argument("--isolation", choices=("worker", "row"), default="worker", help=text)
    parser.path("--out", "DIR", "where the certificate goes (conformance-certificate)")


@refusals_fail()
def run(args: argparse.Namespace) -> int:
    """Run the backend; write evidence, reports and certificate, or a commitment; return the exit code of the run."""
    if is_reference(args.backend):
        raise Stop("the reference is part of the suite and gets no certificate; name the backend of a library")
    if args.commit and (args.challenge or args.key or args.tester):
        raise Stop("--commit names what will be tested; --challenge, --tester and --key are for the run after that")
    if args.key is not None:
        try_key(args.key, TESTER)  # before any work is done for a signature
    out = (args.out or DEFAULT_OUT).resolve()
    with lock_folder(out):
        asked = records.read_record(args.challenge, records.CHALLENGE_FORM) if args.challenge else None
        commitment = _read_commitment(asked, args.backend, out) if asked else None  # before anything runs
        if asked and (why := why_not_now(asked, datetime.now(timezone.utc))):
            raise InvalidEvidence(why)
        plan = plan_under_nonce(load_plan(args.suite), asked.record["nonce"] if asked else None)
        if plan.suite.lost:
            raise Stop(describe_missing_cases(plan.suite))
        every_row = HangPolicy(max_hangs=0)  # a certificate is of all rows, also where others of their case hang
        request = replace(read_common_options(args, plan), with_subject=True, hangs=every_row)
        evidence = _run_request(request, args.challenge, commitment, out)
        files = evidence.footer.get("subject", {})
        if commitment is not None:
            refuse_uncommitted(commitment, evidence.header, files)
        judged = conclude(plan, evidence, out)
        write_reports(out, judged, certified=not args.commit)
        if args.commit:
            records.write_record(out / records.COMMITMENT, records.commitment_of(evidence.header, files))
        else:
            _write_statement(judged, asked, out, args.days, args.key)
    conclusion = judged.conclusion
    if args.json:
        emit({"folder": str(out), "exit_code": conclusion.exit_code, "why": conclusion.why, "files": files})
        return conclusion.exit_code
    _show(judged)
    if args.commit:
        say(f"commitment: {relative(out / records.COMMITMENT)}; send it to the issuer, who answers with a challenge")
        words = [args.backend, "--challenge", "FILE", "--out", str(relative(out)), *list_suite_options(evidence.header)]
        say(verbatim(f"next: conformance certify {shlex.join(words)}"))
        return conclusion.exit_code
    suite, level = evidence.header["suite"], records.level_of(evidence.footer, args.challenge)
    described = describe_run(level, evidence.header["started"], suite["version"], suite["digest"])
    signed = "" if args.key else "; not signed; sign with --key FILE"
    page = out / PAGE
    say(f"certificate: {relative(page if page.exists() else out / records.STATEMENT)} ({described}{signed})")
    trust = ["--challenge", str(args.challenge)] if args.challenge else []
    say(verbatim(f"next: {verify_command(relative(out), evidence.header, trust)}"))
    return conclusion.exit_code


def _read_commitment(asked: records.RecordFile, backend: str, out: Path) -> records.RecordFile:
    if not (out / records.COMMITMENT).is_file():
        raise Stop(f"{out} has no {records.COMMITMENT}; name the --out of `conformance certify {backend} --commit`")
    commitment = records.read_record(out / records.COMMITMENT, records.COMMITMENT_FORM)
    if commitment.sha256 != asked.record["commitment"]:
        raise InvalidEvidence(f"{asked.path}: was given for another commitment than {commitment.path}")
    return commitment


def _run_request(
    request: RunRequest, challenge_: Path | None, commitment: records.RecordFile | None, out: Path
) -> Evidence:
    kept = [path.resolve() for path in (challenge_, signature_of(challenge_))] if challenge_ else []

    def folder_of(header: Mapping[str, Any]) -> Path:
        if header["backend"]["name"] == REFERENCE:
            raise Stop(
                f"{request.backend}: calls itself {REFERENCE}; set `identity`, the name and version of a library"
            )
        if commitment is not None:  # the files under test are known after the run
            refuse_uncommitted(commitment, header, commitment.record["files"])
        for name in _WRITTEN:
            for path in (out / name, signature_of(out / name)):
                if path.resolve() not in kept:
                    path.unlink(missing_ok=True)
        clear(out)
        return out

    return run_with_progress(request, folder_of, out)


def _write_statement(
    judged: JudgedRun, asked: records.RecordFile | None, out: Path, days_: int, key: Path | None
) -> None:
    if asked is not None:
        replace_bytes(out / records.CHALLENGE, asked.content)
        source, place = signature_of(asked.path), signature_of(out / records.CHALLENGE)
        if source.exists() and source.resolve() != place.resolve():
            shutil.copyfile(source, place)
    results = records.digest_of_file(out / RESULTS)
    record = records.statement_of(judged, judged.plan.suite.digest, results, days_, asked and asked.sha256)
    statement = records.write_record(out / records.STATEMENT, record)
    if key is not None:
        sign(statement, key, TESTER)
    with go_on(f"{PAGE} or {BADGE} is not written", say_error):
        for name, text in render_pages(statement, None, judged.with_drawn, RESULTS):
            replace_text(out / name, text)


def _show(judged: JudgedRun) -> None:
    conclusion, footer = judged.conclusion, judged.evidence.footer
    files, lost = footer.get("subject", {}), footer.get("not_named", ())
    print_conclusion(judged.name, conclusion)
    say()
    say(f"files under test: {len(files)}" + ("" if files or lost else "; this system does not name them"))
    for name, digest in files.items():
        say(f"  {digest[:16]}…  {name}")
    for what in lost:
        say(f"  no digest          {what}")
    say()
    say(f"exit {conclusion.exit_code}: {conclusion.why}")
