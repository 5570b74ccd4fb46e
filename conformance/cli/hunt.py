"""`conformance hunt BACKEND`: try new cases until one fails, and show the smallest that fails."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from ..adapter import CannotStart
from ..hunt.hunt import Scope, hunt
from ..isolate.backend import isolation_of, use_backend
from ..isolate.process.launch import Limits
from ..load.spec import load_spec
from ..model import Spec
from ..report.wording import visible
from ..run.contain import quiet_backend
from ..system.exit_codes import CANNOT_START
from ..system.terminal import count_noun, lines, paint, say
from ..system.text import describe_unknown
from .arguments import Usage, check_folder, emit
from .parser import Parser, positive, whole
from .shared_options import add_backend_and_calls, add_isolation, add_memory, add_timeout

EXAMPLES = """\
  conformance hunt reference --examples 2000 --seed 1     calls nobody wrote down, shrunk to the smallest that fails"""


def add_options(parser: Parser) -> None:
    add_backend_and_calls(parser)
    parser.add_argument("--examples", type=positive, default=2000, metavar="N", help="calls to try (2000)")
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="the same seed tries the same calls (0)")
    parser.once("--differential", "OTHER", "another backend, to compare with where the documents are silent")
    add_isolation(parser)
    add_timeout(parser)
    add_memory(parser)


def run(args: argparse.Namespace) -> int:
    """Hunt, and show the counterexample; return 1 if there is one."""
    check_folder("--spec", args.spec)
    spec = load_spec(args.spec)
    _check(args, spec)
    scope = Scope(spec, tuple(args.operation or ()), tuple(args.type or ()))
    try:
        with quiet_backend() as notes, ExitStack() as backends:
            adapter = backends.enter_context(_open(args, args.backend))
            other = backends.enter_context(_open(args, args.differential)) if args.differential else None
            result = hunt(adapter, scope, args.examples, args.seed, other)
            name = f"{adapter.identity.name} {adapter.identity.version}"
    except CannotStart as cannot:
        raise Usage(str(cannot), code=CANNOT_START) from None
    if args.json:
        emit(_data(args, result, name))
    else:
        _show(args, result, name, notes, spec)
    return 1 if result.counterexample else 0


def _open(args: argparse.Namespace, backend: str) -> Any:
    return use_backend(
        backend, isolation_of(backend, args.isolation), Limits(seconds=args.timeout, memory=args.memory << 20)
    )


def _check(args: argparse.Namespace, spec: Spec) -> None:
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    for what, names, known in (("operation", args.operation, spec.operations), ("type", args.type, types)):
        for name in names or ():
            if name not in known:
                raise Usage(describe_unknown(what, name, sorted(known)))


def _meanings(counterexample: Any) -> dict[str, dict[str, Any]]:
    """Return the meaning in each document of the step that went wrong."""
    at = counterexample.result.step
    return {
        document: {"kind": judged.meaning.kind, "dst": judged.meaning.dst, "rules": judged.meaning.rules}
        for judged in counterexample.row.steps[at].meanings
        for document in judged.documents
    }


def _data(args: argparse.Namespace, result: Any, name: str) -> dict[str, Any]:
    failure = result.counterexample
    record = failure and {
        "row": failure.row.id,
        "rule": failure.rule,
        "diagnosis": failure.result.diagnosis,
        "detail": failure.difference or failure.result.detail,
        "difference": failure.difference is not None,
        "verdicts": dict(failure.result.verdicts),
        "meanings": _meanings(failure),
        "case": failure.text,
        "steady": result.steady,
    }
    return {"backend": name, "seed": args.seed, "examples": result.examples, "found": record}


def _show(args: argparse.Namespace, result: Any, name: str, notes: list[str], spec: Spec) -> None:
    failure = result.counterexample
    say(paint("bold", name))
    for note in notes:
        say(paint("yellow", f"note: {note}"))
    if failure is None:
        say(f"nothing failed in {count_noun(result.examples, 'example')} of seed {args.seed}")
        return
    what = failure.difference or failure.result.detail
    tried = count_noun(result.examples, "example")
    how = paint("red", "differs" if failure.difference else "failed")
    say(f"{how} after {tried} of seed {args.seed}; the smallest such call:")
    say()
    say(lines(failure.text.rstrip().split("\n")))
    say()
    say(f"as {failure.row.id.partition('[')[2].rstrip(']')}: {visible(what)}")
    for document, meaning in _meanings(failure).items():
        rules = f": {', '.join(meaning['rules'])}" if meaning["rules"] else ""
        say(f"  {document}: {meaning['kind']}{rules}")
    say(f"{failure.rule}: {spec.rules[failure.rule].sentence}")
    if not result.steady:
        say(paint("yellow", "the very same call went well when it was made again: it depends on the calls before it"))
