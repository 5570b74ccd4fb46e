"""Call and judge a row with a single step; nearly all rows have one.

An answer that is due in every document, in type, dims, bits and memory, gets its verdict at once. Any other answer, and
every exception, goes to the judge.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NoReturn

import numpy as np

from ..model import Adapter, Outcome, Result, Tensor, Verdict
from ..model.types import WIDTH, dtype_of
from ..plan.memory import GuardedBuffer, digest_of, strides_of
from ..plan.rows import Row
from ..plan.steps import RowStep
from .call import arguments_of, conclude_call, shares_src
from .diagnose import Diagnosis
from .judge import RIGHT, judge


def call_one_step(row: Row, adapter: Adapter) -> Result | Outcome:
    """Call the step of a row; return the result of an answer that is due, or the outcome that is to be judged."""
    (step,) = row.steps
    try:
        answer = adapter.compile(step.graph).run(*arguments_of(step))
    except BaseException as error:
        return conclude_call(step, partial(_raise, error))[0]
    due = step.due
    if due is None or step.has_many or not _is_due(step, due.dims, answer):
        return conclude_call(step, partial(_return, answer))[0]
    outcome = _due_outcome(step.source.type, due.dims, shares_src(answer, step.src))
    verdicts = dict.fromkeys(due.documents, RIGHT.verdict)
    return Result(row.id, verdicts, (outcome,), 0, None, None, (step.src.digest,))


@lru_cache(1 << 12)
def _due_outcome(type_: str, dims: tuple[int, ...], shares: bool) -> Outcome:
    """Return the outcome of an answer that is due; many rows have the same."""
    return Outcome("tensor", type_, dims, None, None, None, (), shares)


def judge_one_step(row: Row, outcome: Outcome, left_out: frozenset[str]) -> Result:
    """Judge the outcome of a row with a single step."""
    (step,) = row.steps
    source, src = step.source, step.src
    verdicts: dict[str, Verdict] = {}
    diagnosis: Diagnosis | None = None
    for meaning, documents in step.meanings:
        judgement = judge(outcome, meaning, source, src, left_out)
        diagnosis = diagnosis or judgement.diagnosis
        for document in documents:
            verdicts[document] = judgement.verdict
    name, text, differing = diagnosis or (None, None, None)
    kind, type_, dims, data, stage, message, faults, shares = outcome
    if data is None:
        contents: tuple[str | None, ...] = ()
    else:  # if it is right, it holds what src held
        contents = (src.digest if name is None else digest_of(data),)
    kept = (Outcome(kind, type_, dims, None, stage, message, faults, shares),)
    return Result(row.id, verdicts, kept, 0, name, text, contents, differing=differing)


def _is_due(step: RowStep, dims: tuple[int, ...], answer: Any) -> bool:
    """True if an answer has the type, dims and bits that are due, and all memory is as it was before the call."""
    src, type_ = step.src, step.source.type
    if type(answer) is np.ndarray:
        dtype = dtype_of(type_)
        if answer.shape != dims or (answer.dtype is not dtype and answer.dtype != dtype):
            return False
        if answer.tobytes() != src.elements:
            return False
    elif type(answer) is not Tensor or answer.type != type_ or not _is_dense(answer, dims, src):
        return False
    return not src.touched and not (step.shapes and any(shape.touched for shape in step.arriving))


def _is_dense(answer: Tensor, dims: tuple[int, ...], src: GuardedBuffer) -> bool:
    """True if a tensor has these dims, and the elements of src one after another in memory of its own."""
    given, strides = answer.dims, answer.strides
    memory: object = answer.memory
    if given != dims or [*map(type, given)] != [int] * len(dims) or type(memory) is not bytearray:
        return False
    if not src.elements:
        return len(strides) == len(dims)
    same = memory == src.elements  # type: ignore[comparison-overlap] # which may be equal
    return answer.offset == 0 and same and strides == strides_of(dims, "dense", WIDTH[answer.type])


def _raise(error: BaseException) -> NoReturn:
    raise error


def _return(answer: Any) -> Any:
    return answer
