"""Backends that read the elements of src from the wrong places in memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from conformance.model import Array, Layout, Tensor
from conformance.model.types import WIDTH
from conformance.plan.memory import strides_of

from ..reference import dense
from .base import Answer, Dims, ProgramRun, always, execute_run, move_elements

Condition = Callable[[ProgramRun, Dims], bool]
"""Selects runs by the run itself and the dims of dst."""


def read_layout(
    name: str, fault: str, read: Callable[[Tensor], Tensor], when: Condition = always,
    breaks: str = "layout-is-no-content", classes: str = "F",
) -> None:  # fmt: skip
    """Plant a backend that moves the elements of `read(src)` instead of src, in some runs."""

    def move(run: ProgramRun, dst: Dims) -> Answer:
        possible = 0 not in dst and math.prod(dst) == math.prod(run.src.dims)
        return run._replace(src=read(run.src)).move(dst) if possible and when(run, dst) else run.move(dst)

    move_elements.plant(name, breaks, classes, fault, move)


def write_dst(name: str, fault: str, choose: Callable[[Array, Dims], Dims]) -> None:
    """Plant a backend that writes dst with other strides: those that it chooses for the answer and those declared."""

    def move(run: ProgramRun, dst: Dims) -> Answer:
        answer, declared = run.move(dst), run.program.given.nodes[-1].result
        if declared is None or not declared.strides or not isinstance(answer, np.ndarray):
            return answer
        chosen = choose(answer, declared.strides)
        memory = bytearray(int(np.dot(answer.shape, np.maximum(declared.strides, chosen))) + answer.nbytes)
        Tensor(run.src.type, answer.shape, chosen, memory, 0).array()[...] = answer
        return Tensor(run.src.type, answer.shape, declared.strides, memory, 0)

    move_elements.plant(name, "layout-is-no-content", "F", fault, move)


def close_gaps(answer: Array, strides: Dims) -> Dims:
    """The strides without gaps between the dimensions, which keep their order in memory."""
    step, closed = answer.itemsize, [0] * len(strides)
    for axis in sorted(range(len(strides)), key=lambda axis: strides[axis]):
        closed[axis] = step
        step *= answer.shape[axis]
    return tuple(closed)


write_dst("dst-strides-in-descending-order", "Sorts the strides that are declared of dst.",
          lambda _, strides: tuple(sorted(strides, reverse=True)))  # fmt: skip
write_dst("gaps-of-dst-closed", "Writes dst in the order that is declared, without gaps.", close_gaps)
write_dst("dst-strides-of-large-tensors-dropped",
          "Writes dst of more than 1,000 elements without gaps, and reads it with the strides that are declared.",
          lambda answer, strides: answer.strides if answer.size > 1000 else strides)  # fmt: skip


@execute_run("entries-of-shape-side-by-side", breaks="layout-is-no-content", classes="F")
def _(run: ProgramRun) -> Answer:
    """Reads the entries of a shape that arrives as if they lay side by side."""
    shapes = [Tensor(s.type, s.dims, dense_strides(s), s.memory, s.offset) for s in run.shapes]
    return run._replace(shapes=tuple(shapes)).answer()


@execute_run("shapes-begin-at-multiples-of-64-bytes", breaks="layout-is-no-content", classes="F")
def _(run: ProgramRun) -> Answer:
    """Rounds down the offset of a shape that arrives, if its entries lie side by side."""
    shapes = [round_offset(shape) if shape.strides == dense_strides(shape) else shape for shape in run.shapes]
    return run._replace(shapes=tuple(shapes)).answer()


@execute_run("an-upper-half-of-minus-one-infers", breaks="lower-bound", classes="LF")
def _(run: ProgramRun) -> Answer:
    """Reads every negative of 64 bits as -1 if the entries of the only shape do not lie side by side."""
    shapes = tuple(
        dense(shape.type, shape.dims, bytearray(shape.array().clip(-1).tobytes()))
        if shape.type == "s64" and shape.strides != dense_strides(shape) else shape for shape in run.shapes
    )  # fmt: skip
    return (run if run.program.chained else run._replace(shapes=shapes)).answer()


def dense_strides(src: Tensor) -> Dims:
    return dense(src.type, src.dims, bytearray()).strides


def with_strides(src: Tensor, strides: Dims) -> Tensor:
    """src read with other strides, none of them negative; memory past its end reads as 0."""
    reach = sum((n - 1) * s for n, s in zip(src.dims, strides, strict=True)) + WIDTH[src.type]
    missing = max(0, src.offset + reach - len(src.memory))
    return Tensor(src.type, src.dims, strides, bytearray(src.memory) + bytearray(missing), src.offset)


def bytes_below(src: Tensor) -> int:
    """The number of bytes that elements reach below the one with every index 0."""
    return -sum((n - 1) * s for n, s in zip(src.dims, src.strides, strict=True) if s < 0)


def is_in_order(src: Tensor) -> bool:
    return list(src.strides) == sorted(src.strides, reverse=True)


def has_gaps(src: Tensor) -> bool:
    return src.strides != dense_strides(src) and is_in_order(src) and min(src.strides, default=0) > 0


def ignore_strides(src: Tensor) -> Tensor:
    return src if src.strides == dense_strides(src) else with_strides(src, dense_strides(src))


def round_offset(src: Tensor) -> Tensor:
    """src read from a multiple of 64 bytes."""
    return Tensor(src.type, src.dims, src.strides, src.memory, max(src.offset // 64 * 64, bytes_below(src)))


def lies(src: Tensor, layout: Layout) -> bool:
    return src.strides == strides_of(src.dims, layout, WIDTH[src.type])


read_layout("strides-ignored", "Reads src as dense.", ignore_strides)
read_layout("eight-strides", "Reads src as dense if it has more than eight dimensions and positive strides.",
            lambda src: ignore_strides(src) if len(src.dims) > 8 and min(src.strides) > 0 else src,
            classes="FJ")  # fmt: skip
read_layout("in-place-whatever-the-layout", "Reads src as dense if it may be overwritten.",
            ignore_strides, lambda run, _: run.in_place, classes="HF")  # fmt: skip


def forget_layout(name: str, layout: Layout, fault: str, when: Condition) -> None:
    """Plant a backend that reads one layout as dense in some runs."""

    def read(src: Tensor) -> Tensor:
        if layout == "offset" and src.strides == dense_strides(src):
            return round_offset(src)
        return with_strides(src, dense_strides(src)) if lies(src, layout) else src

    read_layout(name, fault, read, when, "nodes-compose" if when is is_chain else "layout-is-no-content")


def splits(run: ProgramRun, dst: Dims) -> bool:
    return len(dst) > len(run.src.dims)


def is_chain(run: ProgramRun, _: Dims) -> bool:
    return run.program.chained


forget_layout("offset-forgotten-when-split", "offset", "Rounds the offset down if dst has higher rank.", splits)
forget_layout("padding-forgotten-when-split", "padded", "Reads padding if dst has higher rank.", splits)
forget_layout("repetition-forgotten-when-split", "broadcast", "Ignores a stride of 0 if dst has higher rank.", splits)
forget_layout("direction-forgotten-when-split", "reversed", "Drops a stride's sign if dst has higher rank.", splits)
forget_layout("channels-forgotten-when-split", "channels-last", "Ignores channels-last if dst has higher rank.", splits)
forget_layout("slices-forgotten", "cropped", "Reads the gaps of a cropped src if dst has lower rank.",
              lambda run, dst: len(dst) < len(run.src.dims))  # fmt: skip
forget_layout("slices-forgotten-when-split", "cropped", "Reads a cropped src's gaps if dst has higher rank.", splits)
forget_layout("offset-forgotten-in-chains", "offset", "Rounds the offset down in a chain.", is_chain)
forget_layout("repetition-forgotten-in-chains", "broadcast", "Ignores a stride of 0 in a chain.", is_chain)
forget_layout("direction-forgotten-in-chains", "reversed", "Drops a stride's sign in a chain.", is_chain)
forget_layout("slices-forgotten-in-chains", "cropped", "Reads the gaps of a cropped src in a chain.", is_chain)


@move_elements("column-major", breaks="row-major-order", classes="F")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Takes and stores elements in column-major order."""
    src = run.src
    if len(src.dims) < 2 or max(len(src.dims), len(dst)) > 32 or 0 in dst:
        return run.move(dst)
    return src.array().reshape(dst, order="F")


@move_elements("last-block-of-channels-lost", breaks="layout-is-no-content", classes="F")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Writes 0 for the channels after the last full block of 16 in channels-last."""
    src = run.src
    if not lies(src, "channels-last") or src.strides == dense_strides(src) or src.dims[1] < 16:
        return run.move(dst)
    blocks = src.array().copy()
    blocks[:, src.dims[1] // 16 * 16 :] = 0
    return blocks.reshape(dst)


def sort_strides_beside_zeros(src: Tensor) -> Tensor:
    """src with the strides of a row-major order where they are not 0, if one of them is."""
    if 0 not in src.strides or min(src.strides) < 0 or math.prod(src.dims) > 10_000:
        return src
    order = iter(sorted((stride for stride in src.strides if stride), reverse=True))
    return with_strides(src, tuple(next(order) if stride else 0 for stride in src.strides))


read_layout("repetition-hides-the-order", "Takes strides to be in row-major order if one of them is 0.",
            sort_strides_beside_zeros)  # fmt: skip
