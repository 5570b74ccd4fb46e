"""Hidet on the CPU: eager, which is PyTorch's reshape behind Hidet's own checks, or a kernel that it compiles."""

from __future__ import annotations

from typing import Any

import hidet  # type: ignore[import-not-found,unused-ignore]
import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, Unsupported, array_of
from conformance.model import STRIDED_FACETS
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, read_answer

TYPES = {name: "bool" if name == "bool" else dtype_of(name).name for name in WIDTH}
NAMES = {theirs: name for name, theirs in TYPES.items()}


class Hidet(ArrayLibrary):
    """hidet.ops.reshape on the CPU; a 0 copies whatever special_zero is."""

    name, version = "hidet", hidet.__version__
    detail = (("torch", str(torch.__version__)),)
    not_claimed = (*ArrayLibrary.not_claimed, *STRIDED_FACETS, "threads")  # it cannot compile in two threads at once
    answers_special_zero = False
    rejections = (*ArrayLibrary.rejections, AssertionError, ZeroDivisionError)

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return hidet.empty(src.dims, TYPES[src.type])
        array = array_of(src)
        if not array.flags.c_contiguous:
            raise Unsupported("layout")
        if src.type == "bf16":  # NumPy has no such type for it
            return hidet.from_torch(torch.from_numpy(array.view(np.int16)).view(torch.bfloat16))
        return hidet.asarray(array)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return hidet.ops.reshape(src, shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        name = NAMES[dst.dtype.name]
        if name == "bf16":
            return read_answer(name, dst.shape, lambda: dst.torch().view(torch.int16).numpy().view(dtype_of(name)))
        return read_answer(name, dst.shape, dst.numpy)
