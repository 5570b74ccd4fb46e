"""The common form: what each reader makes of a model file, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from ..model import Form
from ..system.files import read_bytes
from ..system.text import shorten

Dims = tuple[int | str | None, ...]
"""Lengths; a text such as `batch` is a length with a name, which is the same wherever it stands."""
Binding = Mapping[str, tuple[int, ...]]
"""The dims of inputs, by name."""
MOST_NODES = 1_000_000
"""Operations that are read of one file."""


class Unreadable(Exception):
    """A model file cannot be read; the message says which byte or element, and why."""


class ReshapeNode(NamedTuple):
    """One reshape of a model. None stands for what the file does not say."""

    name: str
    place: str
    """The element of the file, such as `graph[4]` or `line 12`."""
    operation: str | None
    """An operation of the specification without its version; None if the format does not name one of them."""
    src_type: str | None
    src: Dims | None
    shape: Dims | None
    special_zero: bool | None
    declared: Dims | None = None
    form: Form | None = None
    """The form of a node that may be malformed; None if the format cannot spell such a node."""
    missing: str = ""
    """Why shape or src is not known, if the file says so."""


class Model(Protocol):
    """A model that was read."""

    @property
    def inputs(self) -> Mapping[str, Dims | None]:
        """The inputs that can be bound, with their declared dims."""

    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes in the order of the file, with inputs of these dims."""


Answer = Callable[[ReshapeNode], Dims | None]
"""Return the dims of dst of a node, if they are known and undisputed."""


def whole(dims: Dims | None) -> tuple[int, ...] | None:
    """Return dims of which every length is known, or None."""
    if dims is None:
        return None
    known = tuple(length for length in dims if isinstance(length, int))
    return known if len(known) == len(dims) else None


def without_names(dims: Dims | None) -> tuple[int | None, ...] | None:
    """Return dims with None for each length that has a name."""
    return None if dims is None else tuple(length if isinstance(length, int) else None for length in dims)


def content_of(path: Path, most: int) -> bytes:
    """Return the bytes of a file; Unreadable if it is none, or larger than `most`."""
    try:
        return read_bytes(path, most)
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}; check the path") from None


def describe_fit(name: str, declared: Dims | None, given: tuple[int, ...]) -> str | None:
    """Say why dims cannot be those of an input; None if they can. A declared length may be replaced, a rank may not."""
    if declared is not None and len(declared) != len(given):
        return f"input {shorten(name)!r} has {len(declared)} dims, and --input gives {len(given)}"
    return None
