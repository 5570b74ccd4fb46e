"""docs/check-graph.md shows what the command prints."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from conformance.graphs.read import READERS
from conformance.tests.small import ROOT

from .files import check

PAGE = ROOT / "docs" / "check-graph.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not beside an installed suite")


def shown(file: str) -> tuple[list[str], str, int]:
    """The words of the command for a file, what the page says it prints, and its exit code."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = rf"```console\n\$ conformance check-graph ({re.escape(file)} .*)\n([\s\S]*?)\$ echo \$\?\n(\d)\n```"
    match = re.search(pattern, text)
    assert match is not None
    return shlex.split(match[1]), match[2], int(match[3])


def compare(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, output, exit_code = shown(file)
    code, out, _ = check(capsys, *words)
    assert (out.rstrip(), code) == (output.rstrip(), exit_code)


def test_the_graph_of_the_page_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (graph,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "graph.json").write_text(graph)
    monkeypatch.chdir(tmp_path)
    compare("graph.json", capsys)


def test_the_onnx_model_of_the_page_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = pytest.importorskip("onnx")
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    shutil.copy(folder / "light_resnet50.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    compare("light_resnet50.onnx", capsys)


def test_the_page_names_every_kind_of_file() -> None:
    assert set(re.findall(r"^\| `(\.\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == set(READERS)
