"""Adapters of one function: how they reject and claim, and how a backend changes its surroundings."""

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import CannotStart, FunctionAdapter, load_adapter
from conformance.model import Claims, Declared, Graph, Identity, Unsupported
from conformance.plan.rows import Plan
from conformance.run.quiet_backend import quiet_backend
from conformance.run.row import run_rows

from .. import builders, miniatures
from ..builders import Command, conforming, mini
from ..processes import run_command
from .conftest import HEAD


# ── what a function may do ────────────────────────────────────────────────────────────────────────
def function(**fields: Any) -> FunctionAdapter:
    kind = type("It", (miniatures.Plain,), fields)
    adapter = kind()
    assert isinstance(adapter, FunctionAdapter)
    return adapter


def verdicts(plan: Plan, adapter: FunctionAdapter, case: str) -> set[str]:
    rows = [row for row in plan.rows if row.case.id == case]
    assert rows
    return {verdict for result in run_rows(rows, adapter) for verdict in result.verdicts.values()}


def raising(error: type[Exception]) -> Any:
    def reshape(self: Any, src: Any, shape: Any, special_zero: Any) -> Any:
        raise error("no")

    return reshape


class Mute(ValueError):
    def __str__(self) -> str:
        raise KeyError


@pytest.mark.parametrize("error", [ValueError, RuntimeError, OverflowError, Mute])
def test_a_function_refuses_by_the_errors_it_names(plan: Plan, error: type[Exception]) -> None:
    assert verdicts(plan, function(reshape=raising(error)), "two-infers") == {"pass"}
    assert verdicts(plan, function(reshape=raising(error)), "flattens") == {"fail"}


@pytest.mark.parametrize("error", [TypeError, AttributeError, KeyError, ZeroDivisionError])
def test_a_bug_is_no_refusal(plan: Plan, error: type[Exception]) -> None:
    assert verdicts(plan, function(reshape=raising(error)), "two-infers") == {"error"}


def test_a_function_does_not_claim_other_forms(plan: Plan) -> None:
    assert verdicts(plan, miniatures.Plain(), "without-special-zero") == {"not claimed"}
    assert verdicts(plan, function(not_claimed=()), "without-special-zero") == {"fail"}


def test_a_declared_dst_is_unsupported_by_a_function(plan: Plan) -> None:
    node = plan.rows[0].steps[0].graph.nodes[0]
    graph = Graph(Declared("f32", (2, 3)), (node._replace(result=Declared("f32", (6,))),))
    with pytest.raises(Unsupported, match="declared"):
        function().compile(graph)


# ── what a backend does to its surroundings ───────────────────────────────────────────────────────
def test_noise_and_a_changed_directory_are_noted_and_undone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command.run(mini("Moves"), "--json", out=Path("relative")).expect(0)
    assert Path.cwd() == tmp_path
    assert (tmp_path / "relative" / "results.jsonl").is_file()
    notes = " ".join(said.data["notes"])
    assert "the backend changed the working directory" in notes
    assert "lines to the standard output" in notes


def test_descriptor_1_is_the_standard_error_meanwhile(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_backend():
        os.write(1, b"raw\n")
        ctypes.CDLL(None).puts(b"from C")
    assert capfd.readouterr() == ("", "raw\nfrom C\n")
    os.write(1, b"ours\n")
    assert capfd.readouterr().out == "ours\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("run", "-k", "flattens"), ("check-adapter",)])
def test_json_stays_whole_beside_a_noisy_library(tmp_path: Path, words: tuple[str, ...]) -> None:
    text = HEAD.replace("        return", "        import os; os.write(1, b'raw')\n        return")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    few = ["--suite", builders.write_suite(tmp_path), "--isolation", "none", "--json"]
    command = (words[0], f"{tmp_path / 'mine.py'}:Right", *words[1:], *few)
    done = run_command(*command, cwd=builders.ROOT, module="tests.without_planted")
    assert json.loads(done.stdout)
    assert "rawraw" in done.stderr


def test_a_working_directory_that_is_gone_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here := Path.cwd())  # also after the test
    with quiet_backend() as notes:
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
    assert Path.cwd() == here
    assert notes == ["the backend changed the working directory"]


def test_a_right_file_works_by_its_path(command: Command, backend: Any) -> None:
    text = "from conformance.adapters.planted.base import Illegal, Unspecified, resolve\n"
    text += "class It(Right):\n rejections = Illegal, Unspecified\n"
    text += " def reshape(self, src, shape, special_zero):\n"
    text += "  return src.reshape(resolve(src.shape, shape, special_zero, True))"
    said = command.run(backend(text), "--operation", "Reshape-1").expect(0)
    assert conforming(said.out) == {"reshape-spec-v0.7"}
    assert "as far as 20 cases of another suite go as run in the suite's own process" in said.text


@pytest.mark.parametrize("part", [Identity("x", "1"), Claims(())])
def test_a_class_is_checked_and_not_only_its_looks(part: object) -> None:
    with pytest.raises(CannotStart):
        load_adapter(f"{__name__}:{type(part).__name__}")
