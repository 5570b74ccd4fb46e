"""`conformance export FORMAT --out DIR`: write rows for other programs, meanings as code, or a proof for solvers."""

from __future__ import annotations

import argparse
import importlib

from ..exchange import benchdnn_export, json_export, onnx_export
from ..exchange.code.write import NAMES, render_code
from ..selfcheck.obligations import obligations
from ..system.exit_codes import CONFORMS
from ..system.files import replace_text
from ..system.terminal import count_noun, say, table
from .arguments import Stop, emit, load_plan, load_spec_of
from .parser import Parser

EXAMPLES = """\
  conformance export onnx --out build/onnx            a folder for each test, for onnx's own runner
  conformance export benchdnn --out build/benchdnn    a graph file for each, for benchdnn
  conformance export json --out build/vectors         legal and illegal calls, for programs in any language
  conformance export code --lang cpp --out build/cpp    what a call means, and shape inference, as one header
  conformance export smt2 --out build/smt2            the proof for all lengths, for any solver"""
_MAX_RANK = 3
"""The highest rank of src and shape in obligations. `check --prove 4` can ask those of rank 4, which take 38 MB."""


def add_options(parser: Parser) -> None:
    text = (
        "onnx: backend node tests; benchdnn: graph files of oneDNN's test driver; json: legal and illegal calls; "
        "code: what calls mean, as a program; smt2: the obligations of check --prove"
    )
    parser.add_argument("format", choices=("onnx", "benchdnn", "json", "code", "smt2"), metavar="FORMAT", help=text)
    parser.add_argument("--lang", choices=NAMES, metavar="LANGUAGE", help=f"of code: {', '.join(NAMES)}")
    parser.path("--out", "DIR", "where the files go, a new or an empty folder", required=True)


def run(args: argparse.Namespace) -> int:
    """Write the tests, and say which rows are left out and what the format does not test."""
    out = args.out
    if out.exists() and not out.is_dir():
        raise Stop(f"--out {str(out)!r} is no folder; name a new or an empty one")
    if out.is_dir() and any(out.iterdir()):
        raise Stop(f"--out {str(out)!r} is not empty and is left as it is; name a new or an empty folder")
    if (args.format == "code") != (args.lang is not None):
        raise Stop(f"--lang belongs to the format code, and code needs it: --lang {'|'.join(NAMES)}")
    if args.format == "code":
        return _export_code(args)
    if args.format == "smt2":
        return _export_obligations(args)
    plan = load_plan(args.suite)
    if args.format == "onnx":
        onnx_export.load_onnx()
        choice, lost, words = onnx_export.choose_node_tests(plan.rows), onnx_export.LOST, "node test"
        number = onnx_export.write_node_tests(choice.chosen, out)
    elif args.format == "benchdnn":
        choice, lost, words = benchdnn_export.choose_graphs(plan.rows), benchdnn_export.LOST, "graph file"
        number = benchdnn_export.write_graphs(choice.chosen, out)
    else:
        choice, lost, words = json_export.choose_vectors(plan.rows), json_export.LOST, "test"
        number = json_export.write_vectors(plan.suite, choice.chosen, out)
    exported = sum(len(group.rows) for group in choice.chosen)
    if args.json:
        facts = {"tests": number, "rows": exported, "left_out": dict(choice.left_out.most_common()), "lost": lost}
        emit({"out": str(out), **facts})
        return CONFORMS
    say(f"wrote {count_noun(number, words)} to {out}, for {count_noun(exported, 'row')}")
    say(f"{count_noun(choice.left_out.total(), 'row')} left out:")
    say(table([("", f"{number:,}", why) for why, number in choice.left_out.most_common() if number]))
    say("not tested by these files:")
    for part in lost:
        say(f"  {part}")
    return CONFORMS


def _export_code(args: argparse.Namespace) -> int:
    file, text = render_code(load_spec_of(args.suite), args.lang)
    replace_text(args.out / file, text)
    if args.json:
        emit({"out": str(args.out), "file": file})
    else:
        say(f"wrote {args.out / file}")
        say("meaning() says what a call means in a document; infer_shape() gives dst, or the rule that is broken")
    return CONFORMS


def _export_obligations(args: argparse.Namespace) -> int:
    decide = importlib.import_module("conformance.adapters.reference").decide
    files = number = 0
    for each in obligations(load_spec_of(args.suite), decide, _MAX_RANK):
        replace_text(args.out / each.file, each.text)
        files, number = files + 1, number + len(each.labels)
    if args.json:
        emit({"out": str(args.out), "files": files, "obligations": number})
    else:
        say(f"wrote {count_noun(number, 'obligation')} in {count_noun(files, 'file')} to {args.out}")
        say("a solver answers unsat to each, or sat where a document differs from the reference:")
        say("  z3 FILE, or cvc5 --incremental FILE")
    return CONFORMS
