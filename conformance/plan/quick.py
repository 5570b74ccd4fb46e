"""`--quick`: few rows that notice almost every planted backend. `python -m tools.quick` chooses them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..load.folders import find_cases_folder

QUICK_FILE = "quick.json"
QUICK = "--quick"
"""The option, and what a run with it records as its selection of rows."""


class QuickRows(NamedTuple):
    rows: Sequence[str]
    """The ids of rows of cases, in the order of the plan."""
    drawn: Sequence[int]
    """The numbers of drawn rows."""
    pairs: Mapping[str, int]
    """Values of two factors: how many meet in those drawn rows, of how many that meet in all."""

    unnoticed: Sequence[str]
    """The planted backends that none of these rows notices, because only rows that compile very often do."""

    @property
    def cases(self) -> frozenset[str]:
        return frozenset(row.partition("[")[0] for row in self.rows)


@lru_cache(1)
def quick_rows() -> QuickRows:
    return QuickRows(**json.loads((find_cases_folder() / QUICK_FILE).read_text(encoding="ascii")))
