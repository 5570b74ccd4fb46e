"""The measurements measure, the table can be read, and the budgets are kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.meaning.domain import SMALL_DOMAIN, calls
from tests.builders import ROOT
from tools.benchmarks import __main__ as bench
from tools.benchmarks import history
from tools.benchmarks.clock import Measured, environment, peak_of_command
from tools.benchmarks.table import MeasuredRow, seconds

SLACK = 4
"""Shared machines are several times slower than those that budgets are written for, and their clocks are coarse."""


def test_the_meaning_of_a_call_is_quick() -> None:
    """The one budget that is cheap enough to be asked for in every run."""
    measured = bench.meaning_of_a_call()
    assert measured.ours < SLACK * 10e-6


def test_the_bare_baseline_computes_the_same() -> None:
    meaning = contracts(load_spec())["static-graph-v0.9"].meaning
    for call in calls(SMALL_DOMAIN):
        assert bench.bare_meaning(*call) == meaning(*call)[:2], call


def test_a_measurement_is_added_to_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing() -> Measured:
        return Measured(2.0, 0.5, "less than nothing")

    monkeypatch.setattr(bench, "MEASUREMENTS", [bench.Measurement("nothing at all", nothing, budget=1.0, most=5)])
    monkeypatch.setattr(history, "last_ratios", lambda: {"nothing at all": 3.0})
    assert bench.main(["--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["ours"], row["baseline"], row["ratio"], row["last"], row["within"]) == (2.0, 0.5, 4.0, 3.0, False)
    assert bench.main([]) == 0
    head, row, note = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "what"
    assert " ".join(row.split()) == "nothing at all 2 s 500 ms 4.00× 3.00× worse 1 s, 5× exceeded less than nothing"
    assert note == "CPU time, the least of several runs, but where it says elapsed"


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
    assert seconds(value) == text


def test_a_command_is_of_this_clone_and_has_to_end_well() -> None:
    assert environment()["PYTHONPATH"].split(os.pathsep)[0] == str(ROOT)
    assert peak_of_command([sys.executable, "-c", "pass"]) > 1 << 20
    with pytest.raises(subprocess.CalledProcessError):
        peak_of_command([sys.executable, "-c", "raise SystemExit(2)"])


def test_a_ratio_is_worse_only_beyond_the_noise() -> None:
    def row(ratio: float, last: float | None) -> MeasuredRow:
        return MeasuredRow("it", ratio, 1.0, "that", ratio, None, None, None, last)

    assert not row(2.4, 2.0).slips
    assert row(2.6, 2.0).slips
    assert not row(9.0, None).slips


def test_a_release_is_recorded_and_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "FILE", tmp_path / "history.json")
    history.FILE.write_text('{"0.1": {"a": 2.0, "b": 3.0}}', encoding="utf-8")
    history.record("0.2", {"a": 1.23456})
    assert history.read() == {"0.1": {"a": 2.0, "b": 3.0}, "0.2": {"a": 1.23}}
    assert history.last_ratios() == {"a": 1.23, "b": 3.0}
    for number in range(9):
        history.record(f"1.{number}", {"a": 1.0})
    assert list(history.read()) == [f"1.{number}" for number in range(1, 9)]


def test_the_bundled_history_names_measurements() -> None:
    names = {each.what for each in bench.MEASUREMENTS}
    assert history.read()
    assert all(set(ratios) <= names for ratios in history.read().values())
