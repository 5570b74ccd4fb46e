"""`conformance check-graph FILE…`: say what the reshapes of model files mean in the documents, for each length."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..graphs.conclude import KINDS, CheckedNode, Trial, check_model, format_findings
from ..graphs.decide import Judge
from ..graphs.nodes import Model, ReshapeNode, Unreadable
from ..graphs.read import read_model
from ..model import Spec
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, USAGE
from ..system.terminal import count_noun, paint, say, table, wrap
from .arguments import Usage, emit, load_spec_of, pick
from .facts import standing
from .graph_lengths import trials_of
from .meaning import describe_standing, format_dims

_COLOURS = {"legal": "green", "illegal": "red", "unspecified": "yellow", "not decided": "yellow"}


class CheckedFile(NamedTuple):
    """A model file, and its reshapes; or why it cannot be read."""

    path: Path
    nodes: Sequence[CheckedNode]
    why_unreadable: str = ""


def run(args: argparse.Namespace) -> int:
    """Decide every reshape of every file and print a line for each; 0 if none is illegal and all are decided."""
    spec = load_spec_of(args)
    documents = (pick("document", args.document, spec.documents),) if args.document else tuple(spec.documents)
    judge = Judge(spec, documents)
    trials = trials_of(args.input or ())
    files = [_check(path, judge, trials) for path in args.files]
    code = _exit_code(files)
    if args.json:
        emit({"exit": code, "files": [_data(file, trials) for file in files]})
    else:
        _show(spec, files, trials, code)
    return code


def _check(path: Path, judge: Judge, trials: Sequence[Trial]) -> CheckedFile:
    """Check one file; a mistake in --input is the user's, and one in the file is reported of the file."""
    try:
        model = read_model(path, judge.spec, judge.answer)
        _require_inputs(path, model, trials)
        return CheckedFile(path, check_model(model, judge, trials))
    except Unreadable as unreadable:
        return CheckedFile(path, [], str(unreadable))


def _require_inputs(path: Path, model: Model, trials: Sequence[Trial]) -> None:
    inputs = model.inputs
    for name in trials[0].binding:
        if name not in inputs:
            known = ", ".join(list(inputs)[:20]) or "none"
            raise Usage(f"{path}: there is no input {name!r} for --input; its inputs are {known}")


def _exit_code(files: Sequence[CheckedFile]) -> int:
    if any(file.why_unreadable for file in files):
        return USAGE
    kinds = {node.kind for file in files for node in file.nodes}
    return FAILS if "illegal" in kinds else INCOMPLETE if "not decided" in kinds else CONFORMS


# ── for machines ──────────────────────────────────────────────────────────────────────────────────


def _data(file: CheckedFile, trials: Sequence[Trial]) -> dict[str, Any]:
    return {
        "file": str(file.path),
        "unreadable": file.why_unreadable or None,
        "nodes": [_data_of_node(node, trials) for node in file.nodes],
    }


def _data_of_node(node: CheckedNode, trials: Sequence[Trial]) -> dict[str, Any]:
    first = node.first
    return {
        "name": first.name,
        "place": first.place,
        "kind": node.kind,
        "trials": [
            {
                "lengths": dict(trial.lengths),
                "src": _listed(variant.src),
                "shape": _listed(variant.shape),
                "special_zero": variant.special_zero,
                "type": variant.src_type,
                "declared": _listed(variant.declared),
                "documents": {
                    name: {**decisions[number]._asdict(), "dst": _listed(decisions[number].dst)}
                    for name, decisions in node.decisions.items()
                },
            }
            for number, (trial, variant) in enumerate(zip(trials, node.variants, strict=True))
        ],
    }


def _listed(dims: Sequence[int | None] | None) -> list[int | None] | None:
    return None if dims is None else list(dims)


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _show(spec: Spec, files: Sequence[CheckedFile], trials: Sequence[Trial], code: int) -> None:
    for file in files:
        if file.why_unreadable:
            say(f"{paint('bold', str(file.path))}: {paint('red', 'unreadable')}: {file.why_unreadable}")
            continue
        say(f"{paint('bold', str(file.path))}: {count_noun(len(file.nodes), 'reshape')}")
        say(table([row for node in file.nodes for row in _rows(node, trials)]))
    _show_rules(spec, files)
    counts = Counter(node.kind for file in files for node in file.nodes)
    total = sum(counts.values())
    say()
    say(f"{count_noun(total, 'reshape')}: " + (", ".join(f"{counts[k]} {k}" for k in KINDS if counts[k]) or "none"))
    say(f"exit {code}: {_EXITS[code]}")


_EXITS = {
    CONFORMS: "no reshape is illegal, for the lengths tried",
    FAILS: "a reshape is illegal",
    USAGE: "a file cannot be read",
    INCOMPLETE: "a reshape is not decided; give the dims of the inputs with --input NAME=DIMS",
}


def _rows(node: CheckedNode, trials: Sequence[Trial]) -> list[tuple[str, ...]]:
    """Return a row for a node, or one for each group of documents if they differ."""
    first = node.first
    where = ("", first.place, first.name or "(no name)", describe_call(first))
    rows: list[tuple[str, ...]] = []
    for text, documents in format_findings(node, trials):
        kind = next(kind for kind in KINDS if text.startswith(kind))
        named = f" ({', '.join(documents)})" if documents else ""
        rows.append((*(where if not rows else ("", "", "", "")), paint(_COLOURS[kind], text) + named))
    return rows


def describe_call(node: ReshapeNode) -> str:
    """Write `f32[1, 3] by [1, -1]`, with `?` for what is not known."""
    src = "[…]" if node.src is None else format_dims(node.src)
    shape = "[…]" if node.shape is None else format_dims(node.shape)
    zero = " special_zero" if node.special_zero else ""
    return f"{node.src_type or '?'}{src} by {shape}{zero}"


def _show_rules(spec: Spec, files: Sequence[CheckedFile]) -> None:
    """Print each rule that a node breaks or that is silent about one, and where the documents have it."""
    named: dict[str, dict[str, None]] = {}
    for node in (node for file in files for node in file.nodes):
        for rule, documents in node.rules.items():
            named.setdefault(rule, {}).update(dict.fromkeys(documents))
    for rule, of_rule in named.items():
        say()
        say(f"{paint('bold', rule)}  {paint('dim', spec.rules[rule].level)}")
        say(wrap(spec.rules[rule].sentence, 2))
        say(table([("", name, *describe_standing(standing(spec.rules[rule], name))) for name in of_rule]))
