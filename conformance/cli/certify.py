"""`conformance certify BACKEND`: a whole run with a statement that can be signed, challenged and run again."""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

from .. import report
from ..certify.certify import Order, certify, chosen_rows
from ..certify.conclude import Conclusion, conclude_evidence
from ..certify.evidence import Evidence, Refused
from ..certify.folder import RESULTS, clear
from ..certify.sentences import describe_missing_cases
from ..certify.signature import SUFFIX, TESTER, sign
from ..certify.statement import (
    AUDIT,
    CHALLENGE,
    CHALLENGE_FORM,
    COMMITMENT,
    COMMITMENT_FORM,
    STATEMENT,
    commitment_of,
    digest_of_file,
    encode_record,
    read_record,
    statement_of,
)
from ..plan.challenge import challenge
from ..report.certificate import PAGE, refuse_uncommitted, render_certificate
from ..system.exit_codes import FAILS
from ..system.files import InUse, lock_folder, replace_text
from ..system.progress import Progress
from ..system.terminal import paint, say, wrap
from .arguments import Usage, check_key, emit, load_plan
from .run import make_order, report_mistakes
from .run_summary import relative

DEFAULT_OUT = Path("conformance-certificate")
_WRITTEN = (STATEMENT, PAGE, AUDIT, CHALLENGE)


def run(args: argparse.Namespace) -> int:
    """Run the backend; write evidence, reports and certificate, or a commitment; return the exit code of the run."""
    if args.commit and (args.challenge or args.key or args.by):
        raise Usage("--commit names what will be tested; --challenge, --by and --key are for the run after that")
    check_key(args.key)
    out: Path = args.out or DEFAULT_OUT
    out = out.resolve()
    try:
        with lock_folder(out, f"conformance certify {args.backend}"):
            return _run_in(args, out)
    except InUse as in_use:
        raise Usage(str(in_use)) from None
    except Refused as refused:
        raise Usage(str(refused), code=FAILS) from None


def _run_in(args: argparse.Namespace, out: Path) -> int:
    asked, commitment = _read_challenge(args, out)
    plan = challenge(load_plan(args), asked["nonce"] if asked else None)
    if plan.suite.lost:
        raise Usage(describe_missing_cases(plan.suite))
    order = make_order(args, plan, with_subject=True)
    evidence = _certify(args, order, out)
    if commitment is not None:
        refuse_uncommitted(commitment, evidence, out / COMMITMENT)
    conclusion = conclude_evidence(plan, evidence)
    report.write(out, plan, evidence, conclusion)
    if args.commit:
        replace_text(out / COMMITMENT, encode_record(commitment_of(evidence)))
    else:
        _write_statement(args, evidence, conclusion, out)
    _show(args, evidence, conclusion, out)
    return conclusion.exit_code


def _read_challenge(args: argparse.Namespace, out: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Read the challenge and the commitment that it answers, before anything runs."""
    if args.challenge is None:
        return None, None
    asked = read_record(args.challenge, CHALLENGE_FORM)
    if not (out / COMMITMENT).is_file():
        raise Usage(f"{out} has no {COMMITMENT}; name the --out of `conformance certify {args.backend} --commit`")
    commitment = read_record(out / COMMITMENT, COMMITMENT_FORM)
    if digest_of_file(out / COMMITMENT) != asked["commitment"]:
        raise Refused(f"{args.challenge}: was given for another commitment than {out / COMMITMENT}")
    return asked, commitment


def _certify(args: argparse.Namespace, order: Order, out: Path) -> Evidence:
    progress = Progress("running", sum(chosen_rows(order)) + order.drawn)
    kept = [Path(f"{args.challenge}{suffix}").resolve() for suffix in ("", SUFFIX)] if args.challenge else []

    def folder_of(backend: str) -> Path:
        clear(out)
        for name in _WRITTEN:
            for path in (out / name, out / f"{name}{SUFFIX}"):
                if path.resolve() not in kept:
                    path.unlink(missing_ok=True)
        return out

    with closing(progress), report_mistakes(args):
        return certify(order, folder_of, False, progress.at)


def _write_statement(args: argparse.Namespace, evidence: Evidence, conclusion: Conclusion, out: Path) -> None:
    digest = None
    if args.challenge is not None:
        digest = digest_of_file(args.challenge)
        for suffix in ("", SUFFIX):
            source = Path(f"{args.challenge}{suffix}")
            if source.exists() and source.resolve() != (out / f"{CHALLENGE}{suffix}").resolve():
                shutil.copyfile(source, out / f"{CHALLENGE}{suffix}")
    results = digest_of_file(out / RESULTS)
    statement = statement_of(evidence, results, conclusion, args.days, digest)
    replace_text(out / STATEMENT, encode_record(statement))
    if args.key is not None:
        sign(out / STATEMENT, args.key, TESTER)
    replace_text(out / PAGE, render_certificate(out, statement))


def _show(args: argparse.Namespace, evidence: Evidence, conclusion: Conclusion, out: Path) -> None:
    files = evidence.footer.get("subject", {})
    if args.json:
        emit({"folder": str(out), "exit_code": conclusion.exit_code, "why": conclusion.why, "files": files})
        return
    backend = evidence.header["backend"]
    say(paint("bold", f"{backend['name']} {backend['version']}"))
    for sentence in conclusion.sentences:
        say(wrap(sentence, 2, 4))
    say()
    say(f"files under test: {len(files)}" + ("" if files else "; this system does not name them"))
    for name, digest in files.items():
        say(f"  {digest[:16]}…  {name}")
    say()
    say(f"exit {conclusion.exit_code}: {conclusion.why}")
    if args.commit:
        say(f"commitment: {relative(out / COMMITMENT)}; send it to the issuer, who answers with a challenge")
        say(f"next: conformance certify {args.backend} --challenge FILE --out {relative(out)}")
        return
    level = "self-tested" if args.challenge is None else "challenged"
    say(f"certificate: {relative(out / PAGE)} ({level}{'' if args.key else ', not signed; sign with --key FILE'})")
    more = f" --challenge {args.challenge}" if args.challenge else ""
    say(f"next: conformance verify {relative(out)} --certificate{more}")
