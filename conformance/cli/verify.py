"""`conformance verify PATH`: derive every number and verdict of a report again from its evidence."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..certificate.check import Trust, check_certificate
from ..certificate.page import BADGE, PAGE, describe_people, name_tester
from ..certificate.statement import AUDIT, LEVELS, STATEMENT, suite_of
from ..evidence.folder import PUBLISHED, REPORTS, RESULTS
from ..evidence.results import Evidence
from ..plan.rows import Plan
from ..report.badge import describe_run
from ..report.verify import OtherSuite, Verification, verify_report, why_not
from ..runner.repeat import Repetition, repeat
from ..runner.run_suite import describe_difference
from ..system.exit_codes import CONFORMS, FAILS
from ..system.terminal import OK_SIGN, count_noun, paint, say, with_sign, wrap
from ..system.text import quote, quote_json
from ..verdict.conclude import Conclusion, conclude_evidence
from .arguments import Stop, emit, load_plan, pick
from .parser import Parser, day, existing_file, path, positive
from .printing import print_conclusion
from .request import check_requirements, read_claims, refusals_fail
from .shared_options import add_trust

_CHECKED = (STATEMENT, AUDIT, PAGE, BADGE, RESULTS, PUBLISHED, *REPORTS)
"""The files of a certificate that must be as the suite writes them: the name of another one would read as checked."""

EXAMPLES = """\
  conformance verify build/reference                  a folder of a run
  conformance verify report.html                      a page that somebody sent: is it true to its evidence?
  conformance verify report.html --conforms           for a gate: 0 only where it is true, and says yes
  conformance verify report.html --conforms static-graph-v0.9
  conformance verify report.html --repeat 50 ./mine.py:Mine   calls some rows again and compares
exit codes: 0 all holds · 1 something does not · 2 usage · 3 the backend of --repeat cannot start"""


def add_options(parser: Parser) -> None:
    text = "a report.html, a results.jsonl, or the folder of a run"
    parser.add_argument("path", type=path, nargs="?", metavar="PATH", help=text)
    text = "exit with 1 also if the whole target, or every type that DOCUMENT lists, is not shown to conform"
    parser.once("--conforms", "DOCUMENT", text, nargs="?", const="")
    parser.many("--require", "NAME", "a document, type or facet that must be shown")
    parser.path("--claims", "FILE", "what the backend must have claimed, exactly")
    text = "call N rows again, drawn at random, on the backend that you trust to be the one of the report, and compare"
    parser.once("--repeat", ("N", "BACKEND"), text, nargs=2)
    text = "the path is the folder of a certificate, or a file in it; check all of it"
    parser.add_argument("--certificate", action="store_true", help=text)
    add_trust(parser)
    parser.once("--subject", "FILE", "a file that must have been tested, such as a library", type=existing_file)
    parser.once("--at", "DAY", "ask whether the certificate held on that day, such as 2026-11-25", type=day)


def run(args: argparse.Namespace) -> int:
    """Verify a report; 0 if everything follows from the evidence and it meets the options, else 1."""
    path, conforms, certificate = args.path, args.conforms, args.certificate
    require, claims = args.require, args.claims
    if path is None:
        if not conforms:
            raise Stop("name what to verify: a report.html, a results.jsonl, or the folder of a run")
        path, conforms = Path(conforms), ""  # `--conforms PATH` names no document
    of_certificate = {"--allowed": args.allowed, "--revoked": args.revoked, "--challenge": args.challenge,
                      "--subject": args.subject, "--at": args.at}  # fmt: skip
    of_report = {"--repeat": args.repeat, "--require": require, "--claims": claims}
    for option, value in (of_report if certificate else of_certificate).items():
        if value:  # it would check nothing
            what = "does not go with --certificate" if certificate else "is about a certificate; add --certificate"
            raise Stop(f"{option} {what}")
    plan = load_plan(args.suite)
    document = pick("document", conforms, plan.suite.spec.documents) if conforms else None
    if certificate:
        folder = path.parent if path.is_file() else path
        if folder != path and path.name not in _CHECKED:
            raise Stop(f"{path}: is not checked with a certificate; name that folder, or {PAGE} in it")
        return _verify_certificate(folder, plan, document, Trust(*of_certificate.values()), args.json)
    try:
        number, backend = (positive(args.repeat[0]), args.repeat[1]) if args.repeat else (0, "")
    except argparse.ArgumentTypeError:
        what = f"--repeat {quote(args.repeat[0])} is not a whole number from 1"
        raise Stop(f"{what}; write --repeat 50 BACKEND") from None
    report = verify_report(path, plan)
    unmet, repeated, why = tuple[str, ...](), None, "the evidence cannot be relied on"
    if report.run is not None and not report.mismatches:
        unmet = tuple(_list_unmet(require, claims, plan, report.run.evidence))
        repeated = repeat(report.run.evidence, plan, backend, number) if number else None
        why = why_not(report, plan, document) or ""
    if args.json:
        emit(_collect_data(report, why, unmet, repeated))
    else:
        _show(report, unmet, repeated)
        if report.run is not None and not report.mismatches:
            _show_verdict(report.run.conclusion, document, why, demanded=conforms is not None)
    wrong = report.mismatches or unmet or (repeated is not None and repeated.differences)
    return 1 if wrong or (conforms is not None and why) else 0


@refusals_fail()
def _verify_certificate(folder: Path, plan: Plan, document: str | None, trust: Trust, as_json: bool) -> int:
    """Check a certificate, one line if it cannot be relied on; 0 only if it is good and says yes."""
    try:
        certificate = check_certificate(folder, plan, trust)
    except OtherSuite as other:
        if not as_json:
            raise
        emit({"good": False, "why": str(other), "suite": dict(other.suite), "cases_added": other.added,
              "cases_missing": other.missing})  # fmt: skip
        return FAILS
    predicate, own = certificate.statement.predicate, certificate.statement.own
    shown = predicate["passedTests"]  # what the tester waived is the tester's word, and shows nothing to others
    types = plan.suite.spec.operation_of(document).types if document else ()
    lacking = [f"{document}/{type_}" for type_ in types if f"{document}/{type_}" not in shown]
    good = predicate["result"] == "PASSED" and not lacking
    signer, issuer = certificate.signer, certificate.issuer
    if as_json:
        emit({"level": certificate.level, "signer": signer and signer.name, "issuer": issuer and issuer.name,
              "good": good, "result": predicate["result"], "valid_until": own["validUntil"], "lacking": lacking,
              "suite": dict(certificate.run.evidence.header["suite"]), "started": own["started"],
              "cases_added": 0})  # fmt: skip
        return CONFORMS if good else FAILS
    run = describe_run(certificate.level, own["started"], own["version"], suite_of(predicate))
    conclusion = certificate.run.conclusion
    name = certificate.run.name
    name = quote_json(name) if ": " in name else name  # it may go on as this line does: `mine: re-run`
    print_conclusion(f"{name}: {run}", conclusion, conclusion.notes)
    say(wrap(LEVELS[certificate.level], 2))
    say(wrap(describe_people(certificate.statement, certificate.audit if issuer else None), 2, 4))
    by = f"{name_tester(own)}; no signature was checked (--allowed)"
    say(f"  tested by {signer.name if signer else by}; valid until {own['validUntil'][:10]}")
    if issuer:
        say(f"  {count_noun(certificate.audited_rows, 'row')} run again by {issuer.name}")
    elif certificate.audit:
        why = "it was made later" if signer else "no signature was checked (--allowed)"
        say(f"  {AUDIT}, and what {PAGE} says of it, count for nothing: {why}")
    lacks = f"not shown: {', '.join(lacking)}" if lacking else conclusion.why
    true = f"the certificate is true{f' on {trust.at:%Y-%m-%d}' if trust.at else ''}"
    say(with_sign(good, f"{true}; {lacks}" if good else f"{lacks}; {true}"))
    return CONFORMS if good else FAILS


def _list_unmet(require: Sequence[str] | None, claims: Path | None, plan: Plan, evidence: Evidence) -> Iterator[str]:
    """Describe the demands of --require and --claims that the evidence does not meet."""
    if claims is not None and (pinned := read_claims(claims)) != evidence.claims:
        yield f"--claims {claims}: {describe_difference(pinned, evidence.claims)}"
    if names := check_requirements(require, plan):
        demanded = conclude_evidence(plan, evidence.with_target(require=[*evidence.target.require, *names]))
        if demanded.exit_code:
            yield f"--require {' --require '.join(names)}: {demanded.why}"


def _collect_data(report: Verification, why: str, unmet: Sequence[str], repeated: Repetition | None) -> dict[str, Any]:
    conclusion = report.run and report.run.conclusion
    return {
        "files": report.files,
        "matches": not report.mismatches,
        "mismatches": [each._asdict() for each in report.mismatches],
        "sentences": conclusion.sentences if conclusion else [],
        "notes": conclusion.notes if conclusion else [],
        "exit_code": conclusion and conclusion.exit_code,
        "why": conclusion and conclusion.why,
        "conforms": not why,
        "why_not": why or None,
        "unmet": unmet,
        "written_by": "unknown",
        "repeated": repeated and repeated.record(),
    }


def _show(report: Verification, unmet: Sequence[str], repeated: Repetition | None) -> None:
    for mismatch in report.mismatches:
        say(paint("red", with_sign(False, str(mismatch))))
    if report.mismatches:
        number = len(report.mismatches)
        things = "one thing does" if number == 1 else f"{number:,} things do"
        say(f"{things} not follow from the evidence; do not rely on this report")
    if report.mismatches or report.run is None:
        return
    evidence, conclusion = report.run.evidence, report.run.conclusion
    print_conclusion(report.run.name, conclusion, (*conclusion.notes, *evidence.footer["notes"]))
    rows = count_noun(sum(result.was_called for result in evidence.results), "row")
    say(f"{OK_SIGN} {', '.join(report.files)}: {rows} judged again; every number and verdict follows from them")
    say("  written by: unknown. Only a signature shows who wrote the evidence (--certificate checks it),")
    say("  and only another run whether it is true (--repeat N BACKEND calls N rows again)")
    if repeated is not None:
        for difference in repeated.differences:
            say(paint("red", with_sign(False, difference)))
        same = repeated.rows - len(repeated.differences)
        rows, style = count_noun(repeated.rows, "row"), "red" if repeated.differences else "green"
        text = f"{rows} called again on {repeated.backend}: {same:,} gave what the evidence says"
        say(paint(style, with_sign(not repeated.differences, text)))
        if repeated.details:
            say(wrap(f"the backend describes itself otherwise here: {repeated.details}"))
    for what in unmet:
        say(paint("red", with_sign(False, what)))


def _show_verdict(conclusion: Conclusion, document: str | None, why: str, demanded: bool) -> None:
    """Print whether the backend conforms, which a true report alone does not mean."""
    if document:
        text = f"the backend is not shown to conform to {document}: {why}" if why else ""
        text = text or f"the backend conforms to {document} for every type that it lists"
    else:
        text = f"the target {conclusion.denial}: {why}" if why else conclusion.why
    say(paint("red" if why else "green", with_sign(not why, text)))
    if why and not demanded:
        say("  the exit code says only that the report is true to its evidence; --conforms demands conformity too")
