"""A backend that ends its process: never run it in yours. It is not in BROKEN."""

from __future__ import annotations

import os

from conformance.model import EVERY, Array, Claims, Graph, Program, Rejected, Tensor

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
