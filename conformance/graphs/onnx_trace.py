"""Run an ONNX model in ONNX Runtime, for shapes that depend on values: the tensors of its reshapes become outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..meaning.partial import Lengths
from ..system.text import shorten
from .lengths import BadLengths
from .nodes import Answer, Bound, CannotRead, ModelFile, ReshapeNode, read_content

_EXTERNAL = 1
_MOST_ELEMENTS = 1 << 28
_DTYPES = {
    1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8",
}  # fmt: skip


@dataclass(frozen=True)
class TracedModel:
    """A model of which each combination of lengths is run once, with inputs of 0, 1, 0, 1 …"""

    file: ModelFile
    model: Any
    runtime: Any

    @property
    def inputs(self) -> Mapping[str, Lengths | None]:
        return self.file.inputs

    def nodes(self, bound: Bound, answer: Answer) -> Sequence[ReshapeNode]:
        """Return the reshape nodes, with what the run has shown of those outside of subgraphs."""
        nodes = self.file.nodes(bound, answer)
        try:
            found = self._run(bound)
        except BadLengths:
            raise
        except Exception as error:  # whatever ONNX Runtime raises; an illegal node stops the run too
            why = f"a run that failed ({shorten(str(error), 120)})"
            return [node._replace(whence={"src": why, "shape": why}) for node in nodes]
        return [_merge(node, found.get(node.at)) for node in nodes]

    def _run(self, bound: Bound) -> dict[str, tuple[Lengths, Lengths]]:
        """Run the model; return src dims and shape of each reshape by its place."""
        model = type(self.model)()
        model.CopyFrom(self.model)
        reshapes = {
            f"node {number}": (node.input[0], node.input[1])
            for number, node in enumerate(model.graph.node)
            if node.op_type == "Reshape" and node.domain in ("", "ai.onnx") and len(node.input) == 2
        }
        tensors = sorted({name for pair in reshapes.values() for name in pair})
        helper = import_module("onnx.helper")
        for k, name in enumerate(tensors):
            for kind, output in (("Shape", f"traced dims {k}"), ("Identity", f"traced values {k}")):
                model.graph.node.append(helper.make_node(kind, [name], [output]))
            model.graph.output.append(helper.make_tensor_value_info(f"traced dims {k}", 7, None))
            is_shape = any(name == shape for _, shape in reshapes.values())
            if is_shape:
                model.graph.output.append(helper.make_tensor_value_info(f"traced values {k}", 7, None))
        options = self.runtime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = self.runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = self.runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = [output.name for output in model.graph.output if output.name.startswith("traced ")]
        results = dict(zip(wanted, session.run(wanted, self._feeds(bound)), strict=True))
        at = {name: k for k, name in enumerate(tensors)}
        return {
            place: (_numbers(results[f"traced dims {at[src]}"]), _numbers(results[f"traced values {at[shape]}"]))
            for place, (src, shape) in reshapes.items()
        }

    def _feeds(self, bound: Bound) -> dict[str, np.ndarray[Any, Any]]:
        """Return an array for each input; BadLengths if a length of one is not known."""
        types = {each.name: each.type.tensor_type.elem_type for each in self.model.graph.input}
        feeds = {}
        for name, declared in self.inputs.items():
            given = bound.get(name, (None,) * len(declared or ()))
            pairs = zip(given, declared or (None,) * len(given), strict=True)
            dims = [length if length is not None else other for length, other in pairs]
            if not all(isinstance(length, int) for length in dims) or (declared is None and name not in bound):
                raise BadLengths(f"--trace needs every length of the input {name!r}; give --input {name}=…")
            lengths = [int(length or 0) for length in dims]
            count = 1
            for length in lengths:
                count *= length
            if count > _MOST_ELEMENTS or types[name] not in _DTYPES:
                raise BadLengths(f"--trace cannot make the input {name!r}: it is too large, or of another type")
            feeds[name] = (np.arange(count) % 2).astype(_DTYPES[types[name]]).reshape(lengths)
        return feeds


def _numbers(array: np.ndarray[Any, Any]) -> Lengths:
    return tuple(int(number) for number in array.reshape(-1))


def _merge(node: ReshapeNode, traced: tuple[Lengths, Lengths] | None) -> ReshapeNode:
    return node if traced is None else node._replace(src=traced[0], shape=traced[1])


def _reads_other_files(graph: Any) -> bool:
    """True if a tensor of a graph, or of the graphs inside its nodes, lies in another file."""
    tensors = list(getattr(graph, "initializer", ()))
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t, *attribute.tensors]
            if any(_reads_other_files(each) for each in (attribute.g, *attribute.graphs) if len(each.node)):
                return True
    return any(tensor.data_location == _EXTERNAL for tensor in tensors)


def trace_model(path: Path, file: ModelFile) -> TracedModel:
    """Return the model of a file that was read, to be run; CannotRead if it cannot be run."""
    if path.suffix.lower() != ".onnx":
        raise CannotRead(path, "", "--trace is for ONNX models; drop it, or name an .onnx file")
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        raise CannotRead(path, "", "--trace needs onnxruntime; pip install onnxruntime") from None
    model = import_module("onnx").ModelProto()
    model.ParseFromString(read_content(path))
    if any(_reads_other_files(graph) for graph in (model.graph, *model.functions)):
        raise CannotRead(
            path, "initializers", "weights are in another file, which is never read; --trace needs them here"
        )
    return TracedModel(file, model, runtime)
