"""The `conformance` command: its arguments, and dispatch. Each command has a module of its own beside this one."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import __version__
from ..isolate.watch import Terminated, heed_signals, watched
from ..system.terminal import say
from .arguments import Usage, located, unknown
from .examples import EXAMPLES, story

_CASES = "a folder instead of the bundled cases/, or beside it if it says `extends`"
_LENGTHS = frozenset({"--src", "--shape", "--declared"})
"""Options of `meaning` whose value may have blanks in it and may begin with a minus."""
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)
_LONG = re.compile(r"(?:--|[–—]-?)(?=[A-Za-z])")


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as one line, and knows its options by name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        name, _, rest = message.removeprefix("argument ").partition(": ")
        text = f"{name}: {rest}" if message.startswith("argument ") else message
        if choice := _CHOICE.fullmatch(rest):
            raise Usage(f"{name}: {unknown('value', choice[1], re.findall(r'[A-Za-z][A-Za-z-]*', choice[2]))}")
        text = text.replace("expected one argument", "a value is missing").replace("OPTION", name)
        raise Usage(f"{text}; see `{self.prog} --help`")

    @property
    def options(self) -> list[str]:
        """Every long option."""
        return [each for action in self._actions for each in action.option_strings if each.startswith("--")]


class _Once(argparse.Action):
    """An option with one value; to give it twice is a slip, and neither value is silently dropped."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option_string} is given twice; give it once")
        setattr(namespace, self.dest, values)


class _Version(argparse.Action):
    """Prints the version, and the digest that tells one suite from another."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        from ..load.folders import cases_folder, digest_of, spec_folder

        say(f"conformance {__version__}, suite {digest_of([spec_folder(), cases_folder()])}")
        parser.exit()


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────


def _path(text: str) -> Path:
    if not text:  # as from --out "$OUT" where nothing set OUT; Path would take it for the folder that one is in
        raise argparse.ArgumentTypeError("the name is empty; name a file or a folder")
    return Path(text)


def _common(parser: _Parser) -> None:
    what = "a folder instead of the bundled spec/, or beside it if it says `extends`"
    parser.add_argument("--spec", type=_path, action=_Once, metavar="DIR", help=what)
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def _check(parser: _Parser) -> None:
    parser.add_argument("--cases", type=_path, action=_Once, metavar="DIR", help=_CASES)
    what = "add the ids of new cases to the lock file, where nothing else is wrong"
    parser.add_argument("--lock", action="store_true", help=what)
    what = "the five documents: verify digests and pointers, and compute coverage"
    parser.add_argument("--sources", type=_path, action=_Once, metavar="DIR", help=what)


def _cases_folder(parser: _Parser) -> None:
    parser.add_argument("--cases", type=_path, action=_Once, metavar="DIR", help=_CASES)


def _mutants(parser: _Parser) -> None:
    what = "only planted backends, rules and lines of the reference with that in their name"
    parser.add_argument("-k", dest="select", action=_Once, metavar="NAME", help=what)
    _cases_folder(parser)


def _list(parser: _Parser) -> None:
    parser.add_argument("what", nargs="?", help="rules, documents, operations, findings, cases or backends")
    parser.add_argument("--document", action=_Once, metavar="ID", help="only what concerns that document")
    parser.add_argument("--level", action=_Once, metavar="LEVEL", help="of rules: must, may, silent or decided")
    parser.add_argument("--rule", action=_Once, metavar="ID", help="of cases: those of that rule")
    _cases_folder(parser)
    parser.add_argument("--kind", action=_Once, metavar="KIND", help="of findings: defect, disagreement or silence")


def _explain(parser: _Parser) -> None:
    parser.add_argument("name", nargs="?", help="the id of a rule, finding, document, operation, case or row")
    what = "of a case that you trust: print a script that repeats it in that library's own Python"
    parser.add_argument("--backend", action=_Once, metavar="NAME", help=what)
    parser.add_argument("--c", action="store_true", help="with --backend onednn: a program in C instead")
    _cases_folder(parser)


def _meaning(parser: _Parser) -> None:
    def add(option: str, metavar: str, what: str, **more: Any) -> None:
        parser.add_argument(option, action=_Once, metavar=metavar, help=what, **more)

    add("--src", "DIMS", "dims of the input: 3,4,5 or 3x4x5 or '[3, 4, 5]'; () for rank 0")
    add("--shape", "DIMS", "the entries of shape, such as 0,-1")
    add("--special-zero", "BOOL", "true or false", nargs="?", const="true")
    add("--document", "ID", "only in that document")
    add("--src-type", "TYPE", "type of the input's elements (f32)")
    add("--dst-type", "TYPE", "type declared of the output (as the input's)")
    add("--shape-type", "TYPE", "type of the entries of shape (as the operation lists)")
    add("--shape-rank", "RANK", "rank of shape itself (1)")
    add("--special-zero-type", "TYPE", "type of special_zero (bool)")
    add("--declared", "DIMS", "dims declared of the output, such as 3,?")
    add("--missing", "NAMES", "what the node lacks: shape, special_zero, src, dst")
    add("--extra-attributes", "NAMES", "attributes that the operation does not have")
    add("--extra-operands", "NAMES", "inputs or outputs that the operation does not have")


def _diff_documents(parser: _Parser) -> None:
    parser.add_argument("a", nargs="?", metavar="A", help="the id of a document")
    parser.add_argument("b", nargs="?", metavar="B", help="the id of another")
    parser.add_argument("--full", action="store_true", help="search the large domain for an example (some seconds)")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1; write OPTION 2")
    return int(text)


def _part(text: str) -> str:
    part, _, count = text.partition("/")
    if not (part.isdecimal() and count.isdecimal() and 1 <= int(part) <= int(count) <= 10000):
        raise argparse.ArgumentTypeError(f"{text!r} is no part of the rows; write --shard 1/3")
    return f"{int(part)}/{int(count)}"


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds; write OPTION 20")
    return seconds


def _timeout(parser: _Parser) -> None:
    what = "limit of one call (20); the first may take 120"
    parser.add_argument("--timeout", type=_seconds, default=20.0, metavar="SECONDS", help=what)


def _run_arguments(parser: _Parser) -> None:
    parser.add_argument(
        "backend", metavar="BACKEND", help="a bundled name, module:Class, path/to/file.py:Class or cmd:PROGRAM"
    )
    for option, what in (("--operation", "this operation only"), ("--document", "judge by this document only")):
        parser.add_argument(option, action="append", metavar="ID", help=f"{what}; may be repeated")
    parser.add_argument("--type", action="append", metavar="TYPE", help="this element type only; may be repeated")
    parser.add_argument(
        "-k", dest="select", action=_Once, metavar="EXPR", help="only rows whose ids have these words; never conforms"
    )
    parser.add_argument(
        "--require",
        action="append",
        metavar="FACET",
        help="a document, type or facet that must be shown; may be repeated",
    )
    parser.add_argument("--shard", type=_part, metavar="I/N", help="only the I-th of N parts of the rows; then `merge`")
    parser.add_argument("--waivers", type=_path, action=_Once, metavar="FILE", help="known failures that are waived")
    parser.add_argument(
        "--claims", type=_path, action=_Once, metavar="FILE", help="what the backend must claim, exactly"
    )
    parser.add_argument(
        "--resume", type=_path, action=_Once, metavar="DIR", help="go on with a run that was interrupted"
    )
    parser.add_argument(
        "--isolation",
        choices=("worker", "case", "none"),
        help="a process for the backend (the default), one for each row, or none but this one",
    )
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="so many processes at once (1)")
    parser.add_argument("--dask", action=_Once, metavar="ADDRESS", help="run on the Dask cluster of that scheduler")
    _timeout(parser)
    what = "what calls may lose by timing out, for each of --jobs (14400); the rows after that are not run"
    parser.add_argument("--budget", type=_seconds, default=14400.0, metavar="SECONDS", help=what)
    parser.add_argument(
        "--memory", type=_positive, default=16384, metavar="MIB", help="limit of a process's address space (16384)"
    )
    parser.add_argument("--large", action="store_true", help="also tensors of more than 2^31 elements (some 16 GiB)")
    parser.add_argument(
        "--out", type=_path, action=_Once, metavar="DIR", help="where results and reports go (conformance-report/NAME)"
    )
    parser.add_argument("--cases", type=_path, action=_Once, metavar="DIR", help=_CASES)


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 40:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0; write OPTION 2")
    return int(text)


def _limits(parser: _Parser) -> None:
    what = "a process for the backend (the default), or none but this one"
    parser.add_argument("--isolation", choices=("worker", "none"), help=what)
    _timeout(parser)
    parser.add_argument(
        "--memory", type=_positive, default=16384, metavar="MIB", help="limit of a process's address space (16384)"
    )


def _some_calls(parser: _Parser) -> None:
    what = "as for run: a name, module:Class, file.py:Class, cmd:PROGRAM"
    parser.add_argument("backend", metavar="BACKEND", help=what)
    for option, metavar, what in (
        ("--operation", "ID", "this operation only"), ("--type", "TYPE", "this element type only"),
    ):  # fmt: skip
        parser.add_argument(option, action="append", metavar=metavar, help=f"{what}; may be repeated")


def _sweep(parser: _Parser) -> None:
    _some_calls(parser)
    parser.add_argument("--rank", type=_whole, required=True, metavar="R", help="src has up to so many dimensions")
    what = "no dimension of src and no entry of shape is larger"
    parser.add_argument("--max-dim", type=_whole, required=True, metavar="D", help=what)
    what = "shape has up to so many entries (one more than src has dimensions)"
    parser.add_argument("--entries", type=_whole, metavar="N", help=what)
    what = "how src lies in memory (dense); may be repeated"
    parser.add_argument("--layout", action="append", metavar="LAYOUT", help=what)
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="so many processes at once (1)")
    parser.add_argument("--dask", action=_Once, metavar="ADDRESS", help="sweep on the Dask cluster of that scheduler")
    parser.add_argument("--shard", type=_part, metavar="I/N", help="only the I-th of N parts of the calls")
    parser.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    what = "where the results go (conformance-sweep)"
    parser.add_argument("--out", type=_path, action=_Once, metavar="DIR", help=what)
    _limits(parser)


def _hunt(parser: _Parser) -> None:
    _some_calls(parser)
    parser.add_argument("--examples", type=_positive, default=2000, metavar="N", help="calls to try (2000)")
    parser.add_argument("--seed", type=_whole, default=0, metavar="S", help="the same seed tries the same calls (0)")
    what = "another backend, held against the first where the documents are silent"
    parser.add_argument("--differential", action=_Once, metavar="OTHER", help=what)
    _limits(parser)


def _merge(parser: _Parser) -> None:
    parser.add_argument(
        "folders", nargs="+", type=_path, metavar="DIR", help="the folders of all the shards of one run"
    )
    parser.add_argument("--out", type=_path, action=_Once, required=True, metavar="DIR", help="where the whole goes")
    _cases_folder(parser)


def _new_adapter(parser: _Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="what the backend is called, such as mine")
    parser.add_argument(
        "--lang", choices=("python", "c", "javascript"), default="python", help="the language to begin in (python)"
    )
    parser.add_argument("--out", type=_path, action=_Once, metavar="FILE", help="the file to write (NAME.py)")


def _check_adapter(parser: _Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help="as for run: a bundled name, file.py:Class, cmd:PROGRAM")
    parser.add_argument("--isolation", choices=("worker", "none"), help="a process for it, or none but this one")
    _timeout(parser)


def _verify(parser: _Parser) -> None:
    what = "a report.html, a results.jsonl, or the folder of a run"
    parser.add_argument("path", type=_path, metavar="PATH", help=what)
    what = "exit with 1 too where the whole target does not conform, or not every type that DOCUMENT lists"
    parser.add_argument("--conforms", nargs="?", const="", action=_Once, metavar="DOCUMENT", help=what)
    what = "a document, type or facet that must be shown; may be repeated"
    parser.add_argument("--require", action="append", metavar="FACET", help=what)
    what = "what the backend must have claimed, exactly"
    parser.add_argument("--claims", type=_path, action=_Once, metavar="FILE", help=what)
    what = "call N rows again, drawn at random, and compare; with --backend"
    parser.add_argument("--repeat", type=_positive, action=_Once, metavar="N", help=what)
    what = "the backend to call them on, which you trust to be the one that the report is about"
    parser.add_argument("--backend", action=_Once, metavar="BACKEND", help=what)
    _cases_folder(parser)


def _report(parser: _Parser) -> None:
    parser.add_argument("folder", type=_path, metavar="DIR", help="the folder of a run, with its results.jsonl")
    _cases_folder(parser)


def _compare(parser: _Parser) -> None:
    parser.add_argument("folders", nargs="+", type=_path, metavar="DIR", help="folders of runs, or their results.jsonl")
    what = "the page to write (conformance-compare.html)"
    parser.add_argument("--out", type=_path, action=_Once, metavar="FILE", help=what)
    _cases_folder(parser)


def _publish(parser: _Parser) -> None:
    what = "what to run: bundled names (every one whose library is installed here)"
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=what)
    what = "the folder of a run that was made already; may be repeated"
    parser.add_argument("--results", type=_path, action="append", metavar="DIR", help=what)
    parser.add_argument("--index", action="store_true", help="run nothing; only put together what is published")
    parser.add_argument("--jobs", type=_positive, default=2, metavar="N", help="so many processes at once (2)")
    _timeout(parser)
    parser.add_argument(
        "--memory", type=_positive, default=16384, metavar="MIB", help="limit of a process's address space (16384)"
    )
    parser.add_argument("--out", type=_path, action=_Once, metavar="DIR", help="where it goes (reports)")
    _cases_folder(parser)


def _diff(parser: _Parser) -> None:
    parser.add_argument("old", type=_path, metavar="OLD", help="the folder of a run, or its results.jsonl")
    parser.add_argument("new", type=_path, metavar="NEW", help="that of a later one")
    what = "text, markdown or html (by the name of --out, else text)"
    parser.add_argument("--format", choices=("text", "markdown", "html"), help=what)
    parser.add_argument(
        "--out", type=_path, action=_Once, metavar="FILE", help="write to a file instead of the terminal"
    )
    _cases_folder(parser)


def _completion(parser: _Parser) -> None:
    parser.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish")


_COMMANDS: dict[str, tuple[str, str, Callable[[_Parser], None]]] = {
    "run": ("run", "run the suite on a backend; write the evidence, the reports and the verdict", _run_arguments),
    "sweep": ("sweep", "make every call of a bounded domain; say what fails, with the smallest example", _sweep),
    "hunt": ("hunt", "make calls that nobody wrote down; shrink the first that fails to a case", _hunt),
    "merge": ("merge", "put the shards of one run together and conclude", _merge),
    "new-adapter": ("new_adapter", "write a backend's adapter to begin with, which runs at once", _new_adapter),
    "check-adapter": ("check_adapter", "tell a broken adapter from a backend that does not conform", _check_adapter),
    "verify": ("verify", "derive a report again from its evidence; 1 where something does not match", _verify),
    "report": ("report", "write the reports of a run again from its evidence", _report),
    "compare": ("compare", "put several backends side by side on one page", _compare),
    "diff": ("diff", "say what changed between two runs, and why; 1 where something got worse", _diff),
    "publish": ("publish", "run backends whole and write the folder of published results", _publish),
    "check": ("check", "check that the specification is whole and true to the documents", _check),
    "mutants": ("mutants", "plant bad backends, delete rules, turn the reference: is all of it noticed?", _mutants),
    "list": ("listing", "list rules, documents, operations, findings, cases or backends", _list),
    "explain": ("explain", "explain one of them fully", _explain),
    "meaning": ("meaning", "say what a reshape call means in each document", _meaning),
    "diff-documents": ("diff_documents", "show what changed between two documents, with an example", _diff_documents),
    "completion": ("completion", "print a script that completes all this in bash, zsh or fish", _completion),
}
"""Module, summary and arguments of each command."""


def _parsers(names: Collection[str]) -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of the command line, and that of each command named."""
    top = _Parser(prog="conformance")
    top.format_help = lambda: story({name: summary for name, (_, summary, _) in _COMMANDS.items()})  # type: ignore[method-assign]
    top.add_argument("--version", action=_Version, nargs=0)
    group = top.add_subparsers(metavar="COMMAND", dest="command", parser_class=_Parser)
    found = {}
    for name in names:
        _, summary, arguments = _COMMANDS[name]
        epilog = f"for example:\n{EXAMPLES.get(name, '')}"
        found[name] = group.add_parser(name, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog)
        arguments(found[name])
        _common(found[name])
    return top, found


def commands_and_options() -> dict[str, tuple[str, dict[str, tuple[str, ...] | None]]]:
    """Each command with its summary and options; an option with the names it takes: () for none, None for any text."""
    return {
        name: (
            _COMMANDS[name][1],
            {
                option: () if action.nargs == 0 else tuple(map(str, action.choices)) if action.choices else None
                for action in parser._actions
                for option in action.option_strings
            },
        )
        for name, parser in _parsers(_COMMANDS)[1].items()
    }


# ── reading the command line ──────────────────────────────────────────────────────────────────────


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, or Usage with what to type instead."""
    words = _spelled(arguments)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in _COMMANDS:
        raise Usage(_no_command(command))
    if command is not None and words[0] in ("-h", "--help"):
        words = [command, "--help"]
    if command is not None and words[0] != command:
        raise Usage(f"{words[0]!r} stands before the command; write `conformance {command}` first, then its options")
    if command == "meaning":
        words = _joined(words)
    top, commands = _parsers(_COMMANDS if command is None else [command])
    known, rest = top.parse_known_args(words)
    if command is None:
        raise Usage(
            unknown("option", rest[0], top.options)
            if rest
            else f"say what to do: {', '.join(commands)}; see `conformance --help`"
        )
    if rest:
        what = "option" if rest[0].startswith("-") else "argument"
        names = commands[command].options if what == "option" else ()
        raise Usage(unknown(what, rest[0].partition("=")[0], names, f"conformance {command} --help"))
    return known


def _no_command(word: str) -> str:
    """What to type where the command is not one; the commonest slip is to leave out `run`."""
    from ..adapter import bundled_backends  # imports NumPy, which --help need not wait for

    if word in bundled_backends() or ":" in word or word.endswith(".py"):
        return f"{word!r} is no command; to run the suite on a backend, write `conformance run {word}`"
    return unknown("command", word, _COMMANDS, "conformance --help")


def _spelled(arguments: Sequence[str]) -> list[str]:
    """The words with every option spelled as we do: `--special-zero`, not `--special_zero` or `—special-zero`."""
    result = []
    for word in arguments:
        name, equals, value = word.partition("=")
        if dashes := _LONG.match(name):
            result.append(f"--{name[dashes.end() :].replace('_', '-')}{equals}{value}")
        else:
            result.append(word)
    return result


def _joined(words: Sequence[str]) -> list[str]:
    """The words with `--shape -1, 2` put together as `--shape=-1, 2`: argparse would take -1 for an option."""
    result: list[str] = []
    taking = False
    for word in words:
        if word.partition("=")[0] in _LENGTHS:
            result.append(word)
            taking = True
        elif not taking or word == "-h" or _LONG.match(word):
            result.append(word)
            taking = False
        else:
            result[-1] += f" {word}" if "=" in result[-1] else f"={word}"
    return result


# ── running ───────────────────────────────────────────────────────────────────────────────────────


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; a person's mistake is one line on stderr, never a traceback."""
    if arguments is not None:
        return _ended(arguments)
    words = sys.argv[1:]
    _write_anything()
    gc.set_threshold(100_000)  # what is made stays: looking for garbage would be an eighth of a short run
    if any(word.rpartition("=")[2] == "none" for word in words):  # as in --isolation none, where a backend can end us
        return watched(lambda: _ended(words, alone=True), _cut_short)
    return _ended(words, alone=True)


def _cut_short(code: int) -> int:
    """What is said where the process of the command ended in the middle of it, whatever its exit code."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    _complain(f"the process ended with {how} before the command was through; nothing is shown; drop --isolation none")
    return 4


def _ended(arguments: Sequence[str], alone: bool = False) -> int:
    """Run a command; if the process is all ours, end what workers leave, and let signals end them with us."""
    try:
        if alone:
            from ..isolate.orphans import adopt

            adopt()
            heed_signals()
        code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader had enough, as in `conformance list rules | head`
        _give_up_output()
        return 141
    except Terminated:
        _complain("terminated")
        return 143
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except OSError as error:
        _give_up_output()
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        return 2


def _run(arguments: Sequence[str]) -> int:
    args: argparse.Namespace | None = None
    try:
        args = _parsed(arguments)
        command = importlib.import_module(f".{_COMMANDS[args.command][0]}", __package__)
        return int(command.run(args))
    except SystemExit as exit_:  # argparse's --help and --version
        return int(exit_.code or 0)
    except Usage as usage:
        _complain(str(usage))
        return usage.code
    except Exception as error:
        from ..model import Malformed  # imports NumPy, which --help need not wait for

        if not isinstance(error, Malformed):
            raise
        for problem in error.problems:
            _complain(str(located(problem, (getattr(args, "spec", None), getattr(args, "cases", None)))))
        return 2


def _complain(what: str) -> None:
    if sys.stderr is not None:
        say(f"conformance: {what}", sys.stderr)


def _write_anything() -> None:
    """Lets a terminal that knows few characters show the others as escapes, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _give_up_output() -> None:
    """Sends what is left of the output nowhere, so that Python does not fail again at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
