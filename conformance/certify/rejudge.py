"""Judge evidence again, from the specification and the recorded outcomes, without the backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..model import Claims, Result, Verdict
from ..plan.rows import Plan, Row
from ..run.judge import deciding_step, verdict_of_record, worst
from .evidence import Evidence, Refused, complete, miscounts, read
from .waive import matches, useless

_BAD = ("fail", "error")


def read_and_judge(path: Path, plan: Plan) -> Evidence:
    """Read evidence and judge every row again; Refused if it is not whole or a verdict does not follow."""
    evidence = read(path)
    refuse_unsound(evidence, plan, path)
    return evidence


def refuse_unsound(evidence: Evidence, plan: Plan, path: Path) -> None:
    """Refuse evidence of another suite, without some row, or with a verdict that does not follow from its outcome."""
    complete(evidence, (row.id for row in plan.rows), plan.suite.digest, path)
    if wrong := next(miscounts(evidence), None):
        raise Refused(f"{path}: {wrong}; the file was changed")
    refuse_contradictions(plan, evidence.results, evidence.header, path)


def refuse_contradictions(plan: Plan, results: Iterable[Result], header: Mapping[str, Any], path: Path) -> None:
    """Refuse rows whose verdict their own outcome, or the specification, excludes: somebody wrote in the file."""
    rows = {result.row: result for result in results}
    if wrong := next(contradictions(plan.rows, rows, header), None):
        raise Refused(f"{path}: {wrong}; the file was changed, begin a new run")


def contradictions(rows: Iterable[Row], results: Mapping[str, Result], header: Mapping[str, Any]) -> Iterator[str]:
    """Say what does not follow: verdicts that the outcome, the header or the specification excludes."""
    claims = Claims.of(header["claims"])
    for waiver in header.get("waivers", ()):
        if why := useless(waiver):
            yield f"the waiver of {waiver['place']} {why}"
            return
    for row in rows:
        result = results.get(row.id)
        if result is not None:
            yield from _of_row(row, result, claims)
            yield from _of_waiver(row, result, header)
            for row_step in row.steps:
                row_step.free_memory()


def _of_row(row: Row, result: Result, claims: Claims) -> Iterator[str]:
    if set(result.verdicts) != set(row.documents):
        yield f"{row.id}: has verdicts for {', '.join(result.verdicts)}; due are {', '.join(row.documents)}"
        return
    if wrong := _misfit_of(row, result):
        yield f"{row.id}: {wrong}"
        return
    due = _due(row, result, claims)
    for document, verdict in result.verdicts.items():
        if verdict not in due[document]:
            came = result.outcome["kind"]
            yield f"{row.id}: {verdict} in {document}, where “{came}” makes it {' or '.join(due[document])}"
    if "step" in result.outcome and result.outcome["step"] != deciding_step(_by_step(row, result, claims).values()) + 1:
        yield f"{row.id}: is not decided by step {result.outcome['step']}"
    failed = any(verdict in (*_BAD, "waived") for verdict in result.verdicts.values())
    if failed and result.diagnosis is None:
        yield f"{row.id}: fails without a diagnosis"
    elif result.diagnosis is not None and not failed:
        yield f"{row.id}: has the diagnosis {result.diagnosis!r} and fails nowhere"


def _misfit_of(row: Row, result: Result) -> str | None:
    """Say what is wrong with the steps of an outcome, or with the contents beside them; None if nothing is."""
    outcome, content = result.outcome, result.content
    if outcome["kind"] == "none":
        more = [key for key in outcome if key != "kind"]
        return f"was not called and has {', '.join(more) or 'a content'}" if more or any(content) else None
    several = len(row.steps) > 1
    if several != ("steps" in outcome) or several != ("step" in outcome):
        return f"has {len(row.steps)} steps, and its outcome is not of so many"
    steps = _steps_of(outcome)
    if len(steps) != len(row.steps) or len(content) not in (0, len(steps)):
        return f"has {len(row.steps)} steps, and its outcome has {len(steps)}, its content {len(content)}"
    for step, digest in zip(steps, content or [None] * len(steps), strict=True):
        if (step["kind"] == "tensor") != (digest is not None):
            return f"a step that came to “{step['kind']}” has the content {digest}"
        if step["kind"] == "tensor" and not {"type", "dims"} <= step.keys():
            return "answered a tensor without a type or dims"
    if several:
        if not 1 <= outcome["step"] <= len(steps):
            return f"is decided by step {outcome['step']} of {len(steps)}"
        own = {key: value for key, value in outcome.items() if key not in ("step", "steps", "message", "waiver")}
        if own != steps[outcome["step"] - 1]:
            return f"the outcome is not that of its step {outcome['step']}"
    return None


def _steps_of(outcome: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    steps: Sequence[Mapping[str, Any]] = outcome.get("steps", (outcome,))
    return steps


def _of_waiver(row: Row, result: Result, header: Mapping[str, Any]) -> Iterator[str]:
    if "waiver" not in result.outcome:
        return
    number, ran = result.outcome["waiver"], header.get("started", "")[:10]
    own = [waiver for waiver in header.get("waivers", ()) if waiver["number"] == number and matches(waiver, row)]
    if own and all(waiver["expires"] < ran for waiver in own):
        yield f"{row.id}: is waived by waiver {number!r}, which had expired when the run began"
    if not own:
        yield f"{row.id}: is waived by waiver {number!r}, and the run has none of that number for it"
    if "waived" not in result.verdicts.values():
        yield f"{row.id}: has waiver {number!r}, and nothing of it is waived"


def _due(row: Row, result: Result, claims: Claims) -> dict[str, tuple[Verdict, ...]]:
    """Return the possible verdicts of an outcome in each document: several only if the row was not called."""
    if result.outcome["kind"] == "none":
        claimed = row.operation in claims.operations
        return dict.fromkeys(row.documents, ("not run",) if claimed else ("not claimed", "not run"))
    waived = "waiver" in result.outcome
    due: dict[str, tuple[Verdict, ...]] = {}
    for document, verdicts in _by_step(row, result, claims).items():
        verdict = verdicts[worst(verdicts)]
        due[document] = ("waived" if waived and verdict == "fail" else verdict,)
    return due


def _by_step(row: Row, result: Result, claims: Claims) -> dict[str, list[Verdict]]:
    """Judge each step in each document."""
    left_out = any(claims.leaves(facet) for facet in row.facets)
    by_document: dict[str, list[Verdict]] = {document: [] for document in row.documents}
    contents = result.content or [None] * len(row.steps)
    for row_step, step, content in zip(row.steps, _steps_of(result.outcome), contents, strict=True):
        for judged in row_step.meanings:
            verdict = verdict_of_record(step, content, judged.meaning, row_step.source, row_step.src, left_out)
            for document in judged.documents:
                by_document[document].append(verdict)
    return by_document
