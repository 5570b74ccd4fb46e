"""`conformance export` says what is missing, and overwrites nothing."""

import sys
from pathlib import Path

import pytest

from tests.builders import Cli, plan_of_cases, write_suite


@pytest.mark.parametrize("form", ["benchdnn", "onnx"])
def test_a_folder_with_files_is_left_as_it_is(cli: Cli, tmp_path: Path, form: str) -> None:
    (tmp_path / "mine").write_text("precious", encoding="utf-8")
    said = cli("export", form, "--out", tmp_path).expect(2, lines=1)
    assert "is not empty and is left as it is; name a new or an empty folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "is no folder" in cli("export", form, "--out", tmp_path / "mine").expect(2, lines=1).err


@pytest.mark.parametrize(
    ("form", "left_out", "lost"),
    [
        ("benchdnn", {"strides that repeat or reverse elements": 3}, "the elements of src: benchdnn fills it with its"),
        ("onnx", {}, "bits of NaN"),
    ],
)
def test_every_row_is_written_or_left_out_for_a_reason(
    cli: Cli, tmp_path: Path, form: str, left_out: dict[str, int], lost: str
) -> None:
    if form == "onnx":
        pytest.importorskip("onnx")
    words = ("export", form, "--suite", write_suite(tmp_path), "--out", tmp_path / "out", "--json")
    facts = cli(*words).expect(0).data
    assert facts["tests"] == len(list((tmp_path / "out").iterdir()))
    assert facts["rows"] + sum(facts["left_out"].values()) == len(plan_of_cases(tmp_path).rows)
    assert facts["left_out"]["a call that a document forbids"] > 0
    assert left_out.items() <= facts["left_out"].items()
    assert any(line.startswith(lost) for line in facts["lost"])


def test_without_onnx_the_package_to_install_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.setitem(sys.modules, "onnx.numpy_helper", None)
    said = cli("export", "onnx", "--suite", write_suite(tmp_path), "--out", tmp_path / "out").expect(2, lines=1)
    assert "pip install 'reshape-conformance[graphs]'" in said.err
    assert not (tmp_path / "out").exists()
