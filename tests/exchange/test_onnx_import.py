"""`conformance import onnx`: node tests of Reshape as cases, and the case that makes a call already."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.small import CASES, Cli, cases, suite

onnx = pytest.importorskip("onnx")


def write(folder: Path, model: Any, *data_sets: tuple[list[Any], list[Any]]) -> None:
    """Write a node test in the layout of onnx."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for number, sides in enumerate(data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for side, arrays in zip(("input", "output"), sides, strict=True):
            for k, array in enumerate(arrays):
                tensor = onnx.numpy_helper.from_array(np.asarray(array))
                (data / f"{side}_{k}.pb").write_bytes(tensor.SerializeToString())


def reshape(folder: Path, src: Any, *shapes: list[int], dst: list[int] | None = None, **attributes: int) -> None:
    """Write a test with a data set for each shape; the answer is that of NumPy unless dst gives other dims."""
    helper = onnx.helper
    node = helper.make_node("Reshape", ["src", "shape"], ["dst"], **attributes)
    inputs = [helper.make_tensor_value_info("src", 1, None), helper.make_tensor_value_info("shape", 7, [None])]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("dst", 1, None)])
    sets = [([src, np.array(shape, np.int64)], [np.reshape(src, dst or shape)]) for shape in shapes]
    write(folder, helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), *sets)


def floats(*dims: int) -> Any:
    return np.zeros(dims, np.float32)


def imported(cli: Cli, folder: Path, code: int = 0) -> Any:
    return cli("import", "onnx", folder / "node", "--cases", cases(folder), "--json").expect(code).data


def test_a_new_call_becomes_a_case(cli: Cli, tmp_path: Path) -> None:
    reshape(tmp_path / "node/test_reshape_of_nine", floats(9), [-1, 3])
    added = tmp_path / "added"
    said = cli("import", "onnx", tmp_path / "node", "--cases", cases(tmp_path), "--out", added / "node.yaml").expect(0)
    assert "wrote 1 case" in said.out
    (case,) = yaml.safe_load((added / "node.yaml").read_text(encoding="utf-8"))["cases"]
    assert case == {
        "id": "onnx-reshape-of-nine", "rule": "infer-keeps-count", "src": "f32[9]", "shape": [-1, 3],
        "special_zero": True, "expect": "f32[3, 3]", "once": "for-each-operation",
    }  # fmt: skip
    (step,) = suite(None, added).cases[case["id"]].steps
    assert (step.src, step.shapes, step.special_zero) == ((9,), ((-1, 3),), (True,))


def test_a_call_that_a_case_makes_is_named_and_not_written(cli: Cli, tmp_path: Path) -> None:
    reshape(tmp_path / "node/test_it", floats(4), [2, -1], allowzero=1)
    facts = imported(cli, tmp_path)
    assert (facts["duplicates"], facts["cases"]) == ({"test_it": "infers"}, [])
    words = (tmp_path / "node", "--cases", cases(tmp_path), "--out", tmp_path / "new.yaml")
    assert (
        "no call is new\n  test_it: its call is that of the case infers" in cli("import", "onnx", *words).expect(0).out
    )
    assert not (tmp_path / "new.yaml").exists()  # a file without cases would be an error


def test_two_tests_of_one_call_give_one_case(cli: Cli, tmp_path: Path) -> None:
    for name in ("test_first", "test_second"):
        reshape(tmp_path / "node" / name, floats(9), [3, 3])
    facts = imported(cli, tmp_path)
    assert (facts["cases"], facts["duplicates"]) == (["onnx-first"], {"test_second": "onnx-first"})


def test_each_data_set_is_a_call(cli: Cli, tmp_path: Path) -> None:
    reshape(tmp_path / "node/test_it", floats(9), [3, 3], [9, 1])
    assert imported(cli, tmp_path)["cases"] == ["onnx-it", "onnx-it-2"]


def test_a_test_that_wants_other_dims_than_the_documents_is_reported(cli: Cli, tmp_path: Path) -> None:
    reshape(tmp_path / "node/test_wrong", floats(8), [2, -1], dst=[8])
    (line,) = imported(cli, tmp_path, 1)["disagreements"]
    assert line == "test_wrong: the test wants [8], and a document has [2, 4]"


def test_what_is_no_reshape_or_is_damaged_is_left_out_with_the_reason(cli: Cli, tmp_path: Path) -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    values = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    write(tmp_path / "node/test_relu", onnx.helper.make_model(graph), ([floats(2)], [floats(2)]))
    reshape(tmp_path / "node/test_cut", floats(4), [2, 2])
    cut = tmp_path / "node/test_cut/test_data_set_0/input_1.pb"
    cut.write_bytes(cut.read_bytes()[:-3])
    reshape(tmp_path / "node/test_lost", floats(4), [2, 2])
    (tmp_path / "node/test_lost/test_data_set_0/output_0.pb").unlink()
    reshape(tmp_path / "node/test_type", np.zeros(4, np.complex64), [2, 2])
    write(tmp_path / "node/test_relu_again", onnx.helper.make_model(graph))
    left_out = {part["folder"]: part["why"] for part in imported(cli, tmp_path)["left_out"]}
    said = cli("import", "onnx", tmp_path / "node", "--cases", cases(tmp_path)).expect(0)
    assert "test_relu and 1 more: left out: its model is not one Reshape" in said.err
    assert left_out["test_relu"] == "its model is not one Reshape"
    assert left_out["test_cut"].startswith("input_1.pb is not of ONNX, or cut short")
    assert left_out["test_lost"] == "output_0.pb cannot be read: No such file or directory; check the path"
    assert left_out["test_type"].startswith("its src is of type COMPLEX64; the suite has")


def test_a_folder_without_tests_is_reported(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    said = cli("import", "onnx", tmp_path / "node").expect(2, lines=1)
    assert "has no */model.onnx" in said.err


def test_an_export_is_imported_as_the_cases_that_it_came_from(cli: Cli, tmp_path: Path) -> None:
    chosen = [line for line in CASES.splitlines() if "{id:" not in line or "infers" in line or "copies" in line]
    few = cases(tmp_path, "\n".join(chosen))
    cli("export", "onnx", "--cases", few, "--out", tmp_path / "node").expect(0)
    facts = cli("import", "onnx", tmp_path / "node", "--cases", few, "--json").expect(0).data
    assert (facts["cases"], facts["disagreements"]) == ([], [])
    assert facts["duplicates"]["test_reshape_infers_f32_input"] == "infers"
    assert facts["duplicates"]["test_reshape_patterns_f32_constant"] == "patterns"
    assert {part["why"] for part in facts["left_out"]} == {"its model is not one Reshape"}  # a chain


@pytest.mark.slow
def test_each_of_onnxs_own_tests_is_a_call_of_the_suite(cli: Cli, tmp_path: Path) -> None:
    tests = importlib.import_module("onnx.backend.test.loader").load_model_tests(kind="node")
    for test in tests:
        if test.name.startswith("test_reshape"):
            write(tmp_path / test.name, test.model, *test.data_sets)
    facts = cli("import", "onnx", tmp_path, "--json").expect(0).data
    assert (facts["cases"], facts["left_out"]) == ([], [])
    assert len(facts["duplicates"]) == 10
