"""`conformance hunt BACKEND`: calls that nobody wrote down, until one fails, and the smallest that fails as a case."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..adapter import CannotStart
from ..isolate.backend import isolation_of, opened
from ..isolate.started import Limits
from ..load.spec import load_spec
from ..model import Spec
from ..report.wording import visible
from ..run.contain import contain
from ..system.temporary import temporary_folder
from ..system.terminal import counted, lines, paint, say
from .arguments import Usage, emit, folder_given, unknown


def run(args: argparse.Namespace) -> int:
    """Hunts, and says what was caught; 1 where something was."""
    folder_given("--spec", args.spec)
    spec = load_spec(args.spec)
    _check(args, spec)
    try:
        from ..explore.hunt import Ground, hunt
    except ImportError as error:
        raise Usage(f"hunt needs Hypothesis ({error}); pip install 'reshape-conformance[hunt]'", code=3) from None
    ground = Ground(spec, tuple(args.operation or ()), tuple(args.type or ()))
    try:
        with contain() as notes, _no_traces(), ExitStack() as backends:
            adapter = backends.enter_context(_opened(args, args.backend))
            other = backends.enter_context(_opened(args, args.differential)) if args.differential else None
            hunted = hunt(adapter, ground, args.examples, args.seed, other)
            name = f"{adapter.identity.name} {adapter.identity.version}"
    except CannotStart as cannot:
        raise Usage(str(cannot), code=3) from None
    if args.json:
        emit(_data(args, hunted, name))
    else:
        _show(args, hunted, name, notes, spec)
    return 1 if hunted.quarry else 0


@contextmanager
def _no_traces() -> Iterator[None]:
    """Keeps Hypothesis from leaving a folder where the command is called."""
    from hypothesis.configuration import set_hypothesis_home_dir

    with temporary_folder() as folder:
        set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            set_hypothesis_home_dir(None)


def _opened(args: argparse.Namespace, backend: str) -> Any:
    return opened(
        backend, isolation_of(backend, args.isolation), Limits(seconds=args.timeout, memory=args.memory << 20)
    )


def _check(args: argparse.Namespace, spec: Spec) -> None:
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    for what, given, known in (("operation", args.operation, spec.operations), ("type", args.type, types)):
        for name in given or ():
            if name not in known:
                raise Usage(unknown(what, name, sorted(known)))


def _meanings(quarry: Any) -> dict[str, dict[str, Any]]:
    """What the step that went wrong means in each document."""
    at = int(quarry.result.outcome.get("step", 1)) - 1
    return {
        document: {"kind": judged.meaning.kind, "dst": judged.meaning.dst, "rules": judged.meaning.rules}
        for judged in quarry.row.steps[at].meanings
        for document in judged.documents
    }


def _data(args: argparse.Namespace, hunted: Any, name: str) -> dict[str, Any]:
    quarry = hunted.quarry
    found = quarry and {
        "row": quarry.row.id,
        "rule": quarry.rule,
        "diagnosis": quarry.result.diagnosis,
        "detail": quarry.difference or quarry.result.detail,
        "difference": quarry.difference is not None,
        "verdicts": dict(quarry.result.verdicts),
        "meanings": _meanings(quarry),
        "case": quarry.text,
        "steady": hunted.steady,
    }
    return {"backend": name, "seed": args.seed, "examples": hunted.examples, "found": found}


def _show(args: argparse.Namespace, hunted: Any, name: str, notes: list[str], spec: Spec) -> None:
    quarry = hunted.quarry
    say(paint("bold", name))
    for note in notes:
        say(paint("yellow", f"note: {note}"))
    if quarry is None:
        say(f"nothing failed in {counted(hunted.examples, 'example')} of seed {args.seed}")
        return
    what = quarry.difference or quarry.result.detail
    tried = counted(hunted.examples, "example")
    how = paint("red", "differs" if quarry.difference else "failed")
    say(f"{how} after {tried} of seed {args.seed}; the smallest such call:")
    say()
    say(lines(quarry.text.rstrip().split("\n")))
    say()
    say(f"as {quarry.row.id.partition('[')[2].rstrip(']')}: {visible(what)}")
    for document, meaning in _meanings(quarry).items():
        rules = f": {', '.join(meaning['rules'])}" if meaning["rules"] else ""
        say(f"  {document}: {meaning['kind']}{rules}")
    say(f"{quarry.rule}: {spec.rules[quarry.rule].sentence}")
    if not hunted.steady:
        say(paint("yellow", "the very same call went well when it was made again: it depends on the calls before it"))
