"""onnx's own reference evaluator, which runs ONNX models in NumPy."""

from __future__ import annotations

from typing import Any

import onnx  # type: ignore[import-not-found,unused-ignore]
from onnx.reference import ReferenceEvaluator  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Identity, Tensor, Unsupported
from conformance.model import EVERY

from .onnx_model import OnnxLibrary

MOST_DIMS = 64
"""The largest rank of a NumPy array."""


class OnnxReference(OnnxLibrary):
    """onnx's reference evaluator on an ONNX model, without a check of the model."""

    identity = Identity("onnx-reference", onnx.__version__)
    claims = Claims(EVERY, ("form:attributes", "rank:65"))
    # NumPy's, and the evaluator's TypeError for operands or attributes that do not fit the operator.
    rejections = (ValueError, IndexError, RuntimeError, OverflowError, TypeError)

    def load(self, proto: Any) -> ReferenceEvaluator:
        return ReferenceEvaluator(proto)

    def run(self, loaded: ReferenceEvaluator, inputs: dict[str, Tensor]) -> Array:
        src = inputs["src"]
        if len(src.dims) > MOST_DIMS:
            raise Unsupported(f"rank:{len(src.dims)}")
        answers: list[Array] = loaded.run(None, {name: tensor.array() for name, tensor in inputs.items()})
        # No answer: it took a node without dst, which is no rejection.
        return answers[0] if answers else src.array().reshape(-1)[:0]
