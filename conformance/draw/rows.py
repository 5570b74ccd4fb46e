"""The drawn rows of a run: a seed and a number give the same row in every run of the suite.

First come the rows of cases/combinations.txt, then rows that are drawn at random, and among both long sequences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ..meaning.contract import Contract, contracts
from ..model import Case, Claims, Spec, Step
from ..plan.facets import find_limit_facets, find_way_facets
from ..plan.quick import QUICK, quick_rows
from ..plan.rows import Row, find_drawn, is_expressible, row_of
from .calls import DrawnCall, SeededDraws
from .cases import draw_case, draw_long_sequence
from .combinations import case_of, count_combinations, read_combination, read_combinations
from .factors import CombinationCodes, Factors, OperationWay, Values, find_factors, list_operation_ways

MAX_TRIES = 40
"""Cases to draw for one row until the backend claims one."""
FIRST_SEQUENCE, SEQUENCE_EVERY = 24, 240
"""The number of the first long sequence, and the distance to the next."""
LONG_CALLS = {FIRST_SEQUENCE: 200, FIRST_SEQUENCE + SEQUENCE_EVERY: 999}
"""The calls of a long sequence, by its number; the longest, as long as a case can be, avoids `runtime` if it can."""
_MET_AT_ANY_NODE = 6904
"""Combinations of the last suite in which factors met at any node, so that its runs left out other rows."""
_FACTOR_OF_FACET = {
    "layout": "layout", "in-place": "in_place", "declared": "declared", "dst-strides": "dst_layout",
    "unknown-src": "known", "runtime-shape": "known",  # the second: of changing rank
    "shape-strides": "shape_step", "threads": "threads",
    "chain": "node", "shared-src": "node", "shared-shape": "node",
    "shape-type": "node",  # that of a constant shape beside others
}  # fmt: skip
"""The factor to change for a backend that does not claim a facet, by the family of the facet."""


class Drawn(NamedTuple):
    """The rows that a run draws."""

    seed: int
    rows: int
    """How many; some of them have several calls."""
    select: str | None = None
    """What -k or --quick chose: the target of the run has it, so that evidence cannot say otherwise."""

    @property
    def is_quick(self) -> bool:
        return self.select == QUICK

    @property
    def named(self) -> tuple[int, int] | None:
        """The seed and the number of the row that -k names; None if it names none."""
        return find_drawn(self.select)

    @property
    def numbers(self) -> Sequence[int]:
        if self.named:
            return (self.named[1],)
        return quick_rows().drawn[: self.rows] if self.is_quick else range(self.rows)

    def to_json(self) -> dict[str, int]:
        return {"seed": self.seed, "rows": self.rows}


def count_drawn_rows(combinations: int | None = None) -> int:
    """Return the number of drawn rows of a whole run: up to the last combination, of all or of an earlier suite."""
    number = combinations = count_combinations() if combinations is None else combinations
    while number - _count_sequences_before(number) < combinations:
        number += 1
    return number


def _count_sequences_before(number: int) -> int:
    return (number + SEQUENCE_EVERY - FIRST_SEQUENCE - 1) // SEQUENCE_EVERY


class RowDrawer:
    """Draws rows within the claims of a backend.

    `combinations`: how many lines of cases/combinations.txt an earlier suite had.
    """

    def __init__(self, spec: Spec, claims: Claims, combinations: int | None = None) -> None:
        self._spec, self._claims = spec, claims
        self._combinations = count_combinations() if combinations is None else combinations
        self._contracts: Mapping[str, Contract] = contracts(spec)
        self._factors = Factors(spec)
        simplest = {name: self._factors.values[name][0] for name in self._factors.chosen}
        self._simplest = case_of(DrawnCall((1,), (1,), False), simplest, 0)
        self._ways = {name: way for name, way in list_operation_ways(spec).items() if self._is_claimed(way)}

    def _is_claimed(self, way: OperationWay) -> bool:
        facets = find_way_facets(self._simplest, way.operation, way.shape_type, way.shape_passed_as)
        return self._claims.has_operation(way.operation.id) and not self._claims.find_unclaimed(frozenset(facets))

    def rows(self, drawn: Drawn) -> Iterator[Row]:
        """Yield the rows in their order.

        A combination is left out if all its values meet in rows before it, as happens if the backend does not claim
        those that made it worth a row. If a backend claims hardly any row, some of the others are missing, too.
        """
        at_any_node = self._combinations <= _MET_AT_ANY_NODE
        codes = {each.name: CombinationCodes(self._factors, each, at_any_node) for each in self._factors.designs}
        met = {name: np.zeros(each.count, bool) for name, each in codes.items()}
        for number in drawn.numbers:
            made = self._make(drawn.seed, number)
            if made is None:
                continue
            row, values = made
            if values is not None:
                design = "illegal" if "broken" in values else "legal"
                numbers = codes[design].of(codes[design].places(values))
                if met[design][numbers].all():
                    continue
                met[design][numbers] = True
            yield self._with_rule(row)

    def row(self, seed: int, number: int) -> Row | None:
        """Draw the row with a number; None if the backend claims nothing that is drawn."""
        made = self._make(seed, number)
        return self._with_rule(made[0]) if made else None

    def _make(self, seed: int, number: int) -> tuple[Row, Values | None] | None:
        if not self._ways:
            return None
        length = LONG_CALLS.get(number, LONG_CALLS[FIRST_SEQUENCE]) if number % SEQUENCE_EVERY == FIRST_SEQUENCE else 0
        combination = number - _count_sequences_before(number)
        if not length and combination < self._combinations:
            return self.draw_claimed_row(combination, f"drawn-{seed}-{number}")
        ways = list(self._ways.values())
        is_long = length > LONG_CALLS[FIRST_SEQUENCE]
        static = [way for way in ways if way.shape_passed_as != "runtime"] if is_long else []
        for attempt in range(MAX_TRIES):
            draw = SeededDraws(f"{seed} {number} {attempt}")
            way = draw.choice(static or ways)
            if types := self._types_of(way):
                case = draw_long_sequence(draw, types, length) if length else draw_case(draw, types, self._factors)
                row = self._make_row(replace(case, id=f"drawn-{seed}-{number}"), way)
                if row is not None and not self._claims.find_unclaimed(row.facets):
                    return row, None
        return None

    def draw_claimed_row(self, number: int, name: str) -> tuple[Row, Values] | None:
        """Return the row of a combination and its values, with others for those that the backend does not claim.

        Values that it claims keep meeting each other: a value is replaced by the simplest one, a way, a type and a call
        by the next.
        """
        call, chosen = read_combination(self._factors, number)
        names = list(self._ways)
        name_of_way = chosen["way"] if chosen["way"] in self._ways else names[number % len(names)]
        types = self._types_of(way := self._ways[name_of_way])
        if not types:
            return None
        type_ = chosen["type"] if chosen["type"] in types else types[number % len(types)]
        if (name_of_way, type_) != (chosen["way"], chosen["type"]):
            chosen = self._factors.fitting(call, {**chosen, "way": name_of_way, "type": type_})
        others = self._list_other_calls(number)
        while True:
            row = self._make_row(case_of(call, chosen, number, name), way)
            unclaimed = {facet.partition(":")[0] for facet in self._claims.find_unclaimed(row.facets)} if row else set()
            if not unclaimed:
                return (row, {**chosen, **find_factors(call)}) if row else None
            factors = filter(None, map(_FACTOR_OF_FACET.get, unclaimed))
            simplest = {factor: self._factors.values[factor][0] for factor in factors}
            simpler = self._factors.fitting(call, {**chosen, **simplest})
            if simplest and simpler == chosen:  # constant nodes leave lengths of src open, whatever `known` is
                simpler = self._factors.fitting(call, {**chosen, "node": self._factors.values["node"][0]})
            if simpler == chosen:  # the call itself is beyond what is claimed
                other = next(others, None)
                if other is None:
                    return None
                call, simpler = other, self._factors.fitting(other, chosen)
            chosen = simpler

    def _list_other_calls(self, number: int) -> Iterator[DrawnCall]:
        """Yield the calls of the next combinations, and then of the first, without those beyond the claimed limits."""
        calls = self._calls_within_limits
        at = bisect_right(calls, number, key=itemgetter(0))
        yield from (call for _, call in calls[at:] + calls[:at])

    @cached_property
    def _calls_within_limits(self) -> list[tuple[int, DrawnCall]]:
        """The calls of combinations, with their numbers, that have no rank or length that the backend does not claim.

        If it claims few of them, to try all others for each row would take minutes.
        """
        calls = enumerate(each.call for each in islice(read_combinations(self._factors), self._combinations))
        return [
            (number, call)
            for number, call in calls
            if not self._claims.find_unclaimed(frozenset(find_limit_facets((call.src, call.shape))))
        ]

    def _types_of(self, way: OperationWay) -> list[str]:
        return [type_ for type_ in way.operation.types if self._claims.has_type(type_)]

    def _make_row(self, case: Case, way: OperationWay) -> Row | None:
        operation, shape_passed_as, shape_type = way._replace(shape_type=case.shape_type or way.shape_type)
        if not is_expressible(case, operation, shape_passed_as, shape_type):
            return None
        return row_of(case, operation, shape_passed_as, shape_type, self._contracts)

    def _with_rule(self, row: Row) -> Row:
        rule = _rule_of(row)
        ruled = row._replace(
            case=replace(row.case, rule=rule if rule in self._spec.rules else next(iter(self._spec.rules)))
        )
        vars(ruled).update(vars(row))  # its steps, which do not depend on the rule
        return ruled


def _rule_of(row: Row) -> str:
    step, meaning = row.case.steps[0], row.steps[0].meanings[0].meaning
    if len(row.steps) > 1:
        return "each-call-alone"
    if meaning.rules:
        return meaning.rules[0]
    if len(step.shapes) > 1:
        return "nodes-compose"
    if row.case.declared is not None:
        return "declared-output"
    return "layout-is-no-content" if step.layout != "dense" else find_entries_rule(step)


def find_entries_rule(step: Step) -> str:
    """Find the rule about the most particular entry of shape."""
    (shape,), (special_zero,) = step.shapes, step.special_zero
    if 0 in shape:
        return "zero-copies" if special_zero else "zero-literal"
    if -1 in shape:
        return "infer-keeps-count"
    return "literal-lengths" if shape else "dst-has-shape-rank"
