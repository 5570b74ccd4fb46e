"""Ways in which a tired vendor once got a yes: each is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.evidence.results import part_of

from ..builders import Command

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
    identity = Identity("mine", f"1.{os.getpid()}")

class Scalar(Mine):
    def copy_elements(self, src, dst, may_overwrite):
        answer = super().copy_elements(src, dst, may_overwrite)
        return answer[()] if isinstance(answer, np.ndarray) else answer
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(ADAPTER, encoding="utf-8")
    return path


def cut(folder: Path, lines: int) -> None:
    """An evidence file as an interruption leaves it."""
    path = folder / "results.jsonl"
    left = path.read_text().splitlines(keepends=True)[:lines]
    path.unlink()
    part_of(path).write_text("".join(left), encoding="utf-8")


def test_a_target_of_one_type_never_reads_as_if_it_were_all(reporting: Command, mine: Path, tmp_path: Path) -> None:
    said = reporting.run(f"{mine}:Narrow", "--type", "f32", "--isolation", "none", "--json").expect(0)
    assert all(
        "for f32" in sentence and "no more than f32 was asked for" in sentence for sentence in said.data["sentences"]
    )
    assert "for f32 only" in (tmp_path / "out" / "badge.svg").read_text()


def test_a_run_is_not_resumed_with_another_adapter(command: Command, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command.run(f"{mine}:Mine", "--isolation", "none")
    cut(out, 40)
    mine.write_text(ADAPTER + "\n# changed\n", encoding="utf-8")
    command.run(f"{mine}:Mine", "--isolation", "none", "--resume", str(out)).expect(2, err="backend.digest was")


def test_of_another_backend_the_name_is_told_before_its_isolation(command: Command, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command.run(f"{mine}:Mine", "--isolation", "worker")
    cut(out, 40)
    command.run("reference", "--resume", str(out)).expect(2, err="backend.name was")


def test_a_run_is_not_resumed_from_rows_that_somebody_wrote(command: Command, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command.run(f"{mine}:Narrow", "--isolation", "none")
    cut(out, 300)
    path = part_of(out / "results.jsonl")
    path.write_text(path.read_text().replace('"fail"', '"pass"'), encoding="utf-8")
    command.run(f"{mine}:Narrow", "--isolation", "none", "--resume", str(out)).expect(2, err="the file was changed")


def test_a_row_that_is_none_is_refused_at_resuming(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command.run("reference")
    cut(out, 2)
    with part_of(out / "results.jsonl").open("a") as file:
        file.write('{"record":"row"}\n')
    said = command.run("reference", "--resume", str(out)).expect(2)
    assert ":3: the row lacks row, verdicts, outcomes; the file is damaged" in said.err


def test_what_an_earlier_run_said_is_gone_when_this_one_cannot_start(
    command: Command, mine: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command.run(f"{mine}:Mine", "--isolation", "none")
    mine.write_text("import nosuch\n" + ADAPTER, encoding="utf-8")
    assert command.run(f"{mine}:Mine", "--isolation", "none").code == 3
    assert list(out.iterdir()) == []


def test_processes_that_describe_themselves_differently_are_not_one_backend(command: Command, mine: Path) -> None:
    said = command.run(f"{mine}:Pid", "--isolation", "worker", "--jobs", "2").expect(3)
    assert "started twice, it describes itself differently" in said.err


def test_a_scalar_of_numpy_is_a_tensor_of_rank_zero(command: Command, mine: Path) -> None:
    assert command.run(f"{mine}:Scalar", "--isolation", "none").code == 0


def test_planted_backends_of_other_names_do_not_stand_for_ours(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.runner.planted_backends.count_failures", lambda *_: {"x": 1})
    assert command.run("reference").code == 5


def test_no_message_names_the_place_of_the_suite_on_the_machine(command: Command, mine: Path) -> None:
    mine.write_text(
        ADAPTER + "\nimport conformance, sys\n\nclass Tells(Mine):\n    def compile(self, graph):\n"
        "        raise ValueError(f'{conformance.__file__} {sys.prefix}/lib')\n",
        encoding="utf-8",
    )
    command.run(f"{mine}:Tells")
    text = (command.out / "results.jsonl").read_text()
    assert "ValueError: conformance/__init__.py lib" in text
