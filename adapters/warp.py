"""Warp on the CPU: arrays of at most four axes, with lengths of 32 bits."""

from __future__ import annotations

from typing import Any

import warp  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, read_answer

TYPES = {name: warp.bool if name == "bool" else getattr(warp, dtype_of(name).name) for name in WIDTH}
NAMES = {dtype: name for name, dtype in TYPES.items()}


class Warp(ArrayLibrary):
    """warp.array.reshape on the CPU."""

    name, version = "warp", warp.__version__
    detail = (("device", "cpu"),)
    not_claimed = ("declared", "form", "rank:5", "length:2^31")
    # The last two come from its arithmetic: a 0 beside a -1, and an array without axes.
    rejections = (*ArrayLibrary.rejections, ZeroDivisionError, IndexError)

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims or not src.dims:  # no bytes to take over, or warp.array would make a length of 1
            return warp.empty(src.dims, TYPES[src.type], device="cpu")
        return warp.array(array_of(src), TYPES[src.type], device="cpu")

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        return read_answer(NAMES[dst.dtype], dst.shape, dst.numpy)
