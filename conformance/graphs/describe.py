"""What a node means, in words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .decide import Decision, Judged, Tried
from .lengths import describe_tries, format_dims
from .nodes import Bound


class CheckedFile(NamedTuple):
    """A file, the lengths that were tried, and its nodes."""

    path: Path
    tries: Sequence[Bound]
    nodes: Sequence[Judged]


def describe(file: CheckedFile, decision: Decision, tries: Sequence[Tried]) -> str:
    """Say what a node means and for which lengths: `illegal for x[0] = 2..8: same-volume`."""
    bounds = [tried.bound for tried in tries]
    several = len(file.tries) > 1
    if several and len(bounds) == len(file.tries):
        which = " for every length tried"
    else:
        which = f" for {describe_tries(bounds, file.tries)}" if several else ""
    why = ", ".join(decision.rules) or decision.why
    return f"{decision.kind}{which}{f': {why}' if why else ''}"


def describe_call(tried: Tried) -> str:
    """Write the call of a node as far as it is known."""
    node = tried.node
    flag = "?" if node.special_zero is None else str(node.special_zero).lower()
    text = f"{node.src_type or '?'}{format_dims(node.src)} by {format_dims(node.shape)}, special_zero {flag}"
    declared = f", declared {format_dims(node.declared)}" if node.declared is not None else ""
    return f"{text}{declared}{'' if tried.dst is None else f' → {format_dims(tried.dst)}'}"
