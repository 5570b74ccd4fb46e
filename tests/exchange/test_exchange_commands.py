"""`conformance export` says what is missing, and overwrites nothing."""

import sys
from pathlib import Path

import pytest

from tests.builders import Cli, write_suite


@pytest.mark.parametrize("form", ["benchdnn", "onnx"])
def test_a_folder_with_files_is_left_as_it_is(cli: Cli, tmp_path: Path, form: str) -> None:
    (tmp_path / "mine").write_text("precious", encoding="utf-8")
    said = cli("export", form, "--out", tmp_path).expect(2, lines=1)
    assert "is not empty and is left as it is; name a new or an empty folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "is no folder" in cli("export", form, "--out", tmp_path / "mine").expect(2, lines=1).err


def test_without_onnx_the_package_to_install_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    said = cli("export", "onnx", "--suite", write_suite(tmp_path), "--out", tmp_path / "out").expect(2, lines=1)
    assert "pip install 'reshape-conformance[graphs]'" in said.err
    assert not (tmp_path / "out").exists()
