"""Functions that tests call again and again with equal arguments: they remember what they returned.

Files are not left out: a file counts by its bytes, so that a folder that a test changes is read again.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from conformance.cli import sweep
from conformance.draw import nonce
from conformance.isolate.process.launch import import_code
from conformance.isolate.protocol.opened import OpenedFiles
from conformance.load import cases as load_cases
from conformance.load import schema as load_schema
from conformance.load import spec as load_spec
from conformance.load.folders import find_folders, find_spec_folder, layers
from conformance.load.locks import read_lock
from conformance.model import Malformed, Spec, Suite
from conformance.plan import rows as plan_rows
from conformance.plan.rows import Plan, Row
from conformance.runner import planted_backends
from conformance.selfcheck import mutants
from conformance.site import playground
from conformance.verdict import cause

MAX_VALUES = 40
"""Values that are remembered of each function; the first goes first."""
MIN_LARGE_ROWS = 1000
"""Rows of a plan with steps that take much memory."""


def install() -> None:
    """Put the remembering functions in place, before other modules import them by name."""
    _remember(load_spec, "load_spec", _key_of_spec)
    setattr(load_cases, "load_spec", load_spec.load_spec)  # noqa: B010  # mypy knows no such name
    _remember(load_cases, "with_cases", _key_of_suite, lambda suite, _, folder: replace(suite, folder=folder))
    _remember(load_schema, "check_bundled_files", _key_of_bundled)
    _remember(plan_rows, "plan_of", _identify, lambda plan, suite: replace(plan, suite=suite))
    _free_steps_of_large_plans(plan_rows.plan_of)
    _remember(cause, "load_faults", lambda: ())
    _remember(nonce, "draw_nonce_cases", lambda suite, compiled, nonce: (*_identify(suite), nonce))
    _remember(playground, "render_code", lambda spec, language: (id(spec), language))
    _remember(planted_backends, "_run_planted_backend", _key_of_planted)
    _remember(sweep, "_sweep_planted_backend", lambda r, name: (name, r.ways[:1], r.suite, r.digest))
    _remember(mutants, "list_mutants", lambda: ())
    from conformance.cli import check  # now that what it imports by name is in place

    _remember(check, "_check_cases", lambda spec, *given: None if any(given) else (id(spec), *_key_of_bundled()))
    _keep_byte_code()


def _remember(
    module: ModuleType, name: str, key_of: Callable[..., Any], fit: Callable[..., Any] = lambda value, *_: value
) -> None:
    """Let a function return its first value again if the key of its arguments is equal; if there is no key, call it.

    `fit` makes of that value the one for arguments that differ in what the key does not have.
    """
    plain, memory = getattr(module, name), dict[Any, Any]()

    @wraps(plain)
    def remembering(*arguments: Any) -> Any:
        if (key := key_of(*arguments)) is None:
            return plain(*arguments)
        if key not in memory:
            value = plain(*arguments)
            while len(memory) >= MAX_VALUES:
                del memory[next(iter(memory))]
            memory[key] = arguments, value if isinstance(value, int | tuple | Spec | Suite | Plan) else list(value)
        return fit(memory[key][1], *arguments)  # the arguments are kept too, so that no others get their ids

    setattr(module, name, remembering)


def _contents(folder: Path, bundled: Path) -> Any:
    """The folders that one is made of, with the names and bytes of their YAML files; None if they cannot be read."""
    try:
        folders = layers(Path(os.path.abspath(folder)), bundled)
        return tuple(
            (each.name, each == bundled, tuple((path.name, path.read_bytes()) for path in sorted(each.glob("*.yaml"))))
            for each in folders
        )
    except (OSError, Malformed):
        return None


def _key_of_spec(folder: Path | None = None) -> Any:
    return _contents(folder or find_spec_folder(), find_spec_folder())


def _key_of_suite(spec: Spec, folder: Path | None) -> Any:
    bundled = load_cases.find_cases_folder()  # type: ignore[attr-defined]  # tests replace this name
    try:
        found = find_folders(folder)
        files = _contents(found.cases, bundled)
        return files and (id(spec), layers(found.spec, find_spec_folder())[0] == find_spec_folder(), files,
                          tuple(read_lock(bundled)))  # fmt: skip
    except (OSError, Malformed):
        return None


def _key_of_bundled() -> Any:
    return tuple((path, path.read_bytes()) for path in load_schema._find_bundled_files())


def _identify(suite: Suite) -> tuple[Any, ...]:
    return suite.digest, suite.lost, suite.added, suite.whole, id(suite.spec), tuple(map(id, suite.cases.values()))


def _key_of_planted(plan: Plan, planted: Any, by_rule: dict[str, list[Row]], isolation: str, *more: Any) -> Any:
    """The limits make no difference: none of them hangs, and what a test allows its own backend is short."""
    rows = (row for rule in planted.rules for row in by_rule.get(rule, ()))
    return id(plan.suite.spec), planted, tuple((row.id, id(row.case)) for row in rows), isolation, more[-1]


def _free_steps_of_large_plans(plan_of: Callable[[Suite], Plan]) -> None:
    """Drop the steps of a large plan with the next plan: they take much memory, and are lowered again when needed."""
    large: list[Plan] = []

    @wraps(plan_of)
    def freeing(suite: Suite) -> Plan:
        plan = plan_of(suite)
        if large and large[0].rows is not plan.rows:
            for row in large.pop().rows:
                row.free_steps()
        if len(plan.rows) > MIN_LARGE_ROWS and not large:
            large.append(plan)
        return plan

    plan_rows.plan_of = freeing


def _keep_byte_code() -> None:
    """Compile the suite and NumPy once for all certified runs: each would do so again, half of its start."""
    plain, owner, temporary = getattr(OpenedFiles, "env").fget, os.getpid(), tempfile.gettempdir()  # noqa: B009
    python = sys.executable  # the test that asks first may have replaced it

    @cache
    def compiled() -> Path:
        folder = Path(tempfile.mkdtemp(dir=temporary))
        atexit.register(lambda: shutil.rmtree(folder, True) if os.getpid() == owner else None)
        code = f"{import_code()}import conformance.isolate.protocol.worker, conformance.adapters.reference, ml_dtypes"
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([python, "-c", code], env=variables, check=True)
        return folder

    def env(opened: OpenedFiles) -> Any:
        if not (opened.folder / "pycache").exists():
            shutil.copytree(compiled(), opened.folder / "pycache", copy_function=os.link)
        return plain(opened)

    setattr(OpenedFiles, "env", property(env))  # noqa: B010
