"""`conformance publish DIR [RUN…]`: put runs and certificates into a folder, and write all its pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..certificate.check import Trust
from ..evidence.folder import find_results_path
from ..model import ERROR, FAIL, NOT_RUN, OBSERVED, PASS, WAIVED, Verdict
from ..report.judged_run import JudgedRun
from ..site.playground import PLAYGROUND
from ..site.publish import (
    SPECIFICATION,
    count_bytes,
    prepare,
    prepare_again,
    publish,
    refuse_foreign_pages,
    refuse_private_keys,
    refuse_shared_folder,
    write_pages,
)
from ..site.register import REGISTER
from ..system.files import lock_folder
from ..system.progress import track
from ..system.terminal import count_noun, say, table
from .arguments import Stop, emit, load_plan
from .parser import Parser, path

COLUMNS: tuple[Verdict, ...] = (PASS, FAIL, OBSERVED, ERROR, WAIVED, NOT_RUN)
"""The verdicts that a test can have."""
EXAMPLES = """\
  conformance publish reports build/mine             a run or a certificate, then every page of reports/
  conformance publish reports                        every page again
  conformance publish build/site                     the annotated documents alone, in an empty folder
exit codes: 0 written · 1 results of another suite, or a certificate that is refused · 2 usage"""


def add_options(parser: Parser) -> None:
    text = "the folder of the site: results, reports, certificates, annotated documents, playground"
    parser.add_argument("folder", type=path, metavar="DIR", help=text)
    text = "the folder of a whole run or of a certificate, to be put into DIR"
    parser.add_argument("runs", nargs="*", default=[], type=path, metavar="RUN", help=text)


def run(args: argparse.Namespace) -> int:
    """Write the site; 1 if a folder is of another suite or a certificate is refused, whatever the results are."""
    plan = load_plan(args.suite)
    site: Path = args.folder
    if not site.is_dir() and (site.exists() or not args.runs):
        what = "is no folder" if site.exists() else "does not exist"
        raise Stop(f"{str(site)!r} {what}; name the folder of a RUN too, or make it for the documents alone")
    trust = Trust.of_site(site)
    with lock_folder(site):
        refuse_foreign_pages(site)
        refuse_private_keys(site)
        runs = track("reading", args.runs, len(args.runs))
        named = (prepare(find_results_path(folder), plan, site, trust) for folder in runs)
        new = [*(named if args.runs else prepare_again(site, plan, trust))]
        refuse_shared_folder(new)
        for each in new:
            publish(each)
            note = f"; {each.replaces}" if each.replaces else ""
            say(f"{each.folder}: {count_bytes(each.folder) // 1024:,} KiB{note}", sys.stderr)
        shown, stale, certificates = write_pages(site, plan, trust, new)
    if args.json:
        emit({
            "folder": str(site),
            "backends": [{"name": facts.name, "verdicts": dict(facts.conclusion.counts)} for facts in shown],
            "stale": stale,
            "certificates": certificates,
        })  # fmt: skip
    else:
        _show(site, shown, stale, certificates)
    return 1 if stale or any(each["level"] is None for each in certificates) else 0


def _show(site: Path, runs: list[JudgedRun], stale: list[str], certificates: list[dict[str, Any]]) -> None:
    if runs:
        rows = [(facts.name, *(str(facts.conclusion.counts.get(verdict, 0)) for verdict in COLUMNS)) for facts in runs]
        say(table(rows, ("backend", *COLUMNS), tuple(range(1, 1 + len(COLUMNS)))))
    for why in stale:
        say(f"not on the page: {why}")
    if certificates:
        lines = [(each["backend"] or each["folder"], each["level"] or "refused", each["run"] or "", each["suite"] or "",
                  each["why"] or f"valid until {each['until']}") for each in certificates]  # fmt: skip
        say(table(lines, ("certificate of", "level", "run", "suite", "state")))
        say(f"register: {site / REGISTER}")
    say(f"documents: {site / SPECIFICATION}")
    say(f"playground: {site / PLAYGROUND}")
    if runs:
        say(f"{count_noun(len(runs), 'backend')} in {site / 'index.html'}; {count_bytes(site) / 1e6:.1f} MB in all")
