"""The interface of a backend: its identity, its claims, its programs, and the exceptions that it may raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from .graphs import Array, Graph, Tensor


class Identity(NamedTuple):
    """The name and version of a backend."""

    name: str
    version: str
    detail: tuple[tuple[str, str], ...] = ()
    """Further facts that identify it: build, instruction set, device."""


EVERY = ("*",)
"""Stands for every operation of the suite."""


class Claims(NamedTuple):
    """The operations and facets that a backend says it supports; read once, before the first row."""

    operations: tuple[str, ...]
    leaves_out: tuple[str, ...] = ()
    """Facets, exact (`type:f16`) or a whole family (`form`)."""
    answers_special_zero: bool = False
    """True if the adapter answers special_zero itself, because the library has no such flag."""

    @staticmethod
    def of(record: Mapping[str, Any]) -> Claims:
        """Make claims from a header of evidence or a file of claims."""
        operations, leaves_out = (tuple(record.get(key, ())) for key in ("operations", "leaves_out"))
        return Claims(operations, leaves_out, record.get("answers_special_zero", False))

    def offers(self, operation: str) -> bool:
        """True if the operation is claimed."""
        return operation in self.operations or self.operations == EVERY

    def leaves(self, facet: str) -> bool:
        """True if the facet, or its whole family, is left out."""
        return facet in self.leaves_out or facet.partition(":")[0] in self.leaves_out


class Rejected(Exception):
    """The backend rejects the call, at a stage: compile or run."""

    __slots__ = ("message", "stage")

    def __init__(self, stage: str, message: str) -> None:
        self.stage, self.message = stage, message  # BaseException.__new__ has set args


class Unsupported(Exception):
    """The adapter or the backend does not offer this facet of the call."""

    def __init__(self, facet: str) -> None:
        super().__init__(facet)
        self.facet = facet


class Crashed(Exception):
    """The process of the backend ended in the middle of a call."""


class RemoteError(Exception):
    """An error of the adapter, reported by the process that holds it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TimedOut(Exception):
    """The call did not come back within its limit."""


@runtime_checkable
class Program(Protocol):
    """A compiled graph, to be run any number of times."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array: ...


@runtime_checkable
class Adapter(Protocol):
    """The members that a backend must have."""

    @property
    def identity(self) -> Identity: ...
    @property
    def claims(self) -> Claims: ...
    def compile(self, graph: Graph) -> Program: ...


@runtime_checkable
class Isolated(Adapter, Protocol):
    """An adapter in a process of its own, which can be ended and started afresh."""

    def renew(self) -> None:
        """The next call has a process that has made no other."""

    def restart(self) -> None:
        """The next call has a process that was started from nothing."""

    def close(self) -> None: ...
