"""The common form: what each reader makes of a model file, whatever its format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from ..meaning.partial import UNKNOWN_TYPE
from ..model import CallForm
from ..system.files import read_bytes
from ..system.text import quote, shorten

Dims = tuple[int | str | None, ...]
"""Lengths; a text such as `batch` names a length, which is the same in the whole model."""
Binding = Mapping[str, Dims]
"""The dims of inputs, by name; a length that nobody gave is as the model declares it."""
MAX_NODES = 1_000_000


class UnreadableModel(Exception):
    """A model file cannot be read; the message says which byte or element, and why."""


class ImpossibleInput(UnreadableModel):
    """The dims of --input contradict one another, or the rank of a model's input."""


class ReshapeNode(NamedTuple):
    """One reshape of a model; None for what the file does not say."""

    name: str
    place: str
    """The element of the file, such as `graph[4]` or `line 12`."""
    operation: str | None
    """An operation of the specification without its version; None if the format names none."""
    src_type: str | None
    src: Dims | None
    shape: Dims | None
    special_zero: bool | None
    declared: Dims | None = None
    form: CallForm | None = None
    """The form of a node that may be malformed; None if the format cannot express such a node."""
    missing: str = ""
    """Why shape or src is not known, if the file says so."""


class Model(Protocol):
    @property
    def inputs(self) -> Mapping[str, Dims | None]:
        """The inputs that can be bound, with their declared dims."""

    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes in the order of the file, with inputs of these dims."""


InferDst = Callable[[ReshapeNode], Dims | None]
"""Return the dims of dst of a node, if they are known and undisputed."""


def known_dims(dims: Dims | None) -> tuple[int, ...] | None:
    if dims is None:
        return None
    known = tuple(length for length in dims if isinstance(length, int))
    return known if len(known) == len(dims) else None


def write_product(number: int, names: Sequence[str]) -> int | str | None:
    """Write a product of a number and lengths with names, such as `64*n`; None if a name cannot be in a product."""
    if not all(map(str.isidentifier, names)):
        return None
    return "*".join([str(number)] * (number != 1) + sorted(names)) if number and names else number


def make_odd_form(src_type: str | None, declared: Dims | None, **odd: Any) -> CallForm:
    """Return the form of a node that is well-formed except for what `odd` says."""
    type_ = src_type or UNKNOWN_TYPE
    return CallForm(type_, type_, **{"shape_type": "s64", **odd}, declared=without_names(declared))


def are_equal_where_known(one: Dims | None, other: Dims | None) -> bool:
    """Ask whether no length, and no rank, is another number in the other dims."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and not any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(one, other, strict=True)
    )


def without_names(dims: Dims | None) -> tuple[int | None, ...] | None:
    """Return dims with None for each length that has a name."""
    return None if dims is None else tuple(length if isinstance(length, int) else None for length in dims)


def read_model_bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a file; UnreadableModel if it is none, or larger than `most`."""
    try:
        return read_bytes(path, most)
    except (OSError, ValueError) as error:
        raise UnreadableModel(f"{getattr(error, 'strerror', None) or error}; check the path") from None


def parse_json(content: bytes, where: str = "") -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        place = f"byte {error.pos}: not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise UnreadableModel(f"{where}{place}") from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise UnreadableModel(f"{where}not JSON: {why}") from None


def fail_at(place: str, value: object, why: str) -> NoReturn:
    raise UnreadableModel(f"{place}: {quote(value)}: {why}")


def check_rank(name: str, declared: Dims | None, given: Dims) -> None:
    """Raise ImpossibleInput if an input cannot have these dims. A declared length may be replaced, a rank may not."""
    if declared is not None and len(declared) != len(given):
        raise ImpossibleInput(f"input {shorten(name)!r} has {len(declared)} dims, and --input gives {len(given)}")
