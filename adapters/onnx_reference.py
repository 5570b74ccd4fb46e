"""The reference evaluator that comes with onnx: NumPy behind ONNX models."""

from __future__ import annotations

from typing import Any

import onnx  # type: ignore[import-not-found,unused-ignore]
from onnx.reference import ReferenceEvaluator  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Graph, Identity, Rejected, Tensor, Unsupported

from .onnx_model import arguments, model

REFUSALS = (ValueError, IndexError, RuntimeError, OverflowError, TypeError)
"""NumPy's, and the TypeError with which the evaluator says that operands or attributes do not suit the operator."""
MOST_DIMS = 64
"""Of a NumPy array."""


class OnnxReference:
    """Models as they are, not checked first."""

    identity = Identity("onnx-reference", onnx.__version__)
    claims = Claims(("StaticReshape", "DynamicReshape-1", "Reshape-1"), ("form:attributes", "rank:65"))

    def compile(self, graph: Graph) -> Evaluator:
        made = model(graph)
        try:
            return Evaluator(graph, ReferenceEvaluator(made))
        except REFUSALS as refusal:
            raise rejected("compile", refusal) from refusal


class Evaluator:
    """A model to be evaluated."""

    def __init__(self, graph: Graph, evaluator: Any) -> None:
        self.graph, self.evaluator = graph, evaluator

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        if len(src.dims) > MOST_DIMS:
            raise Unsupported(f"rank:{len(src.dims)}")
        named = tuple(arguments(self.graph, src, shapes))
        try:
            feeds = {name: tensor.array() for name, tensor in named}
            answer: Array = self.evaluator.run(None, feeds)[0]
        except REFUSALS as refusal:
            raise rejected("run", refusal) from refusal
        return answer


def rejected(stage: str, refusal: Exception) -> Rejected:
    return Rejected(stage, f"{type(refusal).__name__}: {refusal}")
