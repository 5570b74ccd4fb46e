"""Read adapters/faults.yaml: the known faults of the bundled backends."""

from __future__ import annotations

from pathlib import Path

from ..model import Expression, KnownFault, Place, Problem
from ..system.files import find_adapters_folder
from .schema import explained_by_schema, read_file
from .strict_yaml import raise_problems

FAULTS = "faults"


@explained_by_schema()
def load_faults(path: Path | None = None) -> tuple[KnownFault, ...]:
    """Return the faults of a file, or the bundled ones; Malformed, with every problem, if the file cannot be used."""
    path = path or find_adapters_folder() / f"{FAULTS}.yaml"
    content, problems = read_file(path, FAULTS)
    raise_problems(problems)
    name = f"{path.parent.name}/{path.name}"
    faults = [
        KnownFault(
            entry["id"], entry["title"], entry["advice"],
            tuple((backend, tuple(versions)) for backend, versions in entry["backends"].items()), tuple(entry["shows"]),
            Expression(entry["when"], Place(name, entry.lines["when"])) if "when" in entry else None,
            tuple(entry.get("rules", ())), tuple(entry.get("facets", ())), entry.get("link"),
        )
        for entry in content["faults"]
    ]  # fmt: skip
    entries = content["faults"]
    twice = [entry for number, entry in enumerate(entries) if entry["id"] in {each["id"] for each in entries[:number]}]
    raise_problems([Problem(Place(name, entry.lines["id"]), f"the id {entry['id']!r} occurs twice") for entry in twice])
    return tuple(faults)
