"""`conformance register DIR`: verify a folder of certificates, and write a page and a JSON file that list them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..certificate.check import Trust, check_certificate
from ..certificate.page import PAGE, scope_of
from ..certificate.statement import STATEMENT
from ..evidence.results import Refused
from ..plan.rows import Plan
from ..report.render import render_page
from ..report.verify import OtherSuite
from ..site.publish import REGISTER
from ..system.files import replace_text
from ..system.terminal import say, table
from .arguments import Usage, emit, load_plan
from .parser import Parser, path
from .shared_options import add_cases, add_keys

DATA = "register.json"
_KEYS = (
    "folder", "backend", "level", "scope", "waived", "run", "suite", "by", "issuer", "until", "link", "why",
)  # fmt: skip
"""The keys of every entry; a refused one has values for `folder` and `why` alone."""


EXAMPLES = """\
  conformance register certificates --allowed signers"""


def add_options(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="DIR", help="a folder with a folder for each certificate")
    add_keys(parser)
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """List every certificate below a folder; 1 if one of them cannot be relied on or does not conform."""
    folders = sorted(path.parent for path in args.folder.glob(f"*/{STATEMENT}"))
    if not folders:
        raise Usage(f"{args.folder} holds no certificate; each has a folder of its own with {STATEMENT}")
    plan = load_plan(args)
    entries = [_entry(folder, plan, args) for folder in folders]
    replace_text(args.folder / DATA, json.dumps(entries, indent=1) + "\n")
    shown = [
        {**entry, "scope": scope_of({"warnedTests": [], "passedTests": entry["scope"] or []})} for entry in entries
    ]
    page = render_page("register.html", style="certificate.css", entries=shown, signed=args.allowed is not None)
    replace_text(args.folder / REGISTER, page)
    if args.json:
        emit(entries)
    else:
        rows = [(each["backend"] or each["folder"], each["level"] or "refused", each["run"] or "", each["suite"] or "",
                 each["why"] or f"valid until {each['until']}") for each in entries]  # fmt: skip
        say(table(rows, ("backend", "level", "run", "suite", "state")))
        say(f"register: {args.folder / REGISTER}")
    return 1 if any(each["why"] for each in entries) else 0


def _entry(folder: Path, plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    entry: dict[str, Any] = dict.fromkeys(_KEYS)
    entry["folder"] = folder.name
    try:
        certificate = check_certificate(folder, plan, Trust(args.allowed, args.revoked))
    except (Refused, OtherSuite) as refused:
        return {**entry, "why": str(refused).removeprefix(f"{folder}/").removeprefix(f"{folder}: ")}
    own, predicate = certificate.own, certificate.predicate
    why = f"does not conform: {certificate.conclusion.why}" if predicate["result"] == "FAILED" else None
    return {
        **entry, "backend": f"{own['backend']['name']} {own['backend']['version']}", "level": certificate.level,
        "run": own["started"][:10], "suite": f"{own['version']} ({plan.suite.digest[:12]})", "why": why,
        "waived": predicate["warnedTests"],
        "scope": predicate["passedTests"] + predicate["warnedTests"], "by": certificate.signer or own["by"],
        "issuer": certificate.issuer, "until": own["validUntil"][:10], "link": f"{folder.name}/{PAGE}",
    }  # fmt: skip
