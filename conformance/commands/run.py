"""`conformance run BACKEND`: every row of the suite on one backend, the evidence, the reports and the verdict."""

from __future__ import annotations

import argparse
import gc
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from .. import report
from ..adapter import CannotStart
from ..backend import isolation_of, opened, run_in_parallel, run_isolated
from ..conclude import Conclusion, conclude, in_target
from ..evidence import Evidence, Target, Writer, header_of, read
from ..load_cases import load_suite
from ..model import VERDICTS, Claims, Result, Suite
from ..plan import Plan, Row, plan_of
from ..remote import Limits
from ..run import contained, result_without_call
from ..select import BadExpression, chooser, ids
from ..terminal import Progress, counted, paint, say, table, wrapped
from . import Usage, emit, folder_given, unknown

DEFAULT_OUT = "conformance-report"
_SHOWN = 12
"""Groups of failures that are shown on the terminal; the report has all."""
_STYLES = {"pass": "green", "observed": "cyan", "fail": "red", "error": "red", "not run": "yellow", "waived": "yellow"}


def run(args: argparse.Namespace) -> int:
    """Runs, writes, and says what was shown; the exit code is the conclusion's."""
    suite = load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases))
    target = _target(args, suite)
    plan = plan_of(suite)
    chosen = _chosen(plan, target)
    out, claims = _certified(args, plan, chosen, target)
    evidence = read(out / "results.jsonl")
    conclusion = conclude(plan, {result.row: result for result in evidence.results}, claims, target)
    report.write(out, plan, evidence, conclusion)
    if args.json:
        emit(_data(conclusion, evidence, out))
    else:
        _show(args.backend, plan, evidence, conclusion, out)
    return conclusion.exit_code


def _certified(args: argparse.Namespace, plan: Plan, chosen: set[str], target: Target) -> tuple[Path, Claims]:
    """Opens the backend, calls it, and writes the evidence; the folder it lies in, and what was claimed."""
    isolation = isolation_of(args.backend, args.isolation)
    if args.jobs > 1 and isolation == "none":
        raise Usage(f"--jobs {args.jobs} needs processes, and {args.backend} runs in this one; add --isolation worker")
    limits = Limits(seconds=args.timeout, memory=args.memory << 20)
    gc.collect()
    gc.freeze()  # the plan stays; to walk it again and again would be most of the run
    try:
        with contained() as notes, opened(args.backend, isolation, limits) as adapter:
            identity, claims = adapter.identity, adapter.claims
            out = Path(args.out or Path(DEFAULT_OUT) / _folder_name(identity.name)).resolve()
            header = header_of(plan.suite, identity, claims, target, args.backend)
            writer = Writer(out / "results.jsonl", header | {"isolation": isolation})
            began = time.perf_counter()
            rows = [row for row in plan.rows if row.id in chosen]
            if args.jobs > 1:
                results = run_in_parallel(rows, adapter, claims, args.backend, isolation, limits, args.jobs)
            else:
                results = run_isolated(rows, adapter, claims, isolation)
            for result in _in_order(plan, chosen, results):
                writer.row(result)
    except CannotStart as cannot:
        raise Usage(str(cannot), code=3) from None
    writer.close(time.perf_counter() - began, tuple(notes))
    return out, claims


# ── what to run ───────────────────────────────────────────────────────────────────────────────────


def _target(args: argparse.Namespace, suite: Suite) -> Target:
    spec = suite.spec
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    for what, given, known in (
        ("operation", args.operation, spec.operations),
        ("document", args.document, spec.documents),
        ("type", args.type, types),
    ):
        for name in given or ():
            if name not in known:
                raise Usage(unknown(what, name, sorted(known)))
    return Target(
        tuple(args.operation or ()), tuple(args.document or ()), tuple(args.type or ()), args.select, args.large,
        tuple(args.require or ()),
    )  # fmt: skip


def _chosen(plan: Plan, target: Target) -> set[str]:
    """The ids of the rows to be called."""
    try:
        selected = chooser(target.select, ids(plan.rows)) if target.select is not None else lambda row: True
    except BadExpression as bad:
        raise Usage(f"-k: {bad}") from None
    every = Claims(tuple(plan.suite.spec.operations))
    return {
        row.id
        for row in plan.rows
        if selected(row) and any(in_target(row, document, target, every) for document in row.documents)
    }


def _in_order(plan: Plan, chosen: set[str], results: Iterator[Result]) -> Iterator[Result]:
    """One result a row of the plan, in its order, called or not."""
    progress = Progress("running", len(plan.rows))
    with closing(progress):
        for number, row in enumerate(plan.rows, 1):
            progress.at(number, row.case.id)
            yield next(results) if row.id in chosen else result_without_call(row, "not run")


def _folder_name(name: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    return kept.strip(".-")[:80] or "backend"


# ── what to say ───────────────────────────────────────────────────────────────────────────────────


def _data(conclusion: Conclusion, evidence: Evidence, out: Path) -> dict[str, Any]:
    return {
        "backend": evidence.header["backend"],
        "exit_code": conclusion.exit_code,
        "why": conclusion.why,
        "sentences": list(conclusion.sentences),
        "verdicts": {verdict: conclusion.counts.get(verdict, 0) for verdict in VERDICTS},
        "standings": [
            {
                "document": s.document, "operation": s.operation, "type": s.type, "verdict": s.word,
                "required": s.required, "counts": dict(s.counts), "left_out": dict(s.optional),
            }
            for s in conclusion.standings
        ],
        "out": str(out),
    }  # fmt: skip


def _show(backend: str, plan: Plan, evidence: Evidence, conclusion: Conclusion, out: Path) -> None:
    who = evidence.header["backend"]
    say(paint("bold", f"{who['name']} {who['version']}"))
    say()
    for sentence in conclusion.sentences:
        say(wrapped(sentence, 2, 4))
    say()
    rows = [
        (paint(_STYLES.get(v, "dim"), v), f"{conclusion.counts.get(v, 0):,}")
        for v in VERDICTS
        if conclusion.counts.get(v)
    ]
    say(table([("  " + name, number) for name, number in rows], right=[1]))
    say(f"  {counted(len(plan.rows), 'row')}, a verdict in each document, {evidence.footer['seconds']} s")
    for note in evidence.footer["notes"]:
        say(paint("yellow", f"  note: {note}"))
    _show_failures(backend, plan, evidence.results)
    say()
    say(f"exit {conclusion.exit_code}: {conclusion.why}")
    say(f"report: {_near(out / 'report.html')}")


def _show_failures(backend: str, plan: Plan, results: Iterable[Result]) -> None:
    by_row = {row.id: row for row in plan.rows}
    groups: dict[tuple[str, str], list[tuple[Row, Result]]] = {}
    for result in results:
        if result.diagnosis:
            row = by_row[result.row]
            groups.setdefault((result.diagnosis, row.case.rule), []).append((row, result))
    if not groups:
        return
    say()
    say(paint("bold", "what failed"))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (diagnosis, rule), members in ordered[:_SHOWN]:
        row, result = members[0]
        say(f"  {paint('red', diagnosis)} · {rule} · {counted(len(members), 'row')}")
        say(wrapped(f"{row.case.place}: {row.id}: {result.detail}", 6))
        say(paint("dim", f"      conformance run {shlex.quote(backend)} -k {shlex.quote(row.id)}"))
    if len(ordered) > _SHOWN:
        say(f"  and {len(ordered) - _SHOWN} more kinds; the report has all")


def _near(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
