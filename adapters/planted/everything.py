"""Backends that treat all calls alike."""

from __future__ import annotations

from conformance.model import Graph, Rejected

from ..reference import check_form, dense, elements
from .base import Answer, ProgramRun, always, execute_run, read_graph


@read_graph("rejects-everything", breaks="literal-lengths", classes="R")
def _(graph: Graph) -> Graph:
    """Rejects every call."""
    raise Rejected("compile", "not supported")


@execute_run("accepts-everything", breaks="reject-illegal-calls", classes="R", check=always, settles_late=True)
def _(run: ProgramRun) -> Answer:
    """Answers src for every call that it should reject."""
    src = run.src
    try:
        for node in run.program.graph.nodes:
            check_form(node, src.type)
        return run.answer()
    except Rejected:
        return dense(src.type, src.dims, bytearray(elements(src)))


@execute_run("answers-nothing", breaks="same-content", classes="R")
def _(run: ProgramRun) -> None:
    """Returns None for every call that it should answer."""
