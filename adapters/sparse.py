"""pydata/sparse: coordinates of the elements that differ from 0, with no others stored."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import sparse  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of
from conformance.adapter import check_rank_in_numpy
from conformance.model.types import dtype_of, name_of

from .shared import ArrayLibrary, without_elements


class Sparse(ArrayLibrary):
    """sparse.COO.reshape; src is made by from_numpy, and the answer read from its coordinates."""

    name, version = "sparse", sparse.__version__
    detail = (("numpy", np.__version__),)

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            nothing = np.zeros(0, dtype_of(src.type))
            return sparse.COO(np.zeros((len(src.dims), 0), np.int64), nothing, shape=src.dims)
        return sparse.COO.from_numpy(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        check_rank_in_numpy(dst.shape)
        if 0 in dst.shape:
            return without_elements(name_of(dst.dtype), dst.shape)
        strides = np.array([prod(dst.shape[k + 1 :]) for k in range(len(dst.shape))], np.int64)
        elements = np.full(prod(dst.shape), dst.fill_value, dst.dtype)
        elements[strides @ dst.coords] = dst.data  # todense() fails at rank 64, and in 0.15 at rank 0
        return elements.reshape(dst.shape)
