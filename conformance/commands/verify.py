"""`conformance verify PATH`: derives every number and verdict of a report again from its evidence."""

from __future__ import annotations

import argparse

from ..evidence import Refused
from ..load_cases import load_suite
from ..plan import plan_of
from ..terminal import counted, paint, say, wrapped
from ..verify import OtherSuite, Verified, verify
from . import Usage, emit, folder_given


def run(args: argparse.Namespace) -> int:
    """0 where everything follows from the evidence, 1 where something does not."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    try:
        found = verify(args.path, plan)
    except (Refused, OtherSuite) as cannot:
        raise Usage(str(cannot)) from None
    if args.json:
        emit(
            {
                "files": found.files,
                "matches": not found.mismatches,
                "mismatches": [each._asdict() for each in found.mismatches],
                "sentences": list(found.conclusion.sentences) if found.conclusion else [],
                "exit_code": found.conclusion.exit_code if found.conclusion else None,
            }
        )
    else:
        _show(found)
    return 1 if found.mismatches else 0


def _show(found: Verified) -> None:
    for mismatch in found.mismatches:
        say(paint("red", wrapped(f"✗ {mismatch}", 0, 2)))
    if found.conclusion and found.evidence and not found.mismatches:
        backend = found.evidence.header["backend"]
        say(paint("bold", f"{backend['name']} {backend['version']}"))
        for sentence in found.conclusion.sentences:
            say(wrapped(sentence, 2, 4))
        rows = counted(len(found.evidence.results), "row")
        say(f"✓ {', '.join(found.files)}: {rows} judged again; every number and verdict follows from them")
        say("  to know who wrote the evidence takes a signature, and whether it is true another run")
    elif found.mismatches:
        say(
            f"{counted(len(found.mismatches), 'thing')} that the evidence does not bear out; do not rely on this report"
        )
