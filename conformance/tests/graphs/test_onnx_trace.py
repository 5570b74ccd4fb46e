"""--trace: ONNX Runtime tells src and shape where they depend on values."""

from __future__ import annotations

from pathlib import Path

import pytest

from .files import check
from .test_onnx_model import constant, node, onnx, reshape, write

Captured = pytest.CaptureFixture[str]


def late_shape(folder: Path) -> Path:
    """A model whose shape is the number of elements above 0, twice in a row."""
    nodes = [
        node("NonZero", ["x"], "found"), node("Shape", ["found"], "dims"),
        node("Slice", ["dims", "one", "two"], "count"), node("Concat", ["count", "count"], "shape", axis=0),
        reshape("late", "x", "shape", "y"),
    ]  # fmt: skip
    return write(folder, nodes, ["n", 4], [constant("one", [1]), constant("two", [2])])


def test_a_shape_that_depends_on_values_is_traced(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("onnxruntime")
    model = late_shape(tmp_path)
    assert check(capsys, model, "--input", "x=1,4")[0] == 4
    code, out, _ = check(capsys, model, "--input", "x=1,4", "--trace")
    assert (code, "legal  f32[1, 4] by [2, 2]" in out) == (0, True)
    code, _, err = check(capsys, model, "--trace")
    assert (code, "--trace needs every length of the input 'x'" in err) == (2, True)


def test_a_run_that_fails_leaves_the_node_undecided_and_says_why(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("onnxruntime")
    code, out, _ = check(capsys, late_shape(tmp_path), "--input", "x=2,4", "--trace")  # 2 × 4 by [4, 4]
    assert code == 4
    assert "shape comes from a run that failed (" in out


def test_a_model_with_weights_in_another_file_is_not_run(tmp_path: Path, capsys: Captured) -> None:
    pytest.importorskip("onnxruntime")
    outside = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    outside.external_data.add(key="location", value="../weights.bin")
    model = write(tmp_path, [node("Add", ["x", "w"], "y")], [1, 4], [outside])
    code, _, err = check(capsys, model, "--trace")
    assert (code, "weights are in another file, which is never read" in err) == (2, True)


def test_only_onnx_models_are_traced(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "graph.json").write_text('{"graph": []}')
    code, _, err = check(capsys, tmp_path / "graph.json", "--trace")
    assert (code, "--trace is for ONNX models" in err) == (2, True)
