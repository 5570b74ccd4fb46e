"""Ways in which a vendor in a hurry once got a yes: each is closed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.evidence.results import name_unfinished

from ..builders import Command, cut_results

ADAPTER = """from conformance.adapters.reference import Reference
from conformance.model import Identity
import numpy as np
import os

class Mine(Reference):
    identity = Identity("mine", "1")

class Narrow(Mine):
    def copy_elements(self, src, dst, may_overwrite):
        answer = super().copy_elements(src, dst, may_overwrite)
        return np.zeros_like(answer) if src.type == "bf16" else answer

class Pid(Reference):
    identity = Identity("mine", f"1.{os.getpid()}")"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(ADAPTER, encoding="utf-8")
    return path


def cut(folder: Path, lines: int) -> Path:
    """Leave a run as an interruption leaves it, and return what is left of its results."""
    path = folder / "results.jsonl"
    cut_results(path, path.read_bytes().splitlines(keepends=True)[:lines])
    return name_unfinished(path)


def test_a_target_of_one_type_does_not_read_as_all(reporting: Command, mine: Path, tmp_path: Path) -> None:
    said = reporting.run(f"{mine}:Narrow", "--type", "f32", "--isolation", "none", "--json").expect(0)
    for sentence in said.data["sentences"]:
        assert "for f32" in sentence
        assert "no more than f32 was asked for" in sentence
    assert said.data["why"].startswith("the whole target conforms, asked for f32 only")
    assert "for f32 only" in (tmp_path / "out" / "badge.svg").read_text()


NOT_RESUMED: dict[str, tuple[str, int, Callable[[Path, Path], object], str]] = {
    # case: (the backend, the lines that are left, what is changed, words of the message)
    "another adapter": (
        "{mine}:Mine", 40, lambda left, mine: mine.write_text(f"{ADAPTER}\n# changed\n"),
        "backend.digest was"),
    "verdicts that somebody wrote": (
        "{mine}:Narrow", 300,
        lambda left, mine: left.write_text(left.read_text().replace('"fail"', '"pass"')), "the file was changed"),
    "a row that is none": (
        "reference", 2, lambda left, mine: left.write_text(left.read_text() + '{"record":"row"}\n'),
        ":3: the row lacks row, verdicts, outcomes; the file is damaged"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", NOT_RESUMED)
def test_a_run_is_not_resumed_from_something_else(command: Command, mine: Path, what: str) -> None:
    backend, lines, change, words = NOT_RESUMED[what]
    command.run(backend.format(mine=mine))
    change(cut(command.out, lines), mine)
    command.run(backend.format(mine=mine), "--resume", command.out).expect(2, err=words)


def test_a_run_that_cannot_start_removes_what_the_last_one_said(command: Command, mine: Path) -> None:
    command.run(f"{mine}:Mine", "--isolation", "none")
    mine.write_text("import nosuch\n" + ADAPTER, encoding="utf-8")
    assert command.run(f"{mine}:Mine", "--isolation", "none").code == 3
    assert {path.name for path in command.out.iterdir()} == {"junit.xml", "summary.md"}
    assert "No module named 'nosuch'" in (command.out / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_processes_of_different_descriptions_are_not_one_backend(command: Command, mine: Path) -> None:
    words = "started twice, it describes itself differently"
    command.run(f"{mine}:Pid", "--isolation", "worker", "--jobs", "2").expect(3, err=words)


def test_planted_backends_of_other_names_are_not_ours(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.runner.planted_backends.run_all", lambda *_: {"x": 1})
    assert command.run("reference").code == 5


def test_no_message_names_where_the_suite_is_installed(command: Command, mine: Path) -> None:
    mine.write_text(
        ADAPTER + "\nimport conformance, sys\n\nclass Tells(Mine):\n    def compile(self, graph):\n"
        "        raise ValueError(f'{conformance.__file__} {sys.prefix}/lib')\n",
        encoding="utf-8",
    )
    command.run(f"{mine}:Tells")
    text = (command.out / "results.jsonl").read_text()
    assert "ValueError: conformance/__init__.py lib" in text
