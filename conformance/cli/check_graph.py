"""`conformance check-graph FILE…`: say what the reshapes of model files mean in the documents, for each length."""

from __future__ import annotations

import argparse
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..graphs.conclude import KINDS, CheckedNode, Trial, check_model, fit_trials, format_decisions
from ..graphs.decide import NodeJudge
from ..graphs.lengths import list_names
from ..graphs.nodes import Dims, ImpossibleInput, ReshapeNode, UnreadableModel
from ..graphs.onnx_trace import trace_model
from ..graphs.page import make_entry, render_graphs
from ..graphs.read import read_model
from ..graphs.write_cases import PREFIX, WrittenCases, write_cases
from ..load.faults import load_faults
from ..load.folders import find_folders
from ..meaning.faults import KnownFaults
from ..model import OBSERVED, PASS, KnownFault, Spec
from ..report.judged_run import JudgedRun
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, USAGE
from ..system.files import lock_folder, replace_text
from ..system.groups import group_pairs
from ..system.terminal import count_noun, paint, say, table, wrap
from ..system.text import format_dims, name_first, shorten
from ..verdict.conclude import Conclusion
from .arguments import Stop, emit, load_spec_of, pick
from .commands import parser_of
from .facts import of_branch, treatment_of
from .parser import Parser, output_file, path
from .printing import KIND_STYLES, print_rules
from .run import DEFAULT_OUT
from .run import run as run_suite
from .shared_options import BACKEND
from .typed_values import MAX_ENTRIES, MAX_NUMBER

_MAX_INPUTS_NAMED = 8
_MAX_PLACES_NAMED = 4
_MAX_TRIALS = 1000
_LENGTH = re.compile(r"([0-9]{1,19})(?:\.\.([0-9]{1,19}))?")
Lengths = Mapping[str, tuple[range, ...]]
"""For each input of --input the lengths to try for each of its dims; for a named length, those of that."""


class CheckedFile(NamedTuple):
    """A model file, and its reshapes; or why it cannot be read."""

    path: Path
    nodes: Sequence[CheckedNode]
    inputs: Mapping[str, Dims | None]
    why_unreadable: str = ""


EXAMPLES = """\
  conformance check-graph graph.json                  the reshapes of a dump of oneDNN Graph
  conformance check-graph model.onnx --input x=1..8,3,32,32   with each batch from 1 to 8
  conformance check-graph model.xml --run openvino    make the same calls on a backend
exit codes: 0 none is illegal · 1 one is illegal · 2 a file cannot be read · 4 one is not decided, or conditional
with --run also those of `run`"""


def add_options(parser: Parser) -> None:
    text = "model files: .json (oneDNN Graph), .onnx, .xml (OpenVINO IR), .pt2 (PyTorch) or .tflite"
    parser.add_argument("files", nargs="+", type=path, metavar="FILE", help=text)
    text = "dims of an input, or a named length; 1..8 tries each: x=1..8,3,320 or batch=1..8"
    parser.many("--input", "NAME=DIMS", text)
    parser.add_argument("--trace", action="store_true", help="run an ONNX model, for shapes that it computes")
    parser.once("--document", "ID", "only in that document")
    parser.add_argument("--faults", action="store_true", help="name known faults of all backends, not only of --run")
    parser.once("--out", "PAGE", "write a page with a picture of each reshape", type=output_file)
    text = "write the calls as cases: DIR/cases/NAME.yaml for `run BACKEND --suite DIR`"
    parser.once("--cases", "FILE", text, type=output_file)
    parser.once("--run", "BACKEND", f"make exactly these calls on a backend: {BACKEND}")


def run(args: argparse.Namespace) -> int:
    """Decide every reshape of every file and print a line for each; 0 if none is illegal and all are decided."""
    page, cases, backend, stream = args.out, args.cases, args.run, sys.stderr if args.json else None
    if args.json and backend is not None:
        raise Stop("--run prints its verdict for people; leave --json out, or use --cases FILE and `conformance run`")
    dumps = [path for path in args.files if path.suffix.lower() == ".json"]
    others = [path for path in args.files if path not in dumps]
    if backend is not None and dumps and others:  # one run makes all its calls as the same operations
        what = "the nodes of a dump are called as their own operation, others as each; give --run one kind at a time"
        raise Stop(f"{dumps[0]} is a dump of oneDNN Graph and {others[0]} is not: {what}")
    spec = load_spec_of(args.suite)
    documents = (pick("document", args.document, spec.documents),) if args.document else tuple(spec.documents)
    judge = NodeJudge(spec, documents)
    inputs = _read_inputs(args.input or ())
    known = KnownFaults(fault for fault in load_faults() if args.faults or fault.versions_of(backend or ""))
    files = [_check(path, judge, inputs, known, args.trace) for path in args.files]
    _refuse_unknown_inputs(files, inputs)
    code = _exit_code(files)
    why = _EXITS[code]
    if not args.json:
        _show(spec, files)
    written = write_cases([node for file in files for node in file.nodes], judge)
    if cases is not None:
        what = f"{cases} is not written, as no call makes a case"
        if written.number:
            replace_text(cases, written.text)
            what = f"wrote {count_noun(written.number, 'case')} to {cases}"
        say(what + (f"; {_describe_left_out(written)}" if written.left_out else ""), stream)
    ran = "Nothing was run on a backend."
    if backend is not None:
        code, why = _run_backend(backend, args.suite, documents if args.document else (), written, code)
        ran = f"These calls were made on {backend}." if written.number else ran
    if page is not None:
        sections = (_describe_file(file, judge) for file in files)
        replace_text(page, render_graphs(sections, spec.digest, _summarise(files), ran, f"exit {code}: {why}"))
        say(f"page: {page}", stream)  # with --json, what is no JSON goes to the standard error
    if args.json:  # last, or what stops the command would print JSON too
        emit({"exit_code": code, "files": [_collect_data(file) for file in files]})
    elif backend is None or not written.number:
        say(f"exit {code}: {why}")
    return code


def _describe_file(file: CheckedFile, judge: NodeJudge) -> dict[str, Any]:
    entries = [make_entry(node, describe_call(node.variants), judge) for node in file.nodes]
    return {"name": str(file.path), "entries": entries, "why_unreadable": file.why_unreadable}


def _summarise(files: Sequence[CheckedFile]) -> str:
    counts = Counter(node.kind for file in files for node in file.nodes)
    parts = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    unreadable = sum(bool(file.why_unreadable) for file in files)
    more = f"; {count_noun(unreadable, 'file')} unreadable" if unreadable else ""
    return f"{count_noun(sum(counts.values()), 'reshape')}: {parts or 'none'}{more}"


def _describe_left_out(written: WrittenCases) -> str:
    why = (
        "not decided, of a length that --input does not give, too large, of a type without a width, or decided by the "
        "form or by the declared dst"
    )
    return f"{count_noun(written.left_out, 'call')} left out: {why}"


def _run_backend(
    backend: str, suite: Path | None, documents: Iterable[str], written: WrittenCases, of_files: int
) -> tuple[int, str]:
    """Run the calls on a backend and print its verdict; return the exit code of the command and the reason for it."""
    end = of_files, _EXITS[of_files]
    if not written.number:
        none = f"nothing was run on {backend}" + (f": {_describe_left_out(written)}" if written.left_out else "")
        return (INCOMPLETE, none) if of_files == CONFORMS else (of_files, f"{_EXITS[of_files]}; {none}")
    if written.left_out:
        say(_describe_left_out(written))

    def accept(run: JudgedRun) -> Conclusion:
        """Name what is worst: an unreadable file, a wrong answer, what the files show, then calls not made."""
        nonlocal end
        conclusion, results = run.conclusion, run.evidence.results
        if of_files != USAGE and conclusion.exit_code != INCOMPLETE:
            end = conclusion.exit_code, f"{backend}: {conclusion.why}"
        elif of_files == CONFORMS:
            passed = (each.row for each in results if not {PASS, OBSERVED}.isdisjoint(each.verdicts.values()))
            made, calls = len({row.partition("[")[0] for row in passed}), count_noun(written.number, "call")
            end = CONFORMS, f"{_EXITS[CONFORMS]}; {backend} fails none of {calls}"
            if made < written.number:
                end = INCOMPLETE, f"{backend} was run on {made} of {calls}; the others are not claimed, or were not run"
        return replace(conclusion, exit_code=end[0], why=end[1])

    out = Path(DEFAULT_OUT) / "check-graph"
    own = Path(DEFAULT_OUT) / "check-graph-suite"
    words = [backend, "--suite", str(own), "-k", PREFIX, "--out", str(out), "--drawn-rows", "0"]
    words += [f"--document={name}" for name in documents] + [f"--operation={name}" for name in written.operations]
    with lock_folder(own):  # otherwise a second command replaces the calls of the first
        replace_text(own / "cases" / "calls.yaml", written.text)
        (own / "spec").unlink(missing_ok=True)
        if suite is not None:
            (own / "spec").symlink_to(find_folders(suite).spec.resolve())
        run_suite(parser_of("run").parse_args(words), accept)
    return end


def _check(path: Path, judge: NodeJudge, inputs: Lengths, known: KnownFaults, is_traced: bool) -> CheckedFile:
    """Check one file with those of --input that it has; a mistake in the file is reported of the file."""
    try:
        model = read_model(path, judge.spec, judge.answer)
        model = trace_model(path, model) if is_traced else model
        symbols = _symbols_of(model.inputs)
        own = {name: dims for name, dims in inputs.items() if name in symbols or name in model.inputs}
        for name in symbols & own.keys() - model.inputs.keys():
            if len(own[name]) != 1:
                raise Stop(f"{path}: {name!r} names one length, and --input gives {len(own[name])}; write {name}=1..8")
        trials = fit_trials(list(_trials_of(own)), model.inputs)
        nodes = check_model(model, judge, trials, known)
    except ImpossibleInput as mistake:
        raise Stop(f"{path}: {mistake}") from None
    except UnreadableModel as unreadable:
        return CheckedFile(path, (), {}, str(unreadable))
    return CheckedFile(path, nodes, model.inputs)


def _symbols_of(inputs: Mapping[str, Dims | None]) -> set[str]:
    return {name for dims in inputs.values() for length in dims or () for name in list_names(length)}


def _refuse_unknown_inputs(files: Sequence[CheckedFile], inputs: Iterable[str]) -> None:
    """Raise Stop for a name of --input that no file has, unless one that could not be read may have it."""
    if any(file.why_unreadable for file in files):
        return
    for name in inputs:
        if not any(name in file.inputs or name in _symbols_of(file.inputs) for file in files):
            own, symbols = ", ".join(list(files[0].inputs)[:20]) or "none", sorted(_symbols_of(files[0].inputs))
            whose = f"of the first of {len(files)} files" if len(files) > 1 else f"of {files[0].path}"
            lengths = f", and names of lengths are {', '.join(symbols[:20])}" if symbols else ""
            raise Stop(f"there is no input {name!r} for --input; the inputs {whose} are {own}{lengths}")


def _exit_code(files: Sequence[CheckedFile]) -> int:
    if any(file.why_unreadable for file in files):
        return USAGE
    kinds = {node.kind for file in files for node in file.nodes}
    return FAILS if "illegal" in kinds else INCOMPLETE if kinds & {"not decided", "conditional"} else CONFORMS


def _read_inputs(texts: Iterable[str]) -> Lengths:
    dims: dict[str, tuple[range, ...]] = {}
    for text in texts:
        name, equals, lengths = text.rpartition("=")
        if not equals or not name:
            raise Stop(f"--input {shorten(text)!r} names no input; write --input x=1..8,3,320,320")
        if name in dims:
            raise Stop(f"--input names {shorten(name)!r} twice; give it once; 1..8 tries each length from 1 to 8")
        dims[name] = tuple(_read_range(entry, text) for entry in lengths.split(",")) if lengths != "()" else ()
    ranges = [tried for each in dims.values() for tried in each]
    if math.prod(map(len, ranges)) > _MAX_TRIALS or len(ranges) > MAX_ENTRIES:
        most = f"at most {_MAX_TRIALS:,} are tried, of at most {MAX_ENTRIES:,} lengths"
        raise Stop(f"--input asks for too many combinations of lengths; {most}")
    return dims


def _trials_of(dims: Lengths) -> Iterator[Trial]:
    """Yield a trial for every combination of lengths; one without dims if no input is named."""
    ranges = {(name, k): tried for name, each in dims.items() for k, tried in enumerate(each)}
    for chosen in itertools.product(*ranges.values()):
        lengths = dict(zip(ranges, chosen, strict=True))
        varied = tuple((f"{name}[{k}]", lengths[name, k]) for (name, k), tried in ranges.items() if len(tried) > 1)
        yield Trial(varied, {name: tuple(lengths[name, k] for k in range(len(each))) for name, each in dims.items()})


def _read_range(entry: str, text: str) -> range:
    match = _LENGTH.fullmatch(entry.strip())
    if not match:
        raise Stop(f"--input {shorten(text)!r}: {shorten(entry)!r} is not a length; write 3, or 1..8 to try 1 to 8")
    first = int(match[1])
    last = int(match[2] or first)
    if last < first or last > MAX_NUMBER:
        what = f"{entry.strip()} holds no length; write the smaller one first, and 2^63 - 1 at most"
        raise Stop(f"--input {shorten(text)!r}: {what}")
    return range(first, min(last, first + _MAX_TRIALS) + 1)


def _collect_data(file: CheckedFile) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "unreadable": file.why_unreadable or None,
        "inputs": file.inputs,
        "nodes": list(map(_collect_data_of_node, file.nodes)),
    }


def _collect_data_of_node(node: CheckedNode) -> dict[str, Any]:
    return {
        "name": node.first.name,
        "place": node.first.place,
        "kind": node.kind,
        "trials": [
            {
                "lengths": dict(trial.lengths),
                "src": variant.src,
                "shape": variant.shape,
                "special_zero": variant.special_zero,
                "type": variant.src_type,
                "declared": variant.declared,
                "documents": {
                    name: each[number]._asdict() | {"branches": list(map(of_branch, each[number].branches))}
                    for name, each in node.decisions.items()
                },
            }
            for number, (trial, variant) in enumerate(zip(node.trials, node.variants, strict=True))
        ],
        "faults": [
            {"id": f.id, "title": f.title, "advice": f.advice, "backends": dict(f.backends)} for f in node.faults
        ],
    }


def _show(spec: Spec, files: Sequence[CheckedFile]) -> None:
    treatments: dict[str, dict[str, Any]] = {}
    for file in files:
        if file.why_unreadable:
            say(f"{paint('bold', str(file.path))}: {paint('red', 'unreadable')}: {file.why_unreadable}")
            continue
        number = count_noun(len(file.nodes), "reshape")
        dims = {name: "[…]" if each is None else format_dims(each) for name, each in file.inputs.items()}
        inputs = name_first([f"{shorten(name)}{each}" for name, each in dims.items()], _MAX_INPUTS_NAMED) or "none"
        say(f"{paint('bold', str(file.path))}: {number}; inputs: {inputs}")
        say(table([row for node in file.nodes for row in _make_rows(node)]))
        for rule, documents in (item for node in file.nodes for item in node.rules.items()):
            treatments.setdefault(rule, {}).update({name: treatment_of(spec.rules[rule], name) for name in documents})
    print_rules(spec, treatments)
    _show_faults(files)
    say()
    say(_summarise(files))


_EXITS = {
    CONFORMS: "no reshape is illegal, for the lengths tried",
    FAILS: "a reshape is illegal",
    USAGE: "a file cannot be read",
    INCOMPLETE: "a reshape is not decided, or depends on a length; give dims with --input NAME=DIMS, or try --trace",
}


def _make_rows(node: CheckedNode) -> list[tuple[str, ...]]:
    """Return a row for a node, or one for each group of documents if they differ."""
    first = node.first
    where = ("", first.place, shorten(first.name, 48) or "(no name)", describe_call(node.variants))
    rows: list[tuple[str, ...]] = []
    for text, documents in format_decisions(node):
        kind = next(kind for kind in KINDS if text.startswith(kind))
        named = f" ({', '.join(documents)})" if documents else ""
        rows.append((*(where if not rows else ("", "", "", "")), paint(KIND_STYLES[kind], text) + named))
    return rows


def describe_call(variants: Sequence[ReshapeNode]) -> str:
    """Write `f32[1..8, 3] by [1, -1]`: lengths that differ between trials as a range, `?` for what is not known."""
    first = variants[0]
    src, shape = (_describe_dims([getattr(node, name) for node in variants]) for name in ("src", "shape"))
    return f"{first.src_type or '?'}{src} by {shape}{' special_zero' if first.special_zero else ''}"


def _describe_dims(dims: Sequence[Dims | None]) -> str:
    known = [each for each in dims if each is not None]
    if not known:
        return "[…]"
    if len({len(each) for each in known}) > 1:
        return format_dims(known[0])
    return f"[{', '.join(map(_describe_lengths, zip(*known, strict=True)))}]"


def _describe_lengths(lengths: Sequence[int | str | None]) -> str:
    known = [length for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths):
        return str(lengths[0]) if lengths[0] and len({*lengths}) == 1 else "?"
    return str(known[0]) if min(known) == max(known) else f"{min(known)}..{max(known)}"


def _show_faults(files: Sequence[CheckedFile]) -> None:
    places: dict[KnownFault, tuple[str, ...]] = group_pairs(
        (fault, node.first.place) for file in files for node in file.nodes for fault in node.faults
    )
    if not places:
        return
    say()
    say(f"{paint('bold', 'known faults')}  these backends may answer a legal call otherwise; nothing was run")
    for fault, of_fault in places.items():
        named = name_first(of_fault, _MAX_PLACES_NAMED)
        say(wrap(f"{fault.seen_in}: {fault.title} ({named})", 2))
