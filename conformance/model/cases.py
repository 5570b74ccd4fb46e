"""The cases of cases/, as a person wrote them, and the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from .calls import Kind
from .graphs import Operand
from .places import Place
from .rules import Spec

Layout = Literal[
    "dense", "transposed", "channels-last", "padded", "cropped", "offset", "broadcast", "reversed",
    "swapped", "blocked", "stepped", "far", "overlapping",
    "broadcast-middle", "broadcast-last", "reversed-middle", "reversed-first",
    "permuted", "stepped-7", "offset-8", "broadcast-two", "reversed-two",
    "transposed+reversed", "transposed+stepped", "padded+reversed", "broadcast+reversed", "channels-last+cropped",
    "stepped-3", "reversed-all", "broadcast-first-two", "inner-swapped", "padded+cropped",
    "transposed+broadcast", "permuted+broadcast-last", "windows", "broadcast-all", "pairs-swapped",
]  # fmt: skip
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
_FAMILIES: Mapping[str, str] = {
    "swapped": "transposed", "blocked": "transposed", "stepped": "padded", "far": "padded", "overlapping": "broadcast",
    "broadcast-middle": "broadcast", "broadcast-last": "broadcast",
    "reversed-middle": "reversed", "reversed-first": "reversed", "reversed-two": "reversed",
    "permuted": "transposed", "stepped-7": "padded", "offset-8": "offset", "broadcast-two": "broadcast",
    "stepped-3": "padded", "reversed-all": "reversed", "broadcast-first-two": "broadcast",
    "inner-swapped": "transposed", "windows": "broadcast", "broadcast-all": "broadcast",
    "pairs-swapped": "transposed",
}  # fmt: skip


def families_of(layout: str) -> tuple[str, ...]:
    """Return the family of a layout; two families if it is made of two layouts."""
    return tuple(_FAMILIES.get(part, part) for part in layout.split("+"))


LAYOUT_FAMILIES: tuple[str, ...] = tuple(each for each in LAYOUTS if each != "dense" and families_of(each) == (each,))
"""The layouts that are facets: a backend claims a family with all its varieties, or none of it."""
CONTIGUOUS: tuple[Layout, ...] = ("dense", "offset", "offset-8")
"""Layouts with the elements in row-major order and without gaps."""
STRIDED: tuple[Layout, ...] = tuple(layout for layout in LAYOUTS if layout not in CONTIGUOUS)
"""All other layouts, which need strides."""
STRIDED_FACETS: tuple[str, ...] = tuple(f"layout:{family}" for family in LAYOUT_FAMILIES if family in STRIDED)
"""The facets of these, for a backend that takes dense tensors only."""


class ExpectedResult(NamedTuple):
    """The expected result of a call: a tensor's type and dims, `reject` or `unspecified`."""

    kind: Kind
    type: str | None = None
    """`T`: the type of src."""
    dims: tuple[int, ...] | None = None


class CaseKey(NamedTuple):
    """An optional key of a case or a step that YAML holds as a plain value."""

    name: str
    default: Any
    """The value if the key is missing. It is also the simplest one, as a smallest case has it."""
    words: str
    """The value in a sentence about the call; empty if it is not shown."""
    facet: str
    """The facet of rows that have another value; empty if there is none."""


def _say(words: str = "", facet: str = "") -> Mapping[str, str]:
    return {"words": words, "facet": facet}


@dataclass(frozen=True)
class Step:
    """One call of a case: src, then one shape for each node of the graph."""

    src_type: str
    src: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    special_zero: tuple[bool, ...]
    expect: Mapping[str, ExpectedResult]
    """By document; the key `*` for all the others."""
    layout: Layout = field(default="dense", metadata=_say("src laid out {}", "layout:{}"))
    in_place: bool = field(default=False, metadata=_say("dst may overwrite src", "in-place"))
    bits: str | None = field(default=None, metadata=_say("bits {}"))
    """Exact bit patterns of src in hex, words of the element's width; `all`: every pattern of a 16-bit type;
    `edges`: the short list of the type, over and over."""
    shared_src: bool = field(default=False, metadata=_say("each node takes src", "shared-src"))
    """Whether each node of the chain takes src, not the output before it; the answer is the last node's output."""
    shared_shape: bool = field(default=False, metadata=_say("nodes share a shape tensor", "shared-shape"))
    """Whether a node takes the shape tensor of the node before it where the two shapes are equal."""
    constant_nodes: Literal["none", "first", "second"] = field(
        default="none", metadata=_say("a constant shape in every second node from the {}")
    )
    """Whether every second node of the chain, from the first or the second, has a constant shape of another type,
    however the shapes of the other nodes are passed."""

    new_program: bool = field(default=False, metadata=_say("in a separate program, which is then deleted"))
    """Whether the graph is compiled for this step alone. An equal program of other steps stays."""

    def is_constant(self, k: int) -> bool:
        """Ask whether a node has a constant shape, however the shapes of the other nodes are passed."""
        return self.constant_nodes != "none" and (self.constant_nodes == "second") == bool(k % 2)

    def shares_shape(self, k: int) -> bool:
        """Ask whether a node takes the shape tensor of the node before it."""
        return self.shared_shape and k > 0 and self.shapes[k] == self.shapes[k - 1]

    @property
    def shares_nothing(self) -> bool:
        """Ask whether nodes are said to share a shape, and none takes that of the node before it."""
        return self.shared_shape and not any(map(self.shares_shape, range(len(self.shapes))))


@dataclass(frozen=True)
class Case:
    """One case, which runs for every operation with a signature that can express it."""

    id: str
    file: str
    rule: str
    steps: tuple[Step, ...]
    place: Place
    declared: tuple[int | None, ...] | Literal["unknown"] | None = None
    """Dims declared of dst; `unknown`: declared without a rank; None: nothing is declared."""
    title: str | None = field(default=None, metadata=_say())
    """The fact in words, if a reader cannot understand the id as a sentence."""
    links: tuple[str, ...] = ()
    """Addresses of bugs of the kind that the case finds."""
    shape_type: str | None = field(default=None, metadata=_say("shape of {}"))
    """Set if the case is about that type; None: every type that the operation lists."""
    shape_rank: int = field(default=1, metadata=_say("shape of rank {}"))
    shape_column: bool = field(default=False, metadata=_say("shape of one column"))
    """Whether a shape of rank 2 or more has its entries along the first dimension, not along the last."""
    shape_step: int = field(default=1, metadata=_say("entries of shape {} places apart in memory", "shape-strides"))
    """Set if shape arrives with run and its entries do not lie side by side; -1: in reverse."""
    shape_offset: int = field(default=0, metadata=_say("entries of shape in memory from place {} on"))
    """Set if a shape that arrives with run begins so many entries past a multiple of 64 bytes in its memory."""
    mixed_shape_types: bool = field(default=False, metadata=_say("every second shape of another type"))
    """Whether the shape of every second node, from the second, is of the other type that the operation takes."""
    one_shape_memory: bool = field(default=False, metadata=_say("shapes of all steps in the same memory"))
    """Whether the shapes that arrive lie where those of the step before lay."""
    dst_type: str | None = field(default=None, metadata=_say("dst declared as {}"))
    dst_strides: str | None = field(default=None, metadata=_say("dst declared with strides {}", "dst-strides"))
    """Strides declared of dst, counted in elements and separated by spaces; `declared` then has every length."""
    attributes: Mapping[str, Operand | None] = field(default_factory=dict)
    """Attributes that replace the usual ones or are added to them; None: missing."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """The counts of `src`, `shape` (1 is right) and `extra` inputs (0 is right)."""
    outputs: Mapping[str, int] = field(default_factory=dict)
    """The counts of `dst` (1 is right) and `extra` outputs (0 is right)."""
    in_node: Literal["last", "first", "middle"] = field(default="last", metadata=_say("in the {} node"))
    """The node of a chain that the attributes, inputs, outputs and declared dst of the case are of."""
    concurrent: int = field(default=1, metadata=_say("{} steps at the same time", "threads"))
    """The number of steps that are called together, each with its own thread."""
    one_program: bool = field(default=False, metadata=_say("the threads share a program", "threads:one-program"))
    """Whether steps that are called together share the program of their graph; otherwise each has its own."""
    known: Literal["all", "some", "none"] = field(
        default="all", metadata=_say("{} of the lengths of src known when the graph is compiled")
    )
    """The lengths of src that the graph declares: those that all calls share, every other one, or none."""
    unknown_rank: bool = field(default=False, metadata=_say("the rank of src not known when the graph is compiled"))
    pause_ms: int = field(default=0, metadata=_say("after a pause of {} ms"))
    """Milliseconds without a call before the last step."""
    times: int = field(default=1, metadata=_say("called {} times in a row"))
    """The number of times that each step is called, or as many as fit into `REPEAT_SECONDS` of run/row.py.
    The first outcome that is another is that of the step."""
    large: bool = field(default=False, metadata=_say(facet="large"))
    generated: bool = False
    """Whether `each` made the steps: then those of equal ranks share a program, and evidence keeps one outcome."""
    rows: Literal["one-per-type", "one-per-operation"] | None = field(default=None, metadata=_say())
    """Set if the case has fewer rows: one for each type, of the first operation; or one for each operation and type,
    where shape arrives with run if it can. None: one for each way of passing shape."""

    start: int | None = None
    """The number of the first default element of src; None: a checksum of the id. Cases in files do not set it."""

    @property
    def heading(self) -> str:
        """The title, or the words of the id."""
        return self.title or self.id.replace("-", " ")

    @property
    def shown_steps(self) -> tuple[int, ...]:
        """The indexes of the steps that lists and pages show: all, or the first and the last of generated ones."""
        return (0, len(self.steps) - 1) if self.generated and len(self.steps) > 1 else tuple(range(len(self.steps)))


def _keys_of(part: type[Case] | type[Step]) -> tuple[CaseKey, ...]:
    return tuple(
        CaseKey(f.name, f.default, f.metadata["words"], f.metadata["facet"]) for f in fields(part) if f.metadata
    )


STEP_KEYS, CASE_KEYS = _keys_of(Step), _keys_of(Case)


def list_given_keys(part: Case | Step) -> Iterator[tuple[CaseKey, Any]]:
    """Yield the optional keys of a case or a step that have another value than the default, with that value."""
    for key in STEP_KEYS if isinstance(part, Step) else CASE_KEYS:
        value = getattr(part, key.name)
        if value != key.default:
            yield key, value


class UnreadCase(NamedTuple):
    """A case of a file that is known to be right, which is read when it is first asked for."""

    rule: str
    generated: bool
    read: Callable[[], Case]


class Cases(Mapping[str, Case]):
    """Cases by id, in file order."""

    def __init__(self, cases: Mapping[str, Case | UnreadCase]) -> None:
        self._cases = dict(cases)

    def __getitem__(self, name: str) -> Case:
        case = self._cases[name]
        if isinstance(case, UnreadCase):
            case = self._cases[name] = case.read()
        return case

    def __iter__(self) -> Iterator[str]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)

    def __contains__(self, name: object) -> bool:
        return name in self._cases

    def without(self, names: frozenset[str]) -> Cases:
        return Cases({name: case for name, case in self._cases.items() if name not in names})

    def rules(self) -> Iterator[tuple[str, str]]:
        """Yield each id with the rule of its case; no case is read."""
        for name, case in self._cases.items():
            yield name, case.rule

    def about(self, rules: Iterable[str]) -> Iterator[Case]:
        """Yield the cases about some rules, without those with generated steps; no other case is read."""
        wanted = frozenset(rules)
        for name, case in self._cases.items():
            if case.rule in wanted and not case.generated:
                yield self[name]


class EarlierSuite(NamedTuple):
    """A suite with some or all rows of the present one, and the same answers due."""

    lacks: frozenset[str] = frozenset()
    """Ids of the cases that were added since."""
    combinations: int | None = None
    """How many lines of cases/combinations.txt it had; None if no line was added since."""


@dataclass(frozen=True)
class Suite:
    """Spec and cases, loaded and checked."""

    spec: Spec
    cases: Cases
    digest: str
    added: frozenset[str] = frozenset()
    """Ids of the cases that a folder adds to the bundled ones."""
    whole: bool = True
    """Whether the bundled specification and cases are part of the suite, perhaps with additions."""
    lost: tuple[str, ...] = ()
    """Ids that bundled cases once had and that are missing now."""
    folder: Path | None = None
    """The folder that --suite names, for the commands that repeat a row."""
    earlier: Mapping[str, EarlierSuite] = field(default_factory=dict)
    """Earlier suites by digest."""
    combinations: int | None = None
    """How many lines of cases/combinations.txt are part of it; None for all."""

    def find_earlier(self, digest: str) -> EarlierSuite | None:
        """Find what the suite with a digest had; None if this one lacks some of its rows, and cannot judge its runs."""
        return EarlierSuite() if digest == self.digest else self.earlier.get(digest)
