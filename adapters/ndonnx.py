"""ndonnx: the array API over ONNX graphs, which ONNX Runtime evaluates if all values are known."""

from __future__ import annotations

from typing import Any

import ndonnx as ndx  # type: ignore[import-not-found,unused-ignore]
import onnxruntime  # type: ignore[import-not-found,unused-ignore]
from onnx import shape_inference  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of

from .shared import ArrayLibrary, NodeCalls


class Ndonnx(ArrayLibrary):
    """ndonnx.reshape, evaluated by ONNX Runtime."""

    name, version = "ndonnx", ndx.__version__
    detail = (("onnxruntime", onnxruntime.__version__),)
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape", "type:bf16")
    rejections = (*ArrayLibrary.rejections, shape_inference.InferenceError)

    def import_src(self, src: Tensor) -> Any:
        return ndx.asarray(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return ndx.reshape(src, shape)

    def run_chain(self, src: Any, calls: NodeCalls) -> Array:
        array: Array = super().run_chain(src, calls).unwrap_numpy()
        return array
