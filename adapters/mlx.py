"""MLX on the CPU."""

from __future__ import annotations

from typing import Any

import mlx.core as mx  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, Tensor, Unsupported, array_of
from conformance.adapter import check_rank_in_numpy
from conformance.model.types import dtype_of

from .shared import ArrayLibrary, NodeCalls, has_elements, without_elements

TYPES = {
    "f16": mx.float16, "bf16": mx.bfloat16, "f32": mx.float32, "bool": mx.bool_, "s8": mx.int8, "u8": mx.uint8,
    "s16": mx.int16, "u16": mx.uint16, "s32": mx.int32, "u32": mx.uint32, "s64": mx.int64, "u64": mx.uint64,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}


class Mlx(ArrayLibrary):
    """mlx.core.reshape on the CPU."""

    name, version = "mlx", mx.__version__
    detail = (("device", str(mx.default_device())),)
    operations = ("StaticReshape", "Reshape-1")
    leaves_out = ("declared", "form", "runtime-shape", "rank:65", "type:f64", "layout:reversed")

    def import_src(self, src: Tensor) -> Any:
        if src.type not in TYPES:
            raise Unsupported(f"type:{src.type}")
        if any(stride < 0 for stride in src.strides):
            raise Unsupported("layout:reversed")
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return mx.zeros(src.dims, TYPES[src.type])
        if src.type == "bf16":  # 0.29 takes no array of ml_dtypes
            return mx.array(array_of(src).view(np.uint16)).view(mx.bfloat16)
        return mx.array(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        try:
            return self.call(src, shape)
        except TypeError as refusal:
            if max(map(abs, shape), default=0) >> 31:  # how the binding refuses integers past 64 or, in 0.29, 32 bits
                raise OverflowError(str(refusal)) from refusal
            raise

    def call(self, src: Any, shape: tuple[int, ...]) -> Any:
        return mx.reshape(src, shape)

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        dst = super().run_chain(src, calls)
        mx.eval(dst)
        return dst

    def export_dst(self, dst: Any) -> Tensor | Array:
        check_rank_in_numpy(dst.shape)
        if not has_elements(dst.shape):
            return without_elements(NAMES[dst.dtype], dst.shape)
        if dst.dtype == mx.bfloat16:
            return np.array(dst.view(mx.uint16)).view(dtype_of("bf16"))
        return np.array(dst)


class MlxMethod(Mlx):
    """mlx.core.array.reshape on the CPU, with each length as an argument of its own."""

    name = "mlx-method"

    def call(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(*shape) if shape else src.reshape(())
