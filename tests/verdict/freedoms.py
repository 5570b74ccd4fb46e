"""Right backends, each with a freedom that the documents leave: how it answers, what it keeps, when it rejects."""

import gc
import mmap
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np

from adapters.planted.base import Dims, Illegal, PlantedCall, ProgramRun, Unspecified
from adapters.reference import Reference
from conformance.model import Array, Claims, Graph, Program, Rejected, Tensor, Unsupported

from ..miniatures import ALL, Ran
from . import one_fault_backends
from .one_fault_backends import Narrow, OneFault, change

Answer = Any
MOST_ELEMENTS = 1 << 12
"""The elements of the largest answer that takes an odd form; some forms need several times the memory."""


def shaped(form: Callable[[Array, ProgramRun], Answer]) -> type[OneFault]:
    """Make a backend that gives its answers a form, if they are arrays of few elements."""

    def move(run: ProgramRun, dst: Dims) -> Answer:
        answer = run.move(dst)
        if isinstance(answer, Tensor) or not 0 < answer.size <= MOST_ELEMENTS:
            return answer
        return form(answer, run)

    return change(move=move)


def with_gaps(answer: Array, step: int) -> Array:
    """Return an answer with its elements `step` places apart in memory; if below 0, in reverse."""
    wide = np.zeros((answer.size - 1) * abs(step) + 1, answer.dtype)
    row = wide[::step]
    row[:] = answer.ravel()
    strides = tuple(step * stride for stride in answer.strides)
    return np.ndarray(answer.shape, answer.dtype, row.base, row.ctypes.data - wide.ctypes.data, strides)


def in_memory(answer: Array, run: ProgramRun, memory: Any, offset: int) -> Tensor:
    return Tensor(run.src.type, answer.shape, answer.strides, memory, offset)


def in_a_file(answer: Array, run: ProgramRun) -> Answer:
    memory = mmap.mmap(-1, 3 + answer.nbytes)
    memory[3:] = answer.tobytes()
    return in_memory(answer, run, memory, 3)


class LateTensor(Tensor):
    """Computes its memory when that is first read."""

    @property
    def memory(self) -> bytearray:
        return bytearray(self.made())

    @memory.setter
    def memory(self, made: Any) -> None:
        self.made = made


def late(answer: Array, run: ProgramRun) -> Answer:
    return LateTensor(run.src.type, answer.shape, answer.strides, answer.tobytes, 0)  # type: ignore[arg-type]


def over_src(answer: Array, run: ProgramRun) -> Answer:
    """Overwrite src where that is allowed, and answer its memory."""
    src = run.src
    if not run.in_place or len(src.memory) - src.offset < answer.nbytes or min(src.strides, default=1) < 0:
        return answer
    memory = memoryview(src.memory)[src.offset : src.offset + answer.nbytes]
    if src.array().flags.c_contiguous:
        memory[:] = answer.tobytes()
        return np.frombuffer(memory, answer.dtype).reshape(answer.shape)
    return answer


def one_element(answer: Array, run: ProgramRun) -> Answer:
    """Answer a view of a single element if all are equal."""
    same = answer.tobytes() == answer.ravel()[:1].tobytes() * answer.size
    return np.broadcast_to(answer.ravel()[0], answer.shape) if same else answer


# ── what is kept and done beside ──────────────────────────────────────────────────────────────────

LOCK = threading.Lock()


def keep_answers(run: ProgramRun) -> Answer:
    """Give the same array to equal calls of one backend."""
    kept = run.program.maker.__dict__.setdefault("kept", {})
    shapes = tuple(tuple(shape.array().ravel().tolist()) for shape in run.shapes)
    key = run.program.given, run.src.type, run.src.dims, shapes, bytes(run.src.memory), run.src.strides
    if len(run.src.memory) > MOST_ELEMENTS or run.in_place:
        return run.answer()
    with LOCK:
        if key not in kept:
            kept[key] = run.answer()
        return kept[key]


UNUSED = next(sys.getrefcount(each) for each in [np.empty(1)])
"""References to an array that only a list holds, when they are counted; Python 3.14 counts fewer."""


class Pool:
    """Memory of earlier answers, which is used again when nobody refers to the answer any more."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def take(self, answer: Array) -> Array:
        with LOCK:
            free = (each for each in self.arrays if sys.getrefcount(each) == UNUSED and each.size == answer.nbytes)
            memory = next(free, None)
            if memory is None:
                memory = np.empty(answer.nbytes, np.uint8)
                self.arrays = [*self.arrays[-20:], memory]
        taken = memory.view(answer.dtype).reshape(answer.shape)
        taken[...] = answer
        return taken


def in_a_thread(run: ProgramRun) -> Answer:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run.answer).result()


def after_a_collection(run: ProgramRun) -> Answer:
    gc.collect(0)
    return run.answer()


class KeepsPrograms(Reference):
    """Compiles a graph once, and gives the same program again."""

    def __init__(self) -> None:
        self.programs: dict[Graph, Program] = {}

    def compile(self, graph: Graph) -> Program:
        if graph not in self.programs:
            self.programs[graph] = super().compile(graph)
        return self.programs[graph]


class CompilesLate(Reference):
    """Compiles at the first run, and so rejects there only."""

    def compile(self, graph: Graph) -> Program:
        compiled: list[Program] = []

        def run(*arguments: Any) -> Answer:
            if not compiled:
                compiled.append(Reference.compile(self, graph))
            return compiled[0].run(*arguments)

        return Ran(run)


class CompilesEachTime(CompilesLate):
    """Compiles at compile and again at each run."""

    def compile(self, graph: Graph) -> Program:
        Reference.compile(self, graph)
        return Ran(lambda *arguments: Reference.compile(self, graph).run(*arguments))


def rejecting(message: str) -> type[Reference]:
    """Make a backend that says something else of each rejection."""

    class Says(Reference):
        def settle(self, stage: str, *arguments: Any) -> Dims:
            try:
                return super().settle(stage, *arguments)
            except Rejected:
                raise Rejected(stage, message) from None

    return Says


def answer_seven(call: PlantedCall) -> Dims:
    """Answer 7 for each length that no document settles, if the volume allows that."""
    try:
        return call.resolve()
    except Unspecified as silence:
        dst = tuple(7 if length is None else length for length in silence.args[1])
        if 0 in dst and call.volume == 0:
            return dst
        raise Illegal("not offered") from None


def narrow(operations: tuple[str, ...], *not_claimed: str) -> type[Reference]:
    """Make a backend with few claims, which supports nothing else."""

    class Claiming(Reference):
        claims = Claims(operations, not_claimed)

        def compile(self, graph: Graph) -> Program:
            if f"type:{graph.src.type}" in not_claimed or ("chain" in not_claimed and len(graph.nodes) > 1):
                raise Unsupported("not offered")
            return super().compile(graph)

    return Claiming


class Noisy(OneFault):
    """Writes to both outputs, warns, and changes the folder."""

    @staticmethod
    def execute(run: ProgramRun) -> Answer:
        print("Using 4 threads", flush=True)
        os.write(1, b"\xff{}\n")
        os.write(2, b"warning: \x1b[31mslow\n")
        warnings.warn("slow", stacklevel=1)
        os.chdir("/")
        return run.answer()


class Forks(OneFault):
    """Starts a child process at every fiftieth call, which ends at once."""

    calls = count()

    @staticmethod
    def execute(run: ProgramRun) -> Answer:
        if next(Forks.calls) % 50 == 0:
            if (child := os.fork()) == 0:
                os._exit(7)
            os.waitpid(child, 0)
        return run.answer()


class Threaded(OneFault):
    """Computes in threads that stay."""

    pool = ThreadPoolExecutor(2)

    @staticmethod
    def execute(run: ProgramRun) -> Answer:
        return Threaded.pool.submit(run.answer).result()


ComputesLate = shaped(late)

RIGHT: Mapping[str, type[Any]] = {
    **one_fault_backends.FREEDOMS,
    "answers in reverse order of memory": shaped(lambda answer, run: with_gaps(answer, -1)),
    "answers with gaps": shaped(lambda answer, run: with_gaps(answer, 3)),
    "answers read-only memory": shaped(lambda answer, run: in_memory(answer, run, answer.tobytes(), 0)),
    "answers a part of a large memory": shaped(
        lambda answer, run: in_memory(answer, run, bytearray(999) + answer.tobytes() + bytes(7), 999)
    ),
    "answers mapped memory": shaped(in_a_file),
    "answers a view of one element": shaped(one_element),
    "answers a scalar for rank 0": shaped(lambda answer, run: answer if answer.shape else answer[()]),
    "computes an answer when it is read": ComputesLate,
    "overwrites src where it may": shaped(over_src),
    "takes memory from a pool": shaped(
        lambda answer, run: run.program.maker.__dict__.setdefault("pool", Pool()).take(answer)
    ),
    "gives equal calls one answer": change(execute=keep_answers),
    "computes in a thread": change(execute=in_a_thread),
    "collects garbage": change(execute=after_a_collection),
    "keeps programs": KeepsPrograms,
    "compiles at the first run": CompilesLate,
    "compiles again at each run": CompilesEachTime,
    "rejects without words": rejecting(""),
    "rejects with many words": rejecting("\x1b[31m no \0" * 10_000),
    "answers 7 where nothing is settled": change(resolve=answer_seven),
    "claims one operation": narrow(ALL[:1]),
    "claims one type": narrow(ALL, "type:f32", "type:bf16"),
    "claims an operation and a type": narrow(ALL[1:2], "type:f16", "type:bf16"),
    "claims the least": narrow(
        ALL, "chain", "layout", "in-place", "threads", "declared", "dst-strides", "shape-strides", "form",
        "unknown-src", "runtime-shape", "rank:5", "length:2^31",
    ),
    "is narrow in f16": type("NarrowF16", (Narrow,), {"claims": Claims(ALL, ("layout", "chain", "type:f32"))}),
}  # fmt: skip
"""By what each does."""
