"""Run an ONNX model and write what tensors its reshapes get. `onnx_trace` starts this in a separate process."""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAX_ELEMENTS = 1 << 28
_DTYPES = {
    1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8",
}  # fmt: skip
_INT64 = 7
MAX_MESSAGE = 160
_COUNTING = ("Shape", "Size", "NonZero")
"""Operations that tell how much a run finds, not what the elements of an input are."""


class Reshape(NamedTuple):
    """A reshape of the main graph: the number of its node, and the names of its inputs."""

    number: int
    src: str
    shape: str


def main() -> None:
    """Read {"path", "inputs"} from the standard input, and write what the run shows, or {"error"}, as a line."""
    request = json.load(sys.stdin)
    try:
        answer = run_model(Path(request["path"]), request["inputs"])
    except Exception as error:  # whatever onnx and ONNX Runtime raise
        answer = {"error": _describe(error)}
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


def run_model(path: Path, inputs: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return {"reshapes": src, shape and type by the place of each, "failure": why not all of them are there}."""
    onnx = importlib.import_module("onnx")
    model = onnx.ModelProto.FromString(path.read_bytes())
    if _is_external(model):
        raise ValueError("weights are in another file, which is never read")
    if model.functions:
        model = importlib.import_module("onnx.inliner").inline_local_functions(model)
    _set_dims(model.graph, inputs)
    feeds = {value.name: _make_input(value, inputs[value.name]) for value in model.graph.input if value.name in inputs}
    made_up = set(feeds)  # our elements of an input, and what is computed of them, say nothing of a shape
    for node in model.graph.node:
        if node.op_type not in _COUNTING and not made_up.isdisjoint(node.input):
            made_up.update(filter(None, node.output))  # an output that is left out has no name
    reshapes = [
        Reshape(number, *node.input)
        for number, node in enumerate(model.graph.node)
        if node.op_type == "Reshape" and node.domain in ("", "ai.onnx") and len(node.input) == 2
        if node.input[1] not in made_up
    ]
    if not reshapes:  # ONNX Runtime takes no wanted outputs for all of them
        return {"reshapes": {}, "failure": ""}
    try:
        return {"reshapes": _trace(onnx, model, reshapes, feeds), "failure": ""}
    except Exception as error:
        failure = _describe(error)
    return {"reshapes": _trace_most(onnx, model, reshapes, feeds), "failure": failure}


def _trace_most(onnx: Any, model: Any, reshapes: Sequence[Reshape], feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the reshapes get up to the first that fails; that one is among them, since its inputs were made."""
    traced: dict[str, Any] = {}
    least, most = 1, len(reshapes)
    while least <= most:
        number = (least + most + 1) // 2
        part = type(model)()
        part.CopyFrom(model)
        del part.graph.node[reshapes[number - 1].number :]
        del part.graph.output[:]
        try:
            traced = _trace(onnx, part, reshapes[:number], feeds)
            least = number + 1
        except Exception:
            most = number - 1
    return traced


def _describe(error: Exception) -> str:
    """Return the end of a message, where ONNX Runtime says what is wrong."""
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_MESSAGE else f"…{text[-MAX_MESSAGE:]}"


def _is_external(message: Any) -> bool:
    """Ask whether a tensor anywhere in the message is in another file."""
    for field, value in message.ListFields():
        if field.name == "data_location" and value == 1:
            return True
        if field.type == field.TYPE_MESSAGE:
            parts = [value] if hasattr(value, "ListFields") else value
            if any(_is_external(part) for part in parts):
                return True
    return False


def _set_dims(graph: Any, inputs: Mapping[str, Sequence[int]]) -> None:
    """Set the dims of the inputs, and forget those that the file declares behind them."""
    for value in graph.input:
        if value.name in inputs:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for length in inputs[value.name]:
                shape.dim.add().dim_value = length
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _make_input(value: Any, dims: Sequence[int]) -> Any:
    """Return 0, 1, 0, 1 … in the dims and the type of an input."""
    dtype = _DTYPES.get(value.type.tensor_type.elem_type)
    if dtype is None or math.prod(dims) > MAX_ELEMENTS:
        why = "of another type than numbers" if dtype is None else f"of more than {MAX_ELEMENTS:,} elements"
        raise ValueError(f"the input {value.name!r} is {why}, and is not made")
    return (np.arange(math.prod(dims)) % 2).astype(dtype).reshape(dims)


def _trace(onnx: Any, model: Any, reshapes: Sequence[Reshape], feeds: Mapping[str, Any]) -> dict[str, Any]:
    part = type(model)()
    part.CopyFrom(model)
    sources = dict.fromkeys(each.src for each in reshapes)  # each once, for ONNX Runtime copies it
    shapes = dict.fromkeys(each.shape for each in reshapes)
    for name in sources:
        _add_output(onnx, part.graph, "Shape", name, f"traced dims {name}", _INT64)
        _add_output(onnx, part.graph, "Identity", name, f"traced src {name}", None)
    for name in shapes:
        _add_output(onnx, part.graph, "Identity", name, f"traced shape {name}", _INT64)
    session = _open_session(part)
    wanted = [*(f"traced dims {name}" for name in sources), *(f"traced shape {name}" for name in shapes)]
    found = dict(zip(wanted, session.run(wanted, dict(feeds)), strict=True))
    kinds = {output.name: output.type for output in session.get_outputs()}
    return {
        f"graph.node[{number}]": {
            "src": found[f"traced dims {src}"].tolist(), "shape": found[f"traced shape {shape}"].tolist(),
            "shape_rank": found[f"traced shape {shape}"].ndim,
            "type": kinds[f"traced src {src}"].removeprefix("tensor(").removesuffix(")"),
        }
        for number, src, shape in reshapes
    }  # fmt: skip


def _add_output(onnx: Any, graph: Any, operation: str, name: str, output: str, type_: int | None) -> None:
    graph.node.append(onnx.helper.make_node(operation, [name], [output]))
    if type_ is None:  # ONNX Runtime infers it
        graph.output.append(onnx.helper.make_empty_tensor_value_info(output))
    else:
        graph.output.append(onnx.helper.make_tensor_value_info(output, type_, None))


def _open_session(model: Any) -> Any:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
