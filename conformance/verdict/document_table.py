"""The conclusion of a run as a table: a line for each document, and what limits these verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import ERROR, WAIVED
from ..model.verdicts import Severity
from ..system.exit_codes import VOIDS_VERDICTS
from ..system.groups import group_pairs
from ..system.terminal import paint, table, wrap
from ..system.text import join_names
from .conclude import Conclusion
from .label import count_severities
from .standing import Standing, count_tests, describe_gap

_CELLS: Mapping[str, str] = {"conforms": "yes", "does not conform": "no"}
"""The words that answer the heading; other words are as they are."""
_HEADINGS: Mapping[Severity, str] = {
    "ends the process": "end process",
    "wrong answer": "wrong",
    "rejects a legal call": "reject",
    "accepts an illegal call": "accept",
}
"""Verbs for a number of tests, short enough for 80 columns."""


class DocumentTable(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    limits: tuple[str, ...]
    """Why something is incomplete, and what was not claimed, not asked for or not run."""
    first_number: int
    """The first column of numbers."""


def tabulate_documents(conclusion: Conclusion) -> DocumentTable:
    """Say of each document whether the backend conforms for each type, and how many of its tests do what.

    Nothing is said under an exit code that voids all verdicts.
    """
    groups = group_pairs((standing.document, standing) for standing in conclusion.standings)
    types = tuple(dict.fromkeys(standing.type for standing in conclusion.standings))
    numbers = {document: _count(group) for document, group in groups.items()}
    columns = [name for name in _count(()) if any(each[name] for each in numbers.values())]
    columns = columns[:1] if conclusion.exit_code in VOIDS_VERDICTS else columns
    rows = []
    for document, group in groups.items():
        words = {standing.type: _CELLS.get(standing.name, standing.name) for standing in group}
        cells = (words.get(type_, "not claimed") for type_ in types)
        rows.append((document, *cells, *(f"{numbers[document][name]:,}" for name in columns)))
    # a limit that holds for every document is said once, without their names
    limits = group_pairs(
        (limit, name) for name, group in groups.items() for limit in _describe_limits(conclusion, group)
    )
    of_some = (f"{join_names(names)}: {text}" for text, names in limits.items() if len(names) < len(groups))
    of_all = (text for text, names in limits.items() if len(names) == len(groups))
    return DocumentTable(("conforms to", *types, *columns), tuple(rows), (*of_some, *of_all), 1 + len(types))


def lay_out_documents(conclusion: Conclusion) -> Iterator[str]:
    """Yield the table for a terminal, and each limit below it; nothing if no document was in the target."""
    said = tabulate_documents(conclusion)
    if said.rows:
        numbers = range(said.first_number, len(said.header))
        rows = [(f"  {name}", *map(_paint, cells)) for name, *cells in said.rows]
        yield table(rows, (f"  {said.header[0]}", *said.header[1:]), numbers)
    for limit in said.limits:
        yield wrap(limit, 2, 4)


def _paint(cell: str) -> str:
    styles = {"yes": "green", "no": "red", "incomplete": "yellow", "nothing shown": "yellow", "not claimed": "dim"}
    return paint(styles[cell], cell) if cell in styles else cell


def _count(group: Sequence[Standing]) -> dict[str, int]:
    counts, severities = count_tests(group), count_severities(group)
    return {
        "tests": sum(counts.values()),
        **{heading: severities.get(severity, 0) for severity, heading in _HEADINGS.items()},
        "adapter errs": counts.get(ERROR, 0),
        WAIVED: counts.get(WAIVED, 0),
    }


def _describe_limits(conclusion: Conclusion, group: Sequence[Standing]) -> Iterator[str]:
    if gaps := [standing for standing in group if standing.name == "incomplete"]:
        types = "" if len(gaps) == len(group) else f" for {join_names([standing.type for standing in gaps])}"
        yield f"incomplete{types}: {describe_gap(gaps)}"
    if conclusion.scope:
        yield conclusion.scope.strip()
    yield from conclusion.limits[group[0].document]
