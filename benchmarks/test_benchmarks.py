"""The measurements measure, the table can be read, and the budgets are kept."""

from __future__ import annotations

import json

import pytest

from benchmarks import __main__ as bench
from benchmarks.clock import Measured
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.meaning.domain import SMALL, calls

SLACK = 4
"""Shared machines are several times slower than those that budgets are written for, and their clocks are coarse."""


PROMISED = [each for each in bench.MEASUREMENTS if each.budget is not None]
"""The others, which take a minute and a half, are measured when README's numbers are."""


@pytest.mark.slow
@pytest.mark.parametrize("each", PROMISED, ids=lambda each: each.what)
def test_a_budget_is_kept(each: bench.Measurement) -> None:
    row = bench.measure(each)
    assert row.baseline > 0
    assert each.budget is not None
    assert 0 < row.ours <= SLACK * each.budget, bench.table([row])


def test_promised_budgets_are_measurements() -> None:
    budgets = {each.what: each.budget for each in bench.MEASUREMENTS}
    assert budgets["load and check spec/"] == 0.3
    assert budgets["meaning of a call"] == 10e-6
    assert budgets["`conformance run numpy -k` of one case"] == 0.6


def test_the_meaning_of_a_call_is_quick() -> None:
    """The one budget that is cheap enough to be asked for in every run."""
    measured = bench.meaning_of_a_call()
    assert measured.ours < SLACK * 10e-6


def test_the_bare_baseline_computes_the_same() -> None:
    meaning = contracts(load_spec())["static-2021"].meaning
    for call in calls(SMALL):
        assert bench.bare_meaning(*call) == meaning(*call)[:2], call


def test_a_measurement_is_added_by_decorating_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "MEASUREMENTS", [])

    @bench.measurement("nothing at all", budget=1.0)
    def nothing() -> Measured:
        return Measured(2.0, 0.5, "less than nothing")

    assert bench.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "what": "nothing at all",
            "ours": 2.0,
            "baseline": 0.5,
            "against": "less than nothing",
            "ratio": 4.0,
            "budget": 1.0,
            "within": False,
            "unit": "s",
        }
    ]
    assert bench.main([]) == 0
    head, row, note = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "what"
    assert " ".join(row.split()) == "nothing at all 2 s 500 ms 4.00× 1 s exceeded less than nothing"
    assert note == "CPU time, the least of several runs, but where it says elapsed"
    assert nothing().ours == 2.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2 s"),
        (0.3, "300 ms"),
        (0.99996, "1 s"),
        (0.0123, "12.3 ms"),
        (10e-6, "10 µs"),
        (2.5e-6, "2.5 µs"),
        (4e-8, "0.04 µs"),
    ],
)
def test_a_duration_is_said_as_people_say_it(value: float, text: str) -> None:
    assert bench.seconds(value) == text
