"""`conformance check-graph FILE…`: the reshape nodes of model files, by the rules, for the lengths that are asked."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..graphs.decide import KINDS, Judge, Tried
from ..graphs.describe import CheckedFile, describe, describe_call
from ..graphs.lengths import BadLengths, InputLengths, check_inputs, list_tries, read_input
from ..graphs.nodes import CannotRead
from ..graphs.onnx_trace import trace_model
from ..graphs.read import read_model
from ..graphs.write_cases import FILE, PREFIX, cases_of, write_cases
from ..model import Spec
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, USAGE
from ..system.files import replace_text
from ..system.temporary import temporary_folder
from ..system.terminal import count_noun, paint, say, table, wrap
from .arguments import Usage, emit, load_spec_of, pick
from .facts import standing
from .meaning import describe_standing

_COLOURS = {"legal": "green", "illegal": "red", "unspecified": "yellow", "not decided": "yellow"}


def run(args: argparse.Namespace) -> int:
    """Check the files; return 2 if one cannot be read, 1 if a node is illegal, 4 if one is not decided."""
    if args.run and args.json:
        raise Usage("--run prints what a backend does as text; drop --json")
    spec = load_spec_of(args)
    judge = Judge(spec, pick("document", args.document, spec.documents) if args.document else None)
    inputs = _read_inputs(args.input or ())
    files, unread = [], False
    for path in args.files:
        try:
            files.append(_check(path, judge, inputs, args.trace))
        except CannotRead as cannot:  # noqa: PERF203 - the other files are checked
            unread = True
            say(f"conformance: {cannot}", sys.stderr)
    kinds = Counter(node.worst for file in files for node in file.nodes)
    code = USAGE if unread else FAILS if kinds["illegal"] else INCOMPLETE if kinds["not decided"] else CONFORMS
    if args.json:
        emit({"files": [_data_of(file) for file in files], "exit_code": code})
    else:
        for file in files:
            _show(file)
        _show_rules(spec, files)
    if args.out is not None:
        from ..graphs.page import render_graphs  # slow to import

        replace_text(args.out, render_graphs(spec, files))
        if not args.json:
            say(f"page: {args.out}")
    return _use_cases(args, spec, files, code) if (args.cases or args.run) and files else code


def _use_cases(args: argparse.Namespace, spec: Spec, files: Sequence[CheckedFile], code: int) -> int:
    """Write the calls of the nodes as cases and run them; return the exit code of the run if something failed."""
    cases, without = cases_of(file.nodes for file in files)
    if not cases:
        raise Usage("no call of a node is known whole, so there is none to write or make; give --input")
    with temporary_folder() if args.cases is None else nullcontext(args.cases) as folder:
        write_cases(Path(folder), cases, spec)
        if not args.json:
            where = f" to {args.cases / FILE}" if args.cases else ""
            rest = f"; {count_noun(without, 'try')} had no call that is known whole" if without else ""
            say(f"{count_noun(len(cases), 'case')} of different calls{where}{rest}".replace("trys", "tries"))
        return _run_backend(args, Path(folder), code) if args.run else code


def _run_backend(args: argparse.Namespace, folder: Path, code: int) -> int:
    """Run the cases on a backend; a run that failed or could not begin decides the exit code."""
    from . import run as run_command
    from .options import build_parsers

    say()
    spec = ["--spec", str(args.spec)] if args.spec else []
    words = ["run", args.run, "--cases", str(folder), "-k", PREFIX, *spec]
    ran = run_command.run(build_parsers(["run"])[0].parse_args(words))
    is_right = ran in (CONFORMS, INCOMPLETE)
    say(f"the graphs: exit {code}, as no call was answered otherwise" if is_right else f"the graphs: exit {ran}")
    return code if is_right else ran


def _read_inputs(texts: Iterable[str]) -> list[InputLengths]:
    try:
        inputs = [read_input(text) for text in texts]
        twice = [name for name, count in Counter(each.name for each in inputs).items() if count > 1]
        if twice:
            raise Usage(f"--input {twice[0]} is given twice; give it once, with a range such as 1..8")
        list_tries(inputs)
    except BadLengths as bad:
        raise Usage(str(bad)) from None
    return inputs


def _check(path: Path, judge: Judge, inputs: Sequence[InputLengths], trace: bool) -> CheckedFile:
    file = trace_model(path, read_model(path)) if trace else read_model(path)
    try:
        check_inputs(inputs, file.inputs)
        tries = list_tries(inputs)
        return CheckedFile(path, tries, judge.judge_file(file, tries))
    except BadLengths as bad:
        raise Usage(f"{path}: {bad}") from None


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _show(file: CheckedFile) -> None:
    say(paint("bold", f"{file.path}: {count_noun(len(file.nodes), 'reshape node')}"))
    for judged in file.nodes:
        node, groups = judged.node, judged.groups()
        against = [group for group in groups if group[1].kind != "legal"]
        head = f"  {paint('bold', node.name)}  {paint('dim', f'{node.kind}, {node.at}')}"
        if not against:
            text = paint(_COLOURS["legal"], describe(file, groups[0][1], groups[0][2]))
            say(f"{head}  {text}  {paint('dim', describe_call(judged.tries[0]))}")
            continue
        say(head)
        for documents, decision, tries in against:
            text = describe(file, decision, tries)
            where = "" if len(documents) == len(judged.tries[0].decisions) else f" in {', '.join(documents)}"
            say(f"    {paint(_COLOURS[decision.kind], text)}{where}")
            say(paint("dim", f"      {describe_call(tries[0])}"))
    kinds = Counter(judged.worst for judged in file.nodes)
    say(", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind]) or "no reshape node")
    say()


def _show_rules(spec: Spec, files: Sequence[CheckedFile]) -> None:
    """Print each rule that a decision names, with the lines of the documents."""
    named: dict[str, dict[str, None]] = {}
    for file in files:
        for judged in file.nodes:
            for tried in judged.tries:
                for document, decision in tried.decisions.items():
                    for rule in decision.rules:
                        named.setdefault(rule, {})[document] = None
    for rule, documents in named.items():
        say(paint("bold", rule))
        say(wrap(spec.rules[rule].sentence, 2))
        say(table([("", name, *describe_standing(standing(spec.rules[rule], name))) for name in documents]))
        say()


# ── for machines ──────────────────────────────────────────────────────────────────────────────────


def _data_of(file: CheckedFile) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "lengths": [{name: list(dims) for name, dims in bound.items()} for bound in file.tries],
        "nodes": [
            {
                "name": judged.node.name,
                "kind": judged.node.kind,
                "at": judged.node.at,
                "decision": judged.worst,
                "tries": [_data_of_try(tried) for tried in judged.tries],
            }
            for judged in file.nodes
        ],
    }


def _data_of_try(tried: Tried) -> dict[str, Any]:
    node = tried.node
    return {
        "src_type": node.src_type, "src": node.src, "shape": node.shape, "special_zero": node.special_zero,
        "declared": node.declared, "dst": tried.dst,
        "decisions": {name: decision._asdict() for name, decision in tried.decisions.items()},
    }  # fmt: skip
