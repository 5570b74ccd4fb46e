"""The part of `conformance check` that compares adapters/faults.yaml with the evidence of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..evidence.folder import RESULTS, find_results
from ..evidence.results import InvalidEvidence
from ..load.faults import load_faults
from ..model import Place, Problem
from ..plan.rows import Plan
from ..system.terminal import say, table
from ..system.text import format_call
from ..verdict.explain_faults import Explanation, explain_evidence
from .arguments import Usage

_MAX_NAMED = 5


class Comparison(NamedTuple):
    """The known faults beside some evidence: an explanation for each, the problems, and evidence that was skipped."""

    explanations: list[Explanation]
    problems: list[Problem]
    skipped: list[str]


def find_evidence(folder: Path) -> list[Path]:
    """Return the evidence in a folder of a run, or in the folders of runs inside; Usage if there is none."""
    found = [path for each in (folder, *sorted(folder.glob("*/"))) for path in find_results(each)]
    if not found:
        raise Usage(f"--evidence {str(folder)!r} holds no {RESULTS}; name the folder of a run, or of several")
    return found


def compare_faults(paths: Sequence[Path], plan: Plan) -> Comparison:
    """Compare the bundled faults with evidence; what is of another suite or format is skipped."""
    faults = load_faults()
    compared = Comparison([], [], [])
    for path in paths:
        try:
            explanation = explain_evidence(path, plan, faults)
        except InvalidEvidence as refused:
            compared.skipped.append(str(refused))
            continue
        compared.explanations.append(explanation)
        compared.problems.extend(_problems_of(explanation, path))
    return compared


def _problems_of(explanation: Explanation, path: Path) -> Iterator[Problem]:
    for row, call in explanation.unexplained[:_MAX_NAMED]:
        words = format_call(call.src, call.shape, call.special_zero, call.src_type)
        what = f"{row} fails on {words}, and no fault in adapters/faults.yaml explains it; add one"
        yield Problem(Place(str(path), 1), what)
    if (more := len(explanation.unexplained) - _MAX_NAMED) > 0:
        yield Problem(Place(str(path), 1), f"{more:,} more failing calls have no fault that explains them")
    why = f"is listed for {explanation.version}, but alone explains no failing call"
    for fault in explanation.idle:
        yield Problem(fault.when.place, f"fault {fault.id!r} {why} of {path}; correct or delete it")


def data_of_comparison(compared: Comparison) -> dict[str, Any]:
    return {
        "evidence": [
            {
                "backend": each.backend, "version": each.version, "failing": each.failing,
                "explained": each.failing - len(each.unexplained), "passing": each.passing, "flagged": each.flagged,
            }
            for each in compared.explanations
        ],
        "skipped": compared.skipped,
    }  # fmt: skip


def show_comparison(compared: Comparison) -> None:
    """Print a line for each evidence. A call counts once, in however many rows it is."""
    rows = [
        (
            f"{each.backend} {each.version}", f"{each.failing - len(each.unexplained):,} of {each.failing:,}",
            f"{each.flagged:,} of {each.passing:,}",
        )
        for each in compared.explanations
    ]  # fmt: skip
    if rows:
        say(table(rows, ("known faults", "failing calls explained", "passing calls flagged"), (1, 2)))
    for why in compared.skipped:
        say(f"not compared: {why}")
