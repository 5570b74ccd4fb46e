"""Right backends conform, whatever freedom of the documents they use."""

from collections.abc import Iterator

import pytest

from conformance.adapter import resolve_claims
from conformance.draw.rows import Drawn, RowDrawer
from conformance.isolate.backend import run_in_isolation, use_backend
from conformance.model import BAD, Adapter, Result
from conformance.plan.rows import Row
from conformance.run.row import run_rows

from ..builders import bundled_plan
from .freedoms import RIGHT

EVERY, DRAWN = 111, 20
"""One of so many rows of the cases is called, another one for each backend, and so many drawn rows."""


def rows_for(adapter: Adapter, first: int, every: int) -> Iterator[Row]:
    suite = bundled_plan().suite
    written = [row for row in bundled_plan().rows if not row.case.large]
    yield from written[first % every :: every]
    yield from RowDrawer(suite.spec, resolve_claims(adapter, suite.spec.operations)).rows(Drawn(0, DRAWN))


def problems(results: list[Result]) -> list[tuple[str, str | None]]:
    return [(result.row, result.detail) for result in results if not BAD.isdisjoint(result.verdicts.values())]


@pytest.mark.slow
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_backend_conforms(name: str, every: int) -> None:
    adapter = RIGHT[name]()
    rows = list(rows_for(adapter, [*RIGHT].index(name), every))
    assert problems(list(run_rows(rows, adapter))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Noisy", "Forks", "Threaded", "ComputesLate"])
def test_a_right_backend_conforms_in_its_process(name: str) -> None:
    with use_backend(f"tests.verdict.freedoms:{name}", "worker") as adapter:
        rows = [row for row in rows_for(adapter, 5, 3 * EVERY) if len(row.case.steps) < 50]
        claims = resolve_claims(adapter, bundled_plan().suite.spec.operations)
        assert problems(list(run_in_isolation(rows, adapter, claims, "worker"))) == []
