"""PyTensor: a compiled function for each rank and constant shape; a shape that comes with the call is its input."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytensor  # type: ignore[import-not-found,unused-ignore]
import pytensor.tensor as pt  # type: ignore[import-not-found,unused-ignore]
from pytensor.compile.mode import get_default_mode  # type: ignore[import-not-found,unused-ignore]

from conformance.model import Tensor, Unsupported
from conformance.types import dtype_of

from .shared import ArrayLibrary, Calls, copied_zeros

LINKER = type(get_default_mode().linker).__name__


class PyTensor(ArrayLibrary):
    """pytensor.tensor.reshape, compiled by the usual linker."""

    name, version = "pytensor", pytensor.__version__
    detail = (("linker", LINKER),)
    leaves_out = ("declared", "form", "rank:65", "type:f16", "type:bf16")
    refusals = (*ArrayLibrary.refusals, AssertionError)  # the last: how its compiler refuses a negative length

    def tensor(self, src: Tensor) -> Any:
        if src.type in ("f16", "bf16"):  # the one has no code, the other no name
            raise Unsupported(f"type:{src.type}")
        return super().tensor(src)

    def chain(self, src: Any, calls: Calls) -> Any:
        try:
            for call in calls:
                shape = copied_zeros(src.shape, call)
                if call.runtime:
                    given = np.array(shape, dtype_of(call.shape_type))
                    src = arriving(src.dtype, src.ndim, given.dtype, given.size)(src, given)
                else:
                    src = constant(src.dtype, src.ndim, shape)(src)
        except SystemError as refusal:
            if isinstance(refusal.__cause__, ValueError):  # how its code refuses what is too large for an array
                raise refusal.__cause__ from None
            raise
        return src


@lru_cache(4096)
def constant(type_: Any, rank: int, shape: tuple[int, ...]) -> Any:
    """The function of one shape."""
    src = pt.tensor("src", dtype=type_.name, shape=(None,) * rank)
    return pytensor.function([src], pt.reshape(src, shape))


@lru_cache(4096)
def arriving(type_: Any, rank: int, shape_type: Any, entries: int) -> Any:
    """The function of all shapes of so many entries."""
    src, shape = pt.tensor("src", dtype=type_.name, shape=(None,) * rank), pt.vector("shape", dtype=shape_type.name)
    return pytensor.function([src, shape], pt.reshape(src, shape, ndim=entries))
