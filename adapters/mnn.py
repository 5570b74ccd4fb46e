"""MNN's expressions: a 0 in shape always copies; there is no special_zero, and the adapter does not answer it."""

from __future__ import annotations

from math import prod
from typing import Any

import MNN.expr as mnn  # type: ignore[import-not-found,unused-ignore]
import numpy as np
from MNN import version  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of

from .shared import ArrayLibrary, NodeCalls, has_elements, types_except, without_elements

TYPES = {"f32": mnn.float, "s32": mnn.int, "u8": mnn.uint8}
NAMES = {dtype: name for name, dtype in TYPES.items()}


class Mnn(ArrayLibrary):
    """MNN.expr.reshape; a 0 in shape always copies."""

    name, version = "mnn", version()
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape", *types_except(TYPES))
    answers_special_zero = False

    def import_src(self, src: Tensor) -> Any:
        return mnn.const(np.array(array_of(src), order="C"), list(src.dims), mnn.NCHW, TYPES[src.type])

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        dst = mnn.reshape(src, list(shape), mnn.NCHW)
        if not dst.valid:  # its way to reject: it prints the reason and raises nothing
            raise ValueError(f"{src.shape} by {list(shape)} is no valid variable")
        return dst

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        return super().run_chain(src, calls), src.size

    def export_dst(self, dst: Any) -> Tensor | Array:
        dst, size = dst
        if not has_elements(dst.shape) or prod(dst.shape) != size:  # for another volume it has only the memory of src
            return without_elements(NAMES[dst.dtype], dst.shape)
        array: Array = np.array(dst.read())  # a copy, since read() returns memory of the variable
        return array
