"""The one table that turns what happened and what the call means into a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..model import Kind, Meaning, Outcome, OutcomeKind, Verdict
from ..plan.memory import Image, Source
from .diagnose import Diagnosis, compare, wrong_dims

Cell = tuple[Verdict, str] | None
"""A verdict and its diagnosis in a word; None: the tensor is to be compared first."""

TABLE: dict[OutcomeKind, dict[Kind, Cell]] = {
    "tensor": {"legal": None, "illegal": ("fail", "answered an illegal call"), "unspecified": None},
    "rejected": {"legal": ("fail", "refused a legal call"), "illegal": ("pass", ""), "unspecified": ("observed", "")},
    "unsupported": dict.fromkeys(("legal", "illegal", "unspecified"), ("fail", "unsupported")),
    "crash": dict.fromkeys(("legal", "illegal", "unspecified"), ("fail", "crash")),
    "timeout": dict.fromkeys(("legal", "illegal", "unspecified"), ("fail", "timeout")),
    "error": dict.fromkeys(("legal", "illegal", "unspecified"), ("error", "adapter error")),
    "none": dict.fromkeys(("legal", "illegal", "unspecified"), ("not run", "")),
}
NEUTRAL: frozenset[OutcomeKind] = frozenset({"rejected", "unsupported"})
"""Outcomes that are `not claimed` where the call has a facet that is left out."""

WORST: tuple[Verdict, ...] = ("error", "fail", "not run", "not claimed", "waived", "pass", "observed")
"""A row of several steps has the first of these that any of its steps has."""


class Judgement(NamedTuple):
    """A verdict, and where something is wrong what it is."""

    verdict: Verdict
    diagnosis: Diagnosis | None = None


PASS, OBSERVED, NOT_CLAIMED = Judgement("pass"), Judgement("observed"), Judgement("not claimed")


def judge(
    outcome: Outcome,
    meaning: Meaning,
    source: Source,
    src: Image,
    left_out: bool,
    earlier: Sequence[bytes | memoryview] = (),
) -> Judgement:
    """The verdict on one outcome. `left_out`: whether the call has a facet that the backend's claims leave out."""
    if outcome.faults:
        return Judgement(
            "fail", Diagnosis(outcome.faults[0], f"the call did more than answer: {', '.join(outcome.faults)}")
        )
    if left_out and outcome.kind in NEUTRAL:
        return NOT_CLAIMED
    cell = TABLE[outcome.kind][meaning.kind]
    if cell is not None:
        verdict, word = cell
        if verdict in ("pass", "observed", "not run"):
            return Judgement(verdict)
        return Judgement(verdict, Diagnosis(word, _told(word, outcome, meaning)))
    diagnosis = compare(outcome, meaning, source, src.elements, earlier)
    if diagnosis:
        return Judgement("fail", diagnosis)
    return PASS if meaning.kind == "legal" else OBSERVED


def _told(word: str, outcome: Outcome, meaning: Meaning) -> str:
    """What happened, in a sentence."""
    if outcome.kind == "tensor":
        return f"answered {outcome.type}{list(outcome.dims or ())}, though the call breaks {', '.join(meaning.rules)}"
    if outcome.kind == "rejected":
        return f"refused at {outcome.stage}: {outcome.message}"
    return f"{word}: {outcome.message}" if outcome.message else word


def worst(verdicts: Sequence[Verdict]) -> int:
    """The index of the verdict that decides a row: the first of the worst."""
    return min(range(len(verdicts)), key=lambda k: WORST.index(verdicts[k]))


def deciding_step(by_document: Iterable[Sequence[Verdict]]) -> int:
    """The index of the step that a row with several steps is told by: the first that fails, document by document."""
    steps = [(worst(verdicts), verdicts) for verdicts in by_document]
    return next((step for step, verdicts in steps if verdicts[step] in ("fail", "error")), steps[0][0])


def verdict_of_record(
    record: Mapping[str, Any], content: str | None, meaning: Meaning, source: Source, src: Image, left_out: bool
) -> Verdict:
    """The verdict of `judge`, from what the evidence holds of an outcome: its record and the digest of its content."""
    kind: OutcomeKind = record["kind"]
    if record.get("faults"):
        return "fail"
    if left_out and kind in NEUTRAL:
        return "not claimed"
    cell = TABLE[kind][meaning.kind]
    if cell is not None:
        return cell[0]
    wrong = record["type"] != source.type or wrong_dims(tuple(record["dims"]), meaning, source.dims)
    if wrong or content != src.digest:
        return "fail"
    return "pass" if meaning.kind == "legal" else "observed"
