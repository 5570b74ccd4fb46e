"""`conformance verify PATH`: derives every number and verdict of a report again from its evidence."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ..adapter import CannotStart
from ..certify.conclude import concluded
from ..certify.evidence import Evidence, Refused
from ..certify.repeat import Repetition, repeat
from ..load.cases import load_suite
from ..model import Claims
from ..plan.rows import Plan, plan_of
from ..report.verify import OtherSuite, Verified, verify, why_not
from ..system.terminal import OK, counted, paint, say, with_sign, wrapped
from .arguments import Usage, emit, folder_given, pick
from .run import claims_in, difference, requirements


class _Answer(NamedTuple):
    """Everything that the command tells of a report and of its backend."""

    found: Verified
    document: str | None
    why_not: str | None
    """Why the backend is not shown to conform; None if it is, as far as the evidence can be believed."""
    unmet: tuple[str, ...]
    """What --require and --claims ask for and the evidence does not show."""
    repeated: Repetition | None


def run(args: argparse.Namespace) -> int:
    """0 if everything follows from the evidence and what the options demand is shown; else 1."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    if (args.repeat is None) != (args.backend is None):
        raise Usage("--repeat N and --backend BACKEND go together: so many rows are called again on that backend")
    document = pick("document", args.conforms, plan.suite.spec.documents) if args.conforms else None
    try:
        answer = _answer(args, plan, document, verify(args.path, plan))
    except (Refused, OtherSuite) as cannot:
        raise Usage(str(cannot)) from None
    except CannotStart as cannot:
        raise Usage(f"--backend: {cannot}", code=3) from None
    if args.json:
        emit(_data(answer))
    else:
        _show(answer, demanded=args.conforms is not None)
    found, repeated = answer.found, answer.repeated
    wrong = found.mismatches or answer.unmet or (repeated is not None and repeated.differences)
    return 1 if wrong or (args.conforms is not None and answer.why_not) else 0


def _answer(args: argparse.Namespace, plan: Plan, document: str | None, found: Verified) -> _Answer:
    if found.evidence is None or found.mismatches:
        return _Answer(found, document, "the evidence cannot be relied on", (), None)
    unmet = tuple(_unmet(args, plan, found.evidence))
    repeated = repeat(found.evidence, plan, args.backend, args.repeat) if args.repeat is not None else None
    return _Answer(found, document, why_not(found, plan, document), unmet, repeated)


def _unmet(args: argparse.Namespace, plan: Plan, evidence: Evidence) -> Iterator[str]:
    """Say what --require and --claims would have ended the run with."""
    if args.claims is not None:
        claims = Claims.of(evidence.header["claims"])
        if (pinned := claims_in(args.claims)) != claims:
            yield f"--claims {args.claims}: {difference(pinned, claims)}"
    if names := requirements(args.require, plan):
        target = {**evidence.header["target"], "require": [*evidence.header["target"]["require"], *names]}
        demanded = concluded(plan, replace(evidence, header={**evidence.header, "target": target}))
        if demanded.exit_code:
            yield f"--require {' --require '.join(names)}: {demanded.why}"


def _data(answer: _Answer) -> dict[str, Any]:
    found, repeated = answer.found, answer.repeated
    return {
        "files": found.files,
        "matches": not found.mismatches,
        "mismatches": [each._asdict() for each in found.mismatches],
        "sentences": list(found.conclusion.sentences) if found.conclusion else [],
        "notes": list(found.conclusion.notes) if found.conclusion else [],
        "exit_code": found.conclusion.exit_code if found.conclusion else None,
        "why": found.conclusion.why if found.conclusion else None,
        "conforms": answer.why_not is None,
        "why_not": answer.why_not,
        "unmet": list(answer.unmet),
        "written_by": "unknown",
        "repeated": repeated and repeated._asdict(),
    }


def _show(answer: _Answer, demanded: bool) -> None:
    found = answer.found
    for mismatch in found.mismatches:
        say(paint("red", with_sign(False, str(mismatch))))
    if found.mismatches:
        number = counted(len(found.mismatches), "thing")
        say(f"{number} that the evidence does not bear out; do not rely on this report")
    if found.mismatches or found.conclusion is None or found.evidence is None:
        return
    backend = found.evidence.header["backend"]
    say(paint("bold", f"{backend['name']} {backend['version']}"))
    for sentence in found.conclusion.sentences:
        say(wrapped(sentence, 2, 4))
    for note in (*found.conclusion.notes, *found.evidence.footer["notes"]):
        say(paint("yellow", wrapped(f"note: {note}", 2, 4)))
    rows = counted(len(found.evidence.results), "row")
    say(f"{OK} {', '.join(found.files)}: {rows} judged again; every number and verdict follows from them")
    say("  wrote by: unknown; to know who wrote the evidence takes a signature, and whether it is true another run")
    _show_repetition(answer.repeated)
    for what in answer.unmet:
        say(paint("red", with_sign(False, what)))
    _show_verdict(answer, demanded)


def _show_repetition(repeated: Repetition | None) -> None:
    if repeated is None:
        say("  --repeat N --backend BACKEND calls N rows again and compares")
        return
    for difference_ in repeated.differences:
        say(paint("red", with_sign(False, difference_)))
    same = repeated.rows - len(repeated.differences)
    rows, style = counted(repeated.rows, "row"), "red" if repeated.differences else "green"
    told = f"{rows} called again on {repeated.backend}: {same:,} came to what the evidence says"
    say(paint(style, with_sign(not repeated.differences, told)))


def _show_verdict(answer: _Answer, demanded: bool) -> None:
    """Say what a true report says of the backend: that it is true is no yes."""
    conclusion, document, why = answer.found.conclusion, answer.document, answer.why_not
    assert conclusion is not None
    if document:
        told = f"the backend is not shown to conform to {document}: {why}" if why else ""
        told = told or f"the backend conforms to {document} for every type that it lists"
    else:
        no = "does not conform" if conclusion.exit_code == 1 else "is not shown to conform"
        told = f"the target {no}: {why}" if why else conclusion.why
    say(paint("red" if why else "green", with_sign(not why, told)))
    if why and not demanded:
        say("  the exit code says only that the report is true to its evidence; --conforms demands conformity too")
