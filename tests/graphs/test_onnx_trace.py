"""`check-graph --trace` runs an ONNX model and decides reshapes with a shape that depends on values."""

from pathlib import Path
from typing import Any

import pytest

from conformance.graphs import onnx_run, onnx_trace
from conformance.graphs.onnx_run import run_model
from tests.builders import Cli
from tests.graphs.graph_files import dump, static, tensor

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.graphs.test_onnx_models import INT64, constant, flatten, node, save_model, value  # noqa: E402


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run models in this process, which is faster; one test runs them in another one as users do."""
    monkeypatch.setattr(
        onnx_trace, "_run", lambda request: run_model(Path(request["path"]), request["inputs"])
    )  # fmt: skip


def late(folder: Path, *after: Any, **more: Any) -> str:
    """A model with the shape [n, n] for n elements above 0."""
    nodes = [
        node("NonZero", "x", "found"), node("Shape", "found", "dims"), node("Slice", "dims one two", "count"),
        node("Concat", "count count", "shape", axis=0), node("Reshape", "x shape", (after and "h") or "y", **more),
    ]  # fmt: skip
    return save_model(folder, *nodes, *after, x=value("x", "n", 4), constants=[constant("one", 1), constant("two", 2)])


def test_a_shape_that_depends_on_values_is_seen_in_a_run(tmp_path: Path, cli: Cli) -> None:
    path = late(tmp_path)
    assert "not decided: shape is computed while it runs" in cli("check-graph", path, "--input", "x=1,4").expect(4).out
    cli("check-graph", path, "--input", "x=1,4", "--trace").expect(0, out="f32[1, 4] by [2, 2] special_zero  legal")


@pytest.mark.usefixtures("in_process")
def test_a_run_does_not_decide_a_shape_that_is_an_input(tmp_path: Path, cli: Cli) -> None:
    inputs = [value("x", 2, 3), value("s", 2, type_=INT64)]
    path = save_model(tmp_path, node("Reshape", "x s", "y"), x=inputs)
    for words in ((), ("--trace",)):
        cli("check-graph", path, *words).expect(4, out="not decided: shape is an input of the model\n")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "made",
    [
        [node("Concat", "s three", "all", axis=0)],
        [node("Neg", "s", "all")],
        [node("Split", "s", "h w", num_outputs=2), node("Concat", "w h", "all", axis=0)],
    ],
    ids=["put-together", "computed", "split"],
)
def test_a_shape_of_elements_that_we_made_up_is_not_decided(tmp_path: Path, cli: Cli, made: list[Any]) -> None:
    """The elements that we made up, 0 and 1, made the node illegal, or legal as [0, -1]."""
    inputs = [value("x", 2, 3), value("s", 2, type_=INT64)]
    path = save_model(tmp_path, *made, node("Reshape", "x all", "y"), x=inputs, constants=[constant("three", 3)])
    for words in ((), ("--trace",)):
        cli("check-graph", path, *words).expect(4, out="not decided: shape is computed while it runs\n")


@pytest.mark.usefixtures("in_process")
def test_an_output_that_is_left_out_makes_no_shape_unknown(tmp_path: Path, cli: Cli) -> None:
    """Its name, the empty text, is also that of an input that is left out."""
    dropped = onnx.helper.make_node("Dropout", ["x"], ["h", ""])
    clipped = onnx.helper.make_node("Clip", ["dims", "", "most"], ["shape"])
    most = onnx.helper.make_tensor("most", INT64, [], [6])
    nodes = (dropped, node("Shape", "h", "dims"), clipped, node("Reshape", "h shape", "y"))
    path = save_model(tmp_path, *nodes, x=value("x", 2, 3), constants=[most])
    cli("check-graph", path, "--trace").expect(0, out="f32[2, 3] by [2, 3] special_zero  legal")


@pytest.mark.usefixtures("in_process")
def test_the_reshape_that_stops_the_run_is_illegal(tmp_path: Path, cli: Cli) -> None:
    after = (node("Shape", "h", "s2"), node("Unique", "s2", "s3"), node("Reshape", "h s3", "y"))
    said = cli("check-graph", late(tmp_path, *after), "--input", "x=1..2,4", "--trace").expect(1).out
    assert "illegal for x[0] = 2: same-volume; legal for x[0] = 1" in said
    assert "not decided for x[0] = 2: shape is computed while it runs; the run failed: " in said
    assert "reshaped" in said


def test_every_reshape_up_to_the_one_that_fails_is_seen(tmp_path: Path) -> None:
    shapes = [constant(f"s{k}", *entries) for k, entries in enumerate(((4,), (2, 2), (1, 4), (4, 1), (3,), (4,)))]
    tensors = ["x", "a", "b", "c", "d", "e", "y"]
    nodes = [node("Reshape", f"{tensors[k]} s{k}", tensors[k + 1]) for k in range(6)]
    path = save_model(tmp_path, *nodes, x=value("x", 2, 2), constants=shapes)
    seen = run_model(Path(path), {"x": [2, 2]})
    assert [*seen["reshapes"]] == [f"graph.node[{k}]" for k in range(5)]
    assert (seen["reshapes"]["graph.node[4]"]["src"], seen["reshapes"]["graph.node[4]"]["shape"]) == ([4, 1], [3])
    assert seen["failure"]


def test_a_model_without_reshapes_of_its_own_has_no_failure(tmp_path: Path) -> None:
    path = save_model(tmp_path, node("Relu", "x", "y"), x=value("x", 2, 2))
    assert run_model(Path(path), {"x": [2, 2]}) == {"reshapes": {}, "failure": ""}


def test_a_tensor_of_many_reshapes_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Reshape", "x s", "a"), node("Reshape", "x s", "b"), node("Reshape", "x t", "y")]
    shapes = [constant("s", 4), constant("t", 2, 2)]
    copied: list[str] = []
    open_session = onnx_run._open_session

    def note(model: Any) -> Any:
        copied.extend(each.input[0] for each in model.graph.node if each.op_type == "Identity")
        return open_session(model)

    monkeypatch.setattr(onnx_run, "_open_session", note)
    seen = run_model(Path(save_model(tmp_path, *nodes, x=value("x", 4), constants=shapes)), {"x": [4]})
    assert [each["shape"] for each in seen["reshapes"].values()] == [[4], [4], [2, 2]]
    assert copied == ["x", "s", "t"]


@pytest.mark.usefixtures("in_process")
def test_a_type_that_inference_does_not_know_is_seen_in_a_run(tmp_path: Path, cli: Cli) -> None:
    other = node("Gelu", "x", "h", domain="com.microsoft")
    path = save_model(
        tmp_path, other, node("Reshape", "h s", "y"), x=value("x", 2, 6), constants=[constant("s", 3, -1)]
    )
    model = onnx.load(path)
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, path)
    assert "not decided" in cli("check-graph", path).expect(4).out
    assert "f32[2, 6] by [3, -1] special_zero  legal" in cli("check-graph", path, "--trace").expect(0).out


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_run_shows_the_rank_of_a_shape(is_constant: bool, tmp_path: Path, cli: Cli) -> None:
    """NonZero gives a tensor of two dimensions."""
    shape = node("Identity", "c", "s") if is_constant else node("NonZero", "x", "s")
    constants = [onnx.helper.make_tensor("c", INT64, [1, 1], [4])]
    path = save_model(tmp_path, shape, node("Reshape", "x s", "y"), x=value("x", 4), constants=constants)
    cli("check-graph", path, "--trace").expect(1, out="special_zero  illegal: shape-has-one-dimension\n")


@pytest.mark.usefixtures("in_process")
def test_a_run_needs_every_length_of_the_inputs(tmp_path: Path, cli: Cli) -> None:
    said = cli("check-graph", late(tmp_path), "--trace").expect(2).out
    assert "--trace needs every length of the input 'x'; give --input x=DIMS" in said


def test_weights_in_another_file_are_never_read(tmp_path: Path) -> None:
    outside = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="../weights.bin")
    path = save_model(tmp_path, node("Add", "x w", "y"), x=value("x", 1, 4), constants=[outside])
    with pytest.raises(ValueError, match="weights are in another file, which is never read"):
        run_model(Path(path), {"x": [1, 4]})


def test_a_run_that_crashes_or_hangs_is_told_in_a_line(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = late(tmp_path)
    words = ("check-graph", path, "--input", "x=1,4", "--trace")
    monkeypatch.setattr(onnx_trace, "_CODE", "import os; os.abort()")
    assert "the run failed: the process ended with -6 before it answered" in cli(*words).expect(4).out
    monkeypatch.setattr(onnx_trace, "_CODE", "import time; time.sleep(60)")
    monkeypatch.setattr(onnx_trace, "LIMITS", onnx_trace.LIMITS._replace(seconds=0.1))
    assert "the run failed: not done after 0.1 s" in cli(*words).expect(4).out


def test_a_run_that_asks_for_too_much_memory_is_told_in_a_line(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_trace, "LIMITS", onnx_trace.LIMITS._replace(memory=1 << 29))
    monkeypatch.setattr(onnx_trace, "_CODE", "while True: bytearray(1 << 30)")  # the limit may come a moment later
    said = cli("check-graph", late(tmp_path), "--input", "x=1,4", "--trace").expect(4).out
    assert "the run failed: the process ended with 1 before it answered" in said


def test_only_onnx_models_are_run(tmp_path: Path, cli: Cli) -> None:
    path = dump(tmp_path, static(tensor(0, 6), [6], tensor(1, 6)))
    assert "--trace runs ONNX models only" in cli("check-graph", path, "--trace").expect(2).out


@pytest.mark.usefixtures("in_process")
def test_what_the_file_tells_already_stays_as_it_is(tmp_path: Path, cli: Cli) -> None:
    path = flatten(tmp_path, 1, 12, x=value("x", "batch", 3, 4))
    words = ("check-graph", path, "--input", "x=1..3,3,4")
    assert cli(*words).expect(1).out == cli(*words, "--trace").expect(1).out
