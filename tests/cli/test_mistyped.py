"""A mistyped command gets one line of help, and the output suits every terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from conformance.cli.main import main
from conformance.report.render import render_page
from conformance.system import terminal

from ..builders import ROOT, Cli
from .run_output import Screen
from .spec_commands import MISTYPED

HELP_CPU = 0.15


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, timeout=60, check=False)


@pytest.mark.parametrize(("words", "said"), MISTYPED.values(), ids=[name[:40] for name in MISTYPED])
def test_a_slip_gets_one_line_that_helps(cli: Cli, words: list[str], said: str) -> None:
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert err.startswith("conformance: ")
    assert len(err.splitlines()) == 1
    assert said in err
    assert len(err) < 700
    assert all(character.isprintable() for character in err[:-1])


def test_an_error_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("conformance.load.spec.load_spec", broken)
    with pytest.raises(ZeroDivisionError):
        main(["list", "rules"])


@pytest.mark.slow
def test_an_error_of_ours_is_no_verdict() -> None:
    """Python's own exit code, 1, would mean that something in the target fails."""
    code = (
        "import sys\nfrom conformance.cli import main as command, run\n"
        "run.run_suite = lambda *_: 1 / 0\n"
        "sys.argv[1:] = ['run', 'reference', '-k', 'stays', '--json']\nsys.exit(command.main())"
    )
    done = python("-c", code)
    why = "the suite failed with ZeroDivisionError: division by zero; no verdict holds"
    assert (done.returncode, json.loads(done.stdout)) == (5, {"exit_code": 5, "errors": [why]})
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith(f"conformance: {why}\n")


def test_a_file_that_cannot_be_written_is_said_as_json_too(cli: Cli) -> None:
    said = cli("export", "code", "--lang", "cpp", "--out", "/dev/null/x", "--json").expect(2, lines=1)
    assert said.data["exit_code"] == 2
    assert [f"conformance: {why}\n" for why in said.data["errors"]] == [said.err]


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def interrupt(folder: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.load.spec.load_spec", interrupt)
    assert cli("list", "rules") == (130, "", "conformance: interrupted\n")


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["help"], ["meaning", "--help"], ["help", "check"], ["--version"]]
)
def test_help_is_on_stdout(cli: Cli, words: list[str]) -> None:
    cli(*words).expect(0, lines=0, out="conformance")


def test_help_imports_nothing_slow_and_takes_no_time() -> None:
    code = (
        "import os, sys\nfrom conformance.cli.main import main\n"
        "assert main(['--help']) == 0\n"
        "slow = {'numpy', 'yaml', 'jinja2', 'jsonschema', 'ml_dtypes', 'pytest'} & set(sys.modules)\n"
        "print('slow:', sorted(slow), 'cpu:', sum(os.times()[:2]))"
    )
    best = 60.0
    for _ in range(3):
        done = python("-c", code)
        assert done.returncode == 0, done.stderr
        *_, last = done.stdout.splitlines()
        assert "slow: []" in last
        best = min(best, float(last.rpartition(" ")[2]))
        if best < HELP_CPU:
            break
    assert best < HELP_CPU


@pytest.mark.slow
def test_only_a_page_imports_jinja2() -> None:
    code = (
        "import sys\nimport conformance.pytest_plugin.hooks, conformance.site.publish, conformance.report.verify\n"
        "from conformance.report import diff_report, junit, render, report_page\n"
        "from conformance.site import compare_page\n"
        "from conformance.cli.main import main\nassert main(['list', 'rules']) == 0\n"
        "print('early:', 'jinja2' in sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "early: False"


def test_a_list_imports_nothing_of_runs_or_reports() -> None:
    done = python("-X", "importtime", "-m", "conformance", "list", "rules")
    assert "conformance.cli.facts\n" in done.stderr
    assert not [room for room in ("draw", "evidence", "report", "run") if f"conformance.{room}\n" in done.stderr]


def test_a_value_that_a_page_lacks_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.report.render.FOLDER", tmp_path)
    monkeypatch.setattr("conformance.report.render._read_style", lambda name: "")  # which keeps what it read
    (tmp_path / "of-a-test.html").write_text("<p>{{ given }}", encoding="utf-8")
    assert render_page("of-a-test.html", "", style="of-a-test.css", given="here") == "<p>here"
    with pytest.raises(UndefinedError, match="given"):
        render_page("of-a-test.html", "", style="of-a-test.css")


@pytest.mark.slow
def test_a_terminal_of_few_characters_gets_escapes(cli: Cli) -> None:
    words = ("diff", "static-oneapi", "static-graph-v0.9")
    assert "→" in cli(*words).expect(0).out
    done = python("-m", "conformance", *words, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "static-oneapi \\u2192 static-graph-v0.9" in done.stdout
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout


def bash(script: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    if os.name != "posix":
        pytest.skip("needs a shell")
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=folder, check=False)


def test_a_reader_that_has_enough_is_no_error() -> None:
    listed = f"{sys.executable} -m conformance list findings --json"
    done = bash(f"{listed} | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}")
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_is_no_error(closed: str) -> None:
    done = bash(f"{sys.executable} -m conformance list findings --json {closed}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    run = f"PYTHONPATH={ROOT} {sys.executable} -m conformance run reference -k stays"
    done = bash(f"cd gone; rmdir ../gone; {run}", tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("conformance: the working directory: No such file or directory\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["\x1b[2J", "\x07", "\u202e", "\u2066", "\x9b31m", "\r", "\u200b", "\ufeff", "\x00"])
def test_nothing_printable_acts_on_a_terminal(text: str) -> None:
    shown = terminal.printable(f"a{text}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")


def test_colour_is_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    def output() -> str:
        terminal.say(f"{terminal.paint('bold', 'x')} \x1b[31m", screen := Screen())
        return screen.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output() == "\x1b[1mx\x1b[0m \\x1b[31m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output() == "x \\x1b[31m\n"


def test_columns_line_up_whatever_is_in_them() -> None:
    rows = [("ab", "c"), (terminal.paint("red", "日本"), "d"), ("e\u0301", "f")]
    lines = terminal.plain(terminal.table(rows)).splitlines()
    assert [terminal.columns(line) for line in lines] == [7, 7, 7]
