"""Backends in which earlier runs change a later one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any
from weakref import finalize

import numpy as np

from conformance.model import Node, Operand, Rejected, Tensor

from ..reference import elements
from .base import Answer, Dims, ProgramRun, execute_run, plant
from .layout import with_strides


def dims_of(answer: Answer) -> Dims:
    return answer.dims if isinstance(answer, Tensor) else answer.shape


@execute_run("one-buffer-for-all-answers", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Stores every answer of a program in the same buffer."""
    program, answer = run.program, run.answer()
    if isinstance(answer, Tensor) or not answer.nbytes:
        return answer
    if program.memory is None or program.memory.nbytes < answer.nbytes:
        program.memory = np.zeros(answer.nbytes, np.uint8)
    program.memory[: answer.nbytes] = np.frombuffer(answer.tobytes(), np.uint8)
    held: Answer = program.memory[: answer.nbytes].view(answer.dtype).reshape(answer.shape)
    return held


@execute_run("eight-buffers-in-turn", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Stores answers in eight buffers in turn."""
    answer = run.answer()
    if isinstance(answer, Tensor) or not answer.nbytes:
        return answer
    run.program.memory = answers = [*(run.program.memory or []), answer]
    if len(answers) > 8 and answers[-9].nbytes == answer.nbytes:
        answers[-9].view(np.uint8).reshape(-1)[:] = np.frombuffer(answer.tobytes(), np.uint8)
    return answer


@execute_run("the-first-rank-stays", breaks="zero-copies", classes="HI")
def _(run: ProgramRun) -> Answer:
    """Rejects a src of another rank than the first if the graph says none and shape is constant."""
    program = run.program
    if program.graph.src.dims is None and not run.shapes:
        program.memory = program.memory or (len(run.src.dims),)
        if program.memory != (len(run.src.dims),):
            raise Rejected("run", "src has another rank than before")
    return run.answer()


@execute_run("answers-from-memory", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Returns an earlier answer if the dims of src and dst are the same."""
    run.program.memory = run.program.memory or {}
    answer = run.answer()
    kept: Answer = run.program.memory.setdefault((run.src.dims, dims_of(answer)), answer)
    return kept


@execute_run("answers-the-last-good-call", breaks="each-call-alone", classes="HI")
def _(run: ProgramRun) -> Answer:
    """Returns the last answer instead of rejecting a call."""
    try:
        run.program.memory = run.answer()
    except Rejected:
        if run.program.memory is None:
            raise
    answer: Answer = run.program.memory
    return answer


def remember(name: str, classes: str, fault: str, key: Callable[[Dims, list[Dims]], Any], entries: int = 64) -> None:
    """Plant a backend that looks up the dims of dst by a key of src dims and shapes.

    If the cache is full, a new key takes the place of the first one but leaves its dims there.
    """

    def execute(run: ProgramRun) -> Answer:
        run.program.memory = cache = run.program.memory or []
        this = key(run.src.dims, [tuple(shape.array().ravel().tolist()) for shape in run.shapes])
        for cached, dst in cache:
            if cached == this:
                return run.program.move(run, dst)
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


def address_of(tensor: Tensor) -> int:
    return int(np.frombuffer(tensor.memory, np.uint8).ctypes.data) + tensor.offset


@execute_run("the-address-of-shape-is-the-key", breaks="each-call-alone", classes="HI")
def _(run: ProgramRun) -> Answer:
    """Caches dst by the addresses of the shapes that arrive; their entries may be others now."""
    run.program.memory = cache = run.program.memory or {}
    key = run.src.dims, *((shape.dims, address_of(shape)) for shape in run.shapes)
    if run.shapes and key in cache:
        return run.move(cache[key])
    answer = run.answer()
    cache[key] = dims_of(answer)
    return answer


@execute_run("the-first-64-bytes-are-the-key", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Returns an earlier answer if the dims and the first 64 bytes of src are the same."""
    run.program.memory = run.program.memory or {}
    answer = run.answer()
    kept: Answer = run.program.memory.setdefault((run.src.dims, dims_of(answer), bytes(elements(run.src)[:64])), answer)
    return kept


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


@execute_run("specialised-for-a-volume", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Answers the dims that it has answered forty times in a row to every src of that volume, if shape is constant."""
    answer, program = run.answer(), run.program
    dst, times = program.memory or ((), 0)
    if not run.shapes and times >= 40 and math.prod(dst) == math.prod(run.src.dims):
        return run.move(dst)
    program.memory = dims_of(answer), times + 1 if dims_of(answer) == dst else 1
    return answer


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
    program = run.program
    program.memory = program.memory or [tuple(s.array().ravel().tolist()) for s in run.shapes]
    frozen = (Operand("s64", (len(entries),), entries) for entries in program.memory)
    nodes = tuple(node._replace(shape=shape) for node, shape in zip(program.graph.nodes, frozen, strict=False))
    if program.dst is not None:
        return run.move(program.dst)
    return run.move(program.settle("run", nodes or program.graph.nodes, run.src.dims, ()))


@execute_run("dims-frozen-at-the-first-call", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Uses the dims of the first src in every run."""
    program = run.program
    program.memory = program.memory or (run.src.dims,)
    if program.dst is not None:
        return run.move(program.dst)
    return run.move(program.settle("run", program.graph.nodes, program.memory[0], run.shapes))


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


@execute_run("thirty-two-buffers-in-turn", breaks="each-call-alone", classes="H")
def _(run: ProgramRun) -> Answer:
    """Stores answers of one size in thirty-two buffers in turn."""
    answer = run.answer()
    if isinstance(answer, Tensor) or not answer.nbytes or not answer.ndim:
        return answer
    run.program.memory = answers = [*(run.program.memory or []), answer][-33:]
    if len(answers) > 32 and answers[0].nbytes == answer.nbytes:
        np.copyto(answers[0].reshape(-1).view(np.uint8), np.frombuffer(answer.tobytes(), np.uint8))
    return answer


@execute_run("worn-out-after-a-hundred-calls", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Rejects every call of a program after its hundredth."""
    run.program.memory = (run.program.memory or 0) + 1
    if run.program.memory > 100:
        raise Rejected("run", "the program is worn out")
    return run.answer()


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


@execute_run("calls-counted-in-16-bits", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Rejects the call of a program at which a counter of 16 bits is 0 again."""
    run.program.memory = (run.program.memory or 0) + 1
    if run.program.memory % (1 << 16) == 0:
        raise Rejected("run", "the program was not called yet")
    return run.answer()


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


@execute_run("constant-after-a-thousand-calls", breaks="each-call-alone", classes="I")
def _(run: ProgramRun) -> Answer:
    """Always answers the dims that it has answered in a thousand calls on end."""
    dims, count = run.program.memory or (None, 0)
    if dims is not None and count >= 1000:
        return run.move(dims)
    answer = run.answer()
    run.program.memory = dims_of(answer), count + 1 if dims_of(answer) == dims else 1
    return answer


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
