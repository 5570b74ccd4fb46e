"""`conformance import FORMAT DIR`: write tests of another suite as cases."""

from __future__ import annotations

import argparse
import sys

from ..exchange.import_cases import Imported, import_cases
from ..exchange.onnx_export import MissingOnnx
from ..exchange.onnx_import import read_node_tests
from ..load.cases import load_suite
from ..system.exit_codes import CONFORMS, FAILS
from ..system.files import replace_text
from ..system.terminal import count_noun, say, say_raw
from ..system.text import shorten
from .arguments import Usage, check_folder, emit


def run(args: argparse.Namespace) -> int:
    """Write the cases; 1 if a test wants other dims than the documents."""
    check_folder("DIR", args.folder)
    try:
        tests = list(read_node_tests(args.folder))
    except MissingOnnx as missing:
        raise Usage(str(missing)) from None
    if not tests:
        raise Usage(f"{str(args.folder)!r} has no */model.onnx; name the folder that holds the folders of the tests")
    suite = load_suite(check_folder("--spec", args.spec), check_folder("--cases", args.cases))
    imported = import_cases(tests, suite)
    if args.out is not None and imported.cases:
        replace_text(args.out, imported.text)
    if args.json:
        _emit(imported)
    else:
        if args.out is None:
            say_raw(imported.text)
        _show(args, imported)
    return FAILS if imported.disagreements else CONFORMS


def _show(args: argparse.Namespace, imported: Imported) -> None:
    """Print what became of each test; beside the cases themselves, on the standard error."""
    stream = sys.stderr if args.out is None else sys.stdout
    where = f" to {args.out}" if args.out is not None else ""
    say(f"wrote {count_noun(len(imported.cases), 'case')}{where}" if imported.cases else "no call is new", stream)
    for test, case in imported.duplicates.items():
        say(f"  {shorten(test)}: its call is that of the case {case}", stream)
    for line in imported.disagreements:
        say(f"  {line}", stream)
    folders: dict[str, list[str]] = {}
    for left_out in imported.left_out:
        folders.setdefault(left_out.why, []).append(left_out.folder)
    for why, names in folders.items():
        others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        say(f"  {shorten(names[0])}{others}: left out: {why}", stream)


def _emit(imported: Imported) -> None:
    emit({
        "cases": list(imported.cases),
        "duplicates": dict(imported.duplicates),
        "disagreements": list(imported.disagreements),
        "left_out": [left_out._asdict() for left_out in imported.left_out],
        "text": imported.text,
    })  # fmt: skip
