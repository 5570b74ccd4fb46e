"""Read spec/cells.yaml: the calls that exercise rules without a contract, and the cells that no call can fill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..model import Place, Problem, Spec
from ..system.text import describe_unknown
from .folders import layers, spec_folder
from .schema import read_file
from .strict_yaml import require

CELLS = "cells"
DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "rank": ("1", "2-4", "5-8", "9-12"),
    "shape": ("static", "late"),
    "elements": ("few", "many"),
    "arrangement": ("single", "chain", "sequence", "declared"),
}
"""The classes of each dimension of a cell."""
Classes = Mapping[str, tuple[str, ...]]
"""Some classes by dimension, such as {"rank": ("1",)}; a dimension that is not named has all its classes."""


class Shown(NamedTuple):
    """Calls that exercise some rules."""

    rules: tuple[str, ...]
    by: Literal["legal", "illegal", "any"]
    condition: str | None
    """On src of the first node, and on shape and special_zero of the last."""
    classes: Classes
    place: Place


class Exemption(NamedTuple):
    """Cells of some rules that no call can fill, and the reason."""

    rules: tuple[str, ...]
    classes: Classes
    because: str
    place: Place


class CellRules(NamedTuple):
    """The content of cells.yaml."""

    shown: tuple[Shown, ...]
    exempt: tuple[Exemption, ...]


def load_cells(folder: Path, spec: Spec) -> CellRules | None:
    """Return what the specification says about cells; None if it has no cells.yaml. Malformed, if it has problems."""
    first = layers(folder, spec_folder())[0]
    path = first / f"{CELLS}.yaml"
    if not path.is_file():
        return None
    content, problems = read_file(path, CELLS)
    require(problems)
    name = f"{first.name}/{path.name}"
    problems = [
        Problem(Place(name, entry.lines["rules"]), describe_unknown("rule", rule, spec.rules))
        for entry in (*content["shown"], *content["exempt"])
        for rule in entry["rules"]
        if rule not in spec.rules
    ]
    require(problems)
    return CellRules(
        tuple(
            Shown(
                tuple(entry["rules"]), entry["by"], entry.get("if"), _classes(entry.get("in", {})),
                Place(name, entry.lines.get("if", entry.line)),
            )
            for entry in content["shown"]
        ),
        tuple(
            Exemption(tuple(entry["rules"]), _classes(entry["cells"]), entry["because"], Place(name, entry.line))
            for entry in content["exempt"]
        ),
    )  # fmt: skip


def _classes(entry: Mapping[str, Any]) -> Classes:
    return {dimension: tuple(classes) for dimension, classes in entry.items()}
