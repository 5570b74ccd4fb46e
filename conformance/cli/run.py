"""`conformance run BACKEND`: run every row on one backend and write evidence, reports and verdict."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from .. import report
from ..adapter import CannotStart
from ..certify.blame import HEAVIEST_FIRST, Blamed
from ..certify.certify import ClaimsDiffer, Order, certify, describe_difference
from ..certify.conclude import Conclusion, conclude_evidence
from ..certify.drawn import with_drawn_rows
from ..certify.evidence import Evidence, Refused, Tampered, Target, folder_words, part_of
from ..certify.folder import RESULTS, clear
from ..certify.sentences import describe_missing_cases
from ..certify.standing import Blames, in_target
from ..explore.write_drawn import write_drawn
from ..isolate.backend import isolation_of
from ..isolate.launch import Limits
from ..isolate.supervise import Terminated
from ..load.schema import read_file
from ..load.strict_yaml import require
from ..model import BAD, BLAMES, VERDICTS, WAIVED, Claims, Place, Result, fails
from ..model.verdicts import TABLE
from ..plan.rows import Plan, Row
from ..plan.select import BadExpression, ids, parse_selection
from ..system.exit_codes import CANNOT_START, UNTRUSTED
from ..system.files import InUse, lock_folder
from ..system.terminal import Progress, count_noun, lines, paint, say, table, wrap
from .arguments import Usage, emit, load_plan, unknown

__all__ = ["check_requirements", "conclude_and_report", "describe_difference", "read_claims", "run"]

DEFAULT_OUT = "conformance-report"
_SHOWN = 12
"""The most groups of failures on the terminal; the report has all."""
_DRAWN = 500
"""Calls that are drawn without --hunt."""
_BAD = {*BAD, WAIVED}


def run(args: argparse.Namespace) -> int:
    """Run, write, and print the conclusion; return its exit code."""
    plan = load_plan(args)
    if plan.suite.lost:
        raise Usage(describe_missing_cases(plan.suite))
    order = _order(args, plan)
    with ExitStack() as locks:
        return _run(args, plan, order, _Folder(args, locks))


class _Folder:
    """The folder of a run: locked and cleared before the run begins."""

    def __init__(self, args: argparse.Namespace, locks: ExitStack) -> None:
        self._args, self._locks = args, locks
        self.path: Path | None = None
        if args.out is not None or args.resume is not None:
            self.claim("")

    def claim(self, backend: str) -> Path:
        """Lock and clear the folder and return its path, which is named after the backend without --out."""
        if self.path is None:
            path = _folder(self._args, backend)
            if self._args.resume is not None and not path.is_dir():
                raise Usage(f"--resume {self._args.resume}: is not a folder; there is no run to resume")
            try:
                self._locks.enter_context(lock_folder(path, f"conformance run {self._args.backend}"))
            except InUse as in_use:
                raise Usage(str(in_use)) from None
            if self._args.resume is None:
                clear(path)
            self.path = path
        return self.path


def _run(args: argparse.Namespace, plan: Plan, order: Order, folder: _Folder) -> int:
    progress = Progress("running", len(plan.rows) + order.drawn)
    evidence: Evidence | None = None
    try:
        with closing(progress):
            evidence = certify(order, folder.claim, args.resume is not None, progress.at)
        assert folder.path is not None
        return conclude_and_report(args, plan, evidence, folder.path)
    except CannotStart as cannot:
        raise Usage(str(cannot), code=CANNOT_START) from None
    except ClaimsDiffer as differs:
        raise Usage(f"--claims {args.claims}: {differs}", code=CANNOT_START) from None
    except Refused as refused:
        raise Usage(f"--resume: {refused}") from None
    except Tampered as tampered:
        raise Usage(str(tampered), code=UNTRUSTED) from None
    except KeyboardInterrupt as error:
        if folder.path is None:
            raise
        how, code = ("terminated", 143) if isinstance(error, Terminated) else ("interrupted", 130)
        raise Usage(f"{how}; {_how_to_continue(folder.path, evidence)}", code=code) from None


def _how_to_continue(folder: Path, evidence: Evidence | None) -> str:
    path = shlex.quote(_relative(folder))
    if evidence is not None or (folder / RESULTS).exists():
        return f"the results are whole; `conformance report {path}` writes their reports"
    return f"to go on, give --resume {path} in place of --out" if part_of(folder / RESULTS).exists() else "nothing ran"


def conclude_and_report(args: argparse.Namespace, plan: Plan, evidence: Evidence, out: Path) -> int:
    """Write the reports on evidence into a folder, print what it shows, and return the exit code."""
    conclusion = conclude_evidence(plan, evidence)
    report.write(out, plan, evidence, conclusion)
    if args.json:
        emit(_data(conclusion, evidence, out))
    else:
        again = ["conformance", "run", evidence.header["backend"]["adapter"], *folder_words(evidence.header)]
        _show(shlex.join(again), plan, evidence, conclusion, out)
    return conclusion.exit_code


# ── what to run ───────────────────────────────────────────────────────────────────────────────────


def _order(args: argparse.Namespace, plan: Plan) -> Order:
    isolation = isolation_of(args.backend, args.isolation)
    if args.jobs > 1 and isolation == "none":
        raise Usage(f"--jobs {args.jobs} needs processes, and {args.backend} runs in this one; add --isolation worker")
    for option, folder in (("--out", args.out), ("--resume", args.resume)):
        if folder is not None and folder.is_file():
            raise Usage(f"{option} {str(folder)!r} is a file; name a folder")
    if args.out is not None and args.resume is not None:
        raise Usage("--resume names the folder already; drop --out")
    try:
        chosen = parse_selection(args.select, ids(plan.rows)) if args.select is not None else lambda row: True
    except BadExpression as bad:
        raise Usage(f"-k: {bad}") from None
    return Order(
        backend=args.backend,
        plan=plan,
        target=_target(args, plan),
        chosen=chosen,
        isolation=isolation,
        limits=Limits(seconds=args.timeout, memory=args.memory << 20, budget=args.budget),
        jobs=args.jobs,
        waivers=args.waivers,
        pinned=None if args.claims is None else read_claims(args.claims),
        dask=args.dask,
        spec=args.spec,
        cases=args.cases,
        drawn=_drawn_calls(args),
        write=write_drawn,
    )


def _drawn_calls(args: argparse.Namespace) -> int:
    """Return the number of calls to draw: none if only a part of the rows is run.

    With waivers there are none unless --hunt asks for them, because a waiver cannot name a call that nobody wrote.
    """
    partial = args.select is not None or args.shard or args.operation or args.document or args.type
    if partial and args.hunt:
        raise Usage(f"--hunt {args.hunt} draws calls of the whole target; drop -k, --shard and the options for a part")
    if args.hunt is None:
        return 0 if partial or args.waivers else _DRAWN
    return int(args.hunt)


def _target(args: argparse.Namespace, plan: Plan) -> Target:
    spec = plan.suite.spec
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    for what, names, known in (
        ("operation", args.operation, spec.operations),
        ("document", args.document, spec.documents),
        ("type", args.type, types),
    ):
        for name in names or ():
            if name not in known:
                raise Usage(unknown(what, name, sorted(known)))
    return Target(
        operations=tuple(args.operation or ()),
        documents=tuple(args.document or ()),
        types=tuple(args.type or ()),
        select=args.select,
        large=args.large,
        require=check_requirements(args.require, plan),
        shard=args.shard,
    )


def check_requirements(names: Sequence[str] | None, plan: Plan) -> tuple[str, ...]:
    """Check the names given with --require; Usage if there is no such document, operation, type or facet."""
    spec = plan.suite.spec
    facets = {facet for row in plan.rows for facet in row.facets}
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}
    known = {*facets, *(facet.partition(":")[0] for facet in facets), *spec.operations, *spec.documents, *types}
    for name in names or ():
        if name not in known:
            raise Usage(unknown("requirement", name, sorted(known)))
    return tuple(names or ())


def read_claims(path: Path) -> Claims:
    """Read the claims in a file."""
    content, problems = read_file(path, "claims")
    require([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    return Claims.of(content)


def _folder(args: argparse.Namespace, name: str) -> Path:
    return Path(args.resume or args.out or Path(DEFAULT_OUT) / _folder_name(name)).resolve()


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
        "notes": [*conclusion.notes, *evidence.footer["notes"]],
        "verdicts": {verdict: conclusion.counts.get(verdict, 0) for verdict in VERDICTS},
        "standings": [
            {
                "document": s.document, "operation": s.operation, "type": s.type, "verdict": s.word,
                "required": s.required, "counts": dict(s.counts), "left_out": dict(s.optional), "tests": s.tests,
                "blames": {blame: s.blames.get(blame, 0) for blame in BLAMES},
            }
            for s in conclusion.standings
        ],
        "out": str(out),
    }  # fmt: skip


def _show(again: str, plan: Plan, evidence: Evidence, conclusion: Conclusion, out: Path) -> None:
    who = evidence.header["backend"]
    say(paint("bold", f"{who['name']} {who['version']}"))
    say()
    for sentence in conclusion.sentences:
        say(wrap(sentence, 2, 4))
    say()
    rows = [
        (paint(TABLE[v].style or "dim", v), f"{conclusion.counts.get(v, 0):,}")
        for v in VERDICTS
        if conclusion.counts.get(v)
    ]
    say(table([("  " + name, number) for name, number in rows], right=[1]))
    say(f"  {count_noun(len(plan.rows), 'row')}, a verdict in each document, {evidence.footer['seconds']} s")
    if drawn := evidence.footer.get("drawn"):
        seed = evidence.header["drawn"]["seed"]
        failed = f"{drawn['failures']:,} failed" if drawn["failures"] else "none failed"
        say(f"  {count_noun(drawn['calls'], 'drawn row')} of seed {seed}, {failed}")
    for note in (*conclusion.notes, *evidence.footer["notes"]):
        say(paint("yellow", f"  note: {note}"))
    _show_failures(again, plan, evidence, conclusion.blames)
    say()
    say(f"exit {conclusion.exit_code}: {conclusion.why}")
    say(f"report: {_relative(out / 'report.html')}")


def _show_failures(again: str, plan: Plan, evidence: Evidence, blames: Blames) -> None:
    groups, outside = _failures(plan, evidence, blames)
    if outside:
        say(
            paint(
                "yellow", f"  note: of the verdicts that failed {outside:,} are outside the target; the report has all"
            )
        )
    if not groups:
        return
    say()
    alive = any(fails(result.verdicts.values()) for group in groups.values() for _, result in group)
    say(paint("bold", "failures" if alive else "failures, all waived"))
    ordered = sorted(groups.items(), key=lambda group: (_weight(group[0][1]), -len(group[1])))
    for (diagnosis, blamed), members in ordered[:_SHOWN]:
        row, result = members[0]
        about = f"{blamed.blame}: {blamed.premise.rule}" if blamed else row.case.rule
        say(f"  {paint('red', diagnosis)} · {about} · {count_noun(len(members), 'row')}")
        say(wrap(f"{row.case.place}: {row.id}: {result.detail}", 6))
        if result.case is not None:
            say(lines([f"      {line}" for line in result.case.rstrip().split("\n")]))
        else:
            say(paint("dim", f"      {again} -k {shlex.quote(row.id)}"))
    if len(ordered) > _SHOWN:
        say(f"  and {len(ordered) - _SHOWN} more kinds; the report has all")


def _weight(blamed: Blamed | None) -> int:
    return HEAVIEST_FIRST.index(blamed.blame) if blamed else -1  # an error of the adapter comes first


_Failures = dict[tuple[str, Blamed | None], list[tuple[Row, Result]]]


def _failures(plan: Plan, evidence: Evidence, blames: Blames) -> tuple[_Failures, int]:
    """Return the rows that failed in the target, by diagnosis and heaviest blame, and how many failed outside it."""
    by_row = {row.id: row for row in with_drawn_rows(plan, evidence).rows}
    target = Target.of(evidence.header["target"])
    claims = Claims.of(evidence.header["claims"])
    groups: _Failures = {}
    outside = 0
    for result in evidence.results:
        if result.diagnosis:
            row = by_row[result.row]
            failed = [document for document, verdict in result.verdicts.items() if verdict in _BAD]
            listed = row.type in row.signature.types
            inside = [document for document in failed if listed and in_target(row, document, target, claims)]
            outside += len(failed) - len(inside)
            if inside:
                blamed = min(blames.get(row.id, {}).values(), key=_weight, default=None)
                groups.setdefault((result.diagnosis, blamed), []).append((row, result))
    return groups, outside


def _relative(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
