"""Backends with one false belief that ends or holds up their process; never to be run in ours."""

from __future__ import annotations

import os
import time

from conformance.model import Array, Graph, Program, Rejected, Tensor

from .numpy_reference import NumpyReference


class DiesRatherThanRefuse(NumpyReference):
    """Believes that a call it cannot answer may end the process."""

    breaks, classes = "refuse-illegal-calls", "C"

    def compile(self, graph: Graph) -> Program:
        try:
            return Dying(super().compile(graph))
        except Rejected:
            os.abort()


class Dying:
    """A program that aborts where it should refuse."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            return self.program.run(src, shapes, may_overwrite)
        except Rejected:
            os.abort()


class HangsRatherThanRefuse(NumpyReference):
    """Believes that nobody waits for a refusal."""

    breaks, classes = "refuse-illegal-calls", "C"

    def compile(self, graph: Graph) -> Program:
        try:
            return super().compile(graph)
        except Rejected:
            time.sleep(3600)
            raise
