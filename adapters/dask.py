"""Dask: an array of one chunk, computed at once."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

import numpy as np

from conformance import Tensor, array_of

from .shared import ArrayLibrary, Calls

da: Any = import_module("dask.array")
"""Without its types, which it has for some of what is called here."""


class Dask(ArrayLibrary):
    """dask.array.reshape."""

    name, version = "dask", metadata.version("dask")
    detail = (("numpy", np.__version__),)
    leaves_out = ("declared", "form", "rank:65")
    # The last two: its arithmetic, which fails where a 0 meets a -1 and where a float is no length.
    refusals = (*ArrayLibrary.refusals, ZeroDivisionError, IndexError)

    def tensor(self, src: Tensor) -> Any:
        return da.from_array(array_of(src), chunks=-1)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return da.reshape(src, shape)

    def chain(self, src: Any, calls: Calls) -> Any:
        return super().chain(src, calls).compute(scheduler="synchronous")
