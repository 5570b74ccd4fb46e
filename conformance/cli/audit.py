"""`conformance audit FOLDER BACKEND`: run the files of a certificate again; sign that the answers are the same."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..adapter import digest_of_adapter
from ..certificate.check import Certificate, Trust, check_certificate, count_called, refuse_resumed, refuse_same_key
from ..certificate.page import render_pages, verify_command
from ..certificate.signature import ISSUER, is_signed, sign, signature_of, signer_of, try_key
from ..certificate.statement import AUDIT, AUDIT_FORM, audit_of, level_of, read_record, write_record
from ..evidence.folder import RESULTS
from ..evidence.results import InvalidEvidence
from ..evidence.subject import Subject
from ..isolate.backend import use_backend
from ..runner.repeat import Repetition, repeat
from ..system.exit_codes import FAILS
from ..system.files import replace_text
from ..system.terminal import say, verbatim, wrap
from .arguments import check_folder, emit, load_plan
from .parser import Parser, one_line, path, positive
from .request import refusals_fail
from .shared_options import add_backend, add_key, add_trust

_MAX_DIFFERENCES_SHOWN = 10

EXAMPLES = """\
  conformance audit certificate ./mine.py:Mine --allowed signers --challenge challenge.json --key issuer-key
exit codes: 0 the same answers · 1 other answers, or the certificate is refused · 2 usage · 3 cannot start"""


def add_options(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="FOLDER", help="the folder of a certificate")
    add_backend(parser)
    parser.add_argument(
        "--rows", type=positive, metavar="N", help="call only so many rows, drawn at random (all); that is no re-run"
    )
    add_trust(parser)
    parser.once("--issuer", "NAME", "who issues, as the certificate says it", type=one_line)
    add_key(parser)


@refusals_fail()
def run(args: argparse.Namespace) -> int:
    """Check the certificate, call its rows again here, and write audit.json if every answer is the same."""
    folder, key = args.folder, args.key
    check_folder("FOLDER", folder)
    plan = load_plan(args.suite)
    trust = Trust(args.allowed, args.revoked, args.challenge)
    certificate = check_certificate(folder, plan, trust, audited=False)
    evidence = certificate.run.evidence
    refuse_resumed(evidence, folder / RESULTS)
    if issuer := key and try_key(key, ISSUER, trust.allowed, trust.all_revoked):
        refuse_same_key(issuer, certificate.signer, f"--key {key}: signed the statement")
    here = digest_of_adapter(args.backend)
    if here is None:
        with use_backend(args.backend, "worker"):  # says what to do if there is no such adapter
            pass
    if (due := evidence.header["backend"]["digest"]) != here:
        raise InvalidEvidence(
            f"{args.backend}: is another adapter than the one in the certificate, which has the SHA-256 {due}"
        )
    repetition = repeat(evidence, plan, args.backend, args.rows or count_called(evidence))
    _refuse_other_files(evidence.footer, repetition.subject)
    kept = _find_stronger_audit(folder, certificate, trust, repetition.rows, key is not None)
    if not repetition.differences and kept is None:
        _write(folder, certificate, repetition, args.issuer, key)
    if args.json:
        emit(repetition.record())
    elif kept is not None and not repetition.differences:
        say(f"{repetition.rows:,} rows were called again and gave the same answers; nothing is written, as {kept}")
    else:
        _show(folder, repetition, certificate, args.allowed, key is not None)
    return FAILS if repetition.differences else 0


def _find_stronger_audit(folder: Path, certificate: Certificate, trust: Trust, rows: int, signs: bool) -> str | None:
    """Say what an audit of this certificate has that is there already, and that another one would lack."""
    path = folder / AUDIT
    if not path.is_file():
        return None
    with contextlib.suppress(InvalidEvidence):  # one that no issuer signed may be the tester's
        there = read_record(path, AUDIT_FORM)
        if trust.allowed is not None:
            signer_of(there, ISSUER, trust.allowed, trust.all_revoked)
        if there.own["statement"] != certificate.statement.sha256:
            return None
        if is_signed(path) and not signs:
            return f"{path} is signed"
        if there.own["rows"] > rows:
            return f"{path} is of {there.own['rows']:,} rows"
    return None


def _refuse_other_files(footer: Mapping[str, Any], here: Subject) -> None:
    """Refuse to speak of files that did not run here, or of others that did.

    A package loads some of its files only when a call needs them. Such a file may be missing on either side, if all
    files of the package are the same on both.
    """
    certified: Mapping[str, str] = footer.get("subject", {})
    if not certified:
        raise InvalidEvidence("the certificate names no file under test, so that a re-run would show nothing")
    for name in dict.fromkeys((*certified, *here.files)):
        if here.files.get(name) != certified.get(name) and not _is_of_the_same_package(name, certified, here):
            if name not in certified:
                what = "was used here, and is not in the certificate; audit again without it"
            else:
                what = "is another file here" if name in here.files else "was not used here"
                what += "; install what was certified, then audit again"
            raise InvalidEvidence(f"{name}: {what}")
    made = "code that is in no file"
    lost = {*here.not_named, *[made] * here.unnamed_code}
    if more := sorted(lost - {*footer.get("not_named", ()), *[made] * footer.get("unnamed_code", False)}):
        raise InvalidEvidence(f"{more[0]}: was used here and has no digest, which the certificate does not say")


def _is_of_the_same_package(name: str, certified: Mapping[str, str], here: Subject) -> bool:
    """Ask whether a file was loaded on one side only, and their package has the same file on both."""
    if (name in here.files and name in certified) or name not in here.listed:
        return False
    package, digest = here.listed[name]
    same = package in here.files and here.files[package] == certified.get(package)
    return same and digest == certified.get(name, digest) == here.files.get(name, digest)


def _write(
    folder: Path, certificate: Certificate, repetition: Repetition, issuer: str | None, key: Path | None
) -> None:
    """Write the audit, and page and badge again."""
    run, statement = certificate.run, certificate.statement
    signature_of(folder / AUDIT).unlink(missing_ok=True)
    called = count_called(run.evidence)
    record = audit_of(statement, run.evidence, repetition.rows, called, issuer, repetition.details)
    audit = write_record(folder / AUDIT, record)
    if key is not None:
        sign(audit, key, ISSUER)
    for name, text in render_pages(statement, audit, run.with_drawn, certificate.content.path.name):
        replace_text(folder / name, text)


def _show(
    folder: Path, repetition: Repetition, certificate: Certificate, allowed: Path | None, is_signed: bool
) -> None:
    if number := len(repetition.differences):
        say(f"{number:,} of {repetition.rows:,} rows gave other answers here; nothing is signed")
        for difference in repetition.differences[:_MAX_DIFFERENCES_SHOWN]:
            say(f"  {difference}")
        return
    evidence = certificate.run.evidence
    called = count_called(evidence)
    level = level_of(evidence.footer, certificate.statement.own["challenge"], repetition.rows >= called)
    why = "some rows were not called" if repetition.rows < called else "some of what ran has no name"
    whole = f"is now at level {level}" if level == "re-run" else f"stays at level {level}, because {why}"
    say(f"{repetition.rows:,} of {called:,} rows were called again and gave the same answers; the certificate {whole}")
    if repetition.details:
        say(wrap(f"the audit says that the backend describes itself otherwise here: {repetition.details}"))
    say(f"audit: {folder / AUDIT}{'' if is_signed else ' (not signed; sign with --key FILE)'}")
    trust = ["--allowed", str(allowed)] if allowed and is_signed else []
    say(verbatim(f"next: {verify_command(str(folder), evidence.header, trust)}"))
