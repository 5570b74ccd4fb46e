"""MLX on the CPU."""

from __future__ import annotations

from typing import Any

import mlx.core as mx  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, Tensor, Unsupported, array_of
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, NodeCalls, read_answer

TYPES = {name: mx.bool_ if name == "bool" else getattr(mx, dtype_of(name).name) for name in WIDTH if name != "f64"}
NAMES = {dtype: name for name, dtype in TYPES.items()}


class Mlx(ArrayLibrary):
    """mlx.core.reshape on the CPU."""

    name, version = "mlx", mx.__version__
    detail = (("device", str(mx.default_device())),)
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape", "type:f64", "layout:reversed")

    def import_src(self, src: Tensor) -> Any:
        if any(stride < 0 for stride in src.strides):
            raise Unsupported("layout:reversed")
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return mx.zeros(src.dims, TYPES[src.type])
        if src.type == "bf16":  # 0.29 takes no array of ml_dtypes
            return mx.array(array_of(src).view(np.uint16)).view(mx.bfloat16)
        return mx.array(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        try:
            return mx.reshape(src, shape)
        except TypeError as error:
            if max(map(abs, shape), default=0) >> 31:  # how the binding rejects integers past 64 or, in 0.29, 32 bits
                raise OverflowError(str(error)) from error
            raise

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        dst = super().run_chain(src, calls)
        mx.eval(dst)
        return dst

    def export_dst(self, dst: Any) -> Tensor | Array:
        if dst.dtype == mx.bfloat16:
            return read_answer("bf16", dst.shape, lambda: np.array(dst.view(mx.uint16)).view(dtype_of("bf16")))
        return read_answer(NAMES[dst.dtype], dst.shape, lambda: np.array(dst))
