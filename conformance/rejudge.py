"""Judges evidence again, as far as it tells: by what a call means and what came of it, without the backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .diagnose import wrong_dims
from .judge import NEUTRAL, TABLE, WORST
from .model import Claims, Meaning, Result, Verdict
from .plan import Row, Task
from .waive import matches

_BAD = ("fail", "error")


def contradictions(rows: Iterable[Row], results: Mapping[str, Result], header: Mapping[str, Any]) -> Iterator[str]:
    """What evidence says of rows that cannot be: what their outcome, the header or the specification excludes."""
    claims = Claims.of(header["claims"])
    for row in rows:
        result = results.get(row.id)
        if result is not None:
            yield from _of(row, result, claims)
            yield from _of_waiver(row, result, header.get("waivers", ()))


def _of(row: Row, result: Result, claims: Claims) -> Iterator[str]:
    if set(result.verdicts) != set(row.documents):
        yield f"{row.id}: has verdicts for {', '.join(result.verdicts)}; due are {', '.join(row.documents)}"
        return
    if result.outcome.get("kind") not in TABLE:
        yield f"{row.id}: what came of it is {result.outcome.get('kind')!r}, which nothing can come to"
        return
    possible = _possible(row, result, claims)
    for document, verdict in result.verdicts.items():
        if verdict not in possible[document]:
            came = result.outcome["kind"]
            yield f"{row.id}: {verdict} in {document}, where “{came}” makes it {' or '.join(possible[document])}"
    failed = any(verdict in (*_BAD, "waived") for verdict in result.verdicts.values())
    if failed and result.diagnosis is None:
        yield f"{row.id}: fails without a diagnosis"
    elif result.diagnosis is not None and not failed:
        yield f"{row.id}: has the diagnosis {result.diagnosis!r} and fails nowhere"


def _of_waiver(row: Row, result: Result, waivers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    if "waiver" not in result.outcome:
        return
    number = result.outcome["waiver"]
    if not any(waiver.get("number") == number and matches(waiver, row) for waiver in waivers):
        yield f"{row.id}: is waived by waiver {number!r}, and the run has none of that number for it"
    if "waived" not in result.verdicts.values():
        yield f"{row.id}: has waiver {number!r}, and nothing of it is waived"


def _possible(row: Row, result: Result, claims: Claims) -> dict[str, tuple[Verdict, ...]]:
    """The verdicts that an outcome leaves room for, in each document."""
    outcome = result.outcome
    if outcome["kind"] == "none":
        claimed = row.operation in claims.operations
        return dict.fromkeys(row.documents, ("not run",) if claimed else ("not claimed", "not run"))
    step = outcome.get("step", 1) - 1
    task = row.tasks[step if 0 <= step < len(row.tasks) else 0]
    left_out = any(claims.leaves(facet) for facet in row.facets)
    found: dict[str, tuple[Verdict, ...]] = {}
    for judged in task.meanings:
        verdicts = _verdicts(task, judged.meaning, outcome, result.diagnosis, left_out)
        if len(row.tasks) > 1:  # the evidence has the step that decided; another may be worse in this document
            last = max(map(WORST.index, verdicts))
            verdicts = tuple(verdict for verdict in WORST[: last + 1] if verdict != "waived")
        if "waiver" in outcome:
            verdicts = tuple("waived" if verdict == "fail" else verdict for verdict in verdicts)
        found |= dict.fromkeys(judged.documents, verdicts)
    return found


def _verdicts(
    task: Task, meaning: Meaning, outcome: Mapping[str, Any], diagnosis: str | None, left_out: bool
) -> tuple[Verdict, ...]:
    kind = outcome["kind"]
    if outcome.get("faults"):
        return ("fail",)
    if left_out and kind in NEUTRAL:
        return ("not claimed",)
    cell = TABLE[kind][meaning.kind]
    if cell is not None:
        return (cell[0],)
    dims = tuple(outcome.get("dims") or ())
    if outcome.get("type") != task.source.type or wrong_dims(dims, meaning, task.source.dims):
        return ("fail",)
    right: Verdict = "pass" if meaning.kind == "legal" else "observed"
    return (right,) if diagnosis is None else (right, "fail")
