"""The commands with their summaries and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from typing import Any

from .. import __version__
from ..system.terminal import fold_lines, say
from .examples import EXAMPLES, story
from .parser import Parser, days, nonce, one_line, path, positive, seconds, shard, whole
from .shared_options import (
    BACKEND,
    add_backend_and_calls,
    add_cases,
    add_common,
    add_isolation,
    add_jobs,
    add_key,
    add_keys,
    add_memory,
    add_signing,
    add_timeout,
    add_trust,
)


class _Version(argparse.Action):
    """Prints the version, and the digest of the bundled specification and cases."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        from ..load.folders import cases_folder, digest_of, spec_folder

        say(f"conformance {__version__}, suite {digest_of([spec_folder(), cases_folder()])}")
        parser.exit()


def _run(parser: Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)
    parser.many("--operation", "ID", "this operation only")
    parser.many("--document", "ID", "judge by this document only")
    parser.many("--type", "TYPE", "this element type only")
    parser.once("-k", "EXPR", "only rows whose ids have these words; never conforms", dest="select")
    parser.path("--lf", "DIR", "only rows that failed in the run of that folder; never conforms")
    text = "call no further row after N rows of the target failed; the others are not run"
    parser.add_argument("--maxfail", type=positive, metavar="N", help=text)
    parser.many("--require", "FACET", "a document, type or facet that must be shown")
    parser.add_argument("--shard", type=shard, metavar="I/N", help="only the I-th of N parts of the rows; then `merge`")
    text = "exit with 0, in place of 4, if all rows of the shard ran and none failed; `merge` decides"
    parser.add_argument("--partial-ok", action="store_true", help=text)
    text = "64 hex digits that change the contents of src and add calls, as `certify` does"
    parser.add_argument("--nonce", type=nonce, metavar="HEX", help=text)
    parser.path("--waivers", "FILE", "known failures that are waived")
    parser.path("--claims", "FILE", "what the backend must claim, exactly")
    parser.path("--resume", "DIR", "go on with a run that was interrupted")
    text = "worker: a process for the backend (the default); case: a process for each row; none: this process"
    parser.add_argument("--isolation", choices=("worker", "case", "none"), help=text)
    add_jobs(parser)
    parser.once("--dask", "ADDRESS", "run on the Dask cluster of that scheduler")
    add_timeout(parser)
    text = "time that calls may lose by timing out, for each of --jobs (1800); later rows are not run"
    parser.add_argument("--budget", type=seconds, default=1800.0, metavar="SECONDS", help=text)
    text = "rows of a case and operation that hang before its other rows are not run (3; 0: no limit)"
    parser.add_argument("--maxhang", type=whole, default=3, metavar="N", help=text)
    add_memory(parser)
    parser.add_argument("--large", action="store_true", help="also tensors of more than 2^31 elements (some 16 GiB)")
    text = "rows to draw at random, always the same ones, after the cases (500); a part of the rows has none"
    parser.add_argument("--hunt", type=whole, metavar="N", help=text)
    parser.once("--by", "NAME", "who runs this, for the evidence and the report; it is not signed", type=one_line)
    parser.path("--out", "DIR", "where results and reports go (conformance-report/NAME)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")
    shown.add_argument("-v", "--verbose", action="store_true", help="print every row that failed, not twelve kinds")
    add_cases(parser)


def _sweep(parser: Parser) -> None:
    add_backend_and_calls(parser)
    parser.add_argument("--rank", type=whole, required=True, metavar="R", help="src has up to R dimensions")
    text = "the largest dimension of src and the largest entry of shape"
    parser.add_argument("--max-dim", type=whole, required=True, metavar="D", help=text)
    text = "shape has up to N entries (one more than src has dimensions)"
    parser.add_argument("--entries", type=whole, metavar="N", help=text)
    parser.many("--layout", "LAYOUT", "how src lies in memory (dense)")
    add_jobs(parser)
    parser.once("--dask", "ADDRESS", "sweep on the Dask cluster of that scheduler")
    parser.add_argument("--shard", type=shard, metavar="I/N", help="only the I-th of N parts of the calls")
    parser.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    parser.path("--out", "DIR", "where the results go (conformance-sweep)")
    add_isolation(parser)
    add_timeout(parser)
    add_memory(parser)


def _hunt(parser: Parser) -> None:
    add_backend_and_calls(parser)
    parser.add_argument("--examples", type=positive, default=2000, metavar="N", help="calls to try (2000)")
    parser.add_argument("--seed", type=whole, default=0, metavar="S", help="the same seed tries the same calls (0)")
    parser.once("--differential", "OTHER", "another backend, to compare with where the documents are silent")
    add_isolation(parser)
    add_timeout(parser)
    add_memory(parser)


def _merge(parser: Parser) -> None:
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help="the folders of all shards of one run")
    parser.path("--out", "DIR", "where the merged run goes", required=True)
    add_cases(parser)


def _new_adapter(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name of the backend, such as mine")
    languages = ("python", "c", "cpp", "javascript", "rust")
    parser.add_argument("--lang", choices=languages, default="python", help="the language of the adapter (python)")
    parser.path("--out", "FILE", "the file to write (NAME.py), or the folder of a crate in Rust (NAME)")


def _check_adapter(parser: Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)
    add_isolation(parser)
    add_timeout(parser)


def _verify(parser: Parser) -> None:
    text = "a report.html, a results.jsonl, or the folder of a run"
    parser.add_argument("path", type=path, nargs="?", metavar="PATH", help=text)
    text = "exit with 1 also if the whole target, or every type that DOCUMENT lists, is not shown to conform"
    parser.once("--conforms", "DOCUMENT", text, nargs="?", const="")
    parser.many("--require", "FACET", "a document, type or facet that must be shown")
    parser.path("--claims", "FILE", "what the backend must have claimed, exactly")
    parser.once("--repeat", "N", "call N rows again, drawn at random, and compare; with --backend", type=positive)
    parser.once("--backend", "BACKEND", "the backend to call them on, which you trust to be the one of the report")
    text = "the path is the folder of a certificate; check all of it"
    parser.add_argument("--certificate", action="store_true", help=text)
    add_trust(parser)
    parser.path("--subject", "FILE", "a file that must have been tested, such as a library")
    add_cases(parser)


def _report(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="DIR", help="the folder of a run, with its results.jsonl")
    add_cases(parser)


def _compare(parser: Parser) -> None:
    text = "folders of runs, or their results.jsonl"
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help=text)
    parser.path("--out", "FILE", "the page to write (conformance-compare.html)")
    add_cases(parser)


def _diff(parser: Parser) -> None:
    parser.add_argument("old", type=path, metavar="OLD", help="the folder of a run, or its results.jsonl")
    parser.add_argument("new", type=path, metavar="NEW", help="the folder or results.jsonl of a later run")
    text = "text, markdown or html (by the name of --out, else text)"
    parser.add_argument("--format", choices=("text", "markdown", "html"), help=text)
    parser.path("--out", "FILE", "write to a file instead of the terminal")
    add_cases(parser)


def _certify(parser: Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)
    text = "write commitment.json, which names what will be tested, for an issuer to challenge"
    parser.add_argument("--commit", action="store_true", help=text)
    parser.path("--challenge", "FILE", "the issuer's challenge to the commitment in --out")
    add_signing(parser)
    parser.add_argument("--days", type=days, default=365, metavar="N", help="days of validity (365)")
    parser.path("--waivers", "FILE", "known failures that are waived")
    parser.path("--claims", "FILE", "what the backend must claim, exactly")
    parser.many("--require", "FACET", "a document, type or facet that must be shown")
    parser.add_argument("--large", action="store_true", help="also tensors of more than 2^31 elements (some 16 GiB)")
    text = "worker: a process for the backend (the default); case: a process for each row"
    parser.add_argument("--isolation", choices=("worker", "case"), default="worker", help=text)
    add_timeout(parser)
    add_memory(parser)
    parser.path("--out", "DIR", "where the certificate goes (conformance-certificate)")
    add_cases(parser)
    parser.set_defaults(
        operation=None, document=None, type=None, select=None, lf=None, maxfail=None, shard=None, partial_ok=False,
        jobs=1, resume=None, dask=None, budget=1800.0, maxhang=3, hunt=None,
    )  # fmt: skip


def _challenge(parser: Parser) -> None:
    parser.add_argument("commitment", type=path, metavar="FILE", help="the commitment.json of a vendor")
    parser.add_argument("--days", type=days, default=14, metavar="N", help="days in which to answer (14)")
    add_key(parser)
    parser.path("--out", "FILE", "where the challenge goes (challenge.json)")
    add_cases(parser)


def _audit(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="FOLDER", help="the folder of a certificate")
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)
    parser.add_argument(
        "--rows", type=positive, metavar="N", help="call only so many rows, drawn at random (all); that is no re-run"
    )
    add_trust(parser)
    add_signing(parser)
    add_cases(parser)


def _site(parser: Parser) -> None:
    parser.path("--out", "DIR", "where the pages go (conformance-site)")
    parser.path("--results", "DIR", "a folder of published results, such as reports/, whose failures are named")
    add_cases(parser)


def _register(parser: Parser) -> None:
    parser.add_argument("folder", type=path, metavar="DIR", help="a folder with a folder for each certificate")
    add_keys(parser)
    add_cases(parser)


def _publish(parser: Parser) -> None:
    text = "bundled names of the backends to run (every one whose library is installed here)"
    parser.add_argument("backends", nargs="*", metavar="BACKEND", help=text)
    parser.many("--results", "DIR", "the folder of a run that was made already", type=path)
    parser.add_argument("--index", action="store_true", help="run nothing; write the page of what is published")
    add_jobs(parser, 2)
    add_timeout(parser)
    add_memory(parser)
    parser.path("--out", "DIR", "where it goes (reports)")
    add_cases(parser)


def _lab(parser: Parser) -> None:
    text = "plan: list the environments; status: say what is stale; run: run and publish; certify: the same with "
    text += "certificates, run a second time; test: the suite's own tests; check: what the READMEs say of libraries"
    parser.add_argument("action", choices=("plan", "status", "run", "certify", "test", "check"), help=text)
    parser.add_argument("names", nargs="*", metavar="NAME", help="environments of lab.yaml (plan and status: all)")
    parser.path("--lab", "FILE", "the environments (lab.yaml)")
    text = "status: results older than N days are stale (90)"
    parser.add_argument("--days", type=positive, default=90, metavar="N", help=text)
    add_jobs(parser, 2)
    parser.path("--out", "DIR", "the folder of published results (reports)")
    add_cases(parser)


def _check(parser: Parser) -> None:
    add_cases(parser)
    text = "add the ids of new cases to the lock file, if nothing else is wrong"
    parser.add_argument("--lock", action="store_true", help=text)
    parser.path("--sources", "DIR", "the five documents: verify digests and pointers, and compute coverage")
    parser.path("--evidence", "DIR", "folders of runs: verify that adapters/faults.yaml explains what failed there")


def _mutants(parser: Parser) -> None:
    text = "only planted backends, rules and lines of the reference with NAME in their name"
    parser.once("-k", "NAME", text, dest="select")
    add_cases(parser)


def _list(parser: Parser) -> None:
    parser.add_argument("what", nargs="?", help="rules, documents, operations, findings, cases, cells or backends")
    parser.once("--document", "ID", "only what concerns that document")
    parser.once("--level", "LEVEL", "of rules: must, may, silent or decided")
    parser.once("--rule", "ID", "of cases and cells: those of that rule")
    add_cases(parser)
    parser.once("--kind", "KIND", "of findings: defect, disagreement or silence")


def _explain(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", help="the id of a rule, finding, document, operation, case or row")
    parser.once("--backend", "NAME", "of a case that you trust: print a script for that library, without the suite")
    parser.add_argument("--c", action="store_true", help="with --backend onednn: a program in C instead")
    add_cases(parser)


def _meaning(parser: Parser) -> None:
    parser.once("--src", "DIMS", "dims of the input: 3,4,5 or 3x4x5 or '[3, 4, 5]'; () for rank 0")
    parser.once("--shape", "DIMS", "the entries of shape, such as 0,-1")
    parser.once("--special-zero", "BOOL", "true or false", nargs="?", const="true")
    parser.once("--document", "ID", "only in that document")
    parser.once("--src-type", "TYPE", "type of the input's elements (f32)")
    parser.once("--dst-type", "TYPE", "type declared of the output (as the input's)")
    parser.once("--shape-type", "TYPE", "type of the entries of shape (as the operation lists)")
    parser.once("--shape-rank", "RANK", "rank of shape itself (1)")
    parser.once("--special-zero-type", "TYPE", "type of special_zero (bool)")
    parser.once("--declared", "DIMS", "dims declared of the output, such as 3,?")
    parser.once("--missing", "NAMES", "what the node lacks: shape, special_zero, src, dst")
    parser.once("--extra-attributes", "NAMES", "attributes that the operation does not have")
    parser.once("--extra-operands", "NAMES", "inputs or outputs that the operation does not have")


def _check_graph(parser: Parser) -> None:
    text = "model files: .json (oneDNN Graph), .onnx, .xml (OpenVINO IR), .pt2 (PyTorch) or .tflite"
    parser.add_argument("files", nargs="+", type=path, metavar="FILE", help=text)
    parser.many("--input", "NAME=DIMS", "dims of an input; 1..8 tries each length from 1 to 8: x=1..8,3,320,320")
    parser.add_argument("--trace", action="store_true", help="run an ONNX model once, for shapes that it computes")
    parser.once("--document", "ID", "only in that document")
    parser.path("--out", "PAGE", "write a page with a picture of each reshape")
    parser.path("--cases", "FILE", "write the calls as cases, for `conformance run BACKEND --cases DIR`")
    parser.once("--run", "BACKEND", f"make exactly these calls on a backend: {BACKEND}")


def _export(parser: Parser) -> None:
    text = "onnx: backend node tests; benchdnn: graph files of oneDNN's test driver"
    parser.add_argument("format", choices=("onnx", "benchdnn"), metavar="FORMAT", help=text)
    parser.path("--out", "DIR", "where the tests go, a new or an empty folder", required=True)
    add_cases(parser)


def _diff_documents(parser: Parser) -> None:
    parser.add_argument("a", nargs="?", metavar="A", help="the id of a document")
    parser.add_argument("b", nargs="?", metavar="B", help="the id of another")
    parser.add_argument("--full", action="store_true", help="search the large domain for an example (some seconds)")


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish")


# ── all commands ──────────────────────────────────────────────────────────────────────────────────

COMMANDS: dict[str, tuple[str, str, Callable[[Parser], None]]] = {
    "run": ("run", "run the suite on a backend; write the evidence, the reports and the verdict", _run),
    "sweep": ("sweep", "make every call of a bounded domain; say what fails, with the smallest example", _sweep),
    "hunt": ("hunt", "make calls that nobody wrote down; shrink the first that fails to a case", _hunt),
    "merge": ("merge", "put the shards of one run together and conclude", _merge),
    "new-adapter": ("new_adapter", "write a backend's adapter to begin with, which runs at once", _new_adapter),
    "check-adapter": ("check_adapter", "tell a broken adapter from a backend that does not conform", _check_adapter),
    "verify": ("verify", "derive a report again from its evidence; 1 if something does not match", _verify),
    "certify": ("certify", "run a backend whole and write a certificate, or the commitment to one", _certify),
    "challenge": ("challenge", "draw a nonce for the commitment of a vendor", _challenge),
    "audit": ("audit", "run the files of a certificate again and sign that the answers are the same", _audit),
    "register": ("register", "verify a folder of certificates and write the page that lists them", _register),
    "site": ("site", "write the documents, annotated with rules, findings, cases and failing backends", _site),
    "report": ("report", "write the reports of a run again from its evidence", _report),
    "compare": ("compare", "put several backends side by side on one page", _compare),
    "diff": ("diff", "say what changed between two runs, and why; 1 if something got worse", _diff),
    "publish": ("publish", "run backends whole and write the folder of published results", _publish),
    "lab": ("lab", "run the environments of lab.yaml, and say which published results are stale", _lab),
    "check": ("check", "check that the specification is whole and true to the documents", _check),
    "mutants": ("mutants", "plant bad backends, delete rules, mutate the reference: does the suite notice?", _mutants),
    "list": ("listing", "list rules, documents, operations, findings, cases, cells or backends", _list),
    "explain": ("explain", "show one rule, finding, document, operation or case with all its facts", _explain),
    "meaning": ("meaning", "say what a reshape call means in each document", _meaning),
    "check-graph": ("check_graph", "say what the reshapes of a model file mean, for each length", _check_graph),
    "export": ("export", "write the legal rows as tests of ONNX or of benchdnn", _export),
    "diff-documents": ("diff_documents", "show what changed between two documents, with an example", _diff_documents),
    "completion": ("completion", "print a script that completes all this in bash, zsh or fish", _completion),
}
"""Module, summary and options of each command."""


def build_parsers(names: Collection[str]) -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of the command line, and a parser for each command in `names`."""
    top = Parser(prog="conformance")
    top.format_help = lambda: fold_lines(story({name: summary for name, (_, summary, _) in COMMANDS.items()}))  # type: ignore[method-assign]
    top.add_argument("--version", action=_Version, nargs=0)
    group = top.add_subparsers(metavar="COMMAND", dest="command", parser_class=Parser)
    commands: dict[str, Any] = {}
    for name in names:
        _, summary, add_options = COMMANDS[name]
        epilog = f"for example:\n{EXAMPLES.get(name, '')}"
        commands[name] = group.add_parser(name, description=_sentence(summary), epilog=epilog)
        add_options(commands[name])
        add_common(commands[name])
    return top, commands


def _sentence(summary: str) -> str:
    """Return a summary as a sentence; a question keeps its mark."""
    return f"{summary[0].upper()}{summary[1:]}{'' if summary.endswith('?') else '.'}"


def commands_and_options() -> dict[str, tuple[str, dict[str, tuple[str, ...] | None]]]:
    """Each command with its summary and options; an option with the names it takes: () for none, None for any text."""
    return {
        name: (
            COMMANDS[name][1],
            {
                option: () if action.nargs == 0 else tuple(map(str, action.choices)) if action.choices else None
                for action in parser._actions
                for option in action.option_strings
            },
        )
        for name, parser in build_parsers(COMMANDS)[1].items()
    }
