"""The table of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SLIP = 1.25
"""A ratio that is worse than that of the last release by this factor is marked; less is noise."""


class MeasuredRow(NamedTuple):
    """A measurement that was taken."""

    what: str
    ours: float
    baseline: float
    against: str
    ratio: float
    budget: float | None
    most: float | None
    """The largest ratio that is meant."""
    within: bool | None
    """Whether budget and ratio are kept; None if it has neither."""
    last: float | None = None
    """The ratio of the last release."""
    unit: str = "s"

    @property
    def slips(self) -> bool:
        """Whether the ratio is clearly worse than that of the last release."""
        return self.last is not None and self.ratio > SLIP * self.last


def seconds(value: float) -> str:
    """Return a duration as people say it: 4.1 µs, 23 ms."""
    value = float(f"{value:.3g}")
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def amount(value: float, unit: str) -> str:
    """Return a figure with its unit: 12 ms, 12 ms elapsed, 3.4 MB."""
    if unit == "B":
        return f"{value / 1e6:.3g} MB"
    return seconds(value) + unit.removeprefix("s")


def table(rows: Sequence[MeasuredRow]) -> str:
    """Return the rows under their headings, in columns."""
    lines = [("what", "ours", "baseline", "ratio", "last", "budget", "the baseline is")]
    for row in rows:
        limits = [] if row.budget is None else [amount(row.budget, row.unit)]
        limits += [] if row.most is None else [f"{row.most:g}×"]
        verdict = {None: "", True: " kept", False: " exceeded"}[row.within]
        last = "" if row.last is None else f"{row.last:.2f}×{' worse' if row.slips else ''}"
        figures = (amount(row.ours, row.unit), amount(row.baseline, row.unit), f"{row.ratio:.2f}×", last)
        lines.append((row.what, *figures, f"{', '.join(limits)}{verdict}", row.against))
    widths = [max(len(line[column]) for line in lines) for column in range(7)]
    return "\n".join(_align(line, widths) for line in lines)


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(w) if 1 <= n <= 4 else cell.ljust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
