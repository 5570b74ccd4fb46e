"""The list of commands, and the parsers made of it. Each command is a module that has its options and its examples."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from .. import __version__
from ..system import exit_codes
from ..system.terminal import fold_lines, say
from .parser import Parser
from .shared_options import add_json, add_suite

GROUPS = {
    "test a backend": {
        "new-adapter": "write a backend's adapter to begin with, which runs at once",
        "check-adapter": "tell a broken adapter from a backend that does not conform",
        "run": "run the suite on a backend; write the evidence, the reports and the verdict",
        "sweep": "make every call of a bounded domain; say what fails, with the smallest example",
    },
    "read results": {
        "verify": "derive a report again from its evidence; 1 if something does not match",
        "report": "write the reports of a run again, or put the shards of a run together",
        "diff": "say what changed between two runs (1 if something got worse), or two documents",
    },
    "certify a backend": {
        "certify": "run a backend whole and write a certificate, or the commitment to one",
        "challenge": "draw a nonce for the commitment of a tester",
        "audit": "run the files of a certificate again and sign that the answers are the same",
    },
    "ask what the documents say": {
        "meaning": "say what a reshape call means in each document",
        "check-graph": "say what the reshapes of a model file mean, for each length",
        "explain": "show one rule, finding, document, operation or case with all its facts",
        "list": "list rules, documents, operations, findings, cases, factors or backends",
    },
    "maintain the suite": {
        "check": "check that the specification is whole and true to the documents",
        "publish": "write a site of results, certificates and the annotated documents",
        "export": "write the suite in another form: tests, calls as JSON, code, or a proof for solvers",
    },
}
"""All commands by purpose, with what each does.

The module of a command has EXAMPLES, `add_options(parser)` and `run(args)`, which returns the exit code.
"""
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
OPENING = """\
usage: conformance COMMAND …   (conformance COMMAND --help has its options and examples)

An executable specification and conformance suite for the reshape operations of oneDNN Graph.
"""
CLOSING = f"""\
begin here:
  conformance run reference                the reference: what a verdict and a report look like
  conformance new-adapter mine             a backend of yours, in one file that runs at once
  conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true

exit codes: {exit_codes.SUMMARY}
"""


def load_command(name: str) -> Any:
    return import_module(f".{'listing' if name == 'list' else name.replace('-', '_')}", __package__)


def make_top_parser() -> Parser:
    top = Parser(prog="conformance")
    top.format_help = lambda: fold_lines(write_help())  # type: ignore[method-assign]
    top.add_argument("--version", action=_Version, nargs=0)
    return top


def parser_of(command: str) -> Parser:
    module, summary = load_command(command), COMMANDS[command]
    description = f"{summary[0].upper()}{summary[1:]}."
    parser = Parser(prog=f"conformance {command}", description=description, epilog=f"for example:\n{module.EXAMPLES}")
    module.add_options(parser)
    if command != "new-adapter":  # no suite decides what it writes
        add_suite(parser)
    add_json(parser)
    return parser


def write_help() -> str:
    lines = [OPENING]
    for purpose, commands in GROUPS.items():
        lines += [purpose, *(f"  {name:<15} {summary}" for name, summary in commands.items()), ""]
    return "\n".join([*lines, CLOSING])


class _Version(argparse.Action):
    """Prints the version, and the digest of the bundled specification and cases."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        from ..load.folders import digest_of_folders, find_cases_folder, find_spec_folder

        say(f"conformance {__version__}, suite {digest_of_folders([find_spec_folder(), find_cases_folder()])}")
        parser.exit()
