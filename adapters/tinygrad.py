"""tinygrad: on its interpreter in Python unless DEV names another device."""

from __future__ import annotations

import math
import os
from importlib import metadata
from typing import Any

os.environ.setdefault("DEV", "PYTHON")  # the others want a compiler
import numpy as np
from tinygrad import Device, dtypes  # type: ignore[import-not-found,unused-ignore]
from tinygrad import Tensor as Lazy

from conformance.model import Array, Tensor
from conformance.types import dtype_of, name_of

from .shared import ArrayLibrary, Calls, array_of, rank_in_numpy, without_elements


class Tinygrad(ArrayLibrary):
    """tinygrad's Tensor.reshape, realized."""

    name, version = "tinygrad", metadata.version("tinygrad")
    detail = (("device", Device.DEFAULT),)
    operations = ("StaticReshape", "Reshape-1")
    leaves_out = ("declared", "form", "given:runtime", "rank:65")
    refusals = (*ArrayLibrary.refusals, ZeroDivisionError)  # the last: what it raises where a 0 meets a -1

    def tensor(self, src: Tensor) -> Any:
        array = np.array(array_of(src))
        if src.type == "bf16":
            return Lazy(array.view(np.uint16)).bitcast(dtypes.bfloat16)
        return Lazy(array)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(shape)

    def chain(self, src: Any, calls: Calls) -> Any:
        return super().chain(src, calls).contiguous().realize()

    def answer(self, dst: Any) -> Tensor | Array:
        rank_in_numpy(dst.shape)
        if min(dst.shape, default=1) <= 0 or math.prod(dst.shape) >> 60:
            type_ = "bf16" if dst.dtype == dtypes.bfloat16 else name_of(np.dtype(dst.dtype.fmt))
            return without_elements(type_, dst.shape)
        if dst.dtype == dtypes.bfloat16:
            bits: Array = dst.bitcast(dtypes.uint16).numpy()
            return bits.view(dtype_of("bf16"))
        array: Array = dst.numpy()
        return array
