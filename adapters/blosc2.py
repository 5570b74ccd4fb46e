"""Blosc2: compressed arrays."""

from __future__ import annotations

from typing import Any

import blosc2  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, Tensor, array_of
from conformance.model.types import dtype_of, name_of

from .shared import ArrayLibrary, read_answer, resolve_infer


class Blosc2(ArrayLibrary):
    """blosc2.reshape; it has no -1, so that the adapter answers the one that fits."""

    name, version = "blosc2", blosc2.__version__
    detail = (("-1", "answered by the adapter"), ("numpy", np.__version__))
    not_claimed = ("declared", "form", f"rank:{blosc2.MAX_DIM + 1}", "type:bf16")  # it makes raw bytes of bf16

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return blosc2.empty(src.dims, dtype_of(src.type))
        return blosc2.asarray(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return blosc2.reshape(src, resolve_infer(src.shape, shape))

    def export_dst(self, dst: Any) -> Tensor | Array:
        return read_answer(name_of(dst.dtype), dst.shape, lambda: np.asarray(dst[()]))
