"""`conformance check-adapter BACKEND`: is the adapter sound, before a verdict on its backend is believed?"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from ..adapter import CannotStart
from ..isolate.backend import isolation_of
from ..isolate.started import Limits
from ..load.cases import load_suite
from ..plan.rows import Plan, plan_of
from ..prove.check_adapter import Found, checked
from ..prove.check_program import injected
from ..run.contain import contain
from ..system.terminal import counted, paint, say, wrapped
from .arguments import Usage, emit, folder_given

_STYLES = {"ok": "green", "mend": "red", "note": "cyan"}


def run(args: argparse.Namespace) -> int:
    """Prints a line for each check; 0 where nothing is to be mended, 1 where something is."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", None)))
    found: list[Found] = []
    printed = False
    try:
        checks = _all(args, plan)
        while True:
            with contain() as notes:
                each = next(checks, None)
            if notes and not printed:
                printed = True
                found.append(Found("note", "output", f"{', '.join(notes)}; chatter belongs on the standard error"))
                if not args.json:
                    _show(found[-1])
            if each is None:
                break
            found.append(each)
            if not args.json:
                _show(each)
    except CannotStart as cannot:
        raise Usage(str(cannot), code=3) from None
    return _concluded(args, found)


def _all(args: argparse.Namespace, plan: Plan) -> Iterator[Found]:
    limits = Limits(seconds=args.timeout)
    yield from checked(args.backend, isolation_of(args.backend, args.isolation), plan, limits)
    if args.backend.startswith("cmd:"):
        yield from injected(args.backend.removeprefix("cmd:"), limits)


def _show(found: Found) -> None:
    text = wrapped(f"{found.word:<4} {found.check}: {found.text}", 0, 5)
    say(paint(_STYLES[found.word], found.word) + text.removeprefix(found.word))


def _concluded(args: argparse.Namespace, found: list[Found]) -> int:
    mend = [each for each in found if each.word == "mend"]
    if args.json:
        emit({"backend": args.backend, "sound": not mend, "checks": [each._asdict() for each in found]})
    elif mend:
        say(f"{counted(len(mend), 'thing')} to mend in the adapter; verdicts on its backend mean little before")
    else:
        say(f"the adapter is sound; next: conformance run {shlex.quote(args.backend)}")
    return 1 if mend else 0
