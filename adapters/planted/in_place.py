"""Backends that write into src without leave, or skip a check when src may be overwritten."""

from __future__ import annotations

import math

from conformance.model import Tensor

from ..reference import elements
from .base import Answer, Dims, PlantedCall, ProgramRun, execute_run, move_elements, overlook, resolve_dims
from .layout import dense_strides


def spoil(src: Tensor) -> None:
    if 0 not in src.dims:
        src.memory[src.offset] ^= 0xFF


def is_in_place(call: PlantedCall) -> bool:
    return call.program.in_place


@move_elements("strided-src-is-tidied", breaks="src-is-kept", classes="H")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Makes a strided src dense in its own memory."""
    src, answer, row = run.src, run.move(dst), elements(run.src)
    if src.strides != dense_strides(src) and row and min(src.strides) > 0:
        src.memory[src.offset : src.offset + len(row)] = row
    return answer


@execute_run("src-is-scratch", breaks="src-is-kept", classes="H")
def _(run: ProgramRun) -> Answer:
    """Overwrites src in a chain."""
    answer = run.answer()
    if run.program.chained:
        spoil(run.src)
    return answer


@execute_run("leave-to-overwrite-for-ever", breaks="src-is-kept", classes="H")
def _(run: ProgramRun) -> Answer:
    """Overwrites src in every run after one that allowed it."""
    answer = run.answer()
    run.program.memory = run.program.memory or run.in_place
    if run.program.memory:
        spoil(run.src)
    return answer


@execute_run("whole-lines-are-written", breaks="src-is-kept", classes="H")
def _(run: ProgramRun) -> Answer:
    """Writes past the end of src if src may be overwritten."""
    answer = run.answer()
    if run.in_place:
        run.src.memory[-1] ^= 0xFF
    return answer


@execute_run("stages-in-the-src-of-the-call-before", breaks="src-is-kept", classes="H")
def _(run: ProgramRun) -> Answer:
    """Overwrites the src of the run before."""
    answer = run.answer()
    last, run.program.memory = run.program.memory, run.src
    if last and last.memory is not run.src.memory and run.src.type == last.type and 0 not in last.dims:
        last.memory[last.offset] ^= 1
    return answer


@resolve_dims("wraps-in-place", breaks="same-volume", classes="DH", settles_late=True)
def _(call: PlantedCall) -> Dims:
    """Compares volumes modulo 2^64 if src may be overwritten, and then answers src as it is."""
    equal = min(call.shape, default=0) > 0 and math.prod(call.shape) % (1 << 64) == call.volume
    return call.src if is_in_place(call) and equal else call.resolve()


overlook("smaller-fits-in-place", "reject-illegal-calls", "EH",
         "Accepts a dst with fewer elements than src if src may be overwritten.",
         lambda call: is_in_place(call) and -1 not in call.shape and 0 < math.prod(call.fill()) < call.volume,
         overlooked=("same-volume",), settles_late=True)  # fmt: skip
overlook("second-infer-in-place-is-not-seen", "one-infer", "MH", "Accepts several -1 if src may be overwritten.",
         is_in_place, settles_late=True)  # fmt: skip
overlook("signs-in-place-are-not-seen", "lower-bound", "LH", "Accepts lengths below -1 if src may be overwritten.",
         is_in_place, settles_late=True)  # fmt: skip
overlook("zeros-in-place-are-not-seen", "zero-empties", "EH", "Empties src for a literal 0 if it may be overwritten.",
         is_in_place, settles_late=True)  # fmt: skip
