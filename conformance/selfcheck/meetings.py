"""Count the values of factors that meet in cases/combinations.txt, and find those that can meet and do not.

A call can be made if a line of the file or a case has it. So a new case that is of a new kind asks for new lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..draw.calls import DrawnCall
from ..draw.combinations import COMBINATIONS_FILE, read_combinations
from ..draw.factors import CombinationCodes, Design, Factors, Group, Meetings, Values, find_factors
from ..meaning.contract import Contract, contracts, group_documents
from ..model import Case, Kind, Place, Problem, Suite

_PLACE = Place(f"cases/{COMBINATIONS_FILE}", 1)
_MAX_RANK, _MAX_ELEMENTS, _MAX_LENGTH = 12, 1 << 17, (1 << 31) - 1
"""Limits of the calls of combinations. A shape that arrives as s32 has no longer entries."""
_MAX_NAMED = 4


class GroupCount(NamedTuple):
    """The values of two or three factors."""

    group: Group
    met: int
    missing: tuple[tuple[str, ...], ...]
    """Values that can meet and do not."""


class DesignCount(NamedTuple):
    design: Design
    rows: int
    groups: tuple[GroupCount, ...]

    @property
    def met(self) -> int:
        return sum(each.met for each in self.groups)

    @property
    def missing(self) -> Iterator[tuple[Group, tuple[str, ...]]]:
        return ((each.group, values) for each in self.groups for values in each.missing)


def count_meetings(suite: Suite) -> tuple[DesignCount, ...]:
    factors = Factors(suite.spec)
    differing = group_documents(contracts(suite.spec))
    rows: dict[str, list[Values]] = {design.name: [] for design in factors.designs}
    for call, chosen in read_combinations(factors):
        rows[find_common_kind(differing, call)].append({**chosen, **find_factors(call)})
    known: dict[str, list[Values]] = {design.name: [] for design in factors.designs}
    for call in list_calls_of_cases(suite):
        kind, values = find_common_kind(differing, call), find_factors(call)
        if kind in known and ("broken" in values) == (kind == "illegal"):
            known[kind].append(values)
    return tuple(_count(factors, design, rows[design.name], known[design.name]) for design in factors.designs)


def find_common_kind(differing: Iterable[Contract], call: DrawnCall) -> Kind:
    """Return the kind that a call has under every contract; `unspecified` if there is none."""
    kinds = {contract.meaning(*call).kind for contract in differing}
    return kinds.pop() if len(kinds) == 1 else "unspecified"


def list_calls_of_cases(suite: Suite) -> list[DrawnCall]:
    """Return the single calls of all cases that a combination can have."""
    return list(dict.fromkeys(call for case in suite.cases.values() for call in _list_plain_calls(case)))


def _list_plain_calls(case: Case) -> Iterator[DrawnCall]:
    """Yield the single calls of a case that have the usual form and the sizes of combinations."""
    if case.attributes or case.inputs or case.outputs or case.dst_type or case.shape_rank != 1:
        return
    for step in case.steps:
        (shape, *others), volume = step.shapes, np.prod(step.src, dtype=object)
        ranks_fit = not others and max(len(step.src), len(shape)) <= _MAX_RANK
        if ranks_fit and volume <= _MAX_ELEMENTS and max(map(abs, (*shape, 0))) <= _MAX_LENGTH:
            yield DrawnCall(step.src, shape, step.special_zero[0])


def _count(factors: Factors, design: Design, rows: list[Values], known: list[Values]) -> DesignCount:
    of_call = [{name: row[name] for name in design.of_call} for row in (*rows, *known)]
    possible, codes = Meetings(factors, design, of_call), CombinationCodes(factors, design)
    met = np.zeros(codes.count, bool)
    met[codes.of(np.array([codes.places(row) for row in rows]))] = True
    groups = []
    for group, start in zip(design.groups, codes.starts, strict=True):
        can = possible.table(group)
        meet = met[start : start + can.size].reshape(can.shape)
        missing = tuple(
            tuple(factors.values[name][at] for name, at in zip(group, ats, strict=True))
            for ats in np.argwhere(can & ~meet)
        )
        groups.append(GroupCount(group, int(meet.sum()), missing))
    return DesignCount(design, len(rows), tuple(groups))


def check_meetings(counts: Iterable[DesignCount]) -> Iterator[Problem]:
    """Find the designs with values that can meet and do not."""
    for each in counts:
        missing = list(each.missing)
        if missing:
            named = "; ".join(
                " and ".join(f"{name} {value}" for name, value in zip(group, values, strict=True))
                for group, values in missing[:_MAX_NAMED]
            )
            more = f"; and {len(missing) - _MAX_NAMED:,} more" if len(missing) > _MAX_NAMED else ""
            what = f"{named}{more} can meet on {each.design.name} calls and do not"
            yield Problem(_PLACE, f"{what}; make the file again with `python -m tools.combine`")
