"""Pure functions that tests call again and again with equal arguments, answered from memory the second time.

Reading files is not left out: a file counts by its bytes, so that a folder that a test changes is read anew.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any

from conformance import report
from conformance.cli import sweep as cli_sweep
from conformance.draw import challenge as plan_challenge
from conformance.draw.calls import Draw
from conformance.evidence.folder import REPORTS
from conformance.evidence.results import Evidence
from conformance.hunt import hunt as explore_hunt
from conformance.isolate.process.launch import DEFAULT_LIMITS, Limits
from conformance.load import cases as load_cases
from conformance.load import cells as load_cells
from conformance.load import schema
from conformance.load import spec as load_spec
from conformance.load.folders import cases_folder, layers, spec_folder
from conformance.load.strict_yaml import MAX_FILE_BYTES
from conformance.model import Case, Malformed, Problem, Spec, Suite
from conformance.model.cases import UnreadCase
from conformance.plan import rows as plan_rows
from conformance.plan.rows import Plan, Row
from conformance.runner import planted_backends as canary
from conformance.selfcheck import cells, check_cases
from conformance.selfcheck import mutants as prove_mutants
from conformance.sweep.blocks import SweepRequest
from conformance.system.files import read_bytes
from conformance.verdict import conclude
from conformance.verdict.conclude import Conclusion

MOST = 40
"""Values that are remembered of each function; the one that was asked for longest ago goes first."""


def install() -> None:
    """Put the remembering functions in place, before other modules import them by name."""
    read_file = _remembering_files(schema.read_file)
    for module, name, remember in (
        (load_spec, "read_file", lambda _: read_file),
        (load_cells, "read_file", lambda _: read_file),
        (load_spec, "load_spec", _remembering_spec),
        (load_cases, "load_spec", lambda _: load_spec.load_spec),
        (load_cases, "with_cases", _remembering_suite),
        (load_cases, "_load_file", _remembering_cases),
        (load_cases, "_find_unread", _remembering_unread),
        (plan_rows, "plan_of", _remembering_rows),
        (plan_challenge, "fresh_cases", _remembering_fresh),
        (canary, "_run_planted_backend", _remembering_counts),
        (cli_sweep, "_count_failures", _remembering_swept),
        (explore_hunt, "Draw", lambda _: str),
        (explore_hunt, "draw_case", _remembering_draws),
        (explore_hunt, "rows_of", _remembering_hunted),
        (conclude, "digest_of", _remembering_bundled),
        (report, "texts", _remembering_reports),
        (cells, "table_of", partial(_remembering_by_plan, name=lambda about: about)),
        (prove_mutants, "reference_mutants", lambda find: cache(lambda: tuple(find()))),
        (check_cases, "problems_with_expectations", _listing),
        (check_cases, "reference_problems", partial(_listing, name=type)),
        (check_cases, "_same_call", _listing),
        (check_cases, "_rows", _listing),
        (check_cases, "_witnesses", _listing),
    ):
        setattr(module, name, remember(getattr(module, name)))


_SMALL = 1000
"""Rows of a plan whose steps take little memory."""


class _Memory(OrderedDict[Any, Any]):
    """At most some values by their keys."""

    def __init__(self, most: int = MOST) -> None:
        super().__init__()
        self.most = most

    def __getitem__(self, key: Any) -> Any:
        self.move_to_end(key)
        return super().__getitem__(key)

    def keep(self, key: Any, value: Any) -> Any:
        while len(self) >= self.most:
            self.popitem(last=False)
        self[key] = value
        return value


def _contents(folders: Iterable[Path]) -> tuple[Any, ...]:
    """The name of each folder with the names and bytes of its YAML files."""
    return tuple(
        (folder.name, tuple((path.name, path.read_bytes()) for path in sorted(folder.glob("*.yaml"))))
        for folder in folders
    )


_Read = Callable[[Path, str], tuple[Any, list[Problem]]]


def _remembering_files(read: _Read) -> _Read:
    """Remember the content of a file without problems, which nobody changes: a test spoils one of several files."""
    memory = _Memory()

    @wraps(read)
    def read_file(path: Path, schema: str) -> tuple[Any, list[Problem]]:
        try:
            key = path.parent.name, path.name, schema, read_bytes(path, MAX_FILE_BYTES)
        except OSError:
            return read(path, schema)
        if key not in memory:
            content, problems = read(path, schema)
            if problems:
                return content, problems
            memory.keep(key, content)
        return memory[key], []

    return read_file


def _remembering_spec(load: Callable[[Path | None], Spec]) -> Callable[[Path | None], Spec]:
    memory = _Memory()

    @wraps(load)
    def load_spec(folder: Path | None = None) -> Spec:
        try:
            key = _contents(layers(folder and Path(os.path.abspath(folder)), spec_folder()))
        except (OSError, Malformed):
            return load(folder)
        spec: Spec = memory[key] if key in memory else memory.keep(key, load(folder))
        return spec

    return load_spec


def _remembering_suite(load: Callable[[Spec, Path, Path], Suite]) -> Callable[[Spec, Path, Path], Suite]:
    """Remember the suite of a specification, by all that it is made of and by which folders are the bundled ones."""
    memory = _Memory(12)

    @wraps(load)
    def with_cases(spec: Spec, spec_path: Path, cases_path: Path) -> Suite:
        bundled = load_cases.cases_folder()  # type: ignore[attr-defined]  # tests replace this name
        try:
            folders = layers(cases_path, bundled)
            first = layers(spec_path, spec_folder())[0] == spec_folder(), folders[0] == bundled
            key = id(spec), first, _contents(folders), tuple(load_cases.read_lock(bundled))
        except (OSError, Malformed):
            return load(spec, spec_path, cases_path)
        suite: Suite = memory[key] if key in memory else memory.keep(key, load(spec, spec_path, cases_path))
        return suite

    return with_cases


_Load = Callable[[Path, bool, Spec, dict[str, Case]], list[Problem]]


def _remembering_cases(load: _Load) -> _Load:
    """Remember the cases of a file without problems, which depend on its bytes and on the ids in the specification."""
    memory = _Memory(2000)

    @wraps(load)
    def _load_file(path: Path, extends: bool, spec: Spec, cases: dict[str, Case]) -> list[Problem]:
        try:
            key = path.parent.name, path.name, path.read_bytes(), extends, tuple(spec.rules), tuple(spec.documents)
        except OSError:
            return load(path, extends, spec, cases)
        if key not in memory:
            own: dict[str, Case] = {}
            if load(path, extends, spec, own):
                return load(path, extends, spec, cases)
            memory.keep(key, own)
        if memory[key].keys() & cases.keys():
            return load(path, extends, spec, cases)
        cases.update(memory[key])
        return []

    return _load_file


def _remembering_unread(find: Callable[[Path, Spec], dict[str, UnreadCase]]) -> Any:
    """Remember the cases of a file that is known to be right, and each of them once it was read."""
    memory = _Memory(200)

    @wraps(find)
    def _find_unread(path: Path, spec: Spec) -> dict[str, UnreadCase]:
        key = id(spec), path.parent.name, path.name, path.read_bytes()
        if key not in memory:
            unread = {name: case._replace(read=cache(case.read)) for name, case in find(path, spec).items()}
            memory.keep(key, (spec, unread))
        cases: dict[str, UnreadCase] = memory[key][1]
        return cases

    return _find_unread


def _remembering_rows(plan: Callable[[Suite], Plan]) -> Callable[[Suite], Plan]:
    """Remember the rows of a case under a specification, and those of a suite, not of equal ones.

    The steps of a large plan are dropped with the next plan: they take much memory, and whoever gets the rows again
    lowers them anew.
    """
    memory, of_cases = _Memory(6), _Memory(5000)
    before: list[tuple[Row, ...]] = []

    def rows_of(suite: Suite) -> Iterable[Row]:
        compiled = plan_rows.contracts(suite.spec)  # type: ignore[attr-defined]
        for case in suite.cases.values():
            key = id(suite.spec), id(case)
            if key not in of_cases:
                of_cases.keep(key, (suite.spec, tuple(plan_rows.rows_of([case], suite.spec, compiled))))
            yield from of_cases[key][1]

    @wraps(plan)
    def plan_of(suite: Suite) -> Plan:
        key = id(suite.spec), tuple(map(id, suite.cases.values()))
        if key not in memory:
            memory.keep(key, (suite, tuple(rows_of(suite))))  # the suite too, so that nobody else gets its id
        rows = memory[key][1]
        if before and before[0] is not rows:
            for row in before.pop():
                row.free_steps()
        if len(rows) > _SMALL and not before:
            before.append(rows)
        return Plan(suite, rows)

    return plan_of


def _remembering_fresh(draw: Callable[..., Iterable[Case]]) -> Callable[..., list[Case]]:
    """Remember the calls that a nonce draws beside the same cases under the same specification."""
    memory = _Memory(12)

    @wraps(draw)
    def fresh_cases(suite: Suite, compiled: Any, nonce: str) -> list[Case]:
        key = id(suite.spec), tuple(map(id, suite.cases.values())), nonce
        if key not in memory:
            memory.keep(key, (suite, list(draw(suite, compiled, nonce))))
        cases: list[Case] = memory[key][1]
        return cases

    return fresh_cases


MOST_DRAWN = 1500
_DRAWN: dict[int, Case] = {}
"""The first cases that hunts drew, by their identity: other hunts of the same seed begin with the same."""


def _remembering_draws(draw: Callable[[Draw, list[str]], Case]) -> Callable[[str, list[str]], Case]:
    """Remember the cases that hunts draw first; a text stands for the draws from it."""
    memory: dict[Any, Case] = {}

    def draw_case(seed: str, types: list[str]) -> Case:
        key = seed, tuple(types)
        case = memory[key] if key in memory else draw(Draw(seed), types)
        if len(memory) < MOST_DRAWN:
            memory[key] = _DRAWN[id(case)] = case
        return case

    return draw_case


def _remembering_hunted(rows: Callable[..., Iterable[Row]]) -> Callable[..., Iterable[Row]]:
    """Remember the rows of these cases, but not of one that a hunt made smaller."""
    memory = _Memory(2 * MOST_DRAWN)

    @wraps(rows)
    def rows_of(cases: list[Case], spec: Spec, compiled: Any) -> Iterable[Row]:
        (case,) = cases
        if id(case) not in _DRAWN:
            return rows(cases, spec, compiled)
        key = id(spec), id(case)
        if key not in memory:
            memory.keep(key, (spec, tuple(rows(cases, spec, compiled))))
        found: tuple[Row, ...] = memory[key][1]
        return found

    return rows_of


def _remembering_bundled(digest_of: Callable[[list[Path]], str]) -> Callable[[list[Path]], str]:
    """Remember the digest of the folders that come along: no test changes these."""
    bundled = [spec_folder(), cases_folder()]
    digest = cache(lambda: digest_of(bundled))
    return wraps(digest_of)(lambda folders: digest() if folders == bundled else digest_of(folders))


_Texts = Callable[..., Mapping[str, str]]


def _remembering_reports(write: _Texts) -> _Texts:
    """Remember the reports of the same rows with equal evidence and conclusion; verifying writes them again."""
    memory = _Memory()

    @wraps(write)
    def texts(
        plan: Plan, evidence: Evidence, conclusion: Conclusion, names: Collection[str] = REPORTS, packed: bytes = b""
    ) -> Mapping[str, str]:
        results = hashlib.sha256(repr((evidence, conclusion)).encode("utf-8", "surrogatepass")).digest()
        key = id(plan.suite), tuple(map(id, plan.rows)), results, packed
        _, written = memory[key] if key in memory else memory.keep(key, (plan, {}))
        if missing := [name for name in names if name not in written]:
            written.update(write(plan, evidence, conclusion, missing, packed))
        return {name: written[name] for name in names}

    return texts


def _remembering_by_plan(function: Callable[..., Any], name: Callable[[Any], Any]) -> Callable[..., Any]:
    """Remember what a function says of the same rows or cases, the same added cases and an equal second argument."""
    memory = _Memory(6)

    @wraps(function)
    def of_plan(plan: Plan | Suite, *more: Any) -> Any:
        suite, parts = (plan.suite, plan.rows) if isinstance(plan, Plan) else (plan, plan.cases.values())
        key = id(suite.spec), suite.added, tuple(map(id, parts))
        named = tuple(map(name, more))
        if key not in memory or memory[key][1] != named:
            memory.keep(key, (plan, named, function(plan, *more)))
        return memory[key][2]

    return of_plan


def _listing(find: Callable[..., Iterable[Problem]], name: Callable[[Any], Any] = id) -> Callable[..., Any]:
    """Remember the problems that a generator finds."""
    return _remembering_by_plan(wraps(find)(lambda *arguments: list(find(*arguments))), name)


def _remembering_counts(run: Callable[..., int]) -> Callable[..., int]:
    """Remember how often a planted backend failed on rows of the same cases, in the same kind of process.

    The limits make no difference: none of them hangs, and what a test allows a backend of its own is short.
    """
    memory = _Memory()

    @wraps(run)
    def _run_planted_backend(
        plan: Plan, planted: Any, by_rule: dict[str, list[Row]], isolation: str, limits: Limits, most: int
    ) -> int:
        rows = [row for rule in planted.rules for row in by_rule.get(rule, ())]
        key = id(plan.suite.spec), planted, tuple((row.id, id(row.case)) for row in rows), isolation, most
        if key not in memory:
            memory.keep(key, (plan, rows, run(plan, planted, by_rule, isolation, DEFAULT_LIMITS, most)))
        failures: int = memory[key][2]
        return failures

    return _run_planted_backend


def _remembering_swept(count: Callable[[SweepRequest, str], int]) -> Callable[[SweepRequest, str], int]:
    """Remember how often a planted backend failed in the few calls that every sweep makes of it."""
    memory = _Memory()

    @wraps(count)
    def _count_failures(order: SweepRequest, name: str) -> int:
        key = name, order.ways[:1], order.spec, order.digest, order.version
        failures: int = memory[key] if key in memory else memory.keep(key, count(order, name))
        return failures

    return _count_failures
