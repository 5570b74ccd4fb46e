"""The one table that turns what happened and what the call means into a verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from ..model import (
    BAD,
    ERROR,
    FAIL,
    NOT_CLAIMED,
    NOT_RUN,
    OBSERVED,
    PASS,
    Elements,
    Kind,
    Meaning,
    Outcome,
    OutcomeKind,
    Verdict,
    worst,
)
from ..plan.memory import TensorSpec
from ..plan.steps import RowStep
from .diagnose import Diagnosis, ExpectedAnswer, diagnose

Column = Kind | Literal["capacity", "no room"]
"""A kind of meaning. `capacity`: a legal call that a backend may reject for want of capacity. `no room`: an unspecified
call that declares too little memory for the elements of dst, so that nothing is compared."""
COLUMNS: tuple[Column, ...] = ("legal", "illegal", "unspecified", "capacity", "no room")
Cell = tuple[Verdict, str] | None
"""A verdict and its diagnosis in a word; None: the tensor is to be compared first."""

OUTCOME_VERDICTS: dict[OutcomeKind, dict[Column, Cell]] = {
    "tensor": {
        "legal": None, "illegal": (FAIL, "answered an illegal call"), "unspecified": None, "capacity": None,
        "no room": (OBSERVED, ""),
    },
    "rejected": {
        "legal": (FAIL, "rejected a legal call"), "illegal": (PASS, ""), "unspecified": (OBSERVED, ""),
        "capacity": (OBSERVED, ""), "no room": (OBSERVED, ""),
    },
    "unsupported": dict.fromkeys(COLUMNS, (FAIL, "unsupported")),
    "crash": dict.fromkeys(COLUMNS, (FAIL, "crash")),
    "timeout": dict.fromkeys(COLUMNS, (FAIL, "timeout")),
    "error": dict.fromkeys(COLUMNS, (ERROR, "adapter error")),
    "none": dict.fromkeys(COLUMNS, (NOT_RUN, "")),
}  # fmt: skip
NEUTRAL: frozenset[OutcomeKind] = frozenset({"rejected", "unsupported", "error"})
"""Outcomes that are `not claimed` if the call has a facet that is not claimed. A tensor of another type is, too.

If the type of src is not claimed, every tensor is.
"""
UNCLAIMED = " where nothing is claimed"
"""Suffix for a crash or hang on a call that the backend does not claim."""


class Judgement(NamedTuple):
    """A verdict, and where something is wrong what it is."""

    verdict: Verdict
    diagnosis: Diagnosis | None = None


_PASS, _OBSERVED, _NOT_CLAIMED = Judgement(PASS), Judgement(OBSERVED), Judgement(NOT_CLAIMED)


def judge_step(
    step: RowStep, outcome: Outcome, unclaimed: Collection[str], earlier: Sequence[Elements] = ()
) -> dict[str, Judgement]:
    """Return the judgement on a step in each document; `earlier` are the answers to steps before it."""
    expected = ExpectedAnswer(step.src_spec, step.src.elements, earlier, step.strided_dst)
    judgements: dict[str, Judgement] = {}
    for meaning, documents in step.meanings:
        judgement = judge(outcome, meaning, expected, unclaimed)
        for document in documents:
            judgements[document] = judgement
    return judgements


def judge(outcome: Outcome, meaning: Meaning, expected: ExpectedAnswer, unclaimed: Collection[str]) -> Judgement:
    """Return the verdict on one outcome. `unclaimed`: the facets of the call that the backend does not claim."""
    if outcome.side_effects:
        did = ", ".join(outcome.side_effects)
        return Judgement(FAIL, Diagnosis(outcome.side_effects[0], f"the call did more than answer: {did}"))
    if unclaimed and _shows_nothing(outcome, expected.src_spec, unclaimed):
        return _NOT_CLAIMED
    cell = OUTCOME_VERDICTS[outcome.kind][_make_column(meaning)]
    if cell is not None:
        verdict, word = cell
        if verdict not in BAD:
            return Judgement(verdict)
        word += UNCLAIMED if unclaimed and outcome.ends_process else ""
        return Judgement(verdict, Diagnosis(word, _describe(word, outcome, meaning)))
    diagnosis = diagnose(outcome, meaning, expected)
    if diagnosis:
        return Judgement(FAIL, diagnosis)
    return _PASS if meaning.kind == "legal" else _OBSERVED


def _shows_nothing(outcome: Outcome, src_spec: TensorSpec, unclaimed: Collection[str]) -> bool:
    """Ask whether an outcome counts for nothing if the call has facets that are not claimed."""
    if outcome.kind == "tensor":
        return outcome.type != src_spec.type or f"type:{src_spec.type}" in unclaimed
    return outcome.kind in NEUTRAL


def _make_column(meaning: Meaning) -> Column:
    if meaning.no_room:
        return "no room"
    return "capacity" if meaning.kind == "legal" and meaning.rules else meaning.kind


def _describe(word: str, outcome: Outcome, meaning: Meaning) -> str:
    if outcome.kind == "tensor":
        return f"answered {outcome.type}{list(outcome.dims or ())}, though the call breaks {', '.join(meaning.rules)}"
    if outcome.kind == "rejected":
        return f"rejected at {outcome.stage}: {outcome.message}"
    return f"{word}: {outcome.message}" if outcome.message else word


def find_deciding_step(by_document: Iterable[Sequence[Verdict]], outcomes: Sequence[Outcome]) -> int:
    """Return the index of the step that decides a row.

    It is the first of the worst verdict that ends the process, or else the first that fails, document by document.
    """
    steps = [(verdicts.index(worst(verdicts)), verdicts) for verdicts in by_document]
    ends = (at for at, outcome in enumerate(outcomes) if outcome.ends_process)
    fails = (step for step, verdicts in steps if verdicts[step] in BAD)
    worst_ends = (at for at in ends if any(verdicts[at] == verdicts[step] for step, verdicts in steps))
    return next(worst_ends, next(fails, steps[0][0]))
