"""What every reader gives: the reshape nodes of a model file, as far as the file tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ..meaning.partial import Lengths
from ..system.files import open_regular, read_bytes
from ..system.text import shorten

MOST_BYTES = 1 << 30
"""Bytes that are read of one model file."""
MOST_ENTRIES = 64
"""A shape of more entries, none of them known, is not written out."""


class ReshapeNode(NamedTuple):
    """One reshape node; None stands for everything that the file does not tell."""

    name: str
    kind: str
    """The operation, as the file calls it."""
    at: str
    """The place in the file, such as `line 12`."""
    operation: str | None
    """The operation of the specification if the file names it; None if another format means the same."""
    src_type: str | None
    src: Lengths | None
    shape: Lengths | None
    special_zero: bool | None
    declared: Lengths | None = None
    dst_type: str | None = None
    """None: as src."""
    shape_type: str | None = None
    """None: each document's own."""
    missing: tuple[str, ...] = ()
    """Attributes that the operation needs and the node lacks."""
    whence: Mapping[str, str] = {}
    """For `src` and `shape`: what gives them, if they are not known."""


Bound = Mapping[str, tuple[int | None, ...]]
"""Dims of inputs by name; None leaves a length as the file has it."""
Answer = Callable[[ReshapeNode], Lengths | None]
"""Gives dst of a node as far as it is known."""


class ModelFile(Protocol):
    """A file that was read."""

    @property
    def inputs(self) -> Mapping[str, Lengths | None]:
        """The dims of each input that can be bound."""

    def nodes(self, bound: Bound, answer: Answer) -> Sequence[ReshapeNode]:
        """Return the reshape nodes in the order of the file, with dims for the bound inputs."""


class CannotRead(Exception):
    """A file is no model that can be read; the message says where in it, and what is wrong."""

    def __init__(self, path: Path, where: str, what: str) -> None:
        super().__init__(f"{path}: {where}: {shorten(what, 300)}" if where else f"{path}: {shorten(what, 300)}")


def read_content(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file; CannotRead if it is not there, no regular file or too large."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        raise CannotRead(path, "", error.strerror or str(error)) from None


def open_file(path: Path) -> BinaryIO:
    """Open a file of which only parts are read; CannotRead if it is not there or no regular file."""
    try:
        return open_regular(path)
    except OSError as error:
        raise CannotRead(path, "", error.strerror or str(error)) from None
