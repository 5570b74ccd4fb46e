"""Run rows on a backend: one result for each row, whatever the backend does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

from ..model import IDLE, NOT_CLAIMED, NOT_RUN, Adapter, Claims, Graph, Outcome, Program, Result, Verdict, fails, worst
from ..plan.memory import are_equal, digest_of
from ..plan.rows import Row
from ..plan.steps import RowStep
from .call import elements_of, make_call
from .confirm import AFTER_HANGS, DIED, HangCounter, confirm
from .judge import Judgement, deciding_step, judge
from .one_step import call_one_step, judge_one_step

_ALIVE = 24
"""Programs of a row that are kept; no row of a case that is written down has as many."""
_WATCHED = 24
"""Calls back at which a call may not write into src."""


def run(
    rows: Iterable[Row], adapter: Adapter, claims: Claims | None = None, hangs: HangCounter | None = None
) -> Iterator[Result]:
    """Run rows in order. The claims are read before the first and do not change."""
    claims = claims or adapter.claims
    left_out: dict[frozenset[str], frozenset[str]] = {}
    offered: dict[str, bool] = {}
    previous: Result | None = None
    for row in rows:
        left = left_out.get(row.facets)
        if left is None:
            left = left_out[row.facets] = claims.left_out(row.facets)
        operation = row.signature.id
        if operation not in offered:
            offered[operation] = claims.offers(operation)
        if not offered[operation]:
            yield result_without_call(row, NOT_CLAIMED)
            continue
        if hangs is not None and hangs.is_enough(row):
            yield result_without_call(row, NOT_RUN)._replace(detail=AFTER_HANGS)
            continue
        previous = _run_and_time(row, adapter, left, previous)
        if hangs is not None:
            hangs.count(row, previous)
        yield previous


def _run_and_time(row: Row, adapter: Adapter, left_out: frozenset[str], previous: Result | None) -> Result:
    began = perf_counter()
    result = run_row(row, adapter, left_out, previous)
    seconds = perf_counter() - began
    return result if seconds < 0.0005 else result._replace(milliseconds=round(1000 * seconds))


def result_without_call(row: Row, verdict: Verdict) -> Result:
    """Return the result of a row that was not called."""
    return Result(row.id, dict.fromkeys(row.documents, verdict), IDLE)


def run_row(
    row: Row, adapter: Adapter, left_out: frozenset[str] = frozenset(), previous: Result | None = None
) -> Result:
    """Call the steps of a row and judge them. `left_out`: the facets of the row that the claims leave out."""
    if row.case.generated:
        return _run_step_by_step(row, adapter, left_out, previous)
    steps = row.steps
    if len(steps) == 1:
        result = _run_one_step(row, adapter, left_out, previous)
    else:
        outcomes = call_steps(row, adapter)
        if any(outcome.kind in DIED for outcome in outcomes):
            outcomes = confirm(row, adapter, outcomes, previous, call_steps)
        result = judge_row(row, outcomes, left_out)
    for step in steps:
        if step.has_many:
            step.free_memory()
    return result


def _run_one_step(row: Row, adapter: Adapter, left_out: frozenset[str], previous: Result | None) -> Result:
    came = call_one_step(row, adapter)
    if isinstance(came, Result):
        if f"type:{row.type}" in left_out:
            return came._replace(verdicts=dict.fromkeys(row.documents, NOT_CLAIMED))
        return came
    if came.kind in DIED:
        (came,) = confirm(row, adapter, [came], previous, call_steps)
    return judge_one_step(row, came, left_out)


def _run_step_by_step(row: Row, adapter: Adapter, left_out: frozenset[str], previous: Result | None) -> Result:
    """Call and judge the steps of a generated row up to the first that fails; keep no answer but the latest."""
    result: Result | None = None
    before, kept = Outcome("none"), None
    for number, (called, answer) in enumerate(_calls(row, adapter)):
        late = _with_late_change(before, kept)
        if late.faults:
            return _result_of_step(row, number - 1, late, _judge_step(row.steps[number - 1], late, left_out))
        outcome = called
        if called.kind in DIED:
            outcome = confirm(row, adapter, [called], previous, partial(_call_one_step, number=number))[0]
        judgements = _judge_step(row.steps[number], outcome, left_out, [before.data] if before.data else [])
        if result is None or any(is_worse(each.verdict, result.verdicts[d]) for d, each in judgements.items()):
            result = _result_of_step(row, number, outcome, judgements)
        row.steps[max(number - 1, 0)].free_memory()  # the next call looks at the src of this one
        if fails(result.verdicts.values()):
            break
        before, kept = outcome, answer
    assert result is not None
    return result


def is_worse(verdict: Verdict, other: Verdict) -> bool:
    return verdict != other and worst((verdict, other)) == verdict


def _call_one_step(row: Row, adapter: Adapter, number: int) -> list[Outcome]:
    """Call the steps of a generated row again up to one of them, and return the outcome of the last."""
    outcomes = islice(_calls(row, adapter), number + 1)
    return [outcome for outcome, _ in outcomes][-1:]


def call_steps(row: Row, adapter: Adapter) -> list[Outcome]:
    """Call each step of a row and return the outcomes. Steps with equal graphs share one program."""
    if len(row.steps) == 1:
        return [make_call(adapter, row.steps[0], None)[0]]
    outcomes, answers = map(list, zip(*_calls(row, adapter), strict=True))
    return [_with_late_change(outcome, answer) for outcome, answer in zip(outcomes, answers, strict=True)]


def _calls(row: Row, adapter: Adapter) -> Iterator[tuple[Outcome, Any]]:
    """Call each step of a row; yield its outcome, and its answer unless that may be overwritten."""
    programs: dict[Graph, Program] = {}
    if row.case.at_once > 1:
        yield from _calls_at_once(row, adapter)
        return
    for number, step in enumerate(row.steps):
        if row.case.generated and step.graph not in programs:
            programs.clear()  # its programs come one after another, and may be thousands
        outcome, answer = make_call(adapter, step, programs)
        if outcome.kind in DIED:
            programs.clear()
        if len(programs) > _ALIVE:
            del programs[list(programs)[_ALIVE // 2]]  # so that some live long, and others are compiled again
        watched = 1 if row.case.generated else _WATCHED
        if _restore_overwritten(row.steps[max(0, number - watched) : number], step):
            outcome = outcome._replace(faults=(*outcome.faults, "src of an earlier call changed"))
        yield outcome, None if step.may_overwrite else answer


def _calls_at_once(row: Row, adapter: Adapter) -> Iterator[tuple[Outcome, Any]]:
    """Call the steps of a row, so many at the same time as the case says."""
    from .at_once import call_at_once  # few rows need threads

    steps = iter(row.steps)
    while together := tuple(islice(steps, row.case.at_once)):
        for step, (outcome, answer) in zip(together, call_at_once(adapter, together), strict=True):
            yield outcome, None if step.may_overwrite else answer


def _with_late_change(outcome: Outcome, answer: Any) -> Outcome:
    """Return the outcome of an earlier call, with a fault if its answer is no longer what it was."""
    if answer is None or outcome.data is None or not _has_changed(answer, outcome):
        return outcome
    return outcome._replace(faults=(*outcome.faults, "answer changed later"))


def _restore_overwritten(earlier: Sequence[RowStep], step: RowStep) -> bool:
    """True if the call wrote into the src of an earlier call, which is put right."""
    sources = dict.fromkeys(other.src for other in earlier)
    touched = [src for src in sources if src is not step.src and src.touched]
    for src in touched:
        src.restore()
    return bool(touched)


def _has_changed(answer: Any, outcome: Outcome) -> bool:
    """True if an answer is no longer what it was, or is no answer any more."""
    try:
        return not are_equal(elements_of(answer), outcome.data)  # type: ignore[arg-type] # the caller looked
    except (TypeError, ValueError):
        return True


# ── judging ───────────────────────────────────────────────────────────────────────────────────────


def judge_row(row: Row, outcomes: Sequence[Outcome], left_out: frozenset[str]) -> Result:
    """Judge each step in each document. A document's verdict on the row is its worst on any step."""
    if len(outcomes) == 1 and not row.case.generated:
        return judge_one_step(row, outcomes[0], left_out)
    by_step = []
    earlier: list[bytes | memoryview] = []
    for step, outcome in zip(row.steps, outcomes, strict=True):
        judgements = _judge_step(step, outcome, left_out, earlier)
        by_step.append(judgements)
        if outcome.data is not None:
            earlier.append(outcome.data)
    deciding, verdicts = _decide(by_step)
    if row.case.generated:
        return _result_of_step(row, deciding, outcomes[deciding], by_step[deciding])
    diagnosis = next((judgement.diagnosis for judgement in by_step[deciding].values() if judgement.diagnosis), None)
    name, text, differing = diagnosis or (None, None, None)
    kept = tuple(
        [
            outcome._replace(data=None) if k == deciding else outcome._replace(data=None, message=None)
            for k, outcome in enumerate(outcomes)
        ]
    )
    return Result(row.id, verdicts, kept, deciding, name, text, contents_of(outcomes), differing=differing)


def _judge_step(
    step: RowStep, outcome: Outcome, left_out: frozenset[str], earlier: Sequence[bytes | memoryview] = ()
) -> dict[str, Judgement]:
    """Judge the outcome of a step in each document."""
    judgements: dict[str, Judgement] = {}
    for meaning, documents in step.meanings:
        judgement = judge(outcome, meaning, step.source, step.src, left_out, earlier)
        for document in documents:
            judgements[document] = judgement
    return judgements


def _result_of_step(row: Row, number: int, outcome: Outcome, judgements: Mapping[str, Judgement]) -> Result:
    """Return the result of a generated row, which holds the outcome of one step alone."""
    verdicts = {document: judgements[document].verdict for document in row.documents}
    diagnosis = next((judgement.diagnosis for judgement in judgements.values() if judgement.diagnosis), None)
    name, text, differing = diagnosis or (None, None, None)
    kept = (outcome._replace(data=None),)
    return Result(row.id, verdicts, kept, number, name, text, contents_of([outcome]), differing=differing)


def _decide(by_step: Sequence[Mapping[str, Judgement]]) -> tuple[int, dict[str, Verdict]]:
    """Return the index of the step that decides the row, and the verdict of each document."""
    if len(by_step) == 1:
        return 0, {document: judgement.verdict for document, judgement in by_step[0].items()}
    verdicts = {document: [step[document].verdict for step in by_step] for document in by_step[0]}
    return deciding_step(verdicts.values()), {document: worst(of) for document, of in verdicts.items()}


def contents_of(outcomes: Sequence[Outcome]) -> tuple[str | None, ...]:
    """Return the digest of each tensor's elements, None for other outcomes; nothing if no step answered a tensor."""
    digests = tuple([None if outcome.data is None else digest_of(outcome.data) for outcome in outcomes])
    return digests if any(digests) else ()
