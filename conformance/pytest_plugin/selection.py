"""Read a pytest command line: the folders of the suite, the target, and the rows that arguments name."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

import pytest

from ..cli.arguments import Stop
from ..cli.request import check_names
from ..evidence.results import Target
from ..plan.rows import Plan
from ..system.text import describe_unknown

_FOLDER = "cases"


def suite_folder(config: pytest.Config) -> Path | None:
    """Return the folder of --conformance-suite; in the option it becomes absolute, for workers of xdist."""
    if config.option.conformance_suite is None:
        return None
    folder: Path = config.invocation_params.dir / config.option.conformance_suite
    config.option.conformance_suite = str(folder)
    return folder


def target(plan: Plan, option: Any) -> Target:
    names = {what: getattr(option, f"conformance_{what}") or () for what in ("operation", "document", "type")}
    check_names(plan.suite.spec, names["operation"], names["type"], names["document"])
    return Target(
        tuple(names["operation"]), tuple(names["document"]), tuple(names["type"]), large=bool(option.conformance_large)
    )


def select_named_rows(plan: Plan, config: pytest.Config, layers: Iterable[Path]) -> frozenset[str] | None:
    """Return the ids of the rows that arguments name; None if none do. Leave pytest the arguments that name tests."""
    here = config.invocation_params.dir
    if config.args_source.name != "ARGS":  # nobody named tests, so `testpaths` and the working directory do not count
        config.args[:] = []
        return None
    files = {row.case.file for row in plan.rows}
    rows: set[str] = set()
    others: list[str] = []
    for arg in config.args:
        path, _, rest = arg.partition("::")
        files_here = _files_of(path, files, layers, here)
        chosen = [r for r in plan.rows if r.case.file in files_here]
        if not files_here:
            others.append(arg)
        elif ids := {r.id for r in chosen if rest in ("", r.case.id, r.id)}:
            rows |= ids
        else:
            names = {r.id if "[" in rest else r.case.id for r in chosen}
            hint = "pytest --adapter … --collect-only -q"
            raise Stop(f"{path}: {describe_unknown('case', rest, sorted(names), hint)}")
    if not rows:
        return None
    config.args[:] = others
    return frozenset(rows)


def _files_of(path: str, files: Set[str], layers: Iterable[Path], here: Path) -> Set[str]:
    """Return the files of the suite that a path names: one of them, or all in a folder of cases."""
    plain = path.replace(os.sep, "/").removeprefix("./").rstrip("/")
    if plain in files:
        return {plain}
    if plain == _FOLDER and not (here / path).is_dir():
        return files
    for folder in layers:
        if _same(here / path, folder):
            return files & {f"{folder.name}/{file.name}" for file in folder.glob("*.yaml")}
        if plain.endswith(".yaml") and _same((here / path).parent, folder):
            return files & {f"{folder.name}/{Path(path).name}"}
    return set()


def _same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.resolve() == other.resolve()
    return False
