"""Backends in which earlier runs change a later one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any
from weakref import finalize

import numpy as np

from conformance.model import Node, Rejected, Tensor

from ..reference import dense, elements
from .base import Answer, Dims, ProgramRun, always, execute_run, plant
from .layout import with_strides


def dims_of(answer: Answer) -> Dims:
    return answer.dims if isinstance(answer, Tensor) else answer.shape


def reuse_buffers(name: str, buffers: int, fault: str) -> None:
    """Plant a backend in which each answer of a program takes the memory of an earlier one of its size."""

    def execute(run: ProgramRun) -> Answer:
        answer = run.answer()
        if isinstance(answer, Tensor) or not answer.nbytes or not answer.ndim:
            return answer
        run.program.memory = answers = [*(run.program.memory or []), answer][-buffers - 1 :]
        if len(answers) > buffers and answers[0].nbytes == answer.nbytes:
            np.copyto(answers[0].reshape(-1).view(np.uint8), np.frombuffer(answer.tobytes(), np.uint8))
        return answer

    plant(name, "each-call-alone", "H", fault, execute=execute)


reuse_buffers("eight-buffers-in-turn", 8, "Stores answers of one size in eight buffers in turn.")
reuse_buffers("thirty-two-buffers-in-turn", 32, "Stores answers of one size in thirty-two buffers in turn.")


@execute_run("the-first-rank-stays", breaks="zero-copies", classes="HI")
def _(run: ProgramRun) -> Answer:
    """Rejects a src of another rank than the first if the graph says none and shape is constant."""
    program = run.program
    if program.graph.src.dims is None and not run.shapes:
        program.memory = program.memory or (len(run.src.dims),)
        if program.memory != (len(run.src.dims),):
            raise Rejected("run", "src has another rank than before")
    return run.answer()


def return_earlier_answers(name: str, fault: str, key: Callable[[Tensor], Any]) -> None:
    """Plant a backend that returns an earlier answer with the same dims of src and dst, and the same key of src."""

    def execute(run: ProgramRun) -> Answer:
        run.program.memory = run.program.memory or {}
        answer = run.answer()
        kept: Answer = run.program.memory.setdefault((run.src.dims, dims_of(answer), key(run.src)), answer)
        return kept

    plant(name, "each-call-alone", "H", fault, execute=execute)


return_earlier_answers("answers-from-memory", "Returns an earlier answer if the dims of src and dst are the same.",
                       lambda src: None)  # fmt: skip
return_earlier_answers("the-first-64-bytes-are-the-key",
                       "Returns an earlier answer if the dims and the first 64 bytes of src are the same.",
                       lambda src: bytes(elements(src)[:64]))  # fmt: skip


def entries_of(shape: Tensor) -> Dims:
    return tuple(shape.array().ravel().tolist())


def address_of(shape: Tensor) -> tuple[Dims, int]:
    return shape.dims, int(np.frombuffer(shape.memory, np.uint8).ctypes.data) + shape.offset


def remember(
    name: str, classes: str, fault: str, key: Callable[[Dims, list[Any]], Any],
    read: Callable[[Tensor], Any] = entries_of, entries: int = 64,
) -> None:  # fmt: skip
    """Plant a backend that looks up the dims of dst by a key of src dims and of what it reads of the shapes.

    If the cache is full, a new key takes the place of the first one but leaves its dims there.
    """

    def execute(run: ProgramRun) -> Answer:
        run.program.memory = cache = run.program.memory or []
        this = key(run.src.dims, list(map(read, run.shapes)))
        for cached, dst in cache:
            if cached == this:
                return run.move(dst)
        answer = run.answer()
        if len(cache) < entries:
            cache.append((this, dims_of(answer)))
        else:
            cache[0] = this, cache[0][1]
        return answer

    plant(name, "each-call-alone", classes, fault, execute=execute)


def hash_weakly(dims: Dims) -> int:
    """A hash of 64 bits by shifts and a constant, which spreads small numbers badly."""
    seed = 0
    for length in dims:
        seed ^= (length + 0x9E3779B9 + (seed << 6) + (seed >> 2)) % (1 << 64)
    return seed


remember("full-cache-keeps-an-old-answer", "HI", "Gives the ninth call the cached dst of the first.",
         lambda src, shapes: (src, shapes), entries=8)  # fmt: skip
remember("calls-of-equal-hash-are-equal", "IL", "Caches dst by the hash of the shapes.",
         lambda src, shapes: (src, [hash(shape) for shape in shapes]))  # fmt: skip
remember("lengths-in-any-order-are-equal", "IN", "Caches dst by the sorted lengths of src.",
         lambda src, shapes: (sorted(src), shapes))  # fmt: skip
remember("digits-are-the-key", "HI", "Caches dst by the digits of all lengths without separators.",
         lambda src, shapes: ["".join(map(str, src)), "".join(str(d) for shape in shapes for d in shape)])  # fmt: skip
remember("lengths-in-a-row-are-the-key", "HI", "Caches dst by the lengths of src and shape without a separator.",
         lambda src, shapes: src + tuple(d for shape in shapes for d in shape))  # fmt: skip
remember("a-weak-hash-is-the-key", "HI", "Caches dst by a weak hash of the lengths.",
         lambda src, shapes: [hash_weakly(dims) for dims in (src, *shapes)])  # fmt: skip
remember("the-address-of-shape-is-the-key", "HI",
         "Caches dst by the addresses of the shapes that arrive; their entries may be others now.",
         lambda src, shapes: (src, shapes), address_of)  # fmt: skip


@execute_run("a-deleted-program-takes-the-plan-along", breaks="each-call-alone", classes="HI")
def _(run: ProgramRun) -> Answer:
    """Shares a plan between programs of equal graphs, and deletes it with the first of them that is deleted."""
    program, maker = run.program, run.program.maker
    if program.memory is None:
        maker.memory = plans = {} if maker.memory is None else maker.memory
        program.memory = plans.setdefault(program.given, ["plan"])
        finalize(program, lambda plan, graph: (plan.clear(), plans.pop(graph, None)), program.memory, program.given)
    if not program.memory:
        raise Rejected("run", "the plan of the program is not valid")
    return run.answer()


def settle_on_dims(name: str, times: int, fault: str, when: Callable[[ProgramRun, Dims], bool]) -> None:
    """Plant a backend that goes on with the dims that it has answered a number of times in a row, in some runs."""

    def execute(run: ProgramRun) -> Answer:
        answer, program = run.answer(), run.program
        dst, count = program.memory or ((), 0)
        if count >= times and when(run, dst):
            return run.move(dst)
        program.memory = dims_of(answer), count + 1 if dims_of(answer) == dst else 1
        return answer

    plant(name, "each-call-alone", "I", fault, execute=execute)


settle_on_dims("specialised-for-a-volume", 40,
               "Goes on with the dims of forty answers in a row for every src of their volume, if shape is constant.",
               lambda run, dst: not run.shapes and math.prod(dst) == math.prod(run.src.dims))  # fmt: skip
settle_on_dims("constant-after-a-thousand-calls", 1000,
               "Goes on with the dims of a thousand answers in a row.", always)  # fmt: skip


@execute_run("constant-after-three-calls", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Always answers the dims that it has answered three times."""
    run.program.memory = answered = run.program.memory or []
    if run.shapes and any(answered.count(dst) >= 3 for dst in answered):
        return run.move(max(answered, key=answered.count))
    answer = run.answer()
    answered.append(dims_of(answer))
    return answer


@execute_run("shape-frozen-at-the-first-call", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Uses the shapes of the first run in every run."""
    copies = [dense(shape.type, shape.dims, bytearray(elements(shape))) for shape in run.shapes]
    run.program.memory = run.program.memory or tuple(copies)
    return run._replace(shapes=run.program.memory).answer()


@execute_run("strides-frozen-at-the-first-call", breaks="each-call-alone", classes="FI")
def _(run: ProgramRun) -> Answer:
    """Uses the strides of the first src with the same dims in every run."""
    src = run.src
    run.program.memory = run.program.memory or {}
    strides = run.program.memory.setdefault(src.dims, src.strides)
    usable = 0 not in src.dims and min(strides, default=0) >= 0
    return run._replace(src=with_strides(src, strides)).answer() if usable else run.answer()


@execute_run("never-again-after-a-rejection", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Rejects every call after the first that it rejected."""
    if run.program.memory:
        raise Rejected("run", "the program is in an error state")
    try:
        return run.answer()
    except Rejected:
        run.program.memory = True
        raise


def give_up(name: str, rejections: int, fault: str, when: Callable[[ProgramRun], bool]) -> None:
    """Plant a backend that rejects every call of a program that rejected a number of calls and answered none."""

    def execute(run: ProgramRun) -> Answer:
        program = run.program
        program.memory = program.memory or 0
        if program.memory >= rejections and when(run):
            raise Rejected("run", "the program is in an error state")
        try:
            answer = run.answer()
        except Rejected:
            program.memory += 1
            raise
        program.memory = -math.inf
        return answer

    plant(name, "each-call-alone", "I", fault, execute=execute)


give_up("gives-up-after-two-rejections", 2,
        "Rejects every call of a program after two rejections and no answer, if shape is constant.",
        lambda run: not run.shapes)  # fmt: skip
give_up("gives-up-after-five-rejections", 5,
        "Rejects every call of a program after five rejections and no answer.", always)  # fmt: skip


@execute_run("rejects-only-once", breaks="each-call-alone", classes="IE")
def _(run: ProgramRun) -> Answer:
    """Answers src if it rejects a second call with the same src dims."""
    src, program = run.src, run.program
    try:
        return run.answer()
    except Rejected:
        if program.memory == src.dims:
            return run.move(src.dims)
        program.memory = src.dims
        raise


def wear_out(name: str, message: str, fault: str, is_bad: Callable[[int], bool]) -> None:
    """Plant a backend that rejects a call by the number of calls of its program."""

    def execute(run: ProgramRun) -> Answer:
        run.program.memory = (run.program.memory or 0) + 1
        if is_bad(run.program.memory):
            raise Rejected("run", message)
        return run.answer()

    plant(name, "each-call-alone", "I", fault, execute=execute)


wear_out("worn-out-after-a-hundred-calls", "the program is worn out",
         "Rejects every call of a program after its hundredth.", lambda calls: calls > 100)  # fmt: skip
wear_out("calls-counted-in-16-bits", "the program was not called yet",
         "Rejects the call of a program at which a counter of 16 bits is 0 again.",
         lambda calls: calls % (1 << 16) == 0)  # fmt: skip


def number_programs(name: str, breaks: str, bits: int, fault: str) -> None:
    """Plant a backend that keeps dst under a number of the program, and counts programs in few bits."""

    def execute(run: ProgramRun) -> Answer:
        program, maker = run.program, run.program.maker
        if program.dst is None:
            return run.answer()
        if program.memory is None:
            maker.memory = maker.memory or []
            program.memory = len(maker.memory)
            maker.memory.append(None)
            maker.memory[program.memory % (1 << bits)] = program.dst
        return run.move(maker.memory[program.memory % (1 << bits)])

    plant(name, breaks, "H", fault, execute=execute)


number_programs("programs-are-numbered-in-six-bits", "each-call-alone", 6,
                "Answers the first program with the dst of the sixty-fifth.")  # fmt: skip
number_programs("programs-are-numbered-in-ten-bits", "same-content", 10,
                "Answers the first program with the dst of the 1,025th.")  # fmt: skip


@execute_run("trusts-a-program-after-many-shapes", breaks="each-call-alone", classes="EI")
def _(run: ProgramRun) -> Answer:
    """Answers src instead of rejecting once a program has answered thirty-two shapes."""
    seen = run.program.memory = run.program.memory or set()
    try:
        answer = run.answer()
    except Rejected:
        if len(seen) > 32:
            return run.move(run.src.dims)
        raise
    seen.update([(run.src.dims, dims_of(answer))] if run.shapes else [])
    return answer


@execute_run("pool-is-gone-after-a-second", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Answers zeros if the program was not run for a second."""
    before, run.program.memory = run.program.memory, time.monotonic()
    answer = run.answer()
    if before and run.program.memory - before > 1 and isinstance(answer, np.ndarray):
        answer[...] = 0
    return answer


@execute_run("inferred-for-the-first-batch", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Answers the dims of its first answer if shape is constant and a length of src was not known at compilation."""
    program = run.program
    if program.dst is not None or run.shapes:
        return run.answer()
    if program.memory is None:
        program.memory = dims_of(run.answer())
    return run.move(program.memory)


@execute_run("a-batch-of-any-volume", breaks="each-call-alone", classes="EI")
def _(run: ProgramRun) -> Answer:
    """Answers src instead of rejecting a later call if shape is constant and a length of src was not known before."""
    program = run.program
    later, program.memory = program.memory, True
    try:
        return run.answer()
    except Rejected:
        if not later or program.dst is not None or run.shapes:
            raise
        return run.move(run.src.dims)


def confuse_graphs(name: str, fault: str, key: Callable[[Node], Any]) -> None:
    """Plant a backend that looks up dst, where it is known at compilation, by a part of the graph."""

    def execute(run: ProgramRun) -> Answer:
        program, maker = run.program, run.program.maker
        if program.dst is None:
            return run.answer()
        first, *others = program.graph.nodes
        this = (run.src.dims, first.shape, first.special_zero, *map(key, others))
        maker.memory = maker.memory or {}
        return run.move(maker.memory.setdefault(this, program.dst))

    plant(name, "each-call-alone", "HA", fault, execute=execute)


confuse_graphs("a-fork-is-cached-as-a-chain", "Caches dst without what the later nodes take.",
               lambda node: (node.shape, node.special_zero))  # fmt: skip
confuse_graphs("the-flag-of-the-first-node-is-the-key", "Caches dst without the flags of the later nodes.",
               lambda node: (node.shape, node.takes_src))  # fmt: skip
