"""The interface of a backend: its identity, its claims, its programs, and the exceptions that it may raise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..system.json_forms import with_tuples
from .cases import families_of
from .graphs import Array, Graph, Tensor


class Identity(NamedTuple):
    """The name and version of a backend."""

    name: str
    version: str
    detail: tuple[tuple[str, str], ...] = ()
    """Further facts that identify it: build, instruction set, device."""


EVERY = ("*",)
"""The claim of every operation of the suite."""

LIMITS: Mapping[str, str] = {"rank": "rank:13", "length": "length:2^31"}
"""Families of facets that are limits, with the facet that the bare name means: oneDNN takes 12 dims at most."""
_LIMIT = re.compile(r"(?:rank:|length:2\^)([1-9][0-9]{0,8})")


def covers(name: str, facet: str) -> bool:
    """Ask whether a name in `not_claimed` excludes a facet: it is the same, its family, or a limit not above it."""
    family = facet.partition(":")[0]
    if family not in LIMITS:
        return name in (facet, family)
    least = _LIMIT.fullmatch(LIMITS.get(name, name)) if name.partition(":")[0] == family else None
    size = _LIMIT.fullmatch(facet)
    return least is not None and size is not None and int(least[1]) <= int(size[1])


class Claims(NamedTuple):
    """The operations and facets that a backend says it supports; read once, before the first row."""

    operations: tuple[str, ...]
    not_claimed: tuple[str, ...] = ()
    """Facets, exact (`type:f16`), a whole family (`form`) or a limit (`rank:13`: more than 12 dims)."""
    answers_special_zero: bool = False
    """Whether the adapter answers special_zero itself, because the library has no such flag."""

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Claims:
        """Make claims from a record of CLAIMS_FORM, or from a file of claims."""
        return cls(**with_tuples(record))

    def has_operation(self, operation: str) -> bool:
        return operation in self.operations or self.operations == EVERY

    def excludes(self, facet: str) -> bool:
        return any(covers(name, facet) for name in self.not_claimed)

    def has_type(self, type_: str) -> bool:
        return not self.excludes(f"type:{type_}")

    def has_layout(self, layout: str) -> bool:
        """Ask whether src may have a layout. Every backend takes a dense one."""
        return layout == "dense" or not any(self.excludes(f"layout:{family}") for family in families_of(layout))

    @lru_cache(4096)  # noqa: B019 - claims are few, and rows share facets
    def find_unclaimed(self, facets: frozenset[str]) -> frozenset[str]:
        """Find the facets of a row that the claims exclude: they are why it is `not claimed`."""
        return frozenset(facet for facet in facets if self.excludes(facet))


CLAIMS_FORM = {"operations": [str], "not_claimed": [str], "answers_special_zero": bool}


class Rejected(Exception):
    """The backend rejects the call, at a stage: compile or run."""

    __slots__ = ("message", "stage")

    def __init__(self, stage: str, message: str) -> None:
        self.stage, self.message = stage, message  # BaseException.__new__ has set args


class Unsupported(Exception):
    """The adapter or the backend does not support this facet of the call."""

    def __init__(self, facet: str) -> None:
        super().__init__(facet)
        self.facet = facet


class Crashed(Exception):
    """The process of the backend ended in the middle of a call."""


class RemoteError(Exception):
    """An error of the adapter, reported by the process that holds it."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class AnswerNotRead(Exception):
    """The answer has this type and these dims, and is larger than any right one. Its elements were not read."""

    def __init__(self, type_: str, dims: tuple[int, ...]) -> None:
        super().__init__(type_, dims)
        self.type, self.dims = type_, dims


class TimedOut(Exception):
    """The call did not end within its limit."""


@runtime_checkable
class Program(Protocol):
    """A compiled graph, to be run any number of times."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        """Return dst. Its memory must stay as it is until the row ends, also if the program is dropped."""


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
    """An adapter in another process, which can be ended and started again."""

    def renew(self) -> None:
        """Give the next call a process that has made no other."""

    def restart(self) -> None:
        """Give the next call a process that imports the backend itself, and is no copy of one that did."""

    def close(self) -> None: ...
