"""`conformance verify PATH`: derives every number and verdict of a report again from its evidence."""

from __future__ import annotations

import argparse

from ..conclude import Conclusion
from ..evidence import Refused
from ..load_cases import load_suite
from ..plan import plan_of
from ..terminal import OK, counted, paint, say, signed, wrapped
from ..verify import OtherSuite, Verified, conforms, verify
from . import Usage, emit, folder_given, pick


def run(args: argparse.Namespace) -> int:
    """0 where everything follows from the evidence, and, with --conforms, conforms; else 1."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    document = pick("document", args.conforms, plan.suite.spec.documents) if args.conforms else None
    try:
        found = verify(args.path, plan)
    except (Refused, OtherSuite) as cannot:
        raise Usage(str(cannot)) from None
    conforming = found.conclusion is not None and conforms(found.conclusion, plan, document)
    if args.json:
        emit(
            {
                "files": found.files,
                "matches": not found.mismatches,
                "mismatches": [each._asdict() for each in found.mismatches],
                "sentences": list(found.conclusion.sentences) if found.conclusion else [],
                "exit_code": found.conclusion.exit_code if found.conclusion else None,
                "why": found.conclusion.why if found.conclusion else None,
                "conforms": conforming and not found.mismatches,
            }
        )
    else:
        _show(found, document, conforming, demanded=args.conforms is not None)
    return 1 if found.mismatches or (args.conforms is not None and not conforming) else 0


def _show(found: Verified, document: str | None, conforming: bool, demanded: bool) -> None:
    for mismatch in found.mismatches:
        say(paint("red", signed(False, str(mismatch))))
    if found.conclusion and found.evidence and not found.mismatches:
        backend = found.evidence.header["backend"]
        say(paint("bold", f"{backend['name']} {backend['version']}"))
        for sentence in found.conclusion.sentences:
            say(wrapped(sentence, 2, 4))
        rows = counted(len(found.evidence.results), "row")
        say(f"{OK} {', '.join(found.files)}: {rows} judged again; every number and verdict follows from them")
        say("  to know who wrote the evidence takes a signature, and whether it is true another run")
        _verdict(found.conclusion, document, conforming, demanded)
    elif found.mismatches:
        say(
            f"{counted(len(found.mismatches), 'thing')} that the evidence does not bear out; do not rely on this report"
        )


def _verdict(conclusion: Conclusion, document: str | None, conforming: bool, demanded: bool) -> None:
    """What the true report says of the backend, lest that it is true be taken for a yes."""
    style = "green" if conforming else "red"
    no = "does not conform" if conclusion.exit_code == 1 else "is not shown to conform"
    if document:
        backend = "the backend conforms" if conforming else "the backend is not shown to conform"
        told = f"{backend} to {document} for every type that it lists"
    else:
        told = conclusion.why if conforming else f"the target {no}: {conclusion.why}"
    say(paint(style, signed(conforming, told)))
    if not conforming and not demanded:
        say("  the exit code says only that the report is true to its evidence; --conforms demands conformity too")
