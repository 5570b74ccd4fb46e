"""run(rows, adapter) → one Result a row, whatever the backend does."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from ..model import (
    Adapter,
    Claims,
    Crashed,
    Graph,
    Outcome,
    OutcomeKind,
    Program,
    Rejected,
    RemoteError,
    Result,
    Tensor,
    TimedOut,
    Unsupported,
    Verdict,
)
from ..model.types import WIDTH, dtype_of, name_of
from ..plan.memory import HUGE, Image, digest_of, unfit, unreal
from ..plan.rows import Row, Task
from ..system.text import cut
from .judge import Judgement, deciding_step, judge, worst

_NO_PROGRAM: Any = None
_HERE = (f"{sys.prefix}{os.sep}", f"{Path(__file__).parents[2]}{os.sep}")
"""Where the suite and the libraries lie on this machine, which is nothing to publish."""
_MOVED = "the backend changed the working directory"


def run(rows: Iterable[Row], adapter: Adapter, claims: Claims | None = None) -> Iterator[Result]:
    """Executes rows in order; `claims` are frozen before the first."""
    claims = claims or adapter.claims
    left_out: dict[frozenset[str], bool] = {}
    previous: Result | None = None
    hung = _Hung()
    for row in rows:
        left = left_out.get(row.facets)
        if left is None:
            left = left_out[row.facets] = any(claims.leaves(facet) for facet in row.facets)
        if row.operation in claims.operations:
            if hung.enough(row):
                previous = _judged(row, [Outcome("timeout", message=_NOT_CALLED)] * len(row.tasks), left)
            else:
                previous = run_row(row, adapter, left, previous)
            hung.count(row, previous)
            yield previous
        else:
            yield result_without_call(row, "not claimed")


class _Hung:
    """Counts the rows of one case and operation that timed out twice, one after the other."""

    def __init__(self) -> None:
        self._key: tuple[str, str] | None = None
        self._times = 0

    def enough(self, row: Row) -> bool:
        """True if this row need not be called: it would be lost time, for the rows before it were alike."""
        return self._key == (row.case.id, row.operation) and self._times >= _HANGS

    def count(self, row: Row, result: Result) -> None:
        if self._key != (row.case.id, row.operation):
            self._key, self._times = (row.case.id, row.operation), 0
        message = str(result.outcome.get("message"))
        hung = result.outcome["kind"] == "timeout" and message.endswith((_AGAIN, _ALIKE, _NOT_CALLED))
        self._times = self._times + 1 if hung else 0


def result_without_call(row: Row, verdict: Verdict) -> Result:
    """The row of a case that was not called."""
    return Result(row.id, dict.fromkeys(row.documents, verdict), {"kind": "none"})


def run_row(row: Row, adapter: Adapter, left_out: bool, previous: Result | None = None) -> Result:
    """Executes the steps of a row, judges each in each document, and says the worst."""
    outcomes = called(row, adapter)
    if any(outcome.kind in DIED for outcome in outcomes):
        outcomes = confirmed(row, adapter, outcomes, previous)
    if len(outcomes) > 1:
        return _judged(row, outcomes, left_out)
    result = _judged_once(row, row.tasks[0], outcomes[0], left_out)
    row.tasks[0].forget()
    return result


def called(row: Row, adapter: Adapter) -> list[Outcome]:
    """What each step of a row came to; steps with equal graphs share one program."""
    if len(row.tasks) == 1:
        return [attempt(adapter, row.tasks[0], None)[0]]
    programs: dict[Graph, Program] = {}
    outcomes: list[Outcome] = []
    answers: list[Any] = []
    for task in row.tasks:
        outcome, answer = attempt(adapter, task, programs)
        if outcome.kind in DIED:
            programs.clear()
        if _overwrote(row.tasks[: len(outcomes)], task):
            outcome = outcome._replace(faults=(*outcome.faults, "src of an earlier call changed"))
        outcomes.append(outcome)
        answers.append(None if task.may_overwrite else answer)
    for k, answer in enumerate(answers):
        if answer is not None and outcomes[k].data is not None and _changed(answer, outcomes[k]):
            outcomes[k] = outcomes[k]._replace(faults=(*outcomes[k].faults, "answer changed later"))
    return outcomes


def _overwrote(before: Sequence[Task], task: Task) -> bool:
    """Whether the call wrote into what earlier calls had been given; it is put right."""
    touched = [each.src for each in before if each.src is not task.src and each.src.touched]
    for src in touched:
        src.restore()
    return bool(touched)


def _changed(answer: Any, outcome: Outcome) -> bool:
    """Whether an answer is no longer what it was, or is none any more."""
    try:
        return elements_of(answer) != outcome.data
    except (TypeError, ValueError):
        return True


DIED: tuple[OutcomeKind, ...] = ("crash", "timeout")


_AGAIN = "(deterministic: again alone in a fresh process)"
_ALIKE = "(deterministic: alone in a fresh process, like the row before)"
_HANGS = 3
"""Rows of a case and operation that must time out, confirmed, before the others are not called any more."""
_NOT_CALLED = f"not called: the {_HANGS} rows before it of this case and operation timed out"


def confirmed(row: Row, adapter: Adapter, outcomes: list[Outcome], previous: Result | None) -> list[Outcome]:
    """The same outcomes, with what a second try alone in a fresh process says of a crash; the worse stands."""
    restart = getattr(adapter, "restart", None)
    if restart is None:
        return outcomes
    if len(outcomes) == 1 and previous is not None and _alike(row, outcomes[0], previous):
        return [outcomes[0]._replace(message=_text(f"{outcomes[0].message} {_ALIKE}"))]
    restart()
    again = called(row, adapter)
    told = []
    for first, second in zip(outcomes, again, strict=True):
        if first.kind not in DIED:
            told.append(second if second.kind in DIED else first)
        elif second.kind == first.kind:
            told.append(first._replace(message=_text(f"{first.message} {_AGAIN}")))
        else:
            after = f"the call before it was {previous.row}" if previous else "it was the first call"
            told.append(
                first._replace(message=_text(f"{first.message} (flaky: not alone in a fresh process; {after})"))
            )
    return told


def _alike(row: Row, outcome: Outcome, previous: Result) -> bool:
    """Whether the row before, of the same case, ended its process in the same way twice: then this one began alone."""
    case = previous.row.startswith(f"{row.case.id}[")
    told = str(previous.outcome.get("message")).endswith((_AGAIN, _ALIKE))
    return case and told and previous.outcome["kind"] == outcome.kind


def _judged_once(row: Row, task: Task, outcome: Outcome, left_out: bool) -> Result:
    """The same as `_judged` of one step, which most rows are, without its bookkeeping."""
    verdicts: dict[str, Verdict] = {}
    decisive = None
    for judged in task.meanings:
        judgement = judge(outcome, judged.meaning, task.source, task.src, left_out)
        for document in judged.documents:
            verdicts[document] = judgement.verdict
        if decisive is None or (judgement.diagnosis and not decisive.diagnosis):
            decisive = judgement
    name, text = (decisive and decisive.diagnosis) or (None, None)
    right = name is None and outcome.data is not None  # then it holds what src held, whose digest is known
    content = (task.src.digest,) if right else contents_of([outcome])
    return Result(row.id, verdicts, recorded([outcome], 0), name, text, content)


def _judged(row: Row, outcomes: list[Outcome], left_out: bool) -> Result:
    earlier: list[bytes | memoryview] = []
    by_document: dict[str, list[Judgement]] = {document: [] for document in row.documents}
    for task, outcome in zip(row.tasks, outcomes, strict=True):
        src = task.src
        for judged in task.meanings:
            judgement = judge(outcome, judged.meaning, task.source, src, left_out, earlier)
            for document in judged.documents:
                by_document[document].append(judgement)
        if outcome.data is not None:
            earlier.append(outcome.data)
    given = {document: [each.verdict for each in judgements] for document, judgements in by_document.items()}
    verdicts = {document: each[worst(each)] for document, each in given.items()}
    step = deciding_step(given.values())
    told = next((each[step] for each in by_document.values() if each[step].diagnosis), None)
    name, text = (told and told.diagnosis) or (None, None)
    return Result(row.id, verdicts, recorded(outcomes, step), name, text, contents_of(outcomes))


def contents_of(outcomes: list[Outcome]) -> tuple[str | None, ...]:
    """The digest of each tensor's elements, None for any other outcome; nothing at all if no step answered a tensor."""
    digests = tuple([None if outcome.data is None else digest_of(outcome.data) for outcome in outcomes])
    return digests if any(digests) else ()


def recorded(outcomes: list[Outcome], step: int) -> dict[str, Any]:
    """The deciding step's outcome as it goes into the evidence."""
    record = _record_of(outcomes[step])
    if len(outcomes) > 1:
        record["step"] = step + 1
        record["steps"] = [_record_of(each._replace(message=None)) for each in outcomes]
    return record


def _record_of(outcome: Outcome) -> dict[str, Any]:
    record: dict[str, Any] = {"kind": outcome.kind}
    if outcome.kind == "tensor":
        record["type"], record["dims"] = outcome.type, outcome.dims
    if outcome.stage is not None:
        record["stage"] = outcome.stage
    if outcome.message is not None:
        record["message"] = outcome.message
    if outcome.faults:
        record["faults"] = outcome.faults
    if outcome.shares:
        record["shares"] = True
    return record


# ── one call ──────────────────────────────────────────────────────────────────────────────────────


def attempt(adapter: Adapter, task: Task, programs: dict[Graph, Program] | None) -> tuple[Outcome, Any]:
    """Compiles where need be, runs, and tells what happened; with the answer itself, to look at it again later."""
    src, arriving, answer = task.src, task.arriving, None
    try:
        program = programs.get(task.graph, _NO_PROGRAM) if programs is not None else None
        if program is None:
            program = adapter.compile(task.graph)
            if programs is not None:
                programs[task.graph] = program
        answer = program.run(src.tensor, tuple([shape.tensor for shape in arriving]), task.may_overwrite)
        if isinstance(answer, np.generic):  # what NumPy itself makes of a tensor of rank 0
            answer = np.asarray(answer)
        outcome = answered(answer, src)
    except Rejected as rejected:
        outcome = refused(rejected)
    except Unsupported as unsupported:
        outcome = Outcome("unsupported", message=_text(getattr(unsupported, "facet", None)))
    except Crashed as crash:
        outcome = Outcome("crash", message=_text(str(crash)))
    except TimedOut as late:
        outcome = Outcome("timeout", message=_text(str(late)))
    except MemoryError as error:
        outcome = Outcome("crash", message=_text(f"asked for more memory than it may have: {written(error)}"))
    except RemoteError as error:
        outcome = Outcome("error", message=_text(str(error)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever else it raises is an error of the adapter, and the run goes on
        outcome = Outcome("error", message=_text(f"{type(error).__name__}: {written(error)}"))
    faults = _faults(task, src, arriving)
    return (outcome._replace(faults=faults) if faults else outcome), answer


def placeless(text: str) -> str:
    """A message without the places of this machine."""
    for place in _HERE:
        text = text.replace(place, "")
    return text


def text_of(message: Any) -> str:
    """A message of the backend's, or what it gave where text was due."""
    if isinstance(message, str):
        return message
    return f"{type(message).__name__} where text was expected: {written(message, repr)}"


def _text(message: Any) -> str:
    return cut(placeless(text_of(message)))


def written(value: object, how: Callable[[object], str] = str) -> str:
    """A value of the backend's as text, where it can be written at all."""
    try:
        return how(value)
    except BaseException as error:
        return f"({type(value).__name__}, which cannot be written: {type(error).__name__})"


def refused(rejected: Rejected) -> Outcome:
    """The outcome of a refusal: an error where it is none that can be told."""
    stage, message = getattr(rejected, "stage", None), getattr(rejected, "message", None)
    if not isinstance(stage, str) or stage not in ("compile", "run") or not isinstance(message, str):
        said = f"Rejected({written(stage, repr)}, {written(message, repr)})"
        return Outcome("error", message=_text(f"{said}: the stage is compile or run, the message text"))
    return Outcome("rejected", stage=stage, message=_text(message))


def answered(answer: Any, src: Image) -> Outcome:
    """A tensor outcome, or an error where the answer is none."""
    type_ = named_type(answer)
    if isinstance(type_, Exception):
        return Outcome("error", message=_text(str(type_)))
    if isinstance(answer, Tensor):
        if why := unfit(tuple(map(index, answer.dims))):
            return Outcome("error", message=f"run returned a Tensor of {why}")
        shares = answer.shares_src or answer.memory is src.tensor.memory
        return Outcome("tensor", type_, tuple(map(index, answer.dims)), elements_of(answer), shares=shares)
    return Outcome(
        "tensor", type_, answer.shape, elements_of(answer), shares=answer.base is not None and _shares(answer, src)
    )


def named_type(answer: Any) -> str | Exception:
    """The element type of an answer, or why it is no answer."""
    if isinstance(answer, np.ndarray):
        if answer.dtype.byteorder == ">":
            return TypeError(f"run returned a big-endian array of {answer.dtype}; give it in little-endian byte order")
        name = name_of(answer.dtype)
        return (
            name if name in WIDTH else TypeError(f"run returned an array of {answer.dtype}, which is no element type")
        )
    if isinstance(answer, Tensor):
        if answer.type in WIDTH and len(answer.strides) == len(answer.dims):
            memory: Any = answer.memory
            if memory is None:  # NumPy would take some that is left over, and what it holds may be right
                return TypeError("run returned a Tensor without memory")
            return answer.type
        return TypeError(f"run returned a Tensor of type {answer.type!r} with {len(answer.strides)} strides")
    return TypeError(f"run returned {type(answer).__name__}, not a Tensor or a NumPy array")


def _shares(answer: Any, src: Image) -> bool:
    return bool(np.may_share_memory(answer, np.frombuffer(src.tensor.memory, np.uint8)))


def elements_of(answer: Any) -> bytes | memoryview:
    """An answer's elements in row-major order; a Tensor's rank may be past what NumPy has."""
    if not isinstance(answer, Tensor):
        if answer.nbytes >= HUGE:
            return np.ascontiguousarray(answer).reshape(-1).view(np.uint8).data
        data: bytes = answer.tobytes()
        return data
    if unreal(answer.dims):
        return b""
    kept = [(n, s) for n, s in zip(answer.dims, answer.strides, strict=True) if n != 1]
    view = np.ndarray(
        tuple(n for n, _ in kept), dtype_of(answer.type), answer.memory, answer.offset, tuple(s for _, s in kept)
    )
    return view.tobytes()


# ── what a call did beside answering ──────────────────────────────────────────────────────────────


def _faults(task: Task, src: Image, arriving: tuple[Image, ...]) -> tuple[str, ...]:
    """Memory that is not as it was, though nobody gave leave; it is put right for the next call."""
    faults = []
    if src.touched:
        if not task.may_overwrite:
            faults.append("src changed" if _only_elements(src) else "wrote outside src")
        elif not _only_elements(src):
            faults.append("wrote outside src")
        src.restore()
    for shape in arriving:
        if shape.touched:
            faults.append("shape changed")
            shape.restore()
    return tuple(faults)


def _only_elements(src: Image) -> bool:
    """Whether nothing but elements of src changed: putting these back leaves the memory as it was."""
    tensor = src.tensor
    if not src.elements or len(tensor.memory) != len(src.before):
        return False
    after = bytearray(tensor.memory)
    was = Tensor(tensor.type, tensor.dims, tensor.strides, bytearray(src.before), tensor.offset)
    kind = np.dtype(f"<u{WIDTH[tensor.type]}")
    kept = [(n, s) for n, s in zip(tensor.dims, tensor.strides, strict=True) if n != 1]
    dims, strides = tuple(n for n, _ in kept), tuple(s for _, s in kept)
    now = np.ndarray(dims, kind, after, tensor.offset, strides)
    now[...] = np.ndarray(dims, kind, was.memory, tensor.offset, strides)
    return after == src.before


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def contained() -> Iterator[list[str]]:
    """Keeps what a backend in this process prints off our output, and the working directory where it was.

    The list it gives holds, once left, a note on each of these that happened.
    """
    folder, printed, notes = os.getcwd(), io.StringIO(), list[str]()
    try:
        with contextlib.redirect_stdout(printed):
            yield notes
    finally:
        if lines := len(printed.getvalue().splitlines()):
            notes.append(f"the backend printed {lines} lines to the standard output")
        stay_in(folder, notes)


def stay_in(folder: str, notes: list[str]) -> None:
    """Goes back to the working directory that a backend has left, with a note on it."""
    with contextlib.suppress(FileNotFoundError):  # it may have removed the one it went to
        if os.getcwd() == folder:
            return
    os.chdir(folder)
    if _MOVED not in notes:
        notes.append(_MOVED)
