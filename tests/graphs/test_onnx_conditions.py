"""Conditions on named lengths: ONNX Runtime answers a reshape exactly where the condition says legal."""

import importlib
import random
from collections import Counter
from pathlib import Path

import pytest

from conformance.graphs.conclude import Trial, check_model
from conformance.graphs.decide import NodeDecision, NodeJudge
from conformance.graphs.read import read_model
from conformance.load.spec import load_spec
from conformance.meaning.faults import KnownFaults
from conformance.meaning.partial import Branch
from conformance.meaning.symbols import Fact
from tests.meaning.test_partial import holds, value

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
DOCUMENT = "reshape-spec-v0.7"
LENGTHS = (1, 1, 1, 2, 3, 4, 6, 7, 8, 12)


def with_named_batch(path: Path, folder: Path) -> Path:
    """Copy a model, with a name instead of the first length of its inputs."""
    model = onnx.load(str(path))
    held = {tensor.name for tensor in model.graph.initializer}
    for tensor in model.graph.input:
        if tensor.name not in held:
            tensor.type.tensor_type.shape.dim[0].dim_param = "n"
    del model.graph.value_info[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    copy = folder / path.name
    copy.write_bytes(model.SerializeToString())
    return copy


def run_alone(src: list[int], shape: list[int]) -> tuple[int, ...] | None:
    """Return the dims that ONNX Runtime answers to one reshape; None if it rejects the call."""
    numpy, runner = importlib.import_module("numpy"), importlib.import_module("conformance.graphs.onnx_run")
    helper, types = onnx.helper, onnx.TensorProto
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])], "g",
        [helper.make_tensor_value_info("x", types.UINT8, src)], [helper.make_tensor_value_info("y", types.UINT8, None)],
        [helper.make_tensor("s", types.INT64, [len(shape)], shape)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    try:
        return tuple(runner._open_session(model).run(None, {"x": numpy.zeros(src, numpy.uint8)})[0].shape)
    except Exception:  # of a class that depends on the version
        return None


def test_onnx_runtime_answers_where_conditions_say_legal(tmp_path: Path) -> None:
    spec, draw, seen = load_spec(), random.Random(0), Counter[tuple[str, str]]()
    judge = NodeJudge(spec, (DOCUMENT,))
    for path in sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx")):
        for node in check_model(
            read_model(with_named_batch(path, tmp_path), spec, judge.answer), judge, [Trial((), {})], KnownFaults(())
        ):
            (decision,) = node.decisions[DOCUMENT]
            src = [str(length or f"src[{k}]") for k, length in enumerate(node.first.src or ())]
            for _ in range(12):
                names = {text: draw.choice(LENGTHS) for text in src if not text.isdecimal()}
                facts: dict[tuple[Fact, ...], Branch | NodeDecision] = {each.facts: each for each in decision.branches}
                facts = facts or {(): decision}
                (here,) = (facts[some] for some in facts if all(holds(fact, names) for fact in some))
                dst = tuple(value(str(length), names) for length in here.dst or ())
                answer = run_alone(
                    [int(value(text, names)) for text in src], [int(n or 0) for n in node.first.shape or ()]
                )
                assert answer == (dst if here.kind == "legal" else None), (path.name, node.first, names)
                seen[decision.kind, here.kind] += 1
    assert len(seen) == 3
    assert min(seen.values()) > 10
