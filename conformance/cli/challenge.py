"""`conformance challenge commitment.json`: draw a nonce for the commitment of a tester."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from ..certificate.signature import ISSUER, sign
from ..certificate.statement import CHALLENGE, COMMITMENT_FORM, challenge_of, read_record, write_record
from ..evidence.results import InvalidEvidence, name_with_version
from ..system.exit_codes import CommandError
from ..system.terminal import count_noun, say
from .arguments import Stop, emit, load_plan
from .parser import Parser, days, existing_file
from .request import refusals_fail
from .shared_options import add_key

EXAMPLES = """\
  conformance challenge commitment.json --key issuer-key
exit codes: 0 written · 1 the commitment is refused · 2 usage"""


def add_options(parser: Parser) -> None:
    parser.add_argument("commitment", type=existing_file, metavar="FILE", help="the commitment.json of a tester")
    parser.add_argument("--days", type=days, default=14, metavar="N", help="days in which to answer (14)")
    add_key(parser)
    parser.path("--out", "FILE", "where the challenge goes (challenge.json)")


@refusals_fail()
def run(args: argparse.Namespace) -> int:
    """Write the challenge; Stop if the commitment is of another suite."""
    path, key, out = args.commitment, args.key, args.out or Path(CHALLENGE)
    if out.exists():
        raise Stop(f"{out} exists; a challenge is given once, so name another file with --out")
    committed = read_record(path, COMMITMENT_FORM)
    commitment = committed.record
    suite = load_plan(args.suite).suite.digest
    if commitment["suite"] != suite:
        theirs = commitment["suite"][:12]
        raise InvalidEvidence(f"{path}: is for suite {theirs}, and this one is {suite[:12]}; use one version")
    if not commitment["files"]:
        raise InvalidEvidence(f"{path}: names no file that will be tested, so that a challenge shows nothing")
    record = challenge_of(secrets.token_hex(32), committed, args.days)
    challenge = write_record(out, record)
    if key is not None:
        try:
            sign(challenge, key, ISSUER)
        except CommandError:
            challenge.path.unlink()  # a challenge that nobody signed is not given
            raise
    if args.json:
        emit(record)
        return 0
    name, files = name_with_version(commitment["backend"]), count_noun(len(commitment["files"]), "file")
    say(f"challenge for {name} ({files}): {out}")
    say(f"it must be answered before {record['expires']}; keep the file, with which you verify the answer")
    say(f"next, the tester: conformance certify BACKEND --challenge {out.name} --out FOLDER-OF-THE-COMMITMENT")
    return 0
