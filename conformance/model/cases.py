"""Cases: what a person wrote in cases/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from conformance.model.calls import Kind
from conformance.model.graphs import Operand
from conformance.model.places import Place
from conformance.model.rules import Spec

# ── cases ─────────────────────────────────────────────────────────────────────────────────────────

Layout = Literal["dense", "transposed", "channels-last", "padded", "cropped", "offset", "broadcast", "reversed"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class Expected(NamedTuple):
    """What a person expects of a call: a tensor's type and dims, `reject` or `unspecified`."""

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
    """One vector: runs for every operation whose signature can express it."""

    id: str
    file: str
    rule: str
    steps: tuple[Step, ...]
    place: Place
    shape_type: str | None = None
    """Set where the case is about that type; None: every type the operation lists."""
    shape_rank: int = 1
    dst_type: str | None = None
    declared: tuple[int | None, ...] | Literal["unknown"] | None = None
    """Dims declared of dst; `unknown`: declared without a rank; None: nothing is declared."""
    attributes: Mapping[str, Operand | None] = field(default_factory=dict)
    """What is written instead of an attribute, or beside them; None: missing."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """How many there are of `src`, `shape` (1 is right) and `extra` ones (0 is right)."""
    outputs: Mapping[str, int] = field(default_factory=dict)
    """The same of `dst` and `extra`."""
    large: bool = False


@dataclass(frozen=True)
class Suite:
    """Spec and cases, loaded and checked."""

    spec: Spec
    cases: Mapping[str, Case]
    digest: str
    added: frozenset[str] = frozenset()
    """Ids of the cases that a folder adds to those that come along."""
    whole: bool = True
    """Whether specification and cases are the bundled ones, perhaps with others beside them."""
    lost: tuple[str, ...] = ()
    """Ids that the bundled cases have had and have not."""
