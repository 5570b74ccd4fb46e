"""`conformance hunt BACKEND`: try new cases until one fails, and show the smallest that fails."""

from __future__ import annotations

import argparse
from typing import Any

from ..hunt.hunt import hunt
from ..isolate.backend import isolation_of, use_backend
from ..model import Spec
from ..report.wording import visible
from ..run.quiet_backend import quiet_backend
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE
from ..system.terminal import count_noun, lines, paint, say, verbatim
from .arguments import emit, load_spec_of, suite_option
from .parser import Parser, positive, whole
from .request import check_names
from .shared_options import add_backend, add_calls, add_isolation, add_limits, read_limits

EXAMPLES = """\
  conformance hunt reference --examples 2000 --seed 1     calls nobody wrote down, shrunk to the smallest that fails
exit codes: 0 nothing fails · 1 a call fails · 2 usage · 3 cannot start · 4 nothing claimed"""


def add_options(parser: Parser) -> None:
    add_backend(parser)
    add_calls(parser)
    parser.add_argument("--examples", type=positive, default=2000, metavar="N", help="calls to try (2000)")
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="the same seed tries the same calls (0)")
    add_isolation(parser)
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Hunt, and show the counterexample; return 1 if there is one, and 4 if the backend claims nothing of the calls."""
    spec = load_spec_of(args.suite)
    check_names(spec, args.operation, args.type)
    limits = read_limits(args)
    isolation = isolation_of(args.backend, args.isolation)
    with quiet_backend() as notes, use_backend(args.backend, isolation, limits) as adapter:
        result = hunt(adapter, spec, args.examples, args.seed, operations=args.operation or (), types=args.type or ())
        name = f"{adapter.identity.name} {adapter.identity.version}"
    if args.json:
        emit({"backend": name, "seed": args.seed, **_data(result)})
    else:
        _show(result, name, args.seed, notes, spec, suite_option(args.suite))
    return FAILS if result.counterexample else CONFORMS if result.right else INCOMPLETE


def _meanings(counterexample: Any) -> dict[str, dict[str, Any]]:
    """Return the meaning in each document of the step that went wrong."""
    at = counterexample.result.step
    return {
        document: {"kind": judged.meaning.kind, "dst": judged.meaning.dst, "rules": judged.meaning.rules}
        for judged in counterexample.row.steps[at].meanings
        for document in judged.documents
    }


def _data(result: Any) -> dict[str, Any]:
    failure = result.counterexample
    record = failure and {
        "row": failure.row.id,
        "rule": failure.rule,
        "diagnosis": failure.result.diagnosis,
        "detail": failure.result.detail,
        "verdicts": dict(failure.result.verdicts),
        "meanings": _meanings(failure),
        "case": failure.text,
        "steady": result.steady,
    }
    return {"examples": result.examples, "right": result.right, "found": record}


def _show(result: Any, name: str, seed: int, notes: list[str], spec: Spec, options: str) -> None:
    failure = result.counterexample
    say(paint("bold", name))
    for note in notes:
        say(paint("yellow", f"note: {note}"))
    tried = f"{count_noun(result.examples, 'example')} of seed {seed}"
    if failure is None:
        why = f"exit 0: nothing failed in {tried}; --seed {seed + 1} tries others"
        say(why if result.right else f"exit 4: the backend claims nothing of {tried}")
        return
    say(f"{paint('red', 'failed')} after {tried}; the smallest such call:")
    say()
    say(lines(failure.text.rstrip().split("\n")))
    say()
    say(f"as {failure.row.id.partition('[')[2].rstrip(']')}: {visible(failure.result.detail)}")
    for document, meaning in _meanings(failure).items():
        rules = f": {', '.join(meaning['rules'])}" if meaning["rules"] else ""
        say(f"  {document}: {meaning['kind']}{rules}")
    say(f"{failure.rule}: {spec.rules[failure.rule].sentence}")
    if not result.steady:
        say(paint("yellow", "the very same call went well when it was made again: it depends on the calls before it"))
    say()
    say("to keep it, add it to DIR/cases/mine.yaml, below `about: …`, `extends: bundled` and `cases:`")
    say(verbatim(f"exit 1: a call failed; next: conformance explain{options} {failure.rule}"))
