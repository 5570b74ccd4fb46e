"""Models in packages: ONNX Runtime answers each legal reshape as the documents do, and a case makes its call."""

import importlib
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from conformance.load.cases import load_suite
from conformance.model import Case
from conformance.model.cases import Step, list_given_keys
from tests.builders import Cli

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

PACKAGES = (
    "basic-pitch==0.4.0", "ddddocr==1.6.1", "faster-whisper==1.2.1", "magika==1.0.3", "nudenet==3.4.2",
    "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3",
)  # fmt: skip


class Released(NamedTuple):
    """A model, dims of its inputs, and how many reshapes it has of each kind."""

    file: str
    inputs: str
    kinds: dict[str, int]


MODELS = (  # the output of two models of ddddocr is declared of rank 2, and has rank 3
    Released("nmp.onnx", "serving_default_input_2:0=2,43844,1", {"legal": 67}),
    Released("common.onnx", "input1=1,1,64,160", {"legal": 3, "illegal": 1}),
    Released("common_old.onnx", "input1=1,1,64,160", {"legal": 3, "illegal": 1, "unspecified": 21}),  # elements of s32
    Released("common_det.onnx", "images=1,3,416,416", {"legal": 3}),
    Released("silero_vad_v6.onnx", "input=4,576", {"legal": 1}),
    Released("model.onnx", "bytes=2,2048", {"legal": 7, "unspecified": 1}),  # elements of s32
    Released("320n.onnx", "images=1,3,320,320", {"legal": 14}),
    Released("ch_PP-OCRv4_rec_infer.onnx", "x=1,3,48,320", {"legal": 6}),
    Released("ch_ppocr_mobile_v2.0_cls_infer.onnx", "x=2,3,48,192", {"legal": 19}),
    Released("silero_vad_16k_sequence.onnx", "input=4,576", {"legal": 1, "unspecified": 2}),  # elements of s64
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages, without what they need to run."""
    folder = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "install", "--quiet"]
    result = subprocess.run(
        [*pip, "--no-deps", "--target", str(folder), *PACKAGES],
        check=False, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["it said nothing"])[-1]
        pytest.skip(f"pip cannot install {', '.join(PACKAGES)}, perhaps for want of a network: {reason}")
    return folder


@pytest.fixture(scope="module")
def known_calls() -> Container[object]:
    """The src, shape and special_zero that a case calls alone, with nothing unusual about it but the elements."""
    plain = (
        case for case in load_suite().cases.values()
        if not (case.attributes or case.inputs or case.outputs or case.declared is not None or is_unusual(case))
    )  # fmt: skip
    return {
        (step.src, step.shapes[0], step.special_zero[0])
        for case in plain for step in case.steps if len(step.shapes) == 1 and not is_unusual(step)
    }  # fmt: skip


def is_unusual(part: Case | Step) -> bool:
    """A key changes the call itself, rather than its elements, its title or the number of rows."""
    return any(key.name != "bits" and (key.words or key.facet) for key, _ in list_given_keys(part))


def check_nodes(cli: Cli, path: Path, model: Released) -> list[dict[str, Any]]:
    """The reshapes as `check-graph` decides them."""
    said = cli("check-graph", path, "--input", model.inputs, "--trace", "--json").expect(int("illegal" in model.kinds))
    nodes: list[dict[str, Any]] = said.data["files"][0]["nodes"]
    return nodes


def answers(path: Path, inputs: str) -> Iterator[tuple[str, Any, Any]]:
    """Run a model on 0, 1, 0, 1 … as --trace does, and yield the place, src and dst of each reshape."""
    onnx, runtime = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    model = onnx.load(str(path))
    reshapes = {f"graph.node[{k}]": node for k, node in enumerate(model.graph.node) if node.op_type == "Reshape"}
    names = dict.fromkeys(name for node in reshapes.values() for name in (node.input[0], node.output[0]))
    copies = {name: f"a copy of {name}" for name in names}
    for name, copy in copies.items():
        model.graph.node.append(onnx.helper.make_node("Identity", [name], [copy]))
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(copy))
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name, _, given = inputs.partition("=")
    feeds = {}
    for value in session.get_inputs():
        dims = [int(length) for length in given.split(",")] if value.name == name else value.shape
        dtype = {"tensor(float)": np.float32, "tensor(int32)": np.int32}[value.type]
        feeds[value.name] = (np.arange(math.prod(dims)) % 2).astype(dtype).reshape(dims)
    found = dict(zip(copies, session.run(list(copies.values()), feeds), strict=True))
    for place, node in reshapes.items():
        yield place, found[node.input[0]], found[node.output[0]]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.file)
def test_onnx_runtime_answers_legal_reshapes_as_documents_say(
    cli: Cli, packages: Path, known_calls: Container[object], model: Released
) -> None:
    (path,) = packages.rglob(model.file)
    nodes = check_nodes(cli, path, model)
    assert Counter(node["kind"] for node in nodes) == model.kinds
    seen = {place: (src, dst) for place, src, dst in answers(path, model.inputs)}
    for node in nodes:
        src, dst = seen[node["place"]]
        (trial,) = node["trials"]
        assert (trial["src"], dst.tobytes()) == (list(src.shape), src.tobytes()), node["place"]
        for decision in trial["documents"].values():
            assert decision["kind"] != "legal" or decision["dst"] == list(dst.shape), node["place"]
        call = (tuple(trial["src"]), tuple(trial["shape"]), trial["special_zero"])
        assert call in known_calls, f"no case makes the call of {node['place']}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of onnx, while it makes its tests
def test_each_of_onnxs_own_node_tests_is_a_call_of_the_suite(known_calls: Container[object]) -> None:
    tests = importlib.import_module("onnx.backend.test.loader").load_model_tests(kind="node")
    calls = [
        (src.shape, tuple(shape.tolist()), not any(each.name == "allowzero" and each.i for each in node.attribute))
        for test in tests if test.name.startswith("test_reshape")
        for node in test.model.graph.node for (src, shape), _ in test.data_sets
    ]  # fmt: skip
    assert len(calls) == 10
    assert [call for call in calls if call not in known_calls] == []
