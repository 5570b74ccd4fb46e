"""The end of a session shows failing rows by kind. Pytest's own sections keep the other tests."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance.model.verdicts import SEVERITIES
from tests.builders import Cli, some_slow, write_cases
from tests.pytest_plugin.done import HERE, STATIC, Done

BACKEND = """from conformance.adapter import FunctionAdapter
class Flat(FunctionAdapter):
    name, version = 'flat', '1'
    not_claimed = ('declared', 'form')
    def reshape(self, src, shape, special_zero):
        return src.reshape(-1).copy()
"""
OPTIONS = ("-q", "-p", "no:cacheprovider", "--conformance-suite", ".", *STATIC, *HERE)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a few cases, a backend that fails in most of them, and a test that fails too."""
    write_cases(tmp_path)
    (tmp_path / "flat.py").write_text(BACKEND, encoding="utf-8")
    (tmp_path / "test_theirs.py").write_text("def test_theirs(): raise ValueError('theirs')\n", encoding="utf-8")
    return tmp_path


def call(folder: Path, *words: str) -> Done:
    return Done(folder, *OPTIONS, *words, adapter="flat.py:Flat")


def kinds(text: str) -> list[str]:
    """The heads of the kinds of failures, which a command folds."""
    folded = re.sub(r"\n    (?! |also)", " ", text)
    return re.findall(rf"^ +((?:{'|'.join(SEVERITIES)})\b.*|also .*(?=: ))", folded, re.MULTILINE)


def lines_of_rows(text: str) -> list[str]:
    """The lines of pytest's short summary that name rows."""
    return re.findall(r"^FAILED cases/.*$", text, re.MULTILINE)


def test_failing_rows_have_the_groups_of_a_run(here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    monkeypatch.setattr("conformance.report.write", lambda *_: ())  # the command's own reports
    words = ("--suite", ".", *STATIC, "--drawn-rows", "0", "--isolation", "none", "--out", "out")
    said = cli("run", "flat.py:Flat", *words).expect(1)
    done = call(here, "cases").expect(1, "failures:", never="= FAILURES =")
    assert kinds(done.text) == kinds(said.out)
    assert len(kinds(done.text)) > 3
    assert not lines_of_rows(done.text)
    tests = sum(map(int, re.findall(r" · (?:explains )?(\d+) (?:of|tests?)", "\n".join(kinds(done.text)))))
    done.says(f"\n{tests} of ")


def test_a_session_needs_no_terminal(here: Path) -> None:
    words = [word for word in OPTIONS if word != "-q"]  # an option of the terminal
    Done(here, *words, "-p", "no:terminal", "cases", adapter="flat.py:Flat").expect(1, never="INTERNALERROR")


def test_the_command_of_a_kind_repeats_its_failure_in_full(here: Path) -> None:
    done = call(here, "--conformance-timeout", "7", "cases")
    command = next(line for line in done.text.splitlines() if line.startswith("      pytest --adapter flat.py:Flat"))
    assert "--conformance-timeout 7 " in command
    again = call(here, "--conformance-timeout", "7", command.split("'")[1])
    again.expect(1, "= FAILURES =", "rule  ", "want  ", "got  ", "1 failed")


@pytest.mark.parametrize("letters", some_slow(("-rf", "-ra", "-rfE"), ("-ra", "-rfE")))
def test_rows_in_the_short_summary(here: Path, letters: str) -> None:
    done = call(here, letters, "cases")
    failed = int(done.text.split(" failed, ")[0].split()[-1])
    assert len(lines_of_rows(done.text)) == failed > 3
    assert "= FAILURES =" not in done.text


@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
@pytest.mark.slow
def test_rows_of_workers_have_the_same_lines(here: Path) -> None:
    """A worker sends its failures as text, and JUnit too shows the headline of a row."""
    sessions = [call(here, "-rf", "cases", *more).text for more in ((), ("-n", "1"))]
    lines = [sorted(lines_of_rows(text)) for text in sessions]
    assert lines[0] == lines[1] != []


def test_more_verbose_sections(here: Path) -> None:
    usual, every, full = (call(here, *words, "cases").text for words in ((), ("-vv",), ("-vvv",)))
    commands = [len(re.findall("(?:\n      |: )pytest --adapter", text)) for text in (usual, every, full)]
    assert commands[0] == len(kinds(usual)) < commands[1] == commands[2]
    assert "= FAILURES =" not in every
    assert full.count("\nrepeat     pytest --adapter") == commands[1]


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_failures_of_other_tests_and_plugins(here: Path, workers: str) -> None:
    text = (
        "def pytest_terminal_summary(terminalreporter):\n"
        "    terminalreporter.write_line(f\"{len(terminalreporter.stats['failed'])} are seen\")\n"
    )
    (here / "conftest.py").write_text(text, encoding="utf-8")
    if workers != "0" and find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    more = () if workers == "0" else ("-n", workers)
    done = call(here, "test_theirs.py", "cases", *more).expect(1, "= FAILURES =", "ValueError: theirs")
    done.says("FAILED test_theirs.py::test_theirs", "failures:")
    failed = int(done.text.split(" failed, ")[0].split()[-1])
    done.says(f"{failed} are seen")
    assert not lines_of_rows(done.text)
    assert "\nrepeat " not in done.text
