"""The settings of `pytest --adapter` are those of `conformance run`, and give the same evidence."""

import json
import os
from datetime import date, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from tests.builders import CASES, Cli, some_slow, write_cases
from tests.pytest_plugin.done import HERE, NO_REPORTS, SUITE, Done

BACKENDS = """import time
from conformance.adapter import FunctionAdapter
class Keeps(FunctionAdapter):
    name, version = 'keeps', '1'
    not_claimed = ('declared', 'form')
    def reshape(self, src, shape, special_zero):
        if -2 in shape:
            return src.reshape(-1)
        if special_zero:
            shape = [src.shape[i] if entry == 0 else entry for i, entry in enumerate(shape)]
        elif 0 in shape and -1 in shape:
            raise ValueError('a 0 beside a -1')
        if any(entry < -1 for entry in shape):
            raise ValueError('a negative length')
        return src.reshape(shape).copy()
    rejections = (ValueError, IndexError)
class Hangs(Keeps):
    name = 'hangs'
    def reshape(self, src, shape, special_zero):
        time.sleep(6 * (tuple(shape) == (-2,)))
        return super().reshape(src, shape, special_zero)
class Once(Keeps):
    def __init__(self):
        open('started', 'x').close()
"""
MORE = """about: One more.
cases:
  - {id: minus-three, rule: lower-bound, src: "T[4]", shape: [-3], special_zero: false, expect: reject}
"""
WAIVERS = """waivers:
  - case: minus-two
    reason: known, see the ticket
    link: https://example.com/1
    owner: ours
    expires: '{}'
"""
CLAIMS = (
    "operations: [StaticReshape, DynamicReshape-1, Reshape-1]\n"
    "not_claimed: [declared, form]\nanswers_special_zero: false\n"
)
QUIET = ("-q", "-p", "no:cacheprovider", "--conformance-suite", ".")
F32 = ("--type", "f32")
WAIVED = (*QUIET, "--conformance-waivers", "waivers.yaml", *HERE)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a few cases, backends, claims and a waiver of the one failure."""
    write_cases(tmp_path)
    (tmp_path / "mine.py").write_text(BACKENDS, encoding="utf-8")
    (tmp_path / "claims.yaml").write_text(CLAIMS, encoding="utf-8")
    write_waivers(tmp_path, date.today() + timedelta(days=30))
    return tmp_path


@pytest.fixture
def complete(here: Path) -> Path:
    """The folder `here`, with a case of the waived rule that passes. Without it nothing conforms."""
    write_cases(here, CASES, MORE)
    return here


def write_waivers(folder: Path, expires: date) -> None:
    (folder / "waivers.yaml").write_text(WAIVERS.format(expires), encoding="utf-8")


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The records of the evidence in a folder."""
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def comparable(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without what two runs never have in common: times, and the folders as they were given."""
    header, *rows, footer = records
    own = ("started", "environment", "folders", "seal", "header", "seconds", "milliseconds")
    without = [{name: value for name, value in record.items() if name not in own} for record in (header, footer)]
    return [without[0], *rows, without[1]]


SAME = {"waivers": "waivers.yaml", "claims": "claims.yaml", "timeout": "7", "memory": "8192"}


@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
@pytest.mark.parametrize("way", some_slow(("options", "configuration", "xdist", "jobs"), ("options", "configuration")))
def test_the_evidence_equals_that_of_a_run(complete: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.chdir(complete)
    monkeypatch.setattr("conformance.report.write", lambda *_: ())
    (complete / "conftest.py").write_text(NO_REPORTS, encoding="utf-8")
    settings = SAME | ({"jobs": "2"} if way == "jobs" else {"isolation": "none"})
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    cli("run", "mine.py:Keeps", "--suite", ".", "--drawn-rows", "0", *F32, *words, "--out", "run").expect(0)
    options = [word.replace("--", "--conformance-") for word in words]
    if way == "configuration":
        ini = "".join(f"conformance_{name} = {value}\n" for name, value in settings.items())
        (complete / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-config\n{ini}", encoding="utf-8")
        options = []
    more = ["-n", "2", "--adapter", "mine.py:Keeps"] if way == "xdist" else []  # named twice
    done = Done(complete, *QUIET, *F32, *options, *more, "--conformance-out", "session", adapter="mine.py:Keeps")
    done.expect(0, "6 xfailed", "the whole target conforms", "tests waived")
    run, session = lines_of(complete / "run"), lines_of(complete / "session")
    assert comparable(session) == comparable(run)
    assert [record["waiver"] for record in session if record.get("waiver")]
    assert session[-1]["seconds"] > 0


def test_a_waived_row_is_an_expected_failure(complete: Path) -> None:
    done = Done(complete, *WAIVED, *F32, "-rx", adapter="mine.py:Keeps")
    done.expect(0, "XFAIL cases/few0.yaml::minus-two", "known, see the ticket", "waivers.yaml:2", "with ")
    Done(complete, *WAIVED, *F32, "--runxfail", adapter="mine.py:Keeps").expect(1, "6 failed", never="xfailed")


TWO_FILES = {
    "pytest.ini": "[pytest]\nconformance_waivers =\n  waivers.yaml\n  more.yaml\n",
    "pyproject.toml": '[tool.pytest.ini_options]\nconformance_waivers = ["waivers.yaml", "more.yaml"]\n'
    'filterwarnings = ["error"]\n',
}


@pytest.mark.parametrize("way", ["options", "pytest.ini", "pyproject.toml"])
def test_each_file_of_waivers_counts(complete: Path, way: str) -> None:
    text = (complete / "waivers.yaml").read_text(encoding="utf-8")
    (complete / "more.yaml").write_text(text.replace("case: minus-two", "case: stays"), encoding="utf-8")
    options = ["--conformance-waivers", "waivers.yaml", "--conformance-waivers", "more.yaml"]
    if way != "options":
        (complete / way).write_text(TWO_FILES[way], encoding="utf-8")
        options = []
    done = Done(complete, *QUIET, *HERE, *options, adapter="mine.py:Keeps")
    done.expect(6, " xfailed", "more.yaml:2: the waiver of stays is stale")


def test_an_expired_and_a_stale_waiver(here: Path) -> None:
    write_waivers(here, date.today() - timedelta(days=1))
    Done(here, *WAIVED, *F32, adapter="mine.py:Keeps").expect(1, "expired on", never="xfailed")
    Done(here, *WAIVED, adapter="reference").expect(6, "expired on")
    write_waivers(here, date.today() + timedelta(days=1))
    Done(here, *WAIVED, adapter="reference").expect(6, "is stale, nothing that it is for fails")


def test_a_waiver_is_not_stale_in_an_incomplete_session(complete: Path) -> None:
    waivers = complete / "waivers.yaml"
    text = waivers.read_text(encoding="utf-8").replace("case: minus-two", "breaks: lower-bound")
    waivers.write_text(text, encoding="utf-8")
    Done(complete, *WAIVED, "cases/few0.yaml::minus-two", adapter="reference").expect(4, "incomplete", never="stale")


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "an unknown case": (("--conformance-waivers", "typo.yaml"), "typo.yaml:2: unknown case 'minus-tow'; did you mean"),
    "no such file": (("--conformance-waivers", "none.yaml"), "none.yaml: cannot be read: No such file or directory"),
    "a text for a file": (("--conformance-waivers", "waivers" * 99), "waivers: cannot be read: File name too long"),
    "claims twice": (
        ("--conformance-claims", "claims.yaml", "--conformance-claims", "more.yaml"),
        "--conformance-claims is given twice; give it once",
    ),
    "other claims": (("--conformance-claims", "more.yaml", *HERE), "the backend claims Reshape-1 (add it to"),
    "no number": (("--conformance-timeout", "soon"), "--conformance-timeout: 'soon' is not a number of seconds"),
    "no memory": (
        ("--conformance-memory", "0"),
        "'0' is not a whole number from 1 to 10^9; write --conformance-memory 2",
    ),
    "no name": (("--conformance-out", ""), "--conformance-out has an empty value; give it one, or drop it"),
    "too many seconds": (("--conformance-timeout", "1e7"), "'1e7' is not a number of seconds between 0 and 10^6"),
    "fewer than no rows": (("--drawn-rows", "-1"), "--drawn-rows -1 is not a whole number from 0 to 10^9; write"),
    "too many rows": (("--drawn-rows", "1000000001"), "--drawn-rows 1000000001 is not a whole number from 0 to 10^9"),
    "no isolation": (("--conformance-isolation", "wroker"), "unknown isolation 'wroker'; did you mean 'worker'?"),
    "no processes": (
        ("--conformance-jobs", "2", "--conformance-isolation", "none"),
        "--conformance-jobs 2 needs processes, and mine.py:Keeps runs in this one",
    ),
    "processes twice": (("--conformance-jobs", "2", "-n", "2"), "-n of pytest-xdist both start processes"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_setting_is_one_line(here: Path, mistake: str) -> None:
    """And costs no earlier report, as long as no backend is started."""
    report = here / "out" / "report.html"
    report.parent.mkdir()
    report.touch()
    text = (here / "waivers.yaml").read_text(encoding="utf-8")
    (here / "typo.yaml").write_text(text.replace("minus-two", "minus-tow"), encoding="utf-8")
    (here / "more.yaml").write_text(CLAIMS.replace(", Reshape-1", ""), encoding="utf-8")
    options, words = MISTAKES[mistake]
    if "-n" in options and find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    done = Done(here, *QUIET, "--conformance-out", "out", *options, adapter="mine.py:Keeps")
    done.expect(4, "ERROR: ", words, never="Traceback")
    assert report.exists() == (mistake != "other claims")


@pytest.mark.parametrize(
    "option",
    [
        "--help", "--markers", "--fixtures", "--fixtures-per-test", "--cache-show", "--setup-plan", "--setup-only",
        "--collect-only",
    ],
)  # fmt: skip
def test_a_session_that_only_lists_leaves_the_last_verdict(here: Path, option: str) -> None:
    report = here / "out" / "report.html"
    report.parent.mkdir()
    report.touch()
    Done(here, "-q", *SUITE, "--conformance-out", "out", option, adapter="reference").expect(0, never="incomplete")
    assert report.exists()


def test_an_added_case_with_a_wrong_expectation_is_an_error(here: Path) -> None:
    write_cases(here, "extends: bundled\n" + MORE.replace("reject", '"T[4]"'))
    Done(here, *QUIET, adapter="reference").expect(4, "minus-three: expects [4], but", never="Traceback")


def test_a_mistake_in_the_configuration_names_its_file(here: Path) -> None:
    (here / "pytest.ini").write_text("[pytest]\nconformance_timeout = soon\n", encoding="utf-8")
    wrong = f"ERROR: {here / 'pytest.ini'}: conformance_timeout: 'soon' is not a number of seconds"
    Done(here, *QUIET, adapter="mine.py:Keeps").expect(4, wrong)
    Done(here, *QUIET, "--conformance-timeout", "9", "cases/few0.yaml::stays", adapter="reference").expect(4, "passed")
    hidden = f"ERROR: pytest looks for its configuration beside a path that follows a blank, not in {here}; write "
    suite = "--conformance-suite=."
    Done(here, suite, "--conformance-out", "..", adapter="reference").expect(4, f"{hidden}--conformance-out=..")
    Done(here, suite, "--conformance-out=..", adapter="reference").expect(4, wrong)
    Done(here, suite, "-c", os.devnull, "--conformance-out", "..", "--collect-only").expect(0)


@pytest.mark.slow
def test_rows_after_three_hangs_are_not_called(here: Path) -> None:
    operations = "DynamicReshape-1", "Reshape-1"
    part = [word for operation in operations for word in ("--operation", operation)]
    named = "cases/few0.yaml::stays", "cases/few0.yaml::minus-two"  # the first call has more time than the next
    options = "--conformance-timeout", "0.3", "--conformance-out", "out", "-rs"
    done = Done(here, *QUIET, *options, *part, *named, adapter="mine.py:Hangs")
    done.expect(1, "not called: the rows before it of this case and operation hung; to call it: conformance run")
    done.says(f"mine.py:Hangs --suite {here} --timeout 0.3 --max-hangs 0 -k")
    done.says("note: not called: ", " of minus-two, because 3 rows of the same case and operation")
    rows = [record for record in lines_of(here / "out") if record["record"] == "row" and "minus-two" in record["row"]]
    rows = [row for row in rows if any(f"[{operation}-" in row["row"] for operation in operations)]
    hung = [row for row in rows if row["outcomes"][0]["kind"] == "timeout"]
    uncalled = [row for row in rows if set(row["verdicts"].values()) == {"not run"}]
    assert len(hung) + len(uncalled) == len(rows)
    assert uncalled
    assert all(sum(f"[{operation}-" in row["row"] for row in hung) == 3 for operation in operations)


def test_a_repeated_row_with_jobs(here: Path) -> None:
    again = "def pytest_collection_modifyitems(items):\n    items += items[:1]\n"
    (here / "conftest.py").write_text(again, encoding="utf-8")
    words = "cases/few0.yaml::stays", "--conformance-jobs", "2", "--type", "f32"
    once, twice = (Done(here, *QUIET, *words, *more, adapter="mine.py:Keeps").text for more in (["--noconftest"], []))
    passed = [int(text.split(" passed")[0].split()[-1]) for text in (once, twice)]
    assert passed[1] == passed[0] + 1


def test_a_backend_that_starts_only_once_with_jobs(here: Path) -> None:
    """The session ends, as a run does. A failure of the first row would be held against the backend."""
    done = Done(here, *QUIET, *F32, "--conformance-jobs", "2", adapter="mine.py:Once")
    done.expect(4, "--conformance-jobs 2: mine.py:Once: cannot be started: FileExistsError", never="Traceback")
    assert "adapter err" not in done.text  # rows before it may have failed: on a busy machine the first process is fast


def test_a_drawn_row_that_fails(here: Path) -> None:
    options = (*HERE, "--conformance-suite", ".", "-vv", "--conformance-out", "out", "--drawn-rows", "60")
    done = Done(here, *options, adapter="planted:zero-flag-ignored")
    done.says("a drawn row failed: drawn-0-", "rejected at run: zero-empties")
    done.says("- id: rejected-a-legal-call-zero-copies", "- id: wrong-dims-zero-copies")
    assert done.code != 0
    evidence = read(here / "out" / "results.jsonl")
    assert evidence.header["drawn"] == {"seed": 0, "rows": 60}
    assert evidence.drawn.failed > 0
    assert [result.row for result in evidence.results if result.smallest_case is not None]


def test_a_part_of_a_session_draws_none(here: Path) -> None:
    options = (*QUIET, *HERE, *F32, "--conformance-out", "out", "--drawn-rows", "60")
    done = Done(here, *options, adapter="planted:eight-buffers-in-turn")
    assert "a drawn row failed" not in done.text
    assert "drawn" not in read(here / "out" / "results.jsonl").header
