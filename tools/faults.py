"""`python -m tools.faults DIR`: a known fault should explain each single legal call that failed, and few others.

A fault with `rules` should not reach many more rows that pass than it explains: its title would accuse the library of
what it does not do.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.cli.arguments import Stop, load_plan, say_error
from conformance.cli.parser import Parser, path
from conformance.cli.shared_options import add_suite
from conformance.evidence.drawn import plan_of_run
from conformance.evidence.folder import RESULTS, find_results
from conformance.evidence.results import Evidence, InvalidEvidence, read
from conformance.load.faults import load_faults
from conformance.meaning.faults import KnownFaults
from conformance.model import FAIL, PASS, CallForm, Case, KnownFault, Malformed, PlainCall, Result, Step
from conformance.model.cases import list_given_keys
from conformance.plan.rows import Plan, Row
from conformance.system.exit_codes import USAGE, CommandError
from conformance.system.terminal import say
from conformance.system.text import format_call
from conformance.verdict.cause import find_faults, find_faults_of_step

_MAX_NAMED = 5
_MAX_PASSING_PER_FAILING = 8
"""Passing rows that a fault with `rules` may reach for each failing row that it explains."""

_KEYS_OF_PLAIN_CALLS = ("bits", "rows", "large", "shape_type")
"""Optional keys of a case with which its call is still a single one between dense tensors."""


class Explanation(NamedTuple):
    """The single legal calls of some evidence: which failed, which passed, and which of them a fault explains."""

    backend: str
    version: str
    failing: int
    passing: int
    flagged: int
    """Calls that passed although a fault may hit them."""
    unexplained: tuple[tuple[str, PlainCall], ...]
    """Calls that failed and that no fault explains, with a row of each."""
    idle: tuple[KnownFault, ...]
    """Faults that explain no row that failed."""
    coarse: tuple[tuple[KnownFault, int, int], ...]
    """Faults with `rules` that reach too many passing rows, with the numbers of failing and of passing rows."""


def explain_evidence(path: Path, plan: Plan, faults: Iterable[KnownFault]) -> Explanation:
    """Return how the faults of a backend explain its evidence; InvalidEvidence if it is of another suite."""
    evidence = read(path)
    if not evidence.can_be_judged_by(plan.suite):
        raise InvalidEvidence(f"{path}: is of a suite with other rules or cases; run again")
    return explain(evidence, plan, faults, path)


def explain(evidence: Evidence, plan: Plan, faults: Iterable[KnownFault], path: Path) -> Explanation:
    """Return how the faults of a backend explain evidence that has been read; `path` is for messages."""
    name, version = (evidence.header["backend"][key] for key in ("name", "version"))
    own = [fault for fault in faults if version in fault.versions_of(name)]
    known, every = KnownFaults([fault for fault in own if not fault.rules and not fault.facets]), KnownFaults(own)
    plan = plan_of_run(plan, evidence, path)
    failed, passed = _sort_calls(evidence, plan)
    met = {call: known.of_legal_call(call) for call in (*failed, *passed)}
    needed = {met[call][0] for call in failed if len(met[call]) == 1}
    rows = {row.id: row for row in plan.rows}
    failing = [result for result in evidence.results if result.row in rows and result.is_failure]
    explained = Counter(fault for result in failing for fault in find_faults(every, rows[result.row], result))
    needed.update(explained)
    ruled = KnownFaults([fault for fault in own if fault.rules])
    spared = Counter(
        fault for result in evidence.results if result.row in rows and not result.is_failure
        for fault in _reaching_passes(ruled, rows[result.row], result)
    )  # fmt: skip
    return Explanation(
        name, version, len(failed), len(passed), sum(bool(met[call]) for call in passed),
        tuple((row, call) for call, row in failed.items() if not met[call]),
        tuple(fault for fault in own if fault not in needed),
        tuple(
            (fault, explained[fault], number) for fault, number in spared.items()
            if number > _MAX_PASSING_PER_FAILING * explained[fault] > 0
        ),
    )  # fmt: skip


def _reaching_passes(known: KnownFaults, row: Row, result: Result) -> set[KnownFault]:
    """Return the faults that some step of a row may meet in a document in which the row passes."""
    documents = [document for document, verdict in result.verdicts.items() if verdict == PASS]
    steps = range(len(row.case.steps))
    return {fault for document in documents for at in steps for fault in find_faults_of_step(known, row, at, document)}


def _sort_calls(evidence: Evidence, plan: Plan) -> tuple[dict[PlainCall, str], set[PlainCall]]:
    """Return the calls that failed in some row, with that row, and those that only passed."""
    rows = {row.id: row for row in plan.rows}
    failed: dict[PlainCall, str] = {}
    passed: set[PlainCall] = set()
    for result in evidence.results:
        row = rows.get(result.row)
        if row is None or not _is_single(row):
            continue
        if FAIL in result.verdicts.values():
            for call in _legal_calls(row, result, FAIL, [row.case.steps[result.step]]):
                failed.setdefault(call, row.id)
        elif PASS in result.verdicts.values():
            passed.update(_legal_calls(row, result, PASS, row.case.steps))
    return failed, passed - failed.keys()


def _is_single(row: Row) -> bool:
    """Ask whether each step of a row is one well-formed node with dense tensors, called alone."""
    case = row.case
    has_form = case.declared is not None or case.attributes or case.inputs or case.outputs
    if has_form or (len(case.steps) > 1 and not case.generated):
        return False
    parts: tuple[Case | Step, ...] = (case, *case.steps)
    keys = {key.name for part in parts for key, _ in list_given_keys(part)}
    return keys <= set(_KEYS_OF_PLAIN_CALLS) and all(len(step.shapes) == 1 for step in case.steps)


def _legal_calls(row: Row, result: Result, verdict: str, steps: Iterable[Step]) -> Iterator[PlainCall]:
    """Yield the calls of steps that are legal in a document in which the row has a verdict."""
    form = CallForm(row.type, row.type, row.shape_type)
    documents = [document for document, each in result.verdicts.items() if each == verdict]
    for step in steps:
        call = (step.src, step.shapes[0], step.special_zero[0])
        meanings = (row.contracts[document].meaning(*call, form) for document in documents)
        dst = next((meaning.dst for meaning in meanings if meaning.kind == "legal"), None)
        if dst is not None:
            yield PlainCall(row.type, *call, tuple(length or 0 for length in dst))


def main(words: Sequence[str] | None = None) -> int:
    """Compare adapters/faults.yaml with the evidence in folders; 1 if they do not agree."""
    parser = Parser(prog="python -m tools.faults", description="Compare adapters/faults.yaml with runs.")
    parser.add_argument("folder", type=path, metavar="DIR", help="the folder of a run, or of several")
    add_suite(parser)
    try:
        args = parser.parse_args(words)
        folders = (args.folder, *sorted(args.folder.glob("*/")))
        if not (found := [file for folder in folders for file in find_results(folder)]):
            raise Stop(f"{str(args.folder)!r} holds no {RESULTS}; name the folder of a run, or of several")
        plan, faults = load_plan(args.suite), load_faults()
        problems = [problem for file in found for problem in _compare(file, plan, faults)]
    except (CommandError, Malformed) as error:
        say_error(str(error))
        return error.exit_code if isinstance(error, CommandError) else USAGE
    for problem in problems:
        say(problem)
    return 1 if problems else 0


def _compare(file: Path, plan: Plan, faults: Sequence[KnownFault]) -> Iterator[str]:
    """Print how the faults explain some evidence, and yield the problems. Evidence of another suite is skipped."""
    try:
        found = explain_evidence(file, plan, faults)
    except InvalidEvidence as refused:
        say(f"not compared: {refused}")
        return
    explained = f"{found.failing - len(found.unexplained):,} of {found.failing:,} failing calls explained"
    say(f"{found.backend} {found.version}: {explained}, {found.flagged:,} of {found.passing:,} passing calls flagged")
    for row, call in found.unexplained[:_MAX_NAMED]:
        words = format_call(call.src, call.shape, call.special_zero, call.src_type)
        yield f"{file}: {row} fails on {words}, and no fault in adapters/faults.yaml explains it; add one"
    if (more := len(found.unexplained) - _MAX_NAMED) > 0:
        yield f"{file}: {more:,} more failing calls have no fault that explains them"
    why = f"is listed for {found.version}, but explains no failing row"
    for fault in found.idle:
        yield f"{_place(fault)}: fault {fault.id!r} {why} of {file}; correct or delete it"
    for fault, failing, passing in found.coarse:
        why = f"explains {failing:,} failing rows of {file}, but reaches {passing:,} that pass"
        yield f"{_place(fault)}: fault {fault.id!r} {why}; narrow its `when`"


def _place(fault: KnownFault) -> object:
    return fault.when.place if fault.when else "adapters/faults.yaml"


if __name__ == "__main__":
    sys.exit(main())
