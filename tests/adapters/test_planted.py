"""Every backend of adapters/planted/ fails a case of the rule that it breaks, and little else."""

import functools
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from conformance.adapter import load_adapter
from conformance.adapters.planted.base import Planted
from conformance.draw.rows import Drawn, RowDrawer
from conformance.load.cases import load_suite
from conformance.model import Adapter, Claims
from conformance.plan.memory import volume_of
from conformance.plan.quick import QUICK, quick_rows
from conformance.plan.rows import Row, plan_of
from conformance.plan.select import select_rows
from conformance.run import row as row_module
from conformance.run.call import arguments_of
from conformance.run.concurrent import run_in_threads
from conformance.selfcheck.mutants import (
    PlantedResult,
    choose_rows_to_run,
    drawn_rows,
    fails_on,
    find_unopposed_rules,
    planted_backends,
    takes_long,
    try_backend,
)

from ..builders import some_exhaustive

PLANTED = planted_backends()


@pytest.fixture(autouse=True)
def time_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_module, "REPEAT_SECONDS", 60)


@functools.cache
def rows() -> tuple[Row, ...]:
    return tuple(choose_rows_to_run(plan_of(load_suite()).rows))


@functools.cache
def by_size() -> tuple[Row, ...]:
    written = [row for row in rows() if not takes_long(row)][::36]
    return tuple(sorted(written, key=lambda row: sum(volume_of(step.src) for step in row.case.steps)))


@functools.cache
def quick() -> tuple[Row, ...]:
    suite, number = load_suite(), len(quick_rows().drawn)
    drawn = RowDrawer(suite.spec, Claims(tuple(suite.spec.operations))).rows(Drawn(0, number, QUICK))
    return (*select_rows(plan_of(suite), QUICK).rows, *drawn)


@functools.cache
def written() -> tuple[Row, ...]:
    return tuple(sorted(rows(), key=lambda row: (row.case.times > 1 or bool(row.case.pause_ms), count_elements(row))))


@functools.cache
def drawn() -> tuple[Row, ...]:
    return tuple(drawn_rows(load_suite()))


def count_elements(row: Row) -> int:
    return sum(10_000 + volume_of(step.src) for step in row.case.steps)


def of_rule(rule: str) -> Iterator[Row]:
    """The rows of `--quick` first, then those of few elements; the drawn rows last, which take seconds to draw."""
    return (row for rows in (quick, written, drawn) for row in rows() if row.case.rule == rule)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_backend_fails_a_case_of_its_rule(name: str) -> None:
    backend = PLANTED[name]
    adapter = backend()
    assert any(fails_on(row, adapter) for row in of_rule(backend.breaks)), backend.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("name", some_exhaustive(PLANTED))
def test_a_planted_backend_passes_most_rows_of_other_rules(name: str) -> None:
    """Asks every 36th row, those of few elements first, and none once enough have passed."""
    adapter, breaks = PLANTED[name](), PLANTED[name].breaks
    others = [row for row in by_size() if row.case.rule != breaks]
    passed = (row for row in others if not fails_on(row, adapter))
    enough = len(others) - len(others) // 2
    assert "R" in PLANTED[name].classes or len(list(islice(passed, enough))) == enough


@pytest.mark.slow
def test_the_reference_itself_is_not_caught() -> None:
    """`conformance check` asks all rows."""
    reference = load_adapter("reference")
    assert [row.id for row in rows()[::7] if fails_on(row, reference)] == []


def test_planted_backends_break_every_rule_and_class() -> None:
    assert list(find_unopposed_rules(load_suite(), PLANTED)) == []
    assert len(PLANTED) >= 45


class Odd:
    breaks, classes = "no-such-rule", "A"


@pytest.mark.parametrize(
    ("is_left", "words"),
    [
        (lambda backend: backend.breaks != "shape-given", "rule 'shape-given' has no planted backend"),
        (lambda backend: "N" not in backend.classes, "class N "),
        (lambda _: True, "'no-such-rule', which is no rule"),
    ],
)
def test_a_rule_or_class_without_planted_backend_is_named(is_left: Any, words: str) -> None:
    planted = {name: backend for name, backend in {**PLANTED, "odd": Odd}.items() if is_left(backend)}
    assert any(words in each for each in find_unopposed_rules(load_suite(), planted))


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_is_one_line_and_its_name_kebab_case(name: str) -> None:
    fault = inspect.getdoc(PLANTED[name])
    assert fault
    assert fault != inspect.getdoc(PLANTED[name].__mro__[1])
    assert len(fault.splitlines()) == 1
    assert fault.endswith(".")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)


@pytest.mark.parametrize("backend", ["planted:zero-flag-ignored", "conformance.adapters.planted:ZeroFlagIgnored"])
def test_a_planted_backend_is_found_by_name_and_by_class(backend: str) -> None:
    adapter: Adapter = load_adapter(backend)
    assert adapter.identity.name == "planted:zero-flag-ignored"


def result_of(killers: Mapping[str, tuple[str, ...]], elsewhere: tuple[int, int], classes: str = "A") -> PlantedResult:
    return PlantedResult("odd", "Odd.", "one-infer", classes, killers, elsewhere)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (result_of({"one-infer": ("a",)}, (5, 10)), None),
        (result_of({}, (0, 10)), "by no case at all"),
        (result_of({"zero-copies": ("b",)}, (1, 10)), "only by cases of zero-copies"),
        (result_of({"one-infer": ("a",)}, (6, 10)), "fails 6 of 10 rows of other rules"),
        (result_of({"one-infer": ("a",)}, (10, 10), "R"), None),
        (result_of({"zero-copies": ("b",)}, (10, 10), "R"), "no case of one-infer"),
    ],
)
def test_a_planted_backend_must_fail_its_rule_and_little_else(found: PlantedResult, words: str | None) -> None:
    assert (found.wrong is None) if words is None else words in (found.wrong or "")


def test_a_row_without_time_for_its_calls_asks_for_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_module, "REPEAT_SECONDS", 0)
    (row,) = (row for row in rows() if row.id == "more-calls-than-16-bits-count[StaticReshape-f32]")
    wrong = try_backend(PLANTED["calls-counted-in-16-bits"], [row]).wrong or ""
    assert "is not noticed, but more-calls-than-16-bits-count[StaticReshape-f32] had no time for all" in wrong


class OfSixNodes(Planted):  # type: ignore[misc]  # the module is found at run time
    """Skips every node after the sixth."""

    resolve = staticmethod(lambda call: call.resolve() if call.position < 6 else call.src)


def test_threads_of_one_planted_program_count_nodes_apart() -> None:
    """Otherwise a backend is caught because it is called by threads, and not for what was planted."""
    steps = (row.steps[0] for row in rows() if len(row.case.steps[0].shapes) == 5)
    step = next(step for step in steps if step.arriving and step.meanings[0].meaning.kind == "legal")
    interval = sys.getswitchinterval()
    program = OfSixNodes().compile(step.graph)
    sys.setswitchinterval(1e-6)
    try:
        answers = run_in_threads([lambda: {program.run(*arguments_of(step)).shape for _ in range(300)}] * 4)
    finally:
        sys.setswitchinterval(interval)
    assert answers == [{step.meanings[0].meaning.dst}] * 4
