"""Read adapters/faults.yaml: the known faults of the bundled backends."""

from __future__ import annotations

from pathlib import Path

from ..model import Expression, KnownFault, Place, Problem
from ..system.files import adapters_folder
from .schema import explained_by_schema, read_file
from .strict_yaml import require

FAULTS = "faults"


@explained_by_schema()
def load_faults(path: Path | None = None) -> tuple[KnownFault, ...]:
    """Return the faults of a file, or the bundled ones; Malformed, with every problem, if the file cannot be used."""
    path = path or adapters_folder() / f"{FAULTS}.yaml"
    content, problems = read_file(path, FAULTS)
    require(problems)
    name = f"{path.parent.name}/{path.name}"
    faults = [
        KnownFault(
            entry["id"], entry["backend"], tuple(entry["versions"]), entry["words"],
            Expression(entry["when"], Place(name, entry.lines["when"])),
        )
        for entry in content["faults"]
    ]  # fmt: skip
    twice = [fault for number, fault in enumerate(faults) if fault.id in {other.id for other in faults[:number]}]
    require([Problem(fault.when.place, f"the id {fault.id!r} occurs twice") for fault in twice])
    return tuple(faults)
