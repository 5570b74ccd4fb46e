"""Plugins that write reports show each row as a separate test: the installed ones, and a fake of both."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.builders import write_cases
from tests.pytest_plugin.done import Done

OPTIONS = ("-q", "--conformance-cases", "cases", "--type", "f32", "--operation", "Reshape-1")
FAKE = """import json
import types
import allure
PHASES, PARAMETERS = {}, {}
def pytest_addoption(parser):
    parser.addoption('--fake', dest='DEST')
def pytest_runtest_logstart(nodeid):
    allure.dynamic = types.SimpleNamespace(parameter=PARAMETERS.setdefault(nodeid, {}).__setitem__)
def pytest_runtest_logreport(report):
    PHASES.setdefault(report.nodeid, []).append(report.when)
def pytest_unconfigure():
    with open('seen.json', 'w') as file:
        json.dump([PHASES, PARAMETERS], file)
"""


@pytest.mark.skipif(find_spec("allure_pytest") is not None, reason="the other tests use the real ones")
@pytest.mark.parametrize("destination", ["htmlpath", "allure_report_dir"])
def test_each_row_has_reports_and_allure_parameters(tmp_path: Path, destination: str) -> None:
    """A fake has their interface: the options of the two plugins, the reports they wait for, and `allure.dynamic`."""
    write_cases(tmp_path)
    (tmp_path / "allure.py").write_text("", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(FAKE.replace("DEST", destination), encoding="utf-8")
    Done(tmp_path, *OPTIONS, "--fake", "here").expect(0, " passed")
    phases, parameters = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    assert len(phases) > 50
    assert {tuple(of_row) for of_row in phases.values()} == {("setup", "call", "teardown")}
    if destination == "allure_report_dir":
        ids = Counter((name.partition("[")[0], *sorted(of_row.items())) for name, of_row in parameters.items())
        assert set(ids.values()) == {1}
        assert all(of_row.keys() == {"operation", "type", "shape"} for of_row in parameters.values())


@pytest.mark.slow
@pytest.mark.skipif(find_spec("allure_pytest") is None, reason="needs allure-pytest")
def test_allure_has_a_history_of_each_row(tmp_path: Path) -> None:
    write_cases(tmp_path)
    done = Done(tmp_path, *OPTIONS, "--alluredir", "allure", adapter="numpy").expect(1)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "allure").glob("*-result.json")]
    statuses = Counter(record["status"] for record in records)
    assert len({record["historyId"] for record in records}) == len(records) == statuses.total()
    done.says(f"{statuses['failed']} failed, {statuses['passed']} passed, {statuses['skipped']} skipped")
    failed = next(record for record in records if record["status"] == "failed")
    assert "rule  " in failed["statusDetails"]["trace"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pytest_html") is None, reason="needs pytest-html")
def test_pytest_html_has_a_line_for_each_row(tmp_path: Path) -> None:
    write_cases(tmp_path)
    Done(tmp_path, *OPTIONS, "--html", "report.html", adapter="numpy").expect(1)
    listed = Done(tmp_path, *OPTIONS, "--collect-only").text
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    rows = [line for line in listed.splitlines() if "::" in line]
    assert len(rows) > 50
    assert all(row in text for row in rows)
