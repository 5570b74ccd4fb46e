"""`conformance check-adapter BACKEND`: check an adapter before a verdict on its backend is believed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

from ..adapter_check.check_adapter import check_adapter
from ..adapter_check.check_claims import Check, is_plain
from ..adapter_check.check_program import check_program
from ..isolate.backend import choose_limits, isolation_of
from ..plan.rows import Plan
from ..run.quiet_backend import quiet_backend
from ..system.progress import track
from ..system.terminal import count_noun, paint, say, verbatim, wrap
from .arguments import Stop, emit, load_plan
from .parser import Parser
from .shared_options import add_backend, add_isolation, add_timeout

_STYLES = {"ok": "green", "mend": "red", "note": "cyan"}

EXAMPLES = """\
  conformance check-adapter mine.py:Mine
  conformance check-adapter cmd:./reshape --timeout 5
exit codes: 0 sound · 1 something to mend · 2 usage · 3 cannot start"""


def add_options(parser: Parser) -> None:
    add_backend(parser)
    add_isolation(parser)
    add_timeout(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each check; 1 if the adapter must be corrected."""
    plan = load_plan(args.suite)
    if not any(map(is_plain, plan.rows)):
        raise Stop(f"{args.suite} has no case with one call that is legal in every document; add one")
    checks: list[Check] = []
    for check in _run_quietly(_check_all(args, plan)):
        checks.append(check)
        if not args.json:
            _show(check)
    mend = [check for check in checks if check.word == "mend"]
    if args.json:
        emit({"backend": args.backend, "sound": not mend, "checks": [check._asdict() for check in checks]})
    elif mend:
        say(f"{count_noun(len(mend), 'thing')} to mend in the adapter; verdicts on its backend mean little before")
    else:
        say(verbatim(f"the adapter is sound; next: conformance run {shlex.quote(args.backend)}"))
    return 1 if mend else 0


def _run_quietly(running: Iterator[Check]) -> Iterator[Check]:
    """Yield the checks, each made without output of the backend, and a note on the first output."""
    is_noted = False
    while True:
        check = None
        for _ in track("checking", (0,), 1):  # a library may take a minute to start, and a program may never answer
            with quiet_backend() as notes:
                check = next(running, None)
        if notes and not is_noted:
            is_noted = True
            yield Check("note", "output", f"{', '.join(notes)}; chatter belongs on the standard error")
        if check is None:
            return
        yield check


def _check_all(args: argparse.Namespace, plan: Plan) -> Iterator[Check]:
    limits = choose_limits(args.backend, args.timeout)
    yield from check_adapter(args.backend, isolation_of(args.backend, args.isolation), plan, limits)
    if args.backend.startswith("cmd:"):
        yield from check_program(args.backend.removeprefix("cmd:"), plan, limits)


def _show(check: Check) -> None:
    text = wrap(f"{check.word:<4} {check.check}: {check.text}", 0, 5)
    say(paint(_STYLES[check.word], check.word) + text.removeprefix(check.word))
