"""Rows of drawn cases: a seed and a number give the same row in every run of the suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..meaning.contract import Contract, contracts
from ..model import Case, Claims, Given, Operation, Spec, Step
from ..plan.rows import Row, is_expressible, row_of
from .calls import Draw
from .cases import draw_case, draw_long_sequence

MAX_TRIES = 40
"""Cases to draw for one row until the backend claims one."""
LONG_EVERY, LONG_CALLS = 25, 200
"""One row in 25 is a long sequence of 200 calls."""
LONGEST_EVERY, LONGEST_CALLS = 500, 999
"""The same for the longest; a case file takes no more steps."""

_Way = tuple[Operation, Given, str]
"""An operation, a way to pass shape to it, and the type of shape."""


class Drawn(NamedTuple):
    """The calls that a run draws."""

    seed: int
    calls: int
    """The number of rows; some of them have several calls."""


class Drawer:
    """Draws rows within the claims of a backend."""

    def __init__(self, spec: Spec, claims: Claims) -> None:
        self._spec, self._claims = spec, claims
        self._contracts: Mapping[str, Contract] = contracts(spec)
        self._ways: list[_Way] = [
            (operation, given, shape_type)
            for operation in spec.operations.values()
            if claims.offers(operation.id)
            for given in operation.shape_passed_as
            for shape_type in operation.shape_types
        ]

    def rows(self, drawn: Drawn) -> Iterator[Row]:
        """Yield the rows in their order; fewer if the backend claims hardly any."""
        for number in range(drawn.calls):
            if row := self.row(drawn.seed, number):
                yield row

    def row(self, seed: int, number: int) -> Row | None:
        """Draw the row with a number; None if the backend claims nothing that is drawn."""
        for attempt in range(MAX_TRIES if self._ways else 0):
            draw = Draw(f"{seed} {number} {attempt}")
            operation, given, shape_type = draw.choice(self._ways_of(number))
            types = [type_ for type_ in operation.types if self._claims.offers_type(type_)]
            if types:
                case = replace(_draw(draw, types, number), id=f"drawn-{seed}-{number}")
                row = self._row(case, operation, given, case.shape_type or shape_type)
                if row is not None:
                    return row
        return None

    def _ways_of(self, number: int) -> Sequence[_Way]:
        """Return the ways to pass shape. The longest sequences avoid `runtime` if they can."""
        static = [way for way in self._ways if way[1] != "runtime"]
        return static if static and number % LONGEST_EVERY == LONGEST_EVERY - 1 else self._ways

    def _row(self, case: Case, operation: Operation, given: Given, shape_type: str) -> Row | None:
        if not is_expressible(case, operation, given, shape_type):
            return None
        row = row_of(case, operation, given, shape_type, self._contracts)
        if self._claims.find_unclaimed(row.facets):
            return None
        rule = _rule_of(row)
        return row._replace(case=replace(case, rule=rule if rule in self._spec.rules else next(iter(self._spec.rules))))


def _draw(draw: Draw, types: list[str], number: int) -> Case:
    if number % LONGEST_EVERY == LONGEST_EVERY - 1:
        return draw_long_sequence(draw, types, LONGEST_CALLS)
    if number % LONG_EVERY == LONG_EVERY - 1:
        return draw_long_sequence(draw, types, LONG_CALLS)
    return draw_case(draw, types)


def _rule_of(row: Row) -> str:
    """Find the rule that a drawn row is about."""
    step, meaning = row.case.steps[0], row.steps[0].meanings[0].meaning
    if len(row.steps) > 1:
        return "each-call-alone"
    if meaning.rules:
        return meaning.rules[0]
    if len(step.shapes) > 1:
        return "nodes-compose"
    if row.case.declared is not None:
        return "declared-output"
    return "layout-is-no-content" if step.layout != "dense" else entries_rule(step)


def entries_rule(step: Step) -> str:
    """Find the rule about the most particular entry of shape."""
    (shape,), (special_zero,) = step.shapes, step.special_zero
    if 0 in shape:
        return "zero-copies" if special_zero else "zero-literal"
    if -1 in shape:
        return "infer-keeps-count"
    return "literal-lengths" if shape else "dst-has-shape-rank"
