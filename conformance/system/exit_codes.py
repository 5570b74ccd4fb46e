"""The one table of exit codes: number, words, meaning, and what each does to the verdicts. `--help` needs it fast."""

from __future__ import annotations

from typing import Literal, NamedTuple

CONFORMS, FAILS, USAGE, CANNOT_START, INCOMPLETE, UNTRUSTED, OVERDUE = range(7)


class CommandError(Exception):
    """Ends a command with the message, which says in a line why and what to do, and with an exit code."""

    exit_code = USAGE


class ExitCode(NamedTuple):
    """The words of an exit code, and what it does to the verdicts of a run."""

    words: str
    """For --help, where all codes share one line."""
    meaning: str
    effect: Literal["none", "no certificate", "no verdict"] = "none"
    """`no certificate`: no document is shown to conform. `no verdict`: no verdict holds either."""


EXIT_CODES: dict[int, ExitCode] = {
    CONFORMS: ExitCode("conforms", "the whole target conforms"),
    FAILS: ExitCode("fails", "something in the target fails or errs"),
    USAGE: ExitCode("usage", "the command cannot be carried out, or a file cannot be read"),
    CANNOT_START: ExitCode("cannot start", "the backend cannot start, or does not claim what `--claims` pins"),
    INCOMPLETE: ExitCode("incomplete", "incomplete: filtered, a shard, not run, or nothing claimed"),
    UNTRUSTED: ExitCode(
        "untrusted",
        "a planted backend passed, results or adapter were changed during the run, or the suite failed: do not trust "
        "this run",
        "no verdict",
    ),
    OVERDUE: ExitCode(
        "waiver overdue", "nothing fails, but a waiver has expired or matches nothing any more", "no certificate"
    ),
}
VOIDS_VERDICTS = frozenset(code for code, entry in EXIT_CODES.items() if entry.effect == "no verdict")
VOIDS_CERTIFICATES = frozenset(code for code, entry in EXIT_CODES.items() if entry.effect != "none")
SUMMARY = " · ".join(f"{code} {entry.words}" for code, entry in EXIT_CODES.items())
