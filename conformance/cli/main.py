"""The `conformance` command: read the command line, run one command, and end with its exit code."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence

from ..isolate.process.own_command import (
    describe_end,
    exit_at_next_signal,
    install_signal_handlers,
    interrupts,
    run_in_child,
)
from ..system.exit_codes import INCOMPLETE, UNTRUSTED, USAGE, CommandError
from ..system.go_on import describe_failure
from ..system.text import describe_unknown, find_near
from .arguments import Stop, emit, locate, say_error
from .commands import COMMANDS, load_command, make_top_parser, parser_of

if sys.platform != "win32":
    import resource

_DIMS = frozenset({"--src", "--shape", "--form"})
"""Options of `meaning` with a value that may begin with a minus."""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; Stop says what to type instead."""
    words = list(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        raise Stop(_suggest_command(command))
    if command is not None and words[0] in ("-h", "--help"):
        words = [command, "--help"]
    if command is not None and words[0] != command:
        raise Stop(f"{words[0]!r} comes before the command; write `conformance {command}` first, then its options")
    if command == "meaning":
        words = _join_dims(words)
    if command is None:
        top = make_top_parser()
        if rest := top.parse_known_args(words)[1]:
            raise Stop(describe_unknown("option", rest[0], top.options))
        raise Stop(f"say what to do: {', '.join(COMMANDS)}; see `conformance --help`")
    parser = parser_of(command)
    args, rest = parser.parse_known_intermixed_args(words[1:])
    if rest:
        name, what = rest[0].partition("=")[0], "option" if rest[0].startswith("-") else "argument"
        names = find_near(name, parser.options, cutoff=0.76) if what == "option" else ()  # all begin with --
        raise Stop(describe_unknown(what, name, names, f"conformance {command} --help"))
    args.command = command
    return args


def _suggest_command(word: str) -> str:
    """Say what to type if `word` is no command; the commonest mistake is to leave out `run`."""
    from ..adapter import list_backend_names  # imports NumPy, which --help need not wait for

    if word in list_backend_names() or ":" in word or word.endswith(".py"):
        return f"{word!r} is no command; to run the suite on a backend, write `conformance run {word}`"
    return describe_unknown("command", word, COMMANDS, "conformance --help")


def _join_dims(words: Sequence[str]) -> list[str]:
    """Replace `--shape -1,2` by `--shape=-1,2`, since argparse takes -1 for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in _DIMS and not word.startswith("--") and word != "-h":
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A mistake of a person is one line on stderr, not a traceback."""
    if arguments is not None:
        return _run_safely(arguments)
    words = sys.argv[1:]
    _escape_unknown_characters()
    gc.set_threshold(400_000)  # objects stay; the collector would take an eighth of a short run
    if any(word.rpartition("=")[2] == "none" for word in words):  # as in --isolation: a backend can end this process
        return run_in_child(lambda: _run_safely(words, alone=True), _cut_short)
    return _run_safely(words, alone=True)


def _cut_short(code: int) -> int:
    """Report that the process ended in the middle of the command, and return the exit code for that."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    say_error(f"the process ended with {how} before the command was done; nothing is shown; drop --isolation none")
    return INCOMPLETE


def _run_safely(arguments: Sequence[str], alone: bool = False) -> int:
    """Run a command and turn interrupts and failing output into exit codes.

    If no other program runs in this process, also end the processes that workers leave behind.
    """
    try:
        if alone:
            from ..isolate.process.orphans import adopt

            if why := _describe_low_limit():
                say_error(why)
                return USAGE
            adopt()
            install_signal_handlers()
        code = _run_to_the_end(arguments)
        if alone:
            gc.freeze()  # a search for garbage at the exit would take a seventh of a long command
            exit_at_next_signal()  # in this `try`: there must be no gap in which a signal is not caught
        return code
    except BaseException as error:
        if alone:
            exit_at_next_signal()
        interrupt = error if isinstance(error, KeyboardInterrupt) else next(iter(interrupts), None) if alone else None
        if interrupt is None and alone and isinstance(error, Exception):  # Python's own exit code would be a verdict
            import traceback  # slow to import, and only needed here

            traceback.print_exc()
            return _stop([f"{describe_failure(error)}; no verdict holds"], UNTRUSTED, arguments)
        if interrupt is None:
            raise
        why, code = describe_end(interrupt)
        say_error(why)
        return code


def _run_to_the_end(arguments: Sequence[str]) -> int:
    try:
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader had enough, as in `conformance list rules | head`
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        places = {errno.EMFILE: "this process", errno.ENOMEM: "this process", errno.ENOENT: "the working directory"}
        what = places.get(error.errno or 0, "output")
        say_error(f"{what}: {error.strerror or error}")
    except (MemoryError, ImportError) as error:  # without memory, modules cannot be imported either
        say_error(f"{type(error).__name__}: {str(error) or 'there is no memory left; see `ulimit -v`'}")
    return USAGE


_MIN_LIMITS = (("RLIMIT_AS", 1 << 29, "-v"), ("RLIMIT_NOFILE", 32, "-n"))
"""Limits of a process, and what every command needs of them."""


def _describe_low_limit() -> str | None:
    """Say which limit is too low. NumPy would end the process with 1, and that means a verdict."""
    if sys.platform != "win32":
        for name, least, option in _MIN_LIMITS:
            limit = resource.getrlimit(getattr(resource, name))[0]
            if limit != resource.RLIM_INFINITY and limit < least:
                return f"{name} is {limit:,}, and the suite needs {least:,}; raise it with `ulimit {option}`"
    return None


def _run(arguments: Sequence[str]) -> int:
    args: argparse.Namespace | None = None
    try:
        args = _parse(arguments)
        return int(load_command(args.command).run(args))
    except SystemExit as exit_:  # argparse's --help and --version
        return int(exit_.code or 0)
    except CommandError as error:
        return _stop([str(error)], error.exit_code, arguments)
    except Exception as error:
        from ..model import Malformed  # imports NumPy, which --help need not wait for

        if isinstance(error, OSError) and error.filename is not None:  # a file, so that the output can be written
            return _stop([f"{error.filename}: {error.strerror or error}"], USAGE, arguments)
        if not isinstance(error, Malformed):
            raise
        lines = [str(locate(problem, getattr(args, "suite", None))) for problem in error.problems]
        return _stop(lines, USAGE, arguments)


def _stop(lines: Sequence[str], code: int, arguments: Sequence[str]) -> int:
    """Say why the command stops, with --json also as JSON, and return its exit code."""
    for line in lines:
        say_error(line)
    if "--json" in arguments:
        emit({"exit_code": code, "errors": lines})
    return code


def _escape_unknown_characters() -> None:
    """Print characters that the terminal cannot show as escapes, instead of failing; a closed stream takes nothing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard the rest of the output, so that Python does not fail again at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
