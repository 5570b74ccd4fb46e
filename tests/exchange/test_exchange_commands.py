"""`conformance export` and `import` say what is missing, and overwrite nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.small import Cli, cases


@pytest.mark.parametrize("form", ["benchdnn", "onnx"])
def test_a_folder_with_files_is_left_as_it_is(cli: Cli, tmp_path: Path, form: str) -> None:
    (tmp_path / "mine").write_text("precious", encoding="utf-8")
    said = cli("export", form, "--out", tmp_path).expect(2, lines=1)
    assert "is not empty and is left as it is; name a new or an empty folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "is no folder" in cli("export", form, "--out", tmp_path / "mine").expect(2, lines=1).err


@pytest.mark.parametrize("command", ["export", "import"])
def test_without_onnx_the_package_to_install_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    words = ("--out", tmp_path / "out") if command == "export" else (tmp_path,)
    said = cli(command, "onnx", "--cases", cases(tmp_path), *words).expect(2, lines=1)
    assert "pip install 'reshape-conformance[graphs]'" in said.err
    assert not (tmp_path / "out").exists()


def test_a_folder_to_import_must_be_there(cli: Cli, tmp_path: Path) -> None:
    said = cli("import", "onnx", tmp_path / "none").expect(2, lines=1)
    assert "does not exist; give the folder that holds the files" in said.err
