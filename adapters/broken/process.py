"""Backends that end their process: never run them in yours. They are not in BROKEN."""

from __future__ import annotations

import ctypes
import os

from conformance.model import EVERY, Array, Claims, Graph, Program, Rejected, Tensor
from conformance.model.types import WIDTH
from conformance.plan.memory import has_no_memory, reach_of

from ..reference import Reference


class DiesRatherThanRefuse(Reference):
    """Aborts its process for every call that it should reject."""

    breaks, classes, claims = "refuse-illegal-calls", "C", Claims(EVERY)

    def compile(self, graph: Graph) -> Program:
        try:
            return DyingProgram(super().compile(graph))
        except Rejected:
            os.abort()


class DyingProgram:
    """A program that aborts where it should reject."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            return self.program.run(src, shapes, may_overwrite)
        except Rejected:
            os.abort()


class ReadsPastSrc(Reference):
    """Reads the element behind the last one of src."""

    breaks, classes, claims, past = "same-content", "H", Claims(EVERY), True

    def compile(self, graph: Graph) -> Program:
        return ReadingProgram(super().compile(graph), self.past)


class ReadsBeforeSrc(ReadsPastSrc):
    """Reads the element before the first one of src."""

    past = False


class ReadingProgram:
    """A program that reads one element outside of src, and uses it for nothing."""

    def __init__(self, program: Program, past: bool) -> None:
        self.program, self.past = program, past

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        if not has_no_memory(src.dims):
            width, (below, above) = WIDTH[src.type], reach_of(src.dims, src.strides)
            start = ctypes.addressof(ctypes.c_char.from_buffer(src.memory)) + src.offset
            ctypes.string_at(start + above + width if self.past else start - below - width, width)
        return self.program.run(src, shapes, may_overwrite)
