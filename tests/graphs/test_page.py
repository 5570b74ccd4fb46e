"""The page about a model's reshapes, and the worked examples of docs/check-graph.md."""

import re
import shutil
from pathlib import Path

import pytest

from tests.builders import ROOT, Cli
from tests.graphs.graph_files import dump, static, tensor
from tests.graphs.test_openvino_ir import ir

DOCS = ROOT / "docs" / "check-graph.md"


def test_the_page_shows_each_reshape_with_a_picture(tmp_path: Path, cli: Cli) -> None:
    path = dump(
        tmp_path, static(tensor(0, 2, 3, 4), [0, -1], tensor(1, 2, 12), 1, name="<script>alert(1)</script>"),
        static(tensor(0, 2, 3, 4), [7], tensor(2, 7)), static(tensor(3, -1), [6], tensor(4, 6)),
    )  # fmt: skip
    page = tmp_path / "page.html"
    assert f"page: {page}" in cli("check-graph", path, "--out", str(page), "--faults").expect(1).out
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "3 reshapes: 1 illegal, 1 conditional, 1 legal" in text
    assert "src [2, 3, 4]; shape [0, -1] (entry 0 is 0, copied: 2; entry 1 is -1, inferred: 12); dst 2, 12" in text
    assert text.count("<svg") == 2
    assert "Nothing was run on a backend." in text
    assert "exit 1: a reshape is illegal" in text
    assert text.count("may fail on ncnn 1.0.20240410, 1.0.20261020: A 0 copies") == 1


def test_the_page_names_a_file_that_cannot_be_read(tmp_path: Path, cli: Cli) -> None:
    cli("check-graph", str(tmp_path / "no.json"), "--out", str(tmp_path / "page.html")).expect(2)
    assert "Unreadable: No such file" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.skipif(not DOCS.is_file(), reason="the documentation is only in a clone")
def test_the_worked_examples_print_what_the_documentation_says(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = pytest.importorskip("onnx")
    model = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    if not model.is_file():
        pytest.skip("this version of onnx has no models in it")
    monkeypatch.chdir(tmp_path)
    shutil.copy(model, tmp_path)
    ir(tmp_path, 0, -1, batch=-1)
    dump(tmp_path, static(tensor(0, 1, 3, 4), [1, 12], tensor(1, 1, 12), name="flatten"))
    blocks = re.findall(r"```\n(\$ .*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    examples = [part.partition("\n") for block in blocks for part in block[2:].split("\n$ ")]
    assert len(examples) == 4
    for command, _, output in examples:
        assert cli(*command.split()[1:]).out.strip() == output.strip()
