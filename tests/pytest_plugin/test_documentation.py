"""docs/pytest.md shows what pytest prints, and lists the settings that there are."""

import re
import shlex
from datetime import date, timedelta
from pathlib import Path
from typing import get_args

import pytest

from conformance.isolate.backend import Isolation
from tests.builders import Cli
from tests.pytest_plugin.done import NO_REPORTS, ROOT, Done

PAGE = ROOT / "docs" / "pytest.md"
WAIVERS = """waivers:
  - breaks: lower-bound
    reason: reads every negative entry as -1
    link: https://tracker.example/1234
    owner: the reshape team
    expires: '{}'
"""
FEW_CASES = """
from dataclasses import replace
from conformance.model import Cases
from conformance.pytest_plugin import hooks
load_suite = hooks.load_suite
def load_few(folder):
    suite = load_suite(folder)
    some = {case.id for rule in suite.spec.rules for case in [*suite.cases.about([rule])][:4]}
    few = {id_: case for id_, case in suite.cases.items() if id_ in some or case.file == 'cases/infer.yaml'}
    return replace(suite, cases=Cases(few))
hooks.load_suite = load_few
"""
"""A conftest.py that leaves some cases of each rule: enough for what the page shows, in a fraction of the time."""
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation stays in the clone")


def pattern_of(shown: str) -> str:
    """A regular expression for an output in which `…` stands for any text, and for any lines where it is alone."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown.splitlines()
    ]
    return "^" + "".join(lines)


@pytest.mark.slow
def test_the_outputs_in_the_documentation(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conftest.py").write_text(NO_REPORTS + FEW_CASES, encoding="utf-8")
    cli("new-adapter", "mine").expect(0)
    page = PAGE.read_text(encoding="utf-8")
    sessions = re.findall(r"```console\n\$ (.*)\n((?:.*\n)*?)```", page)
    assert len(sessions) == 3
    for command, shown in sessions:
        if "--conformance-out" in command:
            (tmp_path / "pytest.ini").write_text(page.split("```ini\n")[1].split("```")[0], encoding="utf-8")
            expires = date.today() + timedelta(days=30)
            (tmp_path / "waivers.yaml").write_text(WAIVERS.format(expires), encoding="utf-8")
        program, option, adapter, *words = shlex.split(command)
        assert (program, option) == ("pytest", "--adapter")
        done = Done(tmp_path, *words, adapter=adapter)
        assert re.search(pattern_of(shown), done.text, re.MULTILINE), done.text


def test_the_table_of_settings_is_complete() -> None:
    from reshape_conformance_pytest import INI, OPTIONS

    rows = re.findall(r"^\| `(--conformance-\w+) [A-Z]+` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(f"--conformance-{name}", f"conformance_{name}") for name in INI]
    assert {option for option, _ in rows} <= OPTIONS.keys()
    named = re.findall(r"(\w+)(?= \(|$)", OPTIONS["--conformance-isolation"]["help"])
    assert named == [*get_args(Isolation)]
