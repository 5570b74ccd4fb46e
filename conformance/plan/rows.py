"""Lowers a suite, once, to rows that can be executed: graphs, memory, and what each step means in each document."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..meaning.contract import Contract, contracts
from ..model import Case, Declared, Form, Given, Graph, Meaning, Node, Operand, Operation, Rule, Spec, Step, Suite
from ..model.types import WIDTH
from .memory import Image, Source, image_of, shape_image, strides_of, volume_of

_DENSE = ("dense", "offset")
_ATTRIBUTE_TYPES = ("s64", "f32", "bool", "string")
"""Those for which oneDNN Graph has a function; attributes of others are the facet `form:attribute-types`."""
_CACHED_IMAGES = 4096
_image = lru_cache(_CACHED_IMAGES)(image_of)
GREAT = 1 << 21
"""Elements from which only the latest image is kept; cases of the same dims and type share it."""
_great_image = lru_cache(1)(image_of)
_shape_image = lru_cache(_CACHED_IMAGES)(shape_image)


class Judged:
    """One meaning that a step has, and the documents in which it has it."""

    __slots__ = ("documents", "meaning")

    def __init__(self, meaning: Meaning, documents: tuple[str, ...]) -> None:
        self.meaning, self.documents = meaning, documents


@dataclass(eq=False)
class Task:
    """A step made executable."""

    graph: Graph
    source: Source
    shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    """Shapes that arrive with run: type, dims, values."""
    may_overwrite: bool
    meanings: tuple[Judged, ...]
    large: bool

    @property
    def great(self) -> bool:
        """Whether src takes much of this process's memory."""
        return volume_of(self.source.dims) >= GREAT

    @cached_property
    def src(self) -> Image:
        """src in memory, shared by all the tasks that begin with the very same bytes."""
        if self.large:
            return image_of(self.source)
        return _great_image(self.source) if self.great else _image(self.source)

    def forget(self) -> None:
        """Lets go of memory that is too large to keep."""
        if self.large or self.great:
            self.__dict__.pop("src", None)

    @cached_property
    def arriving(self) -> tuple[Image, ...]:
        return tuple(_shape_image(*shape) for shape in self.shapes)


@dataclass(eq=False)
class Row:
    """A case for one operation, one element type, one shape type and one way of giving shape.

    Its tasks are lowered when they are first asked for, so that a run of a few rows need not wait for all.
    """

    id: str
    case: Case
    operation: str
    type: str
    shape_type: str
    given: Given
    facets: frozenset[str]
    documents: tuple[str, ...]
    _way: _Way

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Its steps, ready to be called."""
        return _Lowering(self._way, self.type).tasks()

    @property
    def node_id(self) -> str:
        """The name under pytest: `cases/zero.yaml::meets-infer[StaticReshape-f32]`."""
        return f"{self.case.file}::{self.id}"

    def forget(self) -> None:
        """Lets go of its tasks, which are lowered again where somebody asks for them."""
        self.__dict__.pop("tasks", None)


@dataclass(frozen=True, eq=False)
class Plan:
    """Every row of a suite, in the suite's order."""

    suite: Suite
    rows: tuple[Row, ...]


def plan_of(suite: Suite) -> Plan:
    """The plan of a suite, under its own contracts."""
    compiled = contracts(suite.spec)
    return Plan(suite, tuple(rows_of(suite.cases.values(), suite.spec, compiled)))


def rows_of(cases: Iterable[Case], spec: Spec, compiled: Mapping[str, Contract]) -> Iterator[Row]:
    """The rows of some cases."""
    for case in cases:
        for operation in spec.operations.values():
            yield from _case_rows(case, operation, compiled)


def _case_rows(case: Case, operation: Operation, compiled: Mapping[str, Contract]) -> Iterator[Row]:
    written = case.steps[0].src_type
    for given in operation.given:
        for shape_type in (case.shape_type,) if case.shape_type else operation.shape_types:
            if expressible(case, operation, given, shape_type):
                types = operation.types if written == "T" else (written,)
                yield from _Way(case, operation, shape_type, given, compiled).rows(types)


def row_of(case: Case, operation: Operation, given: Given, shape_type: str, compiled: Mapping[str, Contract]) -> Row:
    """The row of a case for one operation and one way of giving shape; src has the type that is written."""
    return next(_Way(case, operation, shape_type, given, compiled).rows((case.steps[0].src_type,)))


def expressible(case: Case, operation: Operation, given: Given, shape_type: str) -> bool:
    """Whether a signature has room for the call of a case."""
    static = given == "attribute"
    if static and (case.inputs.get("shape") is not None or case.shape_rank > 1 or shape_type not in _ATTRIBUTE_TYPES):
        return False
    if not static and ("shape" in case.attributes or shape_type not in WIDTH):
        return False
    absent = case.inputs.get("shape") == 0 or "shape" in case.attributes
    if absent and (given, shape_type) != (operation.given[0], operation.shape_types[0]):
        return False  # a shape that is not there is given in one way only
    if shape_type[0] in "su" and shape_type[1:].isdigit():
        bits = 8 * WIDTH[shape_type]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if shape_type[0] == "s" else (0, (1 << bits) - 1)
        return all(low <= entry <= high for step in case.steps for shape in step.shapes for entry in shape)
    return True


@lru_cache(_CACHED_IMAGES)
def _with_type(facets: frozenset[str], type_: str) -> frozenset[str]:
    """The facets of a row; rows that have the same share them."""
    return facets | {f"type:{type_}"}


class _Way(NamedTuple):
    """One case for one operation and one way of giving shape: what its rows, one for each type, have in common."""

    case: Case
    operation: Operation
    shape_type: str
    given: Given
    compiled: Mapping[str, Contract]

    def rows(self, types: Iterable[str]) -> Iterator[Row]:
        case, operation = self.case, self.operation
        parts = [""]
        if self.given != "attribute":
            parts.append(self.shape_type)
        if len(operation.given) > 1:
            parts.append(self.given)
        if case.shape_type and self.given == "attribute":
            parts.append(self.shape_type)
        name, more, facets = f"{case.id}[{operation.id}-", f"{'-'.join(parts)}]", frozenset(self.facets())
        for type_ in types:
            yield Row(
                f"{name}{type_}{more}", case, operation.id, type_, self.shape_type, self.given,
                _with_type(facets, type_), operation.documents, self,
            )  # fmt: skip

    def facets(self) -> Iterator[str]:
        """Which parts of the closed vocabulary the rows need beyond the core and their type."""
        case = self.case
        if self.given != "attribute":
            yield f"shape-type:{self.shape_type}"
        if len(self.operation.given) > 1:
            yield f"given:{self.given}"
        for step in case.steps:
            if step.layout != "dense":
                yield f"layout:{step.layout}"
            if step.in_place:
                yield "in-place"
            if len(step.shapes) > 1:
                yield "chain"
            rank = max(len(dims) for dims in (step.src, *step.shapes))
            if rank > 12:  # the most that the specification's own library takes
                yield f"rank:{rank}"
        if self.given == "runtime" and any(_differ_in_rank(each) for each in self.shapes_of_steps()):
            yield "unknown-rank"  # one program for all steps has to take what no document promises
        if case.declared is not None:
            yield "declared"
        if case.large:
            yield "large"
        yield from self.form_facets()

    def shapes_of_steps(self) -> Iterator[list[tuple[int, ...]]]:
        """src, and each shape of the chain, over the steps."""
        steps = self.case.steps
        yield [step.src for step in steps]
        for k in range(len(steps[0].shapes)):
            yield [step.shapes[k] for step in steps]

    def form_facets(self) -> Iterator[str]:
        case = self.case
        if case.attributes:
            yield "form:attributes"
        if any(each is not None and each.type not in _ATTRIBUTE_TYPES for each in case.attributes.values()):
            yield "form:attribute-types"
        if case.inputs:
            yield "form:inputs"
        if case.outputs:
            yield "form:outputs"
        if case.shape_rank != 1 or self.shape_type[0] not in "su" or self.shape_type == "string":
            yield "form:shape"
        if case.dst_type:
            yield "form:types"
            yield f"type:{case.dst_type}"


class _Lowering:
    """One row on its way to what can be called."""

    def __init__(self, way: _Way, type_: str) -> None:
        self.case, self.operation, self.type = way.case, way.operation, type_
        self.shape_type, self.compiled = way.shape_type, way.compiled
        self.runtime = way.given == "runtime"

    def tasks(self) -> tuple[Task, ...]:
        start = zlib.crc32(self.case.id.encode()) % 251  # so that one case's elements are not the next one's
        return tuple(self.task(step, start + 977 * index) for index, step in enumerate(self.case.steps))

    def src_type(self, step: Step) -> str:
        return self.type if step.src_type == "T" else step.src_type

    def task(self, step: Step, start: int) -> Task:
        start = 0 if volume_of(step.src) >= GREAT and not self.case.large else start
        source = Source(self.src_type(step), step.src, step.layout, step.bits, start)
        arriving = (
            tuple((self.shape_type, self.shape_dims(shape), shape) for shape in step.shapes) if self.runtime else ()
        )
        if self.case.inputs.get("shape") == 0:
            arriving = arriving[:-1]
        return Task(self.graph(step), source, arriving, step.in_place, self.meanings(step), self.case.large)

    # ── the graph ──

    def shape_dims(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return {0: (), 1: (len(shape),), 2: (1, len(shape)), 3: (1, 1, len(shape))}[self.case.shape_rank]

    def graph(self, step: Step) -> Graph:
        type_ = self.src_type(step)
        dims = _in_common([each.src for each in self.case.steps]) if self.runtime else step.src
        strides = None
        if step.layout not in _DENSE and dims == step.src:
            strides = strides_of(step.src, step.layout, WIDTH[type_])
        nodes = tuple(self.node(step, k, last=k == len(step.shapes) - 1) for k in range(len(step.shapes)))
        return Graph(Declared(type_, dims, strides), nodes)

    def node(self, step: Step, k: int, last: bool) -> Node:
        """One of the graph. What a case says of attributes, inputs and outputs it says of the last."""
        case = self.case
        special_zero: Operand | None = Operand("bool", (), (step.special_zero[k],))
        if not last:
            return Node(self.operation.id, self.vector(step, k), special_zero)
        if "special_zero" in case.attributes:
            special_zero = case.attributes["special_zero"]
        extra = [(n, o) for n, o in case.attributes.items() if n not in ("shape", "special_zero") and o is not None]
        return Node(
            self.operation.id,
            self.operand(step, k),
            special_zero,
            self.result(step),
            tuple(extra),
            case.inputs.get("src", 1) + case.inputs.get("extra", 0),
            case.outputs.get("dst", 1) + case.outputs.get("extra", 0),
        )

    def operand(self, step: Step, k: int) -> Operand | None:
        case = self.case
        if case.inputs.get("shape") == 0 or ("shape" in case.attributes and case.attributes["shape"] is None):
            return None
        if "shape" in case.attributes:
            return case.attributes["shape"]
        return self.vector(step, k)

    def vector(self, step: Step, k: int) -> Operand:
        """shape as it should be, if of a type and a rank that the case may choose."""
        if not self.runtime:
            return Operand(self.shape_type, self.shape_dims(step.shapes[k]), step.shapes[k])
        dims = _in_common([self.shape_dims(each.shapes[k]) for each in self.case.steps])
        assert dims is not None
        return Operand(self.shape_type, dims, None)

    def result(self, step: Step) -> Declared | None:
        case, type_ = self.case, self.case.dst_type or self.src_type(step)
        if case.declared is None:
            return Declared(type_, None) if case.dst_type else None
        return Declared(type_, None if case.declared == "unknown" else case.declared)

    # ── the meaning ──

    def form(self, step: Step) -> Form | None:
        """None where the call is an ordinary one, which contracts decide faster."""
        case, type_ = self.case, self.src_type(step)
        listed = type_ in self.operation.types and self.shape_type in self.operation.shape_types
        plain = not (case.attributes or case.inputs or case.outputs or case.dst_type) and case.shape_rank == 1
        if listed and plain and case.declared is None:
            return None
        attributes, inputs, outputs = case.attributes, case.inputs, case.outputs
        special_zero = attributes.get("special_zero")
        shape = attributes.get("shape")
        own = ("shape", "special_zero")
        return Form(
            src_type=type_,
            dst_type=case.dst_type or type_,
            shape_type=shape.type if shape else self.shape_type,
            shape_rank=len(shape.dims) if shape else case.shape_rank,
            special_zero_type=special_zero.type if special_zero else "bool",
            missing_attributes=tuple(name for name in own if name in attributes and attributes[name] is None),
            missing_operands=tuple(n for n, count in {**inputs, **outputs}.items() if n != "extra" and count == 0),
            extra_attributes=tuple(name for name in attributes if name not in own),
            extra_operands=("input",) * inputs.get("extra", 0) + ("output",) * outputs.get("extra", 0),
            declared=case.declared if isinstance(case.declared, tuple) else None,
        )

    def meanings(self, step: Step) -> tuple[Judged, ...]:
        form = self.form(step)
        by_meaning: dict[Meaning, list[str]] = {}
        for document in self.operation.documents:
            meaning = meaning_of(self.compiled[document], step.src, step.shapes, step.special_zero, form)
            by_meaning.setdefault(meaning, []).append(document)
        return tuple(Judged(meaning, tuple(documents)) for meaning, documents in by_meaning.items())


@lru_cache(_CACHED_IMAGES)  # the rows of a case ask the same of the same documents, for each of its types
def meaning_of(
    contract: Contract,
    src: tuple[int, ...],
    shapes: tuple[tuple[int, ...], ...],
    special_zero: tuple[bool, ...],
    form: Form | None,
) -> Meaning:
    """What a chain of reshapes means, one after the other; what is open in one node excuses nothing in the next."""
    if len(shapes) == 1:
        return contract.meaning(src, shapes[0], special_zero[0], form)
    volume = volume_of(src)
    meaning = Meaning("legal", src, ())
    silent: tuple[str, ...] = ()
    for k, (shape, zero) in enumerate(zip(shapes, special_zero, strict=True)):
        assert meaning.dst is not None
        last = k == len(shapes) - 1
        each = form.of_types if form and not last else form
        copied = {i for i, d in enumerate(shape) if zero and d == 0 and i < len(meaning.dst) and meaning.dst[i] is None}
        meaning = contract.meaning(supposed(meaning.dst, volume), shape, zero, each)
        if copied and (meaning.kind != "illegal" or set(meaning.rules) & contract.of_answer):
            return Meaning("unspecified", None, silent)  # it hangs on a length that nobody knows
        if meaning.kind == "illegal":
            return meaning._replace(rules=(*meaning.rules, *filter(None, silent)))
        silent += tuple(rule for rule in meaning.rules if rule not in silent)
        if meaning.kind == "unspecified" and not meaning.rules:
            silent += ("",)
    rules = tuple(rule for rule in silent if rule)
    return Meaning("unspecified", meaning.dst, rules) if silent else meaning


def supposed(dims: tuple[int | None, ...], volume: int) -> tuple[int, ...]:
    """Dims of that volume which agree with what is known; what is not known of them decides nothing that is asked."""
    known = volume_of(tuple(length for length in dims if length is not None))
    lengths = []
    for length in dims:
        if length is not None:
            lengths.append(length)
        else:
            lengths.append(volume // known if known else 1)
            known = volume
    return tuple(lengths)


def _differ_in_rank(all_dims: list[tuple[int, ...]]) -> bool:
    return len({len(dims) for dims in all_dims}) > 1


def _in_common(all_dims: list[tuple[int, ...]]) -> tuple[int | None, ...] | None:
    """What can be said beforehand of dims that differ from step to step."""
    if _differ_in_rank(all_dims):
        return None
    return tuple(each[0] if len(set(each)) == 1 else None for each in zip(*all_dims, strict=True))


def witnessed(
    case: Case, spec: Spec, rule: Rule, whole: Mapping[str, Contract], lacking: Mapping[str, Contract]
) -> bool:
    """Whether some call of a case means something else once the rule is deleted, in a document that binds it."""
    for row, without in zip(rows_of([case], spec, whole), rows_of([case], spec, lacking), strict=True):
        for task, other in zip(row.tasks, without.tasks, strict=True):
            before = {d: j.meaning for j in task.meanings for d in j.documents}
            after = {d: j.meaning for j in other.meanings for d in j.documents}
            for document in rule.documents & before.keys():
                if before[document][:2] != after[document][:2]:
                    return True
    return False
