"""The nouns of the suite: plain frozen values, no I/O; of ours only the names of types are imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .types import dtype_of

Array = NDArray[Any]

# ── places ────────────────────────────────────────────────────────────────────────────────────────


class Place(NamedTuple):
    """Where a value was written, for messages: `cases/zero.yaml:14`."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Problem(NamedTuple):
    """Something wrong in a file of ours or of a user: what it is, and what to do."""

    place: Place
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Malformed(Exception):
    """Files that cannot be used; carries every problem found, not only the first."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


# ── what the documents say ────────────────────────────────────────────────────────────────────────


class Pointer(NamedTuple):
    """A line of a document and a few words that stand there."""

    document: str
    line: int
    words: str


class Prose(NamedTuple):
    """A statement of a document that binds nobody, with the reason why not."""

    pointer: Pointer
    reason: str
    place: Place


@dataclass(frozen=True)
class Document:
    """One source text, pinned by digest."""

    id: str
    operation: str
    title: str
    year: int
    licence: str | None
    file: str
    sha256: str
    lines: int
    statements: int
    prose: tuple[Prose, ...]
    place: Place


Given = Literal["attribute", "constant", "runtime"]


@dataclass(frozen=True)
class Operation:
    """A signature: where shape is given, and which types documents list."""

    id: str
    documents: tuple[str, ...]
    given: tuple[Given, ...]
    """How shape reaches the operation: an attribute, an input known beforehand, an input that arrives with run."""
    types: tuple[str, ...]
    shape_types: tuple[str, ...]
    detail: Mapping[str, Any]
    """The whole entry of operations.yaml, for people: attributes, inputs, outputs, names by document."""
    place: Place


Level = Literal["must", "may", "silent", "decided"]


class Expression(NamedTuple):
    """Source text of one expression and where it stands."""

    text: str
    place: Place


@dataclass(frozen=True)
class Rule:
    """One normative sentence of our own, who states it, and where possible a contract."""

    id: str
    level: Level
    sentence: str
    stated: tuple[Pointer, ...]
    decided_for: Mapping[str, str]
    """Documents for which the rule is our ruling, each with the reason."""
    documents: frozenset[str]
    """The documents in which the rule binds (for `silent`: in which it is silent)."""
    because: str | None
    requires: Expression | None
    where: Expression | None
    gives: Expression | None
    ensures: Expression | None
    when: Expression | None
    implied: bool
    place: Place

    @property
    def has_contract(self) -> bool:
        return any((self.requires, self.gives, self.ensures, self.when))


@dataclass(frozen=True)
class Finding:
    """A defect, a disagreement or a silence of the documents."""

    id: str
    kind: Literal["defect", "disagreement", "silence"]
    about: str
    at: tuple[Pointer, ...]
    readings: tuple[str, ...]
    follows: str
    ruling: str | None
    rules: tuple[str, ...]
    example: tuple[tuple[int, ...], tuple[int, ...], bool] | None
    """A call (src, shape, special_zero) that shows it."""
    place: Place


@dataclass(frozen=True)
class Spec:
    """All that spec/ holds."""

    documents: Mapping[str, Document]
    operations: Mapping[str, Operation]
    rules: Mapping[str, Rule]
    findings: Mapping[str, Finding]
    digest: str
    added: frozenset[str] = frozenset()
    """Ids of the documents that a folder adds to those that come along."""


# ── what a call means ─────────────────────────────────────────────────────────────────────────────


class Form(NamedTuple):
    """All about a call that is not its src dims, shape and special_zero."""

    src_type: str
    dst_type: str
    shape_type: str
    shape_rank: int = 1
    special_zero_type: str = "bool"
    missing_attributes: tuple[str, ...] = ()
    missing_operands: tuple[str, ...] = ()
    extra_attributes: tuple[str, ...] = ()
    extra_operands: tuple[str, ...] = ()
    declared: tuple[int | None, ...] | None = None
    """Lengths that the graph states for dst beforehand; None where nothing is said."""

    @property
    def of_types(self) -> Form:
        """What holds of the nodes before the last too: what is declared, lacking or too much is so of the last."""
        return Form(self.src_type, self.src_type, self.shape_type, self.shape_rank)


class Call(NamedTuple):
    """One call of a reshape operation; `form` None stands for a well-formed node of listed types."""

    src: tuple[int, ...]
    shape: tuple[int, ...]
    special_zero: bool
    form: Form | None = None


Kind = Literal["legal", "illegal", "unspecified"]


class Meaning(NamedTuple):
    """What a call means in one document."""

    kind: Kind
    dst: tuple[int | None, ...] | None
    """Legal: the answer. Unspecified: what is known of it, None where free. Illegal: None."""
    rules: tuple[str, ...]
    """Illegal: the broken rules, and in a chain the silent ones of the nodes before. Unspecified: the silent ones."""


# ── what a backend sees ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Tensor:
    """Elements in memory that may have guards around them; bytes, not an ndarray, which stops at 64 dims."""

    type: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes, as NumPy counts them."""
    memory: bytearray | memoryview
    offset: int
    """Where the element with every index 0 begins."""
    shares_src: bool = False
    """Of an answer from another process: whether it lay in src's memory there."""

    def array(self) -> Array:
        """A NumPy view of the very memory, rank 64 at most."""
        return np.ndarray(self.dims, dtype_of(self.type), self.memory, self.offset, self.strides)


class Declared(NamedTuple):
    """What a graph says of a tensor before it exists."""

    type: str
    dims: tuple[int | None, ...] | None
    """None: not even the rank is known. An entry None: that length is not known."""
    strides: tuple[int, ...] | None = None
    """In bytes; None: dense or not known."""


class Operand(NamedTuple):
    """An attribute or an input as written in a node."""

    type: str
    """An element type; for attributes also `bool` and `string`."""
    dims: tuple[int | None, ...]
    values: tuple[Any, ...] | None
    """In row-major order; None: they arrive with run."""


INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


class Node(NamedTuple):
    """One operation of a graph. `shape` is the attribute of StaticReshape and the second input of the others."""

    operation: str
    shape: Operand | None
    """None: missing."""
    special_zero: Operand | None
    """None: missing. Well-formed: Operand('bool', (), (True,))."""
    result: Declared | None = None
    """What is declared of the output; None: nothing."""
    attributes: tuple[tuple[str, Operand], ...] = ()
    """Attributes that the operation does not have."""
    inputs: int = 1
    """How many tensors are connected as data inputs (shape not counted): 1 is right, 0 lacks src, 2 is one too many."""
    outputs: int = 1

    @property
    def well_formed(self) -> bool:
        """Whether a plain function call can express the node; an integer of any type becomes one of the language's."""
        return (
            self.shape is not None
            and len(self.shape.dims) == 1
            and self.shape.type in INTEGERS
            and self.special_zero is not None
            and self.special_zero.type == "bool"
            and not self.attributes
            and self.inputs == self.outputs == 1
        )


class Graph(NamedTuple):
    """Nodes in a row: the first takes src, each next one the output before it."""

    src: Declared
    nodes: tuple[Node, ...]


class Identity(NamedTuple):
    """Who is on the stand."""

    name: str
    version: str
    detail: tuple[tuple[str, str], ...] = ()
    """More facts that pin it: build, instruction set, device."""


class Claims(NamedTuple):
    """What a backend says it does; read before the first row and frozen."""

    operations: tuple[str, ...]
    leaves_out: tuple[str, ...] = ()
    """Facets, exact (`type:f16`) or a whole family (`form`)."""
    mapped: tuple[str, ...] = ()
    """What the adapter answers in the library's place, such as `special_zero`."""

    @staticmethod
    def of(record: Mapping[str, Any]) -> Claims:
        """What a header or a file of claims says."""
        return Claims(**{key: tuple(value) for key, value in record.items()})

    def leaves(self, facet: str) -> bool:
        return facet in self.leaves_out or facet.partition(":")[0] in self.leaves_out


class Rejected(Exception):
    """The backend's own refusal of a call, and the stage at which it came: compile or run."""

    __slots__ = ("message", "stage")

    def __init__(self, stage: str, message: str) -> None:
        self.stage, self.message = stage, message  # BaseException.__new__ has set args


class Unsupported(Exception):
    """The adapter or the backend does not offer this facet of the call."""

    def __init__(self, facet: str) -> None:
        super().__init__(facet)
        self.facet = facet


class Crashed(Exception):
    """The process that answered for the backend ended in the middle of a call."""


class RemoteError(Exception):
    """What went wrong in the adapter in a process of its own, which said what it was."""

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
    """What a backend must offer to be run."""

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


# ── what happened ─────────────────────────────────────────────────────────────────────────────────

OutcomeKind = Literal["tensor", "rejected", "unsupported", "crash", "timeout", "error", "none"]
"""`none`: no answer was recorded at all, because the row did not run."""


class Outcome(NamedTuple):
    """What one step of a row did, before anyone judges it."""

    kind: OutcomeKind
    type: str | None = None
    dims: tuple[int, ...] | None = None
    data: bytes | memoryview | None = None
    """A tensor's elements in row-major order."""
    stage: str | None = None
    message: str | None = None
    """The refusal's text, the facet not supported, the signal, or the adapter's error."""
    faults: tuple[str, ...] = ()
    """What the call did beside answering: `src changed`, `wrote outside src`, `answer changed later`."""
    shares: bool = False
    """Whether the answer lies in src's memory: recorded, never graded."""


Verdict = Literal["pass", "fail", "observed", "not claimed", "error", "waived", "not run"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "observed", "not claimed", "error", "waived", "not run")


class Result(NamedTuple):
    """One row of the evidence: what a backend did with one row of the plan, and the verdict in each document."""

    row: str
    verdicts: Mapping[str, Verdict]
    outcome: Mapping[str, Any]
    """The deciding step's outcome as JSON: kind, type, dims, stage, message, faults, shares; with several steps also
    the number of the deciding `step`, and the outcome of each of the `steps` without its message."""
    diagnosis: str | None = None
    """A few fixed words for what is wrong, to group by."""
    detail: str | None = None
    """The same in a sentence, with the first differing element where there is one."""
    content: tuple[str | None, ...] = ()
    """By step, `digest_of` what a tensor held; None for a step that answered none."""
    resumed: bool = False
    """True if an earlier run called the row, was interrupted, and this one took its result over."""
