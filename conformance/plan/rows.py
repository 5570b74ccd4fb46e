"""The plan of a suite: every case for each operation, type and way of passing shape that can express it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, NoReturn

from ..meaning.contract import Contract, contracts
from ..model import INTEGERS, Case, EarlierSuite, Operation, ShapePassedAs, Spec, Suite
from ..model.types import WIDTH, range_of
from .facets import (
    C_INTERFACE_TYPES,
    choose_other_shape_type,
    find_case_facets,
    find_way_facets,
    has_constant_nodes,
    has_two_shape_types,
)
from .lower import find_meanings_at, lower, lower_one
from .memory import volume_of
from .steps import RowStep, StepMeaning


class _RowFields(NamedTuple):
    """The fields of a row; a named tuple is made as fast as a class that can be changed."""

    id: str
    case: Case
    signature: Operation
    type: str
    shape_type: str
    shape_passed_as: ShapePassedAs
    facets: frozenset[str]
    contracts: Mapping[str, Contract]
    """By document."""
    first: Row | None = None
    """The row of the same case, operation and way of passing shape for the first type; None for that row itself."""


class Row(_RowFields):
    """A case for one operation, one element type, one shape type and one way of passing shape.

    Its steps are lowered when they are first asked for, so that a run of a few rows need not wait for all. A row equals
    only itself.
    """

    __eq__, __ne__ = object.__eq__, object.__ne__
    __hash__ = object.__hash__

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a row is frozen: {name}")

    @property
    def operation(self) -> str:
        return self.signature.id

    @property
    def documents(self) -> tuple[str, ...]:
        """The documents that define the operation, by which the row is judged."""
        return self.signature.documents

    @property
    def has_listed_type(self) -> bool:
        """Ask whether the documents list the type of src; a failure in another type is noted, and counts nowhere."""
        return self.type in self.signature.types

    @cached_property
    def steps(self) -> tuple[RowStep, ...]:
        return lower(self)

    def step(self, number: int) -> RowStep:
        """Return one of its steps; the others need not be lowered."""
        return self.steps[number] if "steps" in self.__dict__ else lower_one(self, number)

    def meanings(self, number: int) -> tuple[StepMeaning, ...]:
        """Return what one of its steps means: each meaning, and the documents that say so."""
        if number not in self._meanings:
            self._meanings[number] = find_meanings_at(self, number)
        return self._meanings[number]

    @cached_property
    def _meanings(self) -> dict[int, tuple[StepMeaning, ...]]:
        """The meanings asked for so far, by step. Pages ask again when the steps have been dropped."""
        return {}

    @property
    def pytest_id(self) -> str:
        """The name under pytest: `cases/zero.yaml::meets-infer[StaticReshape-f32]`."""
        return f"{self.case.file}::{self.id}"

    def free_steps(self) -> None:
        """Drop its steps; they are lowered again when they are asked for."""
        self.__dict__.pop("steps", None)


def make_case_of_step(row: Row, number: int) -> Case:
    """Return the case of a row with one of its steps; src and what the graph knows of it are as beside the others."""
    case, step = row.case, row.step(number)
    dims, start = step.graph.src.dims, step.src_spec.start
    known = "none" if case.known == "all" and None in (dims or ()) else case.known
    steps = case.steps[number : number + 1]
    return replace(case, steps=steps, start=start, known=known, unknown_rank=dims is None)


@dataclass(frozen=True, eq=False)
class Plan:
    """The rows of a suite, in the suite's order; those of cases with many elements come last."""

    suite: Suite
    rows: tuple[Row, ...]
    nonce: str | None = None
    """Set if the plan is under a nonce: see `plan_under_nonce`."""
    select: str | None = None
    """Set if the plan has only the rows that -k or --quick chooses: see `select_rows`."""

    def as_of(self, earlier: EarlierSuite) -> Plan:
        """Return the plan that an earlier suite had."""
        suite = replace(self.suite, cases=self.suite.cases.without(earlier.lacks), combinations=earlier.combinations)
        return replace(self, suite=suite, rows=tuple(row for row in self.rows if row.case.id not in earlier.lacks))


_MANY_ELEMENTS = 1 << 20
SEED = 0
"""The seed of the drawn rows of every run, so that two runs of one backend draw the same calls."""
_DRAWN = re.compile(r"drawn-([0-9]{1,18})-([0-9]{1,9})\[.*\]")


def parse_drawn_id(row_id: str) -> tuple[int, int] | None:
    """Return the seed and the number of a drawn row; None for a row of a case that is written down."""
    match = _DRAWN.fullmatch(row_id)
    return (int(match[1]), int(match[2])) if match else None


def name_in(expression: str | None) -> str:
    """Return what an expression names, without quotes and the file in front."""
    return (expression or "").strip().strip("'\"").rpartition("::")[2]


def find_drawn(expression: str | None) -> tuple[int, int] | None:
    """Return the seed and the number of the drawn row that -k names, or of the case of one; None if it names none."""
    case, bracket, rest = name_in(expression).partition("[")
    return parse_drawn_id(f"{case}{bracket or '['}{rest or ']'}")


def explain_drawn(name: str) -> str:
    """Say who has a drawn row, if that is its name; an empty text if not."""
    if find_drawn(name) is None:
        return ""
    what = f"{name_in(name)} is a drawn row, which the claims of a backend decide"
    return f"{what}; `conformance run BACKEND -k {name_in(name).partition('[')[0]}` calls it"


def has_many_elements(case: Case) -> bool:
    """Ask whether a step of a case has so many elements that its rows come last: they take long and tell little."""
    return any(volume_of(step.src) >= _MANY_ELEMENTS for step in case.steps)


def plan_of(suite: Suite) -> Plan:
    """Return the plan of a suite, under its own contracts."""
    return plan_of_cases(suite, suite.cases)


def plan_of_cases(suite: Suite, names: Container[str]) -> Plan:
    """Return the part of the plan with the rows of some cases; no other case is read."""
    cases = (suite.cases[name] for name in suite.cases if name in names)
    in_order = sorted(cases, key=has_many_elements)
    return Plan(suite, tuple(rows_of(in_order, suite.spec, contracts(suite.spec))))


def rows_of(cases: Iterable[Case], spec: Spec, compiled: Mapping[str, Contract]) -> Iterator[Row]:
    for case in cases:
        shared = frozenset(find_case_facets(case))
        for operation, types in _list_operations(case, spec):
            for shape_passed_as in operation.shape_passed_as[-1:] if case.rows else operation.shape_passed_as:
                own_types = operation.shape_types[-1:] if case.rows else operation.shape_types
                for shape_type in (case.shape_type,) if case.shape_type else own_types:
                    if is_expressible(case, operation, shape_passed_as, shape_type):
                        yield from _make_rows(case, operation, shape_passed_as, shape_type, compiled, types, shared)


def _list_operations(case: Case, spec: Spec) -> Iterator[tuple[Operation, tuple[str, ...]]]:
    """Yield the operations that a case runs for, each with the types of src.

    Of a case that runs once for each type, the types take the operations in turn: shape is an attribute in the first,
    and arrives with run in the next.
    """
    operations, own = tuple(spec.operations.values()), case.steps[0].src_type
    if case.rows != "one-per-type":
        for operation in operations:
            yield operation, operation.types if own == "T" else (own,)
        return
    for type_ in operations[0].types if own == "T" else (own,):
        turn = operations[0].types.index(type_) if type_ in operations[0].types else 0
        offering = [each for each in operations[turn:] + operations[:turn] if type_ in each.types]
        yield (offering or operations)[0], (type_,)


def row_of(
    case: Case, operation: Operation, shape_passed_as: ShapePassedAs, shape_type: str, compiled: Mapping[str, Contract]
) -> Row:
    """Return the row of a case for one operation and one way of passing shape, in the type that src has."""
    types, facets = (case.steps[0].src_type,), frozenset(find_case_facets(case))
    return next(_make_rows(case, operation, shape_passed_as, shape_type, compiled, types, facets))


def _make_rows(
    case: Case, operation: Operation, shape_passed_as: ShapePassedAs, shape_type: str, compiled: Mapping[str, Contract],
    types: Iterable[str], shared: frozenset[str],
) -> Iterator[Row]:  # fmt: skip
    parts = [""]
    if shape_passed_as != "attribute":
        parts.append(shape_type)
    if len(operation.shape_passed_as) > 1:
        parts.append(shape_passed_as)
    if case.shape_type and shape_passed_as == "attribute":
        parts.append(shape_type)
    name, rest = f"{case.id}[{operation.id}-", f"{'-'.join(parts)}]"
    facets = shared | frozenset(find_way_facets(case, operation, shape_type, shape_passed_as))
    first = None
    for type_ in types:
        id_, own = f"{name}{type_}{rest}", _with_type(facets, type_)
        row = Row(id_, case, operation, type_, shape_type, shape_passed_as, own, compiled, first)
        first = first or row
        yield row


@lru_cache(4096)
def _with_type(facets: frozenset[str], type_: str) -> frozenset[str]:
    """Return the facets of a row; rows with the same facets share them."""
    return facets | {f"type:{type_}"}


def is_expressible(case: Case, operation: Operation, shape_passed_as: ShapePassedAs, shape_type: str) -> bool:
    """Ask whether a signature has room for the call of a case."""
    static = shape_passed_as == "attribute"
    if static and (case.inputs.get("shape") is not None or case.shape_rank > 1 or shape_type not in C_INTERFACE_TYPES):
        return False
    if not static and ("shape" in case.attributes or shape_type not in WIDTH):
        return False
    if (case.shape_step != 1 or case.shape_offset or case.one_shape_memory) and shape_passed_as != "runtime":
        return False
    if case.mixed_shape_types and choose_other_shape_type(operation, shape_type) == shape_type:
        return False
    if static and any(step.shared_shape for step in case.steps):
        return False  # an attribute is no tensor
    types = {shape_type}
    if has_constant_nodes(case) and "constant" not in operation.shape_passed_as:
        return False
    if has_two_shape_types(case):
        types.add(choose_other_shape_type(operation, shape_type))
    absent = case.inputs.get("shape") == 0 or "shape" in case.attributes
    if absent and (shape_passed_as, shape_type) != (operation.shape_passed_as[0], operation.shape_types[0]):
        return False  # there is only one way to leave shape out
    entries = {entry for step in case.steps for shape in step.shapes for entry in shape}
    return all(entry in range_of(type_) for type_ in types & {*INTEGERS} for entry in entries)
