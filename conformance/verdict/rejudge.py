"""Judge evidence again, from the specification and the recorded outcomes, without the backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..evidence.drawn import plan_of_run
from ..evidence.results import (
    Evidence,
    InvalidEvidence,
    find_miscounts,
    name_unfinished,
    read,
    read_unfinished,
    refuse_incomplete,
)
from ..model import FAIL, NOT_CALLED, NOT_CLAIMED, NOT_RUN, WAIVED, Claims, Outcome, Result, Verdict, worst
from ..model.types import WIDTH
from ..model.verdicts import FAILED_OR_WAIVED
from ..plan.memory import count_max_answer_bytes, find_dims_error, size_of
from ..plan.rows import Plan, Row, parse_drawn_id
from ..plan.steps import RowStep
from ..run.ended_process import AFTER_HANGS, hung_twice
from ..run.judge import find_deciding_step, judge_step
from ..system.progress import track
from .blame import Blamer
from .waive import covers_failure, has_expired, why_useless


def read_and_judge(path: Path, plan: Plan, any_suite: bool = False) -> Evidence:
    """Read evidence and judge every row again; InvalidEvidence if it is not whole or a verdict does not follow.

    With `any_suite`, a run of another suite keeps its verdicts.
    """
    evidence = read(path)
    if not any_suite or evidence.can_be_judged_by(plan.suite):
        refuse_unsound(evidence, plan, path)
    return evidence


def read_and_judge_part(path: Path, plan: Plan) -> Evidence:
    """Read the rows that an interrupted run wrote, and judge them again; InvalidEvidence as above.

    `path` is the name that the whole file would have got.
    """
    evidence, part = read_unfinished(path), name_unfinished(path)
    own = plan_of_run(plan, evidence, part)
    there = {result.row for result in evidence.results}
    refuse_incomplete(evidence, (row.id for row in own.rows if row.id in there), plan.suite, part)
    refuse_contradictions(own, evidence.results, evidence.header, part)
    return evidence


def refuse_unsound(evidence: Evidence, plan: Plan, path: Path) -> None:
    """Refuse evidence of another suite, without some row, or with a verdict that does not follow from its outcome."""
    if evidence.can_be_judged_by(plan.suite):
        plan = plan_of_run(plan, evidence, path)
    refuse_incomplete(evidence, (row.id for row in plan.rows), plan.suite, path)
    if wrong := next(find_miscounts(evidence), None):
        raise InvalidEvidence(f"{path}: {wrong}; the file was changed")
    refuse_contradictions(plan, evidence.results, evidence.header, path)


def refuse_contradictions(plan: Plan, results: Iterable[Result], header: Mapping[str, Any], path: Path) -> None:
    """Refuse rows with a verdict that their outcome or the specification excludes: somebody edited the file."""
    rows = {result.row: result for result in results}
    if wrong := next(find_contradictions(plan, rows, header), None):
        raise InvalidEvidence(f"{path}: {wrong}; the file was changed, begin a new run")


def find_contradictions(plan: Plan, results: Mapping[str, Result], header: Mapping[str, Any]) -> Iterator[str]:
    """Say what does not follow: verdicts that the outcome, the header or the specification excludes."""
    claims = Claims.from_json(header["claims"])
    for waiver in header.get("waivers", ()):
        if why := why_useless(waiver):
            yield f"the waiver of {waiver['place']} {why}"
            return
    blamer = Blamer(plan.suite.spec.rules)
    hung = {(row.case.id, row.operation) for row in plan.rows if row.id in results and hung_twice(results[row.id])}
    for row in track("judging again", plan.rows, len(plan.rows)):
        result = results.get(row.id)
        if result is not None:
            if result.outcomes == AFTER_HANGS and (row.case.id, row.operation) not in hung:
                yield f"{row.id}: says that rows of its case hung, and none did"
            yield from _contradict_row(row, result, claims, header.get("isolation", "none"))
            yield from _contradict_waiver(row, result, header, blamer)


def _contradict_row(row: Row, result: Result, claims: Claims, isolation: str) -> Iterator[str]:
    if set(result.verdicts) != set(row.documents):
        yield f"{row.id}: has verdicts for {', '.join(result.verdicts)}; due are {', '.join(row.documents)}"
        return
    if wrong := _misfit_of(row, result):
        yield f"{row.id}: {wrong}"
        return
    by_step = {} if not result.was_called else _judge_again(row, result, claims)
    # without an outcome nothing is judged: claims and waivers alone decide what the row may be
    not_called = (NOT_RUN,) if row.operation in claims.operations else (NOT_CLAIMED, NOT_RUN)
    not_called = not_called if result.waiver is None else (WAIVED,)
    for document, verdict in result.verdicts.items():
        due = (worst(by_step[document]),) if by_step else not_called
        due = (WAIVED,) if due == (FAIL,) and result.waiver is not None else due
        if verdict not in due:
            yield f"{row.id}: {verdict} in {document}, where “{result.outcome.kind}” makes it {' or '.join(due)}"
    if len(result.outcomes) > 1 and result.step != find_deciding_step(by_step.values(), result.outcomes):
        yield f"{row.id}: is not decided by step {result.step + 1}"
    failed = not FAILED_OR_WAIVED.isdisjoint(result.verdicts.values())
    if failed and result.diagnosis is None:
        yield f"{row.id}: fails without a diagnosis"
    elif result.diagnosis is not None and not failed:
        yield f"{row.id}: has the diagnosis {result.diagnosis!r} and fails nowhere"
    if wrong := _find_misfit(row, result, failed, isolation):
        yield f"{row.id}: {wrong}"


def _misfit_of(row: Row, result: Result) -> str | None:
    """Say what is wrong with the number of the outcomes, or with the digests beside them; None if nothing is."""
    outcomes, digests, kept = result.outcomes, result.digests, 1 if row.case.generated else len(row.case.steps)
    if not 0 <= result.step < (len(row.case.steps) if kept == len(outcomes) else len(outcomes)):
        return f"is decided by step {result.step + 1} of {len(outcomes)}"
    if not result.was_called:
        is_bare = outcomes in (NOT_CALLED, AFTER_HANGS) and not any(digests)
        return None if is_bare else "was not called and has more than that"
    if len(outcomes) != kept or len(digests) not in (0, len(outcomes)):
        return f"has {kept} steps, and {len(outcomes)} outcomes with {len(digests)} contents"
    for number, (outcome, digest) in enumerate(zip(outcomes, digests or [None] * len(outcomes), strict=True)):
        if outcome.kind == "tensor" and (outcome.type is None or outcome.dims is None):
            return "answered a tensor without a type or dims"
        if (outcome.kind == "tensor") != (digest is not None):
            step = row.case.steps[result.step if row.case.generated else number]
            if digest is not None or not _is_too_large(outcome, step.src):
                return f"a step that came to “{outcome.kind}” has the content {digest}"
    return None


def _find_misfit(row: Row, result: Result, failed: bool, isolation: str) -> str | None:
    """Say what is wrong with the facts by which a failure is blamed; None if nothing is."""
    is_drawn = parse_drawn_id(row.id) is not None
    if not failed and (result.smallest_case or result.right_alone):
        return "has a smallest case or went right alone, and fails nowhere"
    if result.smallest_case is not None and not (is_drawn and result.smallest_case.startswith("  - id: ")):
        return "has a smallest case that no run writes"
    was_called_again = is_drawn or (isolation != "row" and not result.ends_process)
    return None if was_called_again or not result.right_alone else "went right alone, where no row is called again"


def _is_too_large(outcome: Outcome, src: tuple[int, ...]) -> bool:
    """Ask whether an answer is so large that its elements were not read."""
    if outcome.type not in WIDTH or not outcome.dims or find_dims_error(outcome.dims):
        return False
    return size_of(outcome.type, outcome.dims) > count_max_answer_bytes(src)


def _contradict_waiver(row: Row, result: Result, header: Mapping[str, Any], blamer: Blamer) -> Iterator[str]:
    if result.waiver is None:
        return
    number = result.waiver
    waivers = [waiver for waiver in header.get("waivers", ()) if waiver["number"] == number]
    own = [waiver for waiver in waivers if covers_failure(waiver, row, result, blamer)]
    if own and not result.was_called and not any("run" in waiver for waiver in own):
        yield f"{row.id}: was not called, and waiver {number!r} does not say `run: false`"
    if own and all(has_expired(waiver, header) for waiver in own):
        yield f"{row.id}: is waived by waiver {number!r}, which had expired when the run began"
    if not own:
        yield f"{row.id}: is waived by waiver {number!r}, and the run has none of that number for it"
    if WAIVED not in result.verdicts.values():
        yield f"{row.id}: has waiver {number!r}, and nothing of it is waived"


def _judge_again(row: Row, result: Result, claims: Claims) -> dict[str, list[Verdict]]:
    unclaimed = claims.find_unclaimed(row.facets)
    contents = result.digests or [None] * len(result.outcomes)
    steps = [row.step(result.step)] if row.case.generated else row.steps
    judged = [
        judge_step(step, _with_data(step, outcome, content), unclaimed)
        for step, outcome, content in zip(steps, result.outcomes, contents, strict=True)
    ]
    for step in steps:
        step.free_memory()
    row.free_steps()
    return {document: [judgements[document].verdict for judgements in judged] for document in row.documents}


def _with_data(step: RowStep, outcome: Outcome, content: str | None) -> Outcome:
    """Return an outcome with the elements of src if the digest says that it held them."""
    return outcome if content is None or content != step.src.digest else outcome._replace(data=step.src.elements)
