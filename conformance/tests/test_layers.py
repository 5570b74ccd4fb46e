"""Who may import whom: the nouns nothing of ours, commands and hooks everything, and nobody an adapter by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance

PACKAGE = Path(conformance.__file__).parent
RANKS = dict.fromkeys(("types", "model"), 0)
RANKS |= dict.fromkeys(
    ("plan", "run", "select", "conclude", "remote", "session", "nursery", "worker", "backend", "waive", "canary"), 2
)
RANKS |= dict.fromkeys(("certify", "check_cases", "reasons", "mutants", "check_adapter", "check_program"), 2)
RANKS |= dict.fromkeys(("report", "publish", "diff", "verify", "rejudge", "repeat", "shards"), 2)
RANKS |= dict.fromkeys(("sweep", "swept", "pieces", "found", "hunt", "invent", "spread", "tabulate"), 2)
RANKS |= dict.fromkeys(("plugin", "items", "asked", "cli", "commands", "bench", "measured", "__main__"), 3)
RANKS |= dict.fromkeys(("tests",), 4)
ORDINARY = 1
MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix()
    for path in PACKAGE.rglob("*.py")
    if not {"adapters", "cases", "spec", "__pycache__"} & set(path.relative_to(PACKAGE).parts)
)


def imported(module: str) -> Iterator[str]:
    """The parts of the suite that a module imports anywhere in its text, by their name under `conformance`."""
    here = ["conformance", *module.split("/")]
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            prefix = here[: -node.level] if node.level else []
            stem = ".".join([*prefix, *filter(None, [node.module])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("conformance."))


def rank(name: str) -> int:
    return RANKS.get(name, ORDINARY)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_nothing_above_it(module: str) -> None:
    part = module.partition("/")[0]
    above = {name for name in imported(module) if rank(name) > rank(part)}
    assert not above, f"conformance/{module}.py imports {sorted(above)}, which may import it"


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("tests")])
def test_no_module_names_an_adapter(module: str) -> None:
    assert "adapters" not in set(imported(module))
