"""Run rows on a backend: one result for each row, whatever the backend does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic, perf_counter, sleep
from typing import Any, Protocol, cast

from ..model import (
    NOT_CALLED,
    NOT_CLAIMED,
    NOT_RUN,
    Adapter,
    Claims,
    Elements,
    Graph,
    Isolated,
    Outcome,
    Program,
    Result,
    Tensor,
    Verdict,
    fails,
    worst,
)
from ..plan.memory import are_equal, digest_of_elements
from ..plan.rows import Row
from ..plan.steps import RowStep
from .call import arguments_of, attempt, call_often, call_outcome, elements_of, make_call
from .concurrent import call_concurrently
from .ended_process import AFTER_HANGS, HangCounter, confirm
from .judge import Judgement, find_deciding_step, judge_step

_MAX_PROGRAMS_KEPT = 24
"""Compiled programs to keep for a row. No row that a person wrote needs as many."""
MAX_SOURCES_WATCHED = 24
"""Calls before a call with a src that it may not write into."""
REPEAT_SECONDS = 3
"""Time for the calls of a step that is called many times."""
Part = tuple[int, list[Outcome]]
"""Steps of a row that are judged together: the number of the first, and their outcomes."""


def run_rows(
    rows: Iterable[Row], adapter: Adapter, claims: Claims | None = None, hangs: HangCounter | None = None
) -> Iterator[Result]:
    """Run rows in order. The claims are read before the first and do not change."""
    claims = claims or adapter.claims
    previous: Result | None = None
    for row in rows:
        if not claims.has_operation(row.operation):
            yield make_result_without_call(row, NOT_CLAIMED)
            continue
        if hangs is not None and hangs.must_skip(row):
            yield make_result_without_call(row, NOT_RUN)._replace(outcomes=AFTER_HANGS)
            continue
        began = perf_counter()
        previous = run_row(row, adapter, claims.find_unclaimed(row.facets), previous)
        previous = previous._replace(milliseconds=round(1000 * (perf_counter() - began)))
        if hangs is not None:
            hangs.count(row, previous)
        yield previous


def make_result_without_call(row: Row, verdict: Verdict) -> Result:
    return Result(row.id, dict.fromkeys(row.documents, verdict), NOT_CALLED)


def run_row(
    row: Row, adapter: Adapter, unclaimed: frozenset[str] = frozenset(), previous: Result | None = None
) -> Result:
    """Call the steps of a row and judge them. `unclaimed`: the facets of the row that are not claimed."""
    parts: Iterable[Part] = call_parts(row, adapter)
    if threads := {facet for facet in unclaimed if facet.startswith("threads")}:
        # Whoever calls a library in more threads than it allows corrupts its memory, and blames it for that.
        parts = [(0, [Outcome("unsupported", message=min(threads))] * (1 if row.case.generated else len(row.steps)))]
    return judge_row(row, adapter, parts, unclaimed, previous)


def judge_row(
    row: Row, adapter: Adapter, parts: Iterable[Part], unclaimed: frozenset[str], previous: Result | None = None
) -> Result:
    """Judge the parts of a row up to the first that fails, and return the worst; confirm what crashed or hung."""
    result: Result | None = None
    earlier: list[Elements] = []  # the answers before a step, to recognise one that is given again
    for first, called in parts:
        outcomes = called
        if any(outcome.ends_process for outcome in called):
            outcomes = confirm(row, adapter, called, previous, partial(_call_part, row, adapter, first))
        judged = []
        for step, outcome in zip(row.steps[first : first + len(outcomes)], outcomes, strict=True):
            judged.append(judge_step(step, outcome, unclaimed, earlier))
            if outcome.data is not None:
                earlier.append(outcome.data)
        verdicts = {document: worst([each[document].verdict for each in judged]) for document in row.documents}
        if result is None or _are_worse(verdicts, result.verdicts):
            result = _result_of(row, first, outcomes, judged, verdicts)
        if fails(verdicts.values()):
            break
        earlier = [outcome.data for outcome in outcomes if outcome.data is not None]  # of thousands, keep the latest
    for step in row.steps:
        step.free_memory()
    row.free_steps()  # those of all rows would take more memory than anything else
    assert result is not None
    return result


def _are_worse(verdicts: Mapping[str, Verdict], others: Mapping[str, Verdict]) -> bool:
    return verdicts != others and any(worst((verdicts[d], other)) != other for d, other in others.items())


def _result_of(
    row: Row, first: int, outcomes: Sequence[Outcome], judged: Sequence[Mapping[str, Judgement]],
    verdicts: Mapping[str, Verdict],
) -> Result:  # fmt: skip
    deciding = 0
    if len(judged) > 1:
        by_document = [[each[document].verdict for each in judged] for document in row.documents]
        deciding = find_deciding_step(by_document, outcomes)
    diagnosis = next((judgement.diagnosis for judgement in judged[deciding].values() if judgement.diagnosis), None)
    name, text, differing = diagnosis or (None, None, None)
    if text and row.case.times > 1:
        number = outcomes[deciding].call_number
        is_least = number > 1 and outcomes[deciding].ends_process  # who ended cannot say how often it was called
        text += f", at call {number:,}{' or later' * is_least}"
    kept = tuple([
        outcome._replace(data=None) if number == deciding else outcome._replace(data=None, message=None)
        for number, outcome in enumerate(outcomes)
    ])  # fmt: skip
    contents = tuple(map(_digest_of, row.steps[first:], outcomes))
    digests = contents if any(contents) else ()
    return Result(row.id, verdicts, kept, first + deciding, name, text, digests, differing=differing)


def _digest_of(step: RowStep, outcome: Outcome) -> str | None:
    if outcome.data is None:
        return None
    return step.src.digest if outcome.data is step.src.elements else digest_of_elements(outcome.data)


# ── calling ───────────────────────────────────────────────────────────────────────────────────────


def call_first(row: Row, adapter: Adapter) -> Outcome:
    return _call_part(row, adapter, 0)[0]


def _call_part(row: Row, adapter: Adapter, first: int) -> list[Outcome]:
    """Call a row up to the part that begins with this step, and return its outcomes."""
    return next(outcomes for number, outcomes in call_parts(row, adapter) if number == first)


def call_parts(row: Row, adapter: Adapter) -> Iterator[Part]:
    """Call the steps of a row.

    A row that a person wrote is one part. Each step of a generated row is one, and only the latest answer is kept: if
    the next call changes it, its step comes again, with that fault.
    """
    if not row.case.generated:
        *earlier, (latest, _) = _call_steps(row, adapter)
        yield 0, [*map(_with_late_change, row.steps, earlier), latest]
        return
    before: tuple[Outcome, Any] = Outcome("none"), None
    for number, call in enumerate(_call_steps(row, adapter)):
        changed = _with_late_change(row.steps[number - 1], before)
        if changed is not before[0]:
            yield number - 1, [changed]
        yield number, [call[0]]
        before = call
        if number:
            row.steps[number - 1].free_memory()  # this call looked at its src


def _call_steps(row: Row, adapter: Adapter) -> Iterator[tuple[Outcome, Any]]:
    """Call each step of a row; yield its outcome and its answer."""
    if row.case.concurrent > 1:
        for number in range(0, len(row.steps), row.case.concurrent):
            steps = row.steps[number : number + row.case.concurrent]
            yield from call_concurrently(adapter, steps, row.case.one_program)
        return
    programs: dict[Graph, Program] = {}
    watched = 1 if row.case.generated else MAX_SOURCES_WATCHED
    for number, step in enumerate(row.steps):
        if row.case.generated and step.graph not in programs:
            for other in list(programs)[1:]:  # they come one after another, and may be thousands
                del programs[other]
        if row.case.pause_ms and number == len(row.steps) - 1:
            sleep(row.case.pause_ms / 1000)
        outcome, answer = make_call(adapter, step, None if step.new_program else programs)
        if row.case.times > 1 and not fails(each.verdict for each in judge_step(step, outcome, ()).values()):
            outcome, answer = _repeat_call(adapter, step, programs, outcome, row.case.times)
        if outcome.ends_process:
            programs.clear()
        if len(programs) > _MAX_PROGRAMS_KEPT:
            del programs[list(programs)[_MAX_PROGRAMS_KEPT // 2]]  # some live long, and others are compiled again
        if number and _restore_overwritten(row.steps[max(0, number - watched) : number], step):
            outcome = outcome._replace(side_effects=(*outcome.side_effects, "src of an earlier call changed"))
        yield outcome, answer


def lacks_calls(row: Row, result: Result) -> bool:
    """Ask whether the time of a row was over before all its calls were made."""
    return 1 < result.outcome.call_number < row.case.times


class RunsOften(Protocol):
    """A program in another process, which one request can run many times; `often` is the number and the seconds."""

    calls: int
    """The number of times that it ran for the latest request."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool, often: tuple[int, float]) -> Tensor: ...


def _repeat_call(
    adapter: Adapter, step: RowStep, programs: dict[Graph, Program], first: Outcome, times: int
) -> tuple[Outcome, Any]:
    """Call a step until it was called `times`, the time is over or an outcome is not `first`; return the last call."""
    outcome, answer, calls, end = first, None, 1, monotonic() + REPEAT_SECONDS
    times *= step.graph in programs and first.stage != "compile"  # what is rejected at compile is not compiled again
    in_process = not isinstance(adapter, Isolated)
    did = first._replace(message=None) if first.kind == "rejected" else (first.type, first.dims, first.data)
    while outcome._replace(message=first.message) == first and calls < times and (calls == 1 or monotonic() < end):
        # at least once more, as one call of thousands would not tell that there was no time
        program, often = programs[step.graph], (times - calls, max(0.001, end - monotonic()))
        if in_process:
            answer, error, made = call_often(partial(program.run, *arguments_of(step)), *often, did)
        else:
            remote = cast("RunsOften", program)
            answer, error = attempt(partial(remote.run, *arguments_of(step), often))
            made = remote.calls
        outcome, calls = call_outcome(step, answer, error), calls + made
    return outcome._replace(call_number=calls), answer


def _with_late_change(step: RowStep, call: tuple[Outcome, Any]) -> Outcome:
    """Return the outcome of an earlier call, with a fault if its answer changed and may not be overwritten."""
    outcome, answer = call
    if step.may_overwrite or not has_changed(outcome, answer):
        return outcome
    return outcome._replace(side_effects=(*outcome.side_effects, "answer changed later"))


def has_changed(outcome: Outcome, answer: Any) -> bool:
    """Ask whether an answer is another now than when its outcome was recorded; False for what was not answered."""
    try:
        return outcome.data is not None and not are_equal(elements_of(answer), outcome.data)
    except (TypeError, ValueError):  # it is no answer any more
        return True


def _restore_overwritten(earlier: Sequence[RowStep], step: RowStep) -> bool:
    """Ask whether the call wrote into the src of an earlier call, and restore that."""
    sources = dict.fromkeys(other.src for other in earlier)
    touched = [src for src in sources if src is not step.src and src.touched]
    for src in touched:
        src.restore()
    return bool(touched)
