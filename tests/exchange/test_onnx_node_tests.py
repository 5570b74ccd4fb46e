"""`conformance export onnx`: legal rows as backend node tests that onnx's own runner passes."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conformance.load.folders import find_cases_folder
from tests.builders import Cli, write_suite
from tests.exchange.node_runner import EvaluatorBackend, run_node_tests

onnx = pytest.importorskip("onnx")
CASE = """about: One.
cases:
  - {{id: one, rule: {rule}, src: "{src}", shape: {shape}, special_zero: {zero}, expect: "{dst}"{more}}}
"""


def export(cli: Cli, folder: Path, *texts: str) -> Any:
    """Export cases, and return the facts."""
    return (
        cli("export", "onnx", "--suite", write_suite(folder, *texts), "--out", folder / "out", "--json").expect(0).data
    )


def one(rule: str, src: str, shape: str, dst: str, zero: str = "true", more: str = "") -> str:
    return CASE.format(rule=rule, src=src, shape=shape, dst=dst, zero=zero, more=more)


def model(folder: Path) -> Any:
    return onnx.load(str(folder / "model.onnx"))


def dims(value: Any) -> list[int | None]:
    return [length.dim_value if length.HasField("dim_value") else None for length in value.type.tensor_type.shape.dim]


def tensor(path: Path) -> Any:
    return onnx.TensorProto.FromString(path.read_bytes())


def test_a_row_is_a_model_of_one_reshape_with_declared_dims(cli: Cli, tmp_path: Path) -> None:
    export(cli, tmp_path, one("zero-copies", "bf16[5, 2]", "[0, 2, 1]", "bf16[5, 2, 1]"))
    folder = tmp_path / "out/test_reshape_one_bf16_constant"
    graph = model(folder).graph
    onnx.checker.check_model(model(folder), full_check=True)
    assert [node.op_type for node in graph.node] == ["Reshape"]
    assert (dims(graph.input[0]), dims(graph.output[0])) == ([5, 2], [5, 2, 1])
    assert list(onnx.numpy_helper.to_array(graph.initializer[0])) == [0, 2, 1]
    facts = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    assert (facts["rtol"], facts["atol"], facts["rule"]) == (0.0, 0.0, "zero-copies")
    assert facts["rows"][0] == "one[StaticReshape-bf16]"


@pytest.mark.parametrize(
    ("rule", "dst", "more", "name", "values"),
    [
        ("one-infer", "f32[2, 2]", "", "shape", [2, -1]),
        ("each-call-alone", "f32[2, 2]", ", one_shape_memory: true", "shape", [2, -1]),
        (  # an input has the number of its node; nodes with constant shapes have none
            "nodes-compose", "f32[1, 4]", ", chain: [{shape: [1, 4], special_zero: true}], constant_nodes: first",
            "shape1", [1, 4],
        ),
    ],
)  # fmt: skip
def test_a_shape_that_arrives_with_run_is_an_input(
    cli: Cli, tmp_path: Path, rule: str, dst: str, more: str, name: str, values: list[int]
) -> None:
    export(cli, tmp_path, one(rule, "f32[4]", "[2, -1]", dst, more=more))
    folder = tmp_path / "out/test_reshape_one_f32_input"
    assert [value.name for value in model(folder).graph.input] == ["src", name]
    shape = tensor(folder / "test_data_set_0/input_1.pb")
    assert (shape.name, list(onnx.numpy_helper.to_array(shape))) == (name, values)


@pytest.mark.parametrize(("zero", "allow"), [("true", []), ("false", [1])])
def test_allowzero_is_the_negation_of_special_zero(cli: Cli, tmp_path: Path, zero: str, allow: list[int]) -> None:
    export(cli, tmp_path, one("literal-lengths", "f32[4]", "[2, 2]", "f32[2, 2]", zero))
    (node,) = model(tmp_path / "out/test_reshape_one_f32_constant").graph.node
    assert [attribute.i for attribute in node.attribute] == allow


def test_src_and_dst_hold_the_elements_of_the_row_bit_by_bit(cli: Cli, tmp_path: Path) -> None:
    bits = ', bits: "7fa00001 80000000 00000001 3f800001"'
    export(cli, tmp_path, one("same-content", "f32[4]", "[2, 2]", "f32[2, 2]", more=bits))
    data = tmp_path / "out/test_reshape_one_f32_constant/test_data_set_0"
    expected = b"".join(number.to_bytes(4, "little") for number in (0x7FA00001, 0x80000000, 0x00000001, 0x3F800001))
    src, dst = tensor(data / "input_0.pb"), tensor(data / "output_0.pb")
    assert (src.raw_data, dst.raw_data) == (expected, expected)
    assert (list(src.dims), list(dst.dims)) == ([4], [2, 2])


def test_steps_of_one_graph_are_data_sets_of_one_test(cli: Cli, tmp_path: Path) -> None:
    each = ", each: {length: [3, 5]}, rows: one-per-operation"
    export(cli, tmp_path, one("infer-keeps-count", "f32[2, length]", "[-1, 2]", "f32[length, 2]", more=each))
    folder = tmp_path / "out/test_reshape_one_f32_input"
    assert sorted(path.name for path in folder.glob("test_data_set_*")) == ["test_data_set_0", "test_data_set_1"]
    assert dims(model(folder).graph.output[0]) == [None, 2]


def test_a_step_of_another_type_has_that_type_in_its_name(cli: Cli, tmp_path: Path) -> None:
    """A runner that takes no bf16 leaves tests out by their names."""
    steps = ", steps: [{src: 'f16[4]', expect: 'f16[2, 2]'}, {src: 'bf16[4]', expect: 'bf16[2, 2]'}]}"
    whole = one("each-call-alone", "f16[4]", "[2, 2]", "f16[2, 2]")
    export(cli, tmp_path, whole.replace('src: "f16[4]", ', "").replace(', expect: "f16[2, 2]"}', steps))
    names = sorted(path.name for path in (tmp_path / "out").glob("*_constant_*"))
    assert names == ["test_reshape_one_f16_bf16_constant_2", "test_reshape_one_f16_constant_1"]


def test_onnxs_own_runner_passes_each_test(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = export(cli, tmp_path)
    assert run_node_tests(tmp_path / "out", EvaluatorBackend, monkeypatch) == {"passed": facts["tests"]}


FILES = ("chain", "content", "empty", "types", "zero")
EVERY = pytest.param(("*",), 4000, marks=pytest.mark.exhaustive, id="every-file")


@pytest.mark.slow
@pytest.mark.parametrize(("names", "at_least"), [pytest.param(FILES, 700, id="some-files"), EVERY])
def test_onnxs_own_runner_passes_what_the_bundled_cases_become(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], at_least: int
) -> None:
    folder, out = tmp_path / "cases", tmp_path / "out"
    folder.mkdir()
    for path in (path for name in names for path in find_cases_folder().glob(f"{name}.yaml")):
        shutil.copy(path, folder)
    facts = cli("export", "onnx", "--suite", tmp_path, "--out", out, "--json").expect(0).data
    assert facts["rows"] > at_least
    assert run_node_tests(out, EvaluatorBackend, monkeypatch) == {"passed": facts["tests"]}
    backend = pytest.importorskip("onnxruntime.backend")
    bf16 = len(list(out.glob("*_bf16_*")))
    # The Python binding of ONNX Runtime takes no array of bf16.
    assert run_node_tests(out, backend, monkeypatch, leave_out="_bf16_") == {"passed": facts["tests"] - bf16}
