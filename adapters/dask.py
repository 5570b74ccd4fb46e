"""Dask: an array of one chunk, computed at once."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import dask.array
import numpy as np

from conformance import Tensor, array_of

from .shared import ArrayLibrary, NodeCalls

da: Any = dask.array
"""Used without its types, which cover only some of the functions used here."""


class Dask(ArrayLibrary):
    """dask.array.reshape on an array of one chunk."""

    name, version = "dask", metadata.version("dask")
    detail = (("numpy", np.__version__),)
    # The last two come from its arithmetic: a 0 beside a -1, and a float that is no length.
    rejections = (*ArrayLibrary.rejections, ZeroDivisionError, IndexError)

    def import_src(self, src: Tensor) -> Any:
        return da.from_array(array_of(src), chunks=-1)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return da.reshape(src, shape)

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        return super().run_chain(src, calls).compute(scheduler="synchronous")
