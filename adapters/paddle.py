"""PaddlePaddle: a 0 in shape copies, unless src is empty; there is no special_zero to set."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle  # type: ignore[import-not-found,import-untyped,unused-ignore]

from conformance import Array, Tensor, Unsupported, array_of
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, NodeCalls, read_answer, types_except

LACKING = ("u16", "u32", "u64")
"""Types that it lacks; it treats an array of u16 as one of bf16."""
TYPES = {name: dtype_of(name).name for name in WIDTH if name not in LACKING}
NAMES = {getattr(paddle, name): ours for ours, name in TYPES.items()}


class Paddle(ArrayLibrary):
    """paddle.reshape; a shape that arrives with the call is a tensor."""

    name, version = "paddle", paddle.__version__
    detail = (("build", paddle.version.commit),)
    not_claimed = (*ArrayLibrary.not_claimed, *types_except(TYPES), *(f"shape-type:{name}" for name in LACKING))
    answers_special_zero = False
    rejections = (*ArrayLibrary.rejections, OSError)  # the last: its "Unimplemented error", past ten dims for one

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return paddle.zeros(src.dims, TYPES[src.type])
        if src.type == "bf16":
            return paddle.to_tensor(np.array(array_of(src)).view(np.int16)).view("bfloat16")
        return paddle.to_tensor(np.array(array_of(src)))

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        for call in calls:
            shape: Any = list(call.shape)
            if call.shape_type in LACKING:
                raise Unsupported(f"shape-type:{call.shape_type}")
            if call.runtime:
                shape = paddle.to_tensor(np.array(shape, dtype_of(call.shape_type)))
            src = self.reshape(src, shape)
        return src

    def reshape(self, src: Any, shape: Any) -> Any:
        try:
            return paddle.reshape(src, shape)
        except SystemError as error:
            if isinstance(error.__cause__, OverflowError):  # how the binding rejects integers past 64 bits
                raise error.__cause__ from None
            raise

    def export_dst(self, dst: Any) -> Tensor | Array:
        type_ = NAMES[dst.dtype]
        return read_answer(type_, dst.shape, lambda: dst.numpy().view(dtype_of(type_)))
