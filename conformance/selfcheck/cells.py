"""The table of cells: for each rule, the kinds of calls by which the cases test it, and the kinds that are missing.

A cell is a rule and one class of each dimension:

- rank: the largest rank of src and of the shapes; a call of rank 0 alone, or above 12, is in no cell;
- shape: static, as an attribute or a constant, or late, when it arrives with run;
- elements: few or many elements of src. 4,096 are many: more than a page of memory in every type, and more than the
  blocks and tiles that backends treat at once;
- arrangement: in a chain; in a sequence, where one program takes several calls or several programs run at the same
  time; with a declaration of dst; single if none of these. A step may have several arrangements.

A step fills the cells of the rules that it exercises (`exercise.py`). Rows of large tensors fill none, because a usual
run skips them. Rows of further element types repeat the same calls, and fill none either. A case can fill every cell
that spec/cells.yaml does not exempt with a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from ..load.cells import DIMENSIONS, CellRules, Exemption
from ..model import Case, Problem, Spec, Step
from ..plan.memory import volume_of
from ..plan.rows import Plan, Row
from .exercise import Exercises, rules_to_test

_MIN_MANY_ELEMENTS = 4096
_MAX_CELLS_NAMED = 4


class Cell(NamedTuple):
    """A rule, and one class of each dimension."""

    rule: str
    rank: str
    shape: str
    elements: str
    arrangement: str

    def __str__(self) -> str:
        among = {"single": "alone", "chain": "in a chain", "sequence": "in a sequence", "declared": "with declared dst"}
        return f"rank {self.rank}, {self.shape} shape, {self.elements} elements, {among[self.arrangement]}"


class CellTable(NamedTuple):
    """The cells of all rules."""

    cases: Mapping[Cell, Sequence[str]]
    """The cases of every cell; none if it is empty."""
    exempt: Mapping[Cell, Exemption]

    @property
    def fillable(self) -> list[Cell]:
        """The cells that a call can fill."""
        return [cell for cell in self.cases if cell not in self.exempt]

    @property
    def empty(self) -> list[Cell]:
        """The cells that a call can fill, and no case does."""
        return [cell for cell in self.fillable if not self.cases[cell]]


def table_of(plan: Plan, about: CellRules) -> CellTable:
    """Return the table of the bundled cases; cases and documents that a folder adds do not count."""
    spec = plan.suite.spec
    cases: dict[Cell, dict[str, None]] = {cell: {} for cell in _cells(rules_to_test(spec), {})}
    exercises = Exercises(spec, about.shown)
    for row in _rows(plan):
        for cell in _cells_of(row, exercises):
            cases[cell][row.case.id] = None
    exempt = {cell: entry for entry in about.exempt for cell in _cells(entry.rules, entry.classes) if cell in cases}
    return CellTable({cell: tuple(names) for cell, names in cases.items()}, exempt)


def problems_with_cells(table: CellTable, spec: Spec, about: CellRules) -> Iterator[Problem]:
    """Find rules with empty cells, and exemptions of cells that a case fills."""
    empty: dict[str, list[Cell]] = {}
    for cell in table.empty:
        empty.setdefault(cell.rule, []).append(cell)
    for name, cells in empty.items():
        listed = "; ".join(map(str, cells[:_MAX_CELLS_NAMED]))
        rest = len(cells) - _MAX_CELLS_NAMED
        more = f"; and {rest} more, see `conformance list cells`" if rest > 0 else ""
        what = f"no case exercises it at {listed}{more}; write one, or give the reason in spec/cells.yaml"
        yield Problem(spec.rules[name].place, f"rule {name!r}: {what}")
    for entry in about.exempt:
        filled = [cell for cell in _cells(entry.rules, entry.classes) if table.cases.get(cell)]
        if filled:
            what = f"{table.cases[filled[0]][0]} exercises {filled[0].rule!r} at {filled[0]}; exempt fewer cells"
            yield Problem(entry.place, what)


def _cells(rules: Iterable[str], classes: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    for rule in rules:
        for names in product(*(classes.get(dimension, every) for dimension, every in DIMENSIONS.items())):
            yield Cell(rule, *names)


# ── the cells that a row fills ────────────────────────────────────────────────────────────────────


def _rows(plan: Plan) -> Iterator[Row]:
    """Yield one row of each case, operation and way of passing shape."""
    seen = set()
    for row in plan.rows:
        key = (row.case.id, row.operation, row.given)
        if key not in seen and not row.case.large and row.case.id not in plan.suite.added:
            seen.add(key)
            yield row


def _cells_of(row: Row, exercises: Exercises) -> Iterator[Cell]:
    programs = Counter(_program(row.case, step) for step in row.case.steps)
    by_classes: dict[_StepClasses, set[str]] = {}
    for at, step in enumerate(row.case.steps):
        classes = _classes_of(row, step, programs[_program(row.case, step)])
        by_classes.setdefault(classes, set()).update(exercises.find(row, at, classes._asdict()))
    for classes, rules in by_classes.items():
        yield from _cells(rules, classes._asdict())


class _StepClasses(NamedTuple):
    """The classes of a step in each dimension of DIMENSIONS; no rank if it is in no cell."""

    rank: tuple[str, ...]
    shape: tuple[str, ...]
    elements: tuple[str, ...]
    arrangement: tuple[str, ...]


def _program(case: Case, step: Step) -> object:
    """Return the same for the steps that one program takes: all, or those of equal ranks if `each` makes them."""
    return (len(step.src), *map(len, step.shapes)) if case.generated else None


def _classes_of(row: Row, step: Step, calls: int) -> _StepClasses:
    rank = max(len(dims) for dims in (step.src, *step.shapes))
    among = calls > 1 or row.case.concurrent > 1
    around = {"chain": len(step.shapes) > 1, "sequence": among, "declared": row.case.declared is not None}
    return _StepClasses(
        tuple(name for name in DIMENSIONS["rank"] if _is_within(rank, name)),
        ("late" if row.given == "runtime" else "static",),
        ("many" if volume_of(step.src) >= _MIN_MANY_ELEMENTS else "few",),
        tuple(name for name, holds in around.items() if holds) or ("single",),
    )


@cache
def _is_within(rank: int, name: str) -> bool:
    """A class of ranks is named `2-4` or `1`."""
    least, _, most = name.partition("-")
    return int(least) <= rank <= int(most or least)
