"""Make one call of a backend, and record its outcome and the memory that it changed."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import lru_cache, partial
from operator import index
from time import monotonic
from typing import Any

import numpy as np

from ..model import (
    Adapter,
    AnswerNotRead,
    Array,
    Crashed,
    Elements,
    Graph,
    Outcome,
    Program,
    Rejected,
    RemoteError,
    Tensor,
    TimedOut,
    Unsupported,
)
from ..model.types import WIDTH, dtype_of, name_of
from ..plan.memory import (
    COPY_LIMIT_BYTES,
    GuardedBuffer,
    are_equal,
    count_max_answer_bytes,
    find_dims_error,
    has_no_memory,
    size_of,
    view_of,
)
from ..plan.steps import RowStep
from ..system.text import MAX_TEXT_CHARACTERS, as_text, quote, shorten
from .quiet_backend import remove_places

ARRAYS = (np.ndarray, np.generic)
"""An answer may be an array; NumPy turns an array of rank 0 into a scalar."""
_MAX_BYTES_AGAIN = 1 << 30
"""Bytes of an answer that is compared with the one before; a call that is made many times has a small src."""
AnswerOrError = tuple[Any, BaseException | None]
"""What a call returned, or None and the exception that it raised."""


def make_call(adapter: Adapter, step: RowStep, programs: dict[Graph, Program] | None) -> tuple[Outcome, Any]:
    """Make the call of a step; return its outcome and its answer. A graph among `programs` is not compiled again."""
    kept = {} if programs is None else programs

    def run() -> Any:
        arguments = arguments_of(step)  # first, or memory that steps share holds another shape if compile fails
        program = kept.get(step.graph)
        if program is None:
            program = kept[step.graph] = adapter.compile(step.graph)
        return program.run(*arguments)

    answer, error = attempt(run)
    return call_outcome(step, answer, error), answer


def arguments_of(step: RowStep) -> tuple[Tensor, tuple[Tensor, ...], bool]:
    if step.one_shape_memory:
        for shape in step.arriving:
            shape.restore()
    return step.src.tensor, tuple([shape.tensor for shape in step.arriving]), step.may_overwrite


def attempt(act: Callable[[], Any]) -> AnswerOrError:
    try:
        return act(), None
    except BaseException as error:
        return None, error.with_traceback(None)  # a traceback would keep the tensors of the call


def call_often(run: Callable[[], Any], times: int, seconds: float, first: Any) -> tuple[Any, BaseException | None, int]:
    """Call a function until it does something else than `first`, or the number or the time is reached.

    Return what the last call returned or raised, and its number. Without a `first` each call is looked at.
    """
    end = monotonic() + seconds
    for number in range(1, times + 1):  # noqa: B007 - the last is returned
        answer, error = attempt(run)
        if first is None or what_it_did(answer, error) != first or monotonic() > end:
            break
    return answer, error, number


def what_it_did(answer: Any, error: BaseException | None) -> Any:
    """Return what a call answered or that it was rejected, to compare it with another; None if it did neither.

    The message of a rejection does not count: it may have a number that differs each time.
    """
    if isinstance(error, Rejected):
        outcome = make_rejection_outcome(error)
        return outcome._replace(message=None) if outcome.kind == "rejected" else None
    if error is not None or isinstance(type_ := find_named_type(answer), Exception):
        return None
    dims = dims_of_answer(answer)
    return type_, dims, None if size_of(type_, dims) > _MAX_BYTES_AGAIN else elements_of(answer)


def call_outcome(step: RowStep, answer: Any, error: BaseException | None) -> Outcome:
    """Return the outcome of a call that returned this answer, or raised this error."""
    outcome: Outcome | None = None
    if error is None:
        outcome, error = attempt(partial(_answer_outcome, answer, step.src))
    if outcome is None:
        outcome = make_exception_outcome(error)
    effects = _find_side_effects(step)
    return outcome._replace(side_effects=effects) if effects else outcome


def make_exception_outcome(error: BaseException | None) -> Outcome:
    match error:
        case Rejected():
            return make_rejection_outcome(error)
        case Unsupported():
            return Outcome("unsupported", message=read_message(getattr(error, "facet", None)))
        case Crashed():
            return Outcome("crash", message=read_message(str(error)))
        case TimedOut():
            return Outcome("timeout", message=read_message(str(error)))
        case MemoryError() | OSError(errno=errno.EFBIG):
            what = "asked for more memory, or a larger file, than it may have"
            return Outcome("crash", message=read_message(f"{what}: {as_text(error)}"))
        case AnswerNotRead():
            return Outcome("tensor", error.type, error.dims)
        case RemoteError():
            return Outcome("error", message=read_message(str(error)))
        case KeyboardInterrupt():
            raise error
        case _:  # whatever else it raises is an error of the adapter, and the run goes on
            return Outcome("error", message=read_message(f"{type(error).__name__}: {as_text(error)}"))


def read_message(message: Any) -> str:
    """Return a backend's message, cut, without the places of this machine; or say what it gave instead of text."""
    if not isinstance(message, str):
        message = f"{type(message).__name__} where text was expected: {as_text(message, repr)}"
    return shorten(remove_places(message), MAX_TEXT_CHARACTERS)


def make_rejection_outcome(rejected: Rejected) -> Outcome:
    """Return the outcome of a rejection: an error if its stage or message is not valid."""
    stage, message = getattr(rejected, "stage", None), getattr(rejected, "message", None)
    if not isinstance(stage, str) or stage not in ("compile", "run") or not isinstance(message, str):
        given = f"Rejected({as_text(stage, repr)}, {as_text(message, repr)})"
        return Outcome("error", message=read_message(f"{given}: the stage is compile or run, the message text"))
    return Outcome("rejected", stage=stage, message=read_message(message))


def _answer_outcome(answer: Any, src: GuardedBuffer) -> Outcome:
    """Return the outcome of an answer: an error if it is no tensor."""
    type_ = find_named_type(answer)
    if isinstance(type_, Exception):
        return Outcome("error", message=read_message(str(type_)))
    dims = dims_of_answer(answer)
    if why := find_dims_error(dims):
        return Outcome("error", message=f"run returned a Tensor of {why}")
    if size_of(type_, dims) > count_max_answer_bytes(src.tensor.dims):
        raise AnswerNotRead(type_, dims)
    elements: Elements = elements_of(answer)
    shares = shares_src(answer, src)
    if are_equal(elements, src.elements):
        elements = src.elements  # nothing is kept twice, and no digest is computed twice
    elif shares:
        elements = bytes(elements[:])  # src is restored after this
    return Outcome("tensor", type_, dims, elements, None, None, (), shares)


def find_named_type(answer: Any) -> str | Exception:
    """Return the element type of an answer, or the reason why it is no answer."""
    if isinstance(answer, ARRAYS):
        return _type_of(answer.dtype)
    if isinstance(answer, Tensor):
        try:
            for number in (*answer.dims, *answer.strides, answer.offset):
                index(number)
        except TypeError:
            dims, strides, offset = (as_text(each, quote) for each in (answer.dims, answer.strides, answer.offset))
            return TypeError(
                f"run returned a Tensor of dims {dims}, strides {strides} and offset {offset}; give tuples of int, "
                "and an int as offset"
            )
        if answer.type in WIDTH and len(answer.strides) == len(answer.dims):
            memory: Any = answer.memory
            if memory is None:  # NumPy would take some that is left over, and what it holds may be right
                return TypeError("run returned a Tensor without memory")
            return answer.type
        return TypeError(f"run returned a Tensor of type {answer.type!r} with {len(answer.strides)} strides")
    return TypeError(f"run returned {type(answer).__name__}, not a Tensor or a NumPy array")


def dims_of_answer(answer: Any) -> tuple[int, ...]:
    """Return the dims of an answer. Those of a Tensor may be a list, or integers of NumPy."""
    return tuple([int(length) for length in answer.dims]) if isinstance(answer, Tensor) else answer.shape


def find_big_endian_error(dtype: np.dtype[Any]) -> str | None:
    """Say that an array of this type is big-endian; None if it is not."""
    return f"a big-endian array of {dtype}; give it in little-endian byte order" if dtype.byteorder == ">" else None


@lru_cache(64)
def _type_of(dtype: np.dtype[Any]) -> str | Exception:
    if error := find_big_endian_error(dtype):
        return TypeError(f"run returned {error}")
    name = name_of(dtype)
    return name if name in WIDTH else TypeError(f"run returned an array of {dtype}, which is no element type")


def shares_src(answer: Any, src: GuardedBuffer) -> bool:
    """Ask whether an answer lies in the memory of src, here or in the process that gave it."""
    if isinstance(answer, Tensor):
        return bool(answer.shares_src or answer.memory is src.tensor.memory)
    return lies_in(answer, src.tensor.memory)


def lies_in(array: Array, memory: Any) -> bool:
    """Ask whether an array lies in a memory, perhaps through other objects, such as views."""
    return array.base is not None and bool(np.may_share_memory(np.asarray(array), np.frombuffer(memory, np.uint8)))


def elements_of(answer: Any) -> bytes | memoryview:
    """Return the elements of an answer in row-major order. A Tensor may have more dims than NumPy has."""
    if isinstance(answer, ARRAYS):
        if answer.nbytes >= COPY_LIMIT_BYTES:
            return np.ascontiguousarray(answer).reshape(-1).view(np.uint8).data
        data: bytes = answer.tobytes()
        return data
    if has_no_memory(answer.dims):
        return b""
    return view_of(answer.memory, dtype_of(answer.type), answer.dims, answer.strides, answer.offset).tobytes()


def _find_side_effects(step: RowStep) -> tuple[str, ...]:
    """Name the memory that the call changed and may not change, and restore it for the next call."""
    effects = []
    if step.src.touched:
        if not _is_outside_intact(step.src):
            effects.append("wrote outside src")
        elif not step.may_overwrite:
            effects.append("src changed")
        step.src.restore()
    for shape in step.arriving:
        if shape.touched:
            effects.append("shape changed")
            shape.restore()
    return tuple(effects)


def _is_outside_intact(src: GuardedBuffer) -> bool:
    """Ask whether only elements of src changed, and no memory around them."""
    tensor = src.tensor
    if not src.elements or len(tensor.memory) != len(src.before):
        return False
    after, kind = bytearray(tensor.memory), np.dtype(f"<u{WIDTH[tensor.type]}")
    now, before = (view_of(each, kind, tensor.dims, tensor.strides, tensor.offset) for each in (after, src.before))
    now[...] = before
    return after == src.before
