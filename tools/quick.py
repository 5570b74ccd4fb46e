"""Make cases/quick.json: the rows of `conformance run --quick`.

They notice the planted backends that need no pause and no more calls or compilations, every rule that is deleted, and
every mutant of the reference that some row notices.
Drawn rows follow, in which as many values of two factors meet as fit into the compilations that are left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from conformance.adapters.reference import Reference, ReferenceProgram
from conformance.draw.combinations import read_combinations
from conformance.draw.factors import Factors, find_factors
from conformance.draw.rows import FIRST_SEQUENCE, SEQUENCE_EVERY, count_drawn_rows
from conformance.load.cases import load_suite
from conformance.load.folders import find_cases_folder
from conformance.meaning.contract import contracts
from conformance.model import Graph, Suite
from conformance.plan.quick import QUICK_FILE
from conformance.plan.rows import Row, has_many_elements, parse_drawn_id, plan_of
from conformance.run.row import run_row
from conformance.selfcheck.check_cases import witnesses
from conformance.selfcheck.mutants import (
    EQUIVALENTS,
    MAX_SECONDS,
    choose_rows_to_run,
    drawn_rows,
    fails_on,
    list_mutants,
    planted_backends,
    takes_long,
    time_limit,
)

MAX_COMPILATIONS = 550
"""At 100 ms each they take 55 s, which leaves 5 s of a minute for everything else."""
MAX_COMPILATIONS_OF_ROW = 200
"""A planted backend that only longer rows notice is left to a full run."""
MAX_CALLS = 10_000
"""More calls take half a second, and a pause takes a whole one: the impatient would wait for one more fault."""


class CountingReference(Reference):  # type: ignore[misc]  # the module is found at run time
    """The reference, which counts the graphs that it compiles."""

    compilations = 0

    def compile(self, graph: Graph) -> ReferenceProgram:
        self.compilations += 1
        return super().compile(graph)


def cost_of(row: Row) -> tuple[bool, bool, int]:
    """Rows with pauses or many calls, and large ones, are chosen only where no other row will do."""
    backend = CountingReference()
    run_row(row, backend)
    return takes_long(row), has_many_elements(row.case), backend.compilations


# ── rows of cases ─────────────────────────────────────────────────────────────────────────────────


def rows_with_each_belief(rows: Collection[Row], others: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield each planted backend with the rows that notice it; if none does, with the first of the others, or none."""
    others = list(others)
    for name, backend in planted_backends().items():
        found = [row for row in rows if fails_on(row, backend())]
        if not found and (row := next((row for row in others if fails_on(row, backend())), None)):
            found = [row]
            others.insert(0, row)  # it may notice the next one, too
        print(f"{name}: {len(found)} rows", file=sys.stderr)
        yield name, found


def rows_with_each_rule(suite: Suite, rows: Mapping[str, Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield each rule that is not implied by others with the rows that mean something else without it."""
    whole = contracts(suite.spec)
    for rule in suite.spec.rules.values():
        if rule.has_contract and not rule.implied:
            yield rule.id, [rows[row.id] for row in witnesses(rule, suite, whole) if row.id in rows]


def cover(noticed_by: Mapping[str, list[Row]], costs: Mapping[Row, tuple[bool, bool, int]]) -> list[Row]:
    """Choose rows until each thing is noticed: first the row with the most of them for a compilation."""
    things: dict[Row, set[str]] = {}
    for name, rows in noticed_by.items():
        for row in rows:
            things.setdefault(row, set()).add(name)
    chosen, left = [], {*noticed_by}

    def rank(row: Row) -> tuple[bool, bool, float]:
        slow, large, compilations = costs[row]
        return slow, large, compilations / (len(things[row] & left) or 1e-9)

    while left:
        best = min((row for row in things if things[row] & left), key=rank)
        chosen.append(best)
        left -= things[best]
    return chosen


def rows_for_mutants(chosen: Collection[Row], others: Iterable[Row]) -> list[Row]:
    """Return the rows to add for the mutants that the chosen rows do not notice and another row does."""
    added: list[Row] = []
    for mutant in (mutant for mutant in list_mutants() if mutant.name not in EQUIVALENTS):
        try:
            backend = mutant.module().Reference()
        except Exception:
            continue
        for row in chain(chosen, added, others):
            fails = False
            with time_limit(MAX_SECONDS) as late:
                fails = fails_on(row, backend)
            if late or fails:
                if row not in chosen and row not in added:
                    print(f"{mutant.name}: {row.id}{' (endless)' * bool(late)}", file=sys.stderr)
                    added.append(row)
                break
    return added


# ── drawn rows ────────────────────────────────────────────────────────────────────────────────────


def pairs_of_rows(suite: Suite) -> Any:
    """Return for each combination which values of two factors meet in it, as a table of flags."""
    factors, numbers, rows = Factors(suite.spec), dict[tuple[str, ...], int](), []
    pairs = {
        design.name: sorted({(group[0], other) for group in design.groups for other in group[1:]})
        for design in factors.designs
    }
    for call, chosen in read_combinations(factors):
        values = {**chosen, **find_factors(call)}
        design = factors.designs["broken" in values]
        met = [(design.name, a, values[a], b, values[b]) for a, b in pairs[design.name]]
        rows.append([numbers.setdefault(each, len(numbers)) for each in met])
    table = np.zeros((len(rows), len(numbers)), bool)
    for row, columns in zip(table, rows, strict=True):
        row[columns] = True
    return table


def numbers_of_combinations() -> list[int]:
    """Return the numbers of the drawn rows that are combinations."""
    return [number for number in range(count_drawn_rows()) if number % SEQUENCE_EVERY != FIRST_SEQUENCE]


def choose_drawn(
    suite: Suite, costs: Mapping[int, int], chosen: Collection[int], compilations: int
) -> tuple[list[int], int, int]:
    """Add drawn rows to chosen ones, by number; return all, the pairs of values that meet in them, and in every row."""
    table, numbers = pairs_of_rows(suite), numbers_of_combinations()
    weights = np.array([costs.get(number, sys.maxsize) for number in numbers])
    drawn, left = [*chosen], table.any(axis=0)
    total = int(left.sum())
    left &= ~table[[number in drawn for number in numbers]].any(axis=0)
    while left.any() and (gains := (table @ left.astype(np.float32)) / weights * (weights <= compilations)).any():
        best = int(gains.argmax())
        drawn.append(numbers[best])
        compilations -= int(weights[best])
        left &= ~table[best]
    return sorted(drawn), total - int(left.sum()), total


def main() -> int:
    suite = load_suite()
    every, drawn = choose_rows_to_run(plan_of(suite).rows), drawn_rows(suite)
    every = [row for row in every if not row.case.pause_ms and row.case.times <= MAX_CALLS]
    costs = {row: cost_of(row) for row in (*every, *drawn)}
    firsts = [row for row in every if row.first is None and costs[row][:2] == (False, False)]
    others = sorted({*every} - {*firsts}, key=lambda row: (costs[row], row.id))
    in_reserve = [row for row in (*others, *drawn) if costs[row][2] <= MAX_COMPILATIONS_OF_ROW]
    in_reserve.sort(key=lambda row: costs[row][2])
    noticed_by = dict(rows_with_each_belief(firsts, in_reserve))
    unnoticed = [name for name, rows in noticed_by.items() if not rows]
    rules = dict(rows_with_each_rule(suite, {row.id: row for row in firsts}))
    chosen = cover({name: rows for name, rows in (noticed_by | rules).items() if rows}, costs)
    of_one_type = [row for row in others if row.first is None]  # the reference treats all alike
    chosen += rows_for_mutants(chosen, [*sorted(firsts, key=lambda row: costs[row]), *of_one_type])
    used = sum(costs[row][2] for row in chosen)
    numbers = {row: number[1] for row in drawn if (number := parse_drawn_id(row.id))}
    few, met, total = choose_drawn(
        suite,
        {number: costs[row][2] for row, number in numbers.items()},
        [numbers[row] for row in chosen if row in numbers],
        MAX_COMPILATIONS - used,
    )
    names = [row.id for row in every if row in {*chosen}]
    print(f"{len(names)} rows, {len(few)} drawn rows, {met} of {total} pairs; {used} compilations", file=sys.stderr)
    listed = ",\n  ".join(map(json.dumps, names))
    facts = {"drawn": few, "pairs": {"met": met, "of": total}, "unnoticed": unnoticed}
    parts = [f'"rows": [\n  {listed}\n ]', *(f'"{name}": {json.dumps(fact)}' for name, fact in facts.items())]
    (find_cases_folder() / QUICK_FILE).write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
