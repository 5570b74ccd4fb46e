"""Text for a terminal: what is too wide is folded where a reader expects it."""

import pytest

from conformance.cli.commands import parser_of, top_parser
from conformance.system.terminal import columns


@pytest.mark.parametrize("name", [None, "run", "publish", "verify"])
def test_no_line_of_the_help_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    text = (parser_of(name) if name else top_parser()).format_help()
    assert [line for line in text.splitlines() if columns(line) > 80] == []


def test_a_folded_line_goes_on_in_its_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = top_parser().format_help().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("  audit "))
    assert lines[begin + 1] == " " * 18 + "are the same"


def test_help_that_goes_to_a_file_is_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: False)
    monkeypatch.setenv("COLUMNS", "40")
    assert any(columns(line) > 80 for line in top_parser().format_help().splitlines())
