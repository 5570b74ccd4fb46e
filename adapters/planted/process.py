"""Backends that end their process: never run them in yours. They are not in PLANTED."""

from __future__ import annotations

import ctypes
import os

from conformance.model import Graph, Program, Rejected, Tensor
from conformance.model.types import WIDTH
from conformance.plan.memory import has_no_memory, reach_of

from ..reference import lay_out
from .base import Answer, Planted


class DiesRatherThanReject(Planted):
    """Aborts its process for every call that it should reject."""

    breaks, classes = "reject-illegal-calls", "C"

    def compile(self, graph: Graph) -> Program:
        try:
            return super().compile(graph)
        except Rejected:
            os.abort()

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Answer:
        try:
            return lay_out(super().run(src, shapes, may_overwrite), self.given.nodes[-1].result)
        except Rejected:
            os.abort()


class ReadsPastSrc(Planted):
    """Reads the element behind the last one of src, and uses it for nothing."""

    breaks, classes, past = "same-content", "H", True

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Answer:
        if not has_no_memory(src.dims):
            width, (below, above) = WIDTH[src.type], reach_of(src.dims, src.strides)
            start = ctypes.addressof(ctypes.c_char.from_buffer(src.memory)) + src.offset
            ctypes.string_at(start + above + width if self.past else start - below - width, width)
        return lay_out(super().run(src, shapes, may_overwrite), self.given.nodes[-1].result)


class ReadsBeforeSrc(ReadsPastSrc):
    """Reads the element before the first one of src, and uses it for nothing."""

    past = False
