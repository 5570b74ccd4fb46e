"""The help, README and action.yml say what the table of exit codes says."""

import re
from pathlib import Path

import pytest
import yaml

import conformance
from conformance.cli.commands import CLOSING
from conformance.cli.run import EXAMPLES
from conformance.system.exit_codes import EXIT_CODES, SUMMARY

ROOT = Path(conformance.__file__).parents[1]
in_clone = pytest.mark.skipif(not (ROOT / "action.yml").is_file(), reason="README and the action stay in the clone")


@in_clone
def test_readme_has_the_table_of_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == {code: entry.meaning for code, entry in EXIT_CODES.items()}


@in_clone
def test_the_action_repeats_the_words_of_the_table() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["outputs"]["exit-code"]["description"] == SUMMARY


def test_the_help_lists_every_exit_code_on_a_line_that_fits() -> None:
    line = f"exit codes: {SUMMARY}"
    assert line in CLOSING.splitlines()
    assert line in EXAMPLES.splitlines()
    assert len(line) <= 120
