"""What options and arguments of a pytest command line ask of the suite: which one, judged how, and which rows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

import pytest

from ..certify.evidence import Target
from ..cli.arguments import Usage, folder_given, unknown
from ..plan.rows import Plan

_FOLDER = "cases"
_OPTIONS = {"spec": "--conformance-spec", "cases": "--conformance-cases"}


def folders(config: pytest.Config) -> tuple[Path | None, Path | None]:
    """The folders of specification and cases; in the options they become paths that hold for every worker."""
    given: list[Path | None] = []
    for what, option in _OPTIONS.items():
        value = getattr(config.option, f"conformance_{what}")
        given.append(None if value is None else folder_given(option, config.invocation_params.dir / value))
        if value is not None:
            setattr(config.option, f"conformance_{what}", str(given[-1]))
    spec, cases = given
    return spec, cases


def words(option: Any) -> list[str]:
    """The folders as they are given on a command line."""
    given = ((name, getattr(option, f"conformance_{what}")) for what, name in _OPTIONS.items())
    return [word for name, value in given if value is not None for word in (name, value)]


def target(plan: Plan, option: Any) -> Target:
    """What the session has to show."""
    spec = plan.suite.spec
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}

    def given(what: str, known: Iterable[str]) -> tuple[str, ...]:
        names = tuple(getattr(option, f"conformance_{what}") or ())
        for name in names:
            if name not in known:
                raise Usage(unknown(what, name, sorted(known)))
        return names

    return Target(
        given("operation", spec.operations),
        given("document", spec.documents),
        given("type", types),
        large=bool(getattr(option, "conformance_large", False)),
    )


def named(plan: Plan, config: pytest.Config, layers: Iterable[Path]) -> frozenset[str] | None:
    """The ids of the rows that the arguments name, which are taken out of pytest's; None where they name none."""
    here = config.invocation_params.dir
    if config.args_source.name == "TESTPATHS":
        own = Path(__file__).parents[1] / "tests"
        config.args[:] = [arg for arg in config.args if not _same(here / arg, own)]
        return None
    files = {row.case.file for row in plan.rows}
    rows: set[str] = set()
    others: list[str] = []
    for arg in config.args:
        path, _, rest = arg.partition("::")
        meant = _meant(path, files, layers, here)
        chosen = [r for r in plan.rows if r.case.file in meant]
        if not meant:
            others.append(arg)
        elif rows_named := {r.id for r in chosen if rest in ("", r.case.id, r.id)}:
            rows |= rows_named
        else:
            names = {r.id if "[" in rest else r.case.id for r in chosen}
            hint = "pytest --adapter … --collect-only -q"
            raise Usage(f"{path}: {unknown('case', rest, sorted(names), hint)}")
    if not rows:
        return None
    config.args[:] = others
    return frozenset(rows)


def _meant(path: str, files: Set[str], layers: Iterable[Path], here: Path) -> Set[str]:
    """The files of the suite that a path means: one of them by name, or a folder of cases, or a file in one."""
    plain = path.replace(os.sep, "/").removeprefix("./").rstrip("/")
    if plain in files:
        return {plain}
    if plain == _FOLDER and not (here / path).is_dir():
        return files
    for folder in layers:
        if _same(here / path, folder):
            return files & {f"{folder.name}/{each.name}" for each in folder.glob("*.yaml")}
        if plain.endswith(".yaml") and _same((here / path).parent, folder):
            return files & {f"{folder.name}/{Path(path).name}"}
    return set()


def _same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.resolve() == other.resolve()
    return False
