"""ONNX models: dims and shape values as far as they follow, lengths of inputs, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .files import check

onnx = pytest.importorskip("onnx")
Captured = pytest.CaptureFixture[str]
Dims = Sequence[int | str | None]


def value(name: str, dims: Dims | None, type_: int = 1) -> Any:
    return onnx.helper.make_tensor_value_info(name, type_, dims)


def constant(name: str, numbers: Sequence[int]) -> Any:
    return onnx.helper.make_tensor(name, 7, [len(numbers)], numbers)


def write(folder: Path, nodes: Sequence[Any], src: Dims, constants: Sequence[Any] = (), opset: int = 17) -> Path:
    graph = onnx.helper.make_graph(nodes, "g", [value("x", src)], [value("y", None)], list(constants))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def reshape(name: str, src: str, shape: str, dst: str, **attributes: int) -> Any:
    return onnx.helper.make_node("Reshape", [src, shape], [dst], name, **attributes)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, list(inputs), [output], **attributes)


def test_the_reshapes_of_the_models_that_come_with_onnx_are_legal(capsys: Captured) -> None:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data"
    files = [*folder.glob("light/*.onnx"), *folder.glob("pytorch-*/*/model.onnx")]
    code, out, _ = check(capsys, *files)
    assert code == 0
    assert out.count("  Reshape, node ") == out.count("  legal  ") == 43
    code, out, _ = check(capsys, folder / "light" / "light_resnet50.onnx", "--input", "gpu_0/data_0=1..8,3,224,224")
    assert (code, "illegal for gpu_0/data_0[0] = 2..8: same-volume" in out) == (1, True)


def test_a_batch_with_a_name_cancels_and_a_baked_in_one_is_not_decided(tmp_path: Path, capsys: Captured) -> None:
    nodes = [reshape("good", "x", "copied", "y"), reshape("bad", "x", "baked", "z")]
    constants = [constant("copied", [0, 12]), constant("baked", [1, 12])]
    model = write(tmp_path, nodes, ["batch", 3, 4], constants)
    code, out, _ = check(capsys, model)
    assert code == 4
    assert "f32[batch, 3, 4] by [0, 12], special_zero true → [batch, 12]" in out
    assert "not decided: missing: batch; legal at most for batch = 1" in out
    code, out, _ = check(capsys, model, "--input", "x=1..8,3,4")
    assert code == 1
    assert "good  Reshape, node 0  legal for every length tried" in out
    assert "illegal for x[0] = 2..8: same-volume" in out


def test_dims_that_the_file_declares_behind_a_bound_input_do_not_count(tmp_path: Path, capsys: Captured) -> None:
    nodes = [node("MysteryOfAnotherDomain", ["x"], "m", domain="other"), reshape("r", "m", "shape", "y")]
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", [1, 12])], [value("y", [1, 12])], [constant("shape", [1, 12])],
        value_info=[value("m", [1, 12])],
    )  # fmt: skip
    domains = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("other", 1)]
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=domains).SerializeToString())
    assert check(capsys, path)[0] == 0
    code, out, _ = check(capsys, path, "--input", "x=2,12")
    assert (code, "missing: src, which MysteryOfAnotherDomain 'm' gives" in out) == (4, True)


def test_allowzero_is_the_negation_of_special_zero(tmp_path: Path, capsys: Captured) -> None:
    nodes = [reshape("literal", "x", "shape", "y", allowzero=1), reshape("copied", "x", "shape", "z")]
    code, out, _ = check(capsys, write(tmp_path, nodes, [2, 3], [constant("shape", [0, 3])]))
    assert code == 1
    assert "f32[2, 3] by [0, 3], special_zero false" in out
    assert "f32[2, 3] by [0, 3], special_zero true → [2, 3]" in out
    assert "illegal: same-volume in static-2022" in out
    assert "illegal: zero-empties in " in out


def test_a_shape_that_is_computed_from_dims_is_followed(tmp_path: Path, capsys: Captured) -> None:
    nodes = [
        node("Shape", ["x"], "dims"), node("Gather", ["dims", "zero"], "n"), node("Unsqueeze", ["n", "axes"], "n1"),
        node("Slice", ["dims", "one", "two"], "c"), node("Mul", ["c", "c"], "cc"),
        node("Concat", ["n1", "cc", "rest"], "shape", axis=0), reshape("computed", "x", "shape", "y"),
    ]  # fmt: skip
    zero = onnx.helper.make_tensor("zero", 7, [], [0])
    constants = [zero, constant("axes", [0]), constant("one", [1]), constant("two", [2]), constant("rest", [-1])]
    model = write(tmp_path, nodes, ["batch", 2, 8], constants)
    code, out, _ = check(capsys, model)
    assert (code, "f32[batch, 2, 8] by [batch, 4, -1], special_zero true → [batch, 4, 4]" in out) == (0, True)
    code, out, _ = check(capsys, model, "--input", "x=1..3,3,8")
    assert (code, "illegal for every length tried: same-volume" in out) == (1, True)


def test_subgraphs_of_if_are_searched(tmp_path: Path, capsys: Captured) -> None:
    branches = {}
    for name, lengths in (("then_branch", [3, 2]), ("else_branch", [5])):
        inside = reshape(f"in-{name}", "x", f"s-{name}", f"y-{name}")
        graph = onnx.helper.make_graph([inside], name, [], [value(f"y-{name}", None)], [constant(f"s-{name}", lengths)])
        branches[name] = graph
    nodes = [onnx.helper.make_node("If", ["flag"], ["y"], "choose", **branches)]
    flag = onnx.helper.make_tensor("flag", 9, [], [True])
    code, out, _ = check(capsys, write(tmp_path, nodes, [2, 3], [flag]))
    assert code == 1
    assert "in-then_branch  Reshape, node 0 of then_branch of node 0  legal" in out
    assert "in-else_branch  Reshape, node 0 of else_branch of node 0\n    illegal: same-volume" in out


def test_a_shape_that_arrives_with_the_run_is_not_decided(tmp_path: Path, capsys: Captured) -> None:
    nodes = [node("NonZero", ["x"], "found"), node("Shape", ["found"], "shape"), reshape("late", "x", "shape", "y")]
    code, out, _ = check(capsys, write(tmp_path, nodes, [2, 3]))
    assert code == 4
    assert "not decided: missing: " in out


def test_weights_are_no_inputs_and_their_elements_are_not_needed(tmp_path: Path, capsys: Captured) -> None:
    outside = onnx.TensorProto(name="w", data_type=1, dims=[3, 4], data_location=1)
    outside.external_data.add(key="location", value="../../../../etc/passwd")
    large = onnx.TensorProto(name="v", data_type=1, dims=[1 << 15, 1 << 15])  # declares 4 GiB and has nothing
    nodes = [node("MatMul", ["x", "w"], "m"), reshape("r", "m", "shape", "y"), reshape("q", "v", "all", "z")]
    constants = [outside, large, constant("shape", [0, 2, 2]), constant("all", [-1])]
    model = write(tmp_path, nodes, ["n", 3], constants)
    code, out, _ = check(capsys, model)
    assert (code, "f32[n, 4] by [0, 2, 2], special_zero true → [n, 2, 2]" in out) == (0, True)
    assert "f32[32768, 32768] by [-1], special_zero true → [1073741824]" in out
    code, _, err = check(capsys, model, "--input", "w=3,4")
    assert (code, "there is no such input; the inputs are x" in err) == (2, True)


def test_a_shape_in_another_file_is_never_read(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "shape.bin").write_bytes((6).to_bytes(8, "little"))
    shape = onnx.TensorProto(name="shape", data_type=7, dims=[1], data_location=1)
    shape.external_data.add(key="location", value="shape.bin")
    code, out, _ = check(capsys, write(tmp_path, [reshape("r", "x", "shape", "y")], [2, 3], [shape]))
    assert (code, "missing: shape[0]" in out) == (4, True)


@pytest.mark.parametrize("opset", [5, 13, 99])
def test_every_opset_from_5_is_read(tmp_path: Path, capsys: Captured, opset: int) -> None:
    model = write(tmp_path, [reshape("r", "x", "shape", "y")], [2, 3], [constant("shape", [-1])], opset)
    assert check(capsys, model)[0] == 0


@pytest.mark.parametrize("content", [b"", b"\x00", b"not a model", b"\x08" * 100, b"\x3a\xff\xff\xff\xff\x07"])
def test_bytes_that_are_no_model_end_with_2(tmp_path: Path, capsys: Captured, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    code, _, err = check(capsys, tmp_path / "model.onnx")
    assert (code, "this is no ONNX model" in err) == (2, True)


def test_every_beginning_of_a_model_ends_without_a_traceback(tmp_path: Path, capsys: Captured) -> None:
    nodes = [node("Relu", ["x"], "r"), reshape("r", "r", "shape", "y")]
    whole = write(tmp_path, nodes, ["n", 3], [constant("shape", [0, -1])]).read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "part.onnx").write_bytes(whole[:length])
        assert check(capsys, tmp_path / "part.onnx")[0] in (0, 2, 4)
