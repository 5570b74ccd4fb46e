"""The base of all planted backends: the reference with seams, the decorators that override one, and the register.

A run goes through the seams in this order, each a method of `Planted` with a decorator:

    read_graph → read_node → check → resolve and change (with agrees, for each node) → execute → move
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from conformance.model import EVERY, Array, Claims, Declared, Graph, Identity, Node, Operand, Program, Tensor
from conformance.model.types import WIDTH

from ..reference import Decided, Reference, ReferenceProgram, copy_elements, decide, dense, elements

Answer = Tensor | Array
Dims = tuple[int, ...]
F = TypeVar("F", bound=Callable[..., Any])
FALSE, TRUE = Operand("bool", (), (False,)), Operand("bool", (), (True,))

PLANTED: dict[str, type[Planted]] = {}
"""Every planted backend, by name."""

CLASSES: Mapping[str, str] = {
    "A": "the zero flag ignored or inverted, or honoured on one path only",
    "B": "-1 computed without the copied zeros, or as 0/0",
    "C": "division by zero, or an exception that is no rejection, on empty tensors",
    "D": "lengths or counts cut to 32 bits, products that wrap",
    "E": "volume or divisibility not checked on one path",
    "F": "strides ignored, column-major order",
    "G": "bit patterns changed on the way",
    "H": "src changed, memory used again, an earlier answer returned",
    "I": "static and runtime form disagree, a program that cannot go on after its first call or after an error",
    "J": "rank growth past a fixed array",
    "K": "rank 0 and shapes of length 0",
    "L": "any negative taken for -1",
    "M": "two -1 accepted",
    "N": "copied zeros aligned to the right, or taken in turn",
    "O": "the operation rejected when it is alone",
    "P": "the declared output believed without a check",
    "Q": "a type, an empty tensor or a rank quietly not supported",
    "R": "everything rejected, everything accepted, nothing answered",
}
"""The kinds of bug that planted backends stand for."""


class Illegal(Exception):
    """The call breaks a rule; the argument is its id."""


class Unspecified(Exception):
    """No document says which dst is meant; the arguments are the silent rule's id, and the known lengths of dst."""


def resolve(src: Dims, shape: Dims, special_zero: bool, zero_may_meet_infer: bool = False) -> Dims:
    """Return the dims of dst, or raise Illegal or Unspecified. The arguments are those of `decide`."""
    dst, rule = decide(src, shape, special_zero, zero_may_meet_infer)
    if rule is None:
        return dst  # type: ignore[return-value] # all its lengths are known
    raise Illegal(rule) if dst is None else Unspecified(rule, dst)


_HERE = threading.local()
"""The dims of the graph's src and the index of the node that this thread is at: threads may run one program at once."""


class PlantedCall(NamedTuple):
    """The call of one node, which `resolve` decides."""

    src: Dims
    shape: Dims
    zero: bool
    """special_zero."""
    node: Node
    position: int
    """The index of the node in its graph."""
    program: Planted

    def resolve(self, **changes: Any) -> Dims:
        """The right dims of dst, after some fields of the call are changed; raises Illegal where there are none."""
        call = self._replace(**changes)
        return resolve(call.src, call.shape, call.zero, call.node.operation != "StaticReshape")

    def fill(self) -> Dims:
        """Dims of dst without any check: zeros copied where possible, every -1 the quotient rounded down."""
        src = self.src
        dst = [src[i] if d == 0 and self.zero and i < len(src) else d for i, d in enumerate(self.shape)]
        known = math.prod(d for d in dst if d >= 0)
        return tuple((math.prod(src) // known if known else 0) if d < 0 else d for d in dst)

    @property
    def volume(self) -> int:
        return math.prod(self.src)

    @property
    def constant(self) -> bool:
        """The shape is known at compilation."""
        return self.node.shape is not None and self.node.shape.values is not None

    @property
    def strides(self) -> Dims | None:
        """The strides that the graph declares of src."""
        return self.program.graph.src.strides


class ProgramRun(NamedTuple):
    program: Planted
    src: Tensor
    shapes: tuple[Tensor, ...]
    in_place: bool
    """src may be overwritten."""

    def answer(self) -> Answer:
        """The answer as the seams give it."""
        program = self.program
        dst = program.dst
        if dst is None:
            dst = program.settle("run", program.graph.nodes, self.src.dims, self.shapes)
        return program.move(self, dst)

    def move(self, dst: Dims) -> Answer:
        """The elements of src in row-major order; if the volumes differ, cut off or repeated."""
        src, volume = self.src, math.prod(dst)
        if math.prod(src.dims) == volume:
            return copy_elements(src, dst)
        if volume > 1 << 20:  # a real backend would touch memory that is not its own
            raise MemoryError(f"dst would have {volume} elements")
        row = np.frombuffer(elements(src), f"V{WIDTH[src.type]}")
        return dense(src.type, dst, bytearray(np.resize(row, volume).tobytes()))


class Planted(Reference):
    """The reference with seams. `compile` returns another instance, which holds the graph and is the program."""

    name: ClassVar[str]
    breaks: ClassVar[str]
    """The id of the rule that the backend breaks."""
    classes: ClassVar[str]
    """Letters of CLASSES; none if the fault concerns the form of a node alone."""
    settles_late: ClassVar[bool] = False
    """Decide dims at the run only, when it is known whether src may be overwritten."""

    given: Graph
    """The graph as compile took it."""
    graph: Graph
    """The graph after read_graph and read_node."""
    dst: Dims | None
    """The dims of dst, if they are known at compilation."""
    in_place = False
    claims = Claims(EVERY)
    """Every suite must catch it, whatever its operations are."""
    memory: Any = None
    """What a program remembers from its earlier runs, and the backend from all its programs."""
    waits = False
    """Whether a thread waits for another to write to `memory`."""
    maker: Planted
    """The backend that compiled the program."""

    @property
    def first(self) -> Dims:
        """The dims of the graph's src."""
        dims: Dims = _HERE.first
        return dims

    @property
    def chained(self) -> bool:
        return len(self.graph.nodes) > 1

    def compile(self, graph: Graph) -> Program:
        program = type(self)()
        program.maker = self
        program.given, (src, nodes) = graph, self.read_graph(graph)
        src = src._replace(dims=None) if self.settles_late else src
        program.graph = Graph(src, tuple([self.read_node(node, src.type) for node in nodes]))
        compiled = super(Planted, program).compile(program.graph)
        assert isinstance(compiled, ReferenceProgram)
        program.dst = compiled.dst
        return program

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Answer:
        self.in_place = may_overwrite
        return self.execute(ProgramRun(self, src, shapes, may_overwrite))

    def settle(self, stage: str, nodes: tuple[Node, ...], dims: Dims, shapes: tuple[Tensor, ...]) -> Dims:
        _HERE.first, _HERE.position = dims, -1
        return super().settle(stage, nodes, dims, shapes)

    def answer(self, node: Node, src: Dims, shape: Dims) -> Decided:
        _HERE.position += 1
        entries = tuple([int(length) for length in shape])  # some backends do not check that they are integers
        try:
            call = PlantedCall(src, entries, get_flag(node), node, _HERE.position, self)
            return self.change(call, self.resolve(call)), None
        except Illegal as illegal:
            return None, illegal.args[0]
        except Unspecified as silence:
            rule, known = silence.args
            return known, rule

    @staticmethod
    def read_graph(graph: Graph) -> Graph:
        return graph

    @staticmethod
    def read_node(node: Node, src_type: str) -> Node:
        return node

    @staticmethod
    def resolve(call: PlantedCall) -> Dims:
        return call.resolve()

    @staticmethod
    def change(call: PlantedCall, dst: Dims) -> Dims:
        return dst

    @staticmethod
    def execute(run: ProgramRun) -> Answer:
        return run.answer()

    @staticmethod
    def move(run: ProgramRun, dst: Dims) -> Answer:
        return run.move(dst)


def get_flag(node: Node) -> bool:
    """The value of special_zero, false if it has none."""
    return node.special_zero is not None and bool(node.special_zero.values and node.special_zero.values[0])


def plant(name: str, breaks: str, classes: str, fault: str | None, **overrides: Any) -> None:
    """Register a backend that overrides some seams or settings of Planted. Its class is `name` in CamelCase."""
    parts = {key: staticmethod(value) if callable(value) else value for key, value in overrides.items()}
    about = {"name": name, "breaks": breaks, "classes": classes, "identity": Identity(f"planted:{name}", "1")}
    camel = "".join(word.capitalize() for word in name.split("-"))
    PLANTED[name] = type(camel, (Planted,), {"__doc__": fault, "__module__": __package__, **about, **parts})


@dataclass(frozen=True)
class Seam(Generic[F]):
    """A decorator that plants a backend: the function overrides a method of Planted, and its docstring says the fault.

    `plant` does the same with a function that is only an expression. Keywords override further seams and settings.
    """

    method: str

    def __call__(self, name: str, *, breaks: str, classes: str, **others: Any) -> Callable[[F], F]:
        def plant_function(function: F) -> F:
            self.plant(name, breaks, classes, function.__doc__, function, **others)
            return function

        return plant_function

    def plant(self, name: str, breaks: str, classes: str, fault: str | None, function: F, **others: Any) -> None:
        plant(name, breaks, classes, fault, **{self.method: function}, **others)


read_graph = Seam[Callable[[Graph], Graph]]("read_graph")
"""Takes a graph and returns what is compiled instead; may raise Rejected."""
read_node = Seam[Callable[[Node, str], Node]]("read_node")
"""Takes one node, with the type of src, and returns the node to check instead."""
resolve_dims = Seam[Callable[[PlantedCall], Dims]]("resolve")
"""Takes the call of one node and returns the dims of dst; may raise Illegal."""
change_dims = Seam[Callable[[PlantedCall, Dims], Dims]]("change")
"""Takes the call of one node and the right dims of dst, and returns others; may raise Illegal."""
accept_declared = Seam[Callable[[Declared, tuple[int | None, ...]], bool]]("agrees")
"""Takes what is declared of dst and its dims, and returns whether they agree."""
execute_run = Seam[Callable[[ProgramRun], Any]]("execute")
"""Takes a run and returns the answer."""
move_elements = Seam[Callable[[ProgramRun, Dims], Answer]]("move")
"""Takes a run and the dims of dst, and returns the elements in these dims."""


def always(*_: object) -> bool:
    return True


def overlook(
    name: str,
    breaks: str,
    classes: str,
    fault: str,
    when: Callable[[PlantedCall], bool] = always,
    *,
    overlooked: tuple[str, ...] = (),
    answer: Callable[[PlantedCall], Dims] = PlantedCall.fill,
    **others: Any,
) -> None:
    """Plant a backend that answers calls which break a rule: `breaks`, unless others are `overlooked`."""

    def resolve(call: PlantedCall) -> Dims:
        try:
            return call.resolve()
        except Illegal as illegal:
            if str(illegal) in (overlooked or (breaks,)) and when(call):
                return answer(call)
            raise

    plant(name, breaks, classes, fault, resolve=resolve, **others)


def reject_legal(name: str, breaks: str, classes: str, fault: str, when: Callable[[PlantedCall, Dims], bool]) -> None:
    """Plant a backend that rejects some legal calls."""

    def change(call: PlantedCall, dst: Dims) -> Dims:
        if when(call, dst):
            raise Illegal("not supported")
        return dst

    change_dims.plant(name, breaks, classes, fault, change)
