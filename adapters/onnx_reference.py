"""onnx's own reference evaluator, which runs ONNX models in NumPy."""

from __future__ import annotations

from typing import Any

import onnx  # type: ignore[import-not-found,unused-ignore]
from onnx.reference import ReferenceEvaluator  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Graph, Identity, Tensor, Unsupported
from conformance.adapter import rejection

from .onnx_model import arguments, model

REFUSALS = (ValueError, IndexError, RuntimeError, OverflowError, TypeError)
"""NumPy's, and the evaluator's TypeError for operands or attributes that do not fit the operator."""
MOST_DIMS = 64
"""Of a NumPy array."""


class OnnxReference:
    """onnx's reference evaluator on an ONNX model, without a check of the model."""

    identity = Identity("onnx-reference", onnx.__version__)
    claims = Claims(("StaticReshape", "DynamicReshape-1", "Reshape-1"), ("form:attributes", "rank:65"))

    def compile(self, graph: Graph) -> Evaluator:
        proto = model(graph)
        try:
            return Evaluator(graph, ReferenceEvaluator(proto))
        except REFUSALS as refusal:
            raise rejection("compile", refusal) from refusal


class Evaluator:
    """A model for the evaluator, ready to run."""

    def __init__(self, graph: Graph, evaluator: Any) -> None:
        self.graph, self.evaluator = graph, evaluator

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        if len(src.dims) > MOST_DIMS:
            raise Unsupported(f"rank:{len(src.dims)}")
        inputs = tuple(arguments(self.graph, src, shapes))
        try:
            feeds = {name: tensor.array() for name, tensor in inputs}
            answers: list[Array] = self.evaluator.run(None, feeds)
        except REFUSALS as refusal:
            raise rejection("run", refusal) from refusal
        if not answers:  # it took a node without dst, which is no rejection
            return src.array().reshape(-1)[:0]
        return answers[0]
