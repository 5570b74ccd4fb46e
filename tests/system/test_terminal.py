"""Text for a terminal: what is too wide is folded where a reader expects it."""

import pytest

from conformance.cli.commands import make_top_parser, parser_of
from conformance.system.terminal import columns, paint, plain, say, table, verbatim, wrap
from conformance.system.text import pick_error_line, shorten


@pytest.mark.parametrize("name", [None, "run", "publish", "verify"])
def test_no_line_of_the_help_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    text = (parser_of(name) if name else make_top_parser()).format_help()
    assert [line for line in text.splitlines() if columns(line) > 80] == []


def test_a_folded_line_goes_on_in_its_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = make_top_parser().format_help().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("  audit "))
    assert lines[begin + 1] == " " * 18 + "are the same"


def test_help_that_goes_to_a_file_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: False)
    monkeypatch.setenv("COLUMNS", "40")
    assert any(columns(line) > 80 for line in make_top_parser().format_help().splitlines())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("word " * 9, ["word word word word word word word word", "  word"]),
        ("  name  kind  a sentence in its own column", ["  name  kind  a sentence in its own", "              column"]),
        ("a-word-that-is-wider-than-the-terminal-is on", ["a-word-that-is-wider-than-the-terminal-is", "  on"]),
        (paint("red", "coloured words take no columns") + " at all", ["coloured words take no columns at all"]),
        (verbatim("conformance run mine -k flattens-a-vector"), ["conformance run mine -k flattens-a-vector"]),
        ("字" * 19 + " wide", ["字" * 19, "  wide"]),
        ("write a number; see `conformance run --help`", ["write a number; see", "  `conformance run --help`"]),
    ],
    ids=["prose", "table", "long word", "colour", "command", "wide", "command in a sentence"],
)  # fmt: skip
def test_a_line_is_folded_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, shown: list[str]
) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    say(text)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown


@pytest.mark.parametrize(
    ("wide", "shown"),
    [(8, ["rule  documents  about", "one   " + "d" * 8 + "   a few words that are", " " * 17 + "folded"]),
     (30, ["rule  documents", "    about", "one   " + "d" * 30, "    a few words that are folded"])],
    ids=["in the last column", "before the last column"],
)  # fmt: skip
def test_a_table_that_is_too_wide_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wide: int, shown: list[str]
) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "42")
    monkeypatch.setenv("NO_COLOR", "1")
    say(table([("one", "d" * wide, "a few words that are folded")], ("rule", "documents", "about")))
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown


def test_a_long_message_is_cut_to_two_lines() -> None:
    text = plain(wrap("word " * 600, 2, most=2, rest="report.html has all"))
    assert text.endswith("word… (report.html has all)")
    assert [columns(line) <= 100 for line in text.splitlines()] == [True, True]
    assert plain(wrap("few words", most=2, rest="report.html has all")) == "few words"


PYTHON = (
    "crash: Traceback:\n  File 'a.py', line 3\n    raise ValueError('x')\nValueError: no such shape\nframe #0: 0x12"
)
CPP = "crash: died of SIGABRT; its stderr ends with: terminate called\n  what():  bad dims\nPLEASE report\n"
RUST = "crash: died\nthread 'main' panicked at src/main.rs:5:10:\nindex out of bounds\nnote: run with RUST_BACKTRACE=1"
RUST_IN_FRONT = RUST.replace("died\n", "died; its stderr ends with: ")
XLA = "crash: died\nF0000 shape.cc:12] Check failed: a == b (1 vs. 2)\n*** Check failure stack trace: ***\n @ 0x7f"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PYTHON, "crash: Traceback: … ValueError: no such shape"),
        (CPP, "crash: died of SIGABRT; its stderr ends with: terminate called …   what():  bad dims"),
        (RUST, "crash: died … thread 'main' panicked at src/main.rs:5:10:\nindex out of bounds"),
        (RUST_IN_FRONT, RUST_IN_FRONT.rpartition("\nnote")[0]),
        (XLA, "crash: died … F0000 shape.cc:12] Check failed: a == b (1 vs. 2)"),
        ("ValueError: one line", "ValueError: one line"),
        ("several\nlines of prose", "several\nlines of prose"),
    ],
    ids=["Python", "C++", "Rust", "Rust in front", "check", "one line", "prose"],
)
def test_of_a_stack_trace_the_error_is_told(text: str, told: str) -> None:
    assert pick_error_line(text) == told


def test_a_text_is_shortened_once() -> None:
    once = shorten("x" * 101, 100)
    assert once == shorten(once, 100) == f"{'x' * 100}… (101 characters)"
    assert shorten(f"{once}x", 100).endswith("x… (119 characters)")
