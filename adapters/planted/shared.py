"""Backends that do not keep apart what nodes share, or what threads share."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from conformance.model import Array, Node
from conformance.model.types import WIDTH

from ..reference import dense, elements
from .base import Answer, Dims, ProgramRun, execute_run, move_elements, read_node, resolve_dims
from .layout import dense_strides

read_node.plant("a-fork-is-a-chain", "nodes-compose", "A", "Gives a node that takes src the output before it.",
                lambda node, _: node._replace(takes_src=False))  # fmt: skip
resolve_dims.plant("a-shared-shape-is-freed-after-its-first-node", "nodes-compose", "H",
                   "Reads zeros instead of a shape tensor that the node before has used.",
                   lambda call: call.resolve(shape=(0,) * len(call.shape)) if call.node.shares_shape else
                   call.resolve())  # fmt: skip


@move_elements("the-first-node-of-a-fork-runs-in-place", breaks="nodes-compose", classes="H", settles_late=True)
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Gives the memory of src to the first of two nodes if src may be overwritten."""
    src = run.src
    if run.in_place and any(node.takes_src for node in run.program.graph.nodes):
        src = dense(src.type, src.dims, bytearray(len(elements(src))))
    return run._replace(src=src).move(dst)


def late_nodes(run: ProgramRun) -> list[tuple[int, Node]]:
    return [(k, node) for k, node in enumerate(run.program.graph.nodes) if node.shape and node.shape.values is None]


@execute_run("a-shared-shape-counts-once", breaks="nodes-compose", classes="H")
def _(run: ProgramRun) -> Answer:
    """Gives nodes behind one that shares a shape the shape before their own."""
    shared, shapes = 0, []
    for number, (_, node) in enumerate(late_nodes(run)):
        shapes.append(run.shapes[max(0, number - shared)])
        shared += node.shares_shape
    return run._replace(shapes=tuple(shapes)).answer()


@execute_run("shapes-go-by-the-number-of-the-node", breaks="nodes-compose", classes="H")
def _(run: ProgramRun) -> Answer:
    """Gives each node the shape with the number of the node, although nodes with a constant shape take none."""
    shapes = [run.shapes[min(k, len(run.shapes) - 1)] for k, _ in late_nodes(run)]
    return run._replace(shapes=tuple(shapes)).answer()


@execute_run("all-shapes-have-the-first-type", breaks="nodes-compose", classes="D")
def _(run: ProgramRun) -> Answer:
    """Reads the entries of every shape that arrives as integers of the type of the first."""
    shapes = list(run.shapes)
    for k, shape in enumerate(shapes[1:], 1):
        raw = elements(shape)
        if shape.type != shapes[0].type:
            width = WIDTH[shapes[0].type] * math.prod(shape.dims)
            shapes[k] = dense(shapes[0].type, shape.dims, bytearray(raw.ljust(width, b"\0")[:width]))
    return run._replace(shapes=tuple(shapes)).answer()


def write_and_wait(maker: Any, value: Any) -> None:
    """Write to the memory that all threads share; unless another thread waits already, wait until it has written."""
    maker.memory, other_waits = value, maker.waits
    maker.waits = True
    for _ in range(0 if other_waits else 40):  # milliseconds: on a busy machine the others may not run sooner
        time.sleep(0.001)
        if maker.memory is not value:
            break
    maker.waits = False


def move_through(buffer: Any, answer: Array) -> Answer:
    """The answer with the elements that are in a buffer once all threads have written theirs."""
    write_and_wait(buffer, answer.tobytes())
    return np.frombuffer(buffer.memory.ljust(answer.nbytes)[: answer.nbytes], answer.dtype).reshape(answer.shape)


def is_in_other_thread(_: ProgramRun) -> bool:
    return threading.current_thread() is not threading.main_thread()


def mix_answers(
    name: str, classes: str, fault: str, mix: Callable[[ProgramRun, Array], Answer],
    when: Callable[[ProgramRun], bool] = is_in_other_thread,
) -> None:  # fmt: skip
    """Plant a backend that answers with what threads share, in some runs."""

    def execute(run: ProgramRun) -> Answer:
        answer = run.answer()
        return mix(run, answer) if isinstance(answer, np.ndarray) and when(run) else answer

    execute_run.plant(name, "each-call-alone", classes, fault, execute)


mix_answers("one-buffer-for-all-threads", "H", "Moves elements through a buffer that all programs share.",
            lambda run, answer: move_through(run.program.maker, answer))  # fmt: skip
mix_answers("one-buffer-for-the-threads-of-a-program", "H",
            "Moves elements through a buffer of the program, if src is strided.",
            lambda run, answer: move_through(run.program, answer),
            lambda run: is_in_other_thread(run) and run.src.strides != dense_strides(run.src))  # fmt: skip

_BUFFERS, _NUMBERS = [SimpleNamespace(memory=b"", waits=False) for _ in range(8)], count()
mix_answers("eight-buffers-for-all-threads", "H",
            "Moves elements through one of eight buffers, also if more threads than eight run programs.",
            lambda _, answer: move_through(_BUFFERS[next(_NUMBERS) % 8], answer),
            lambda _: threading.active_count() >= 10)  # fmt: skip


def give_latest_type(run: ProgramRun, answer: Array) -> Answer:
    maker = run.program.maker
    write_and_wait(maker, (run.src.type,))
    return dense(maker.memory[0], answer.shape, bytearray(answer.tobytes().ljust(8 * answer.size, b"\0")))


mix_answers("one-type-for-all-threads", "HG",
            "Keeps the type of the latest src where the programs of all threads look for it.",
            give_latest_type)  # fmt: skip
