"""The cases of cases/, as a person wrote them, and the suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from .calls import Kind
from .graphs import Operand
from .places import Place
from .rules import Spec

Layout = Literal["dense", "transposed", "channels-last", "padded", "cropped", "offset", "broadcast", "reversed"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class Expected(NamedTuple):
    """The expected result of a call: a tensor's type and dims, `reject` or `unspecified`."""

    kind: Kind
    type: str | None = None
    """`T` stands for the type of src."""
    dims: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Step:
    """One call of a case: src, then one shape for each node of the graph."""

    src_type: str
    src: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    special_zero: tuple[bool, ...]
    expect: Mapping[str, Expected]
    """By document; the key `*` for all the others."""
    bits: str | None = None
    """Exact bit patterns of src in hex, words of the element's width; `all`: every pattern of a 16-bit type;
    `edges`: the short list of the type, over and over."""
    layout: Layout = "dense"
    in_place: bool = False


@dataclass(frozen=True)
class Case:
    """One case, which runs for every operation whose signature can express it."""

    id: str
    file: str
    rule: str
    steps: tuple[Step, ...]
    place: Place
    shape_type: str | None = None
    """Set if the case is about that type; None: every type that the operation lists."""
    shape_rank: int = 1
    dst_type: str | None = None
    declared: tuple[int | None, ...] | Literal["unknown"] | None = None
    """Dims declared of dst; `unknown`: declared without a rank; None: nothing is declared."""
    attributes: Mapping[str, Operand | None] = field(default_factory=dict)
    """Attributes that replace the usual ones or are added to them; None: missing."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """The counts of `src`, `shape` (1 is right) and `extra` inputs (0 is right)."""
    outputs: Mapping[str, int] = field(default_factory=dict)
    """The counts of `dst` (1 is right) and `extra` outputs (0 is right)."""
    large: bool = False


@dataclass(frozen=True)
class Suite:
    """Spec and cases, loaded and checked."""

    spec: Spec
    cases: Mapping[str, Case]
    digest: str
    added: frozenset[str] = frozenset()
    """Ids of the cases that a folder adds to the bundled ones."""
    whole: bool = True
    """True if the bundled specification and cases are part of the suite, perhaps with additions."""
    lost: tuple[str, ...] = ()
    """Ids that bundled cases once had and that are missing now."""
