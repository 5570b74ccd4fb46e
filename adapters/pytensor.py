"""PyTensor: Reshape nodes in one compiled function, the shape a constant or an input."""

from __future__ import annotations

import warnings
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
import pytensor  # type: ignore[import-not-found,unused-ignore]
from pytensor import tensor as pt
from pytensor.compile.mode import predefined_modes  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, CannotStart, Unsupported
from conformance.adapter import NodeCall
from conformance.model.types import dtype_of

from .shared import ArrayLibrary, NodeCalls

warnings.filterwarnings("ignore", module="pytensor")  # it warns about dims that it cannot infer
UNSIGNED = ("u8", "u16", "u32", "u64")
COMPILING = Lock()
"""One thread compiles at a time. In several, legal calls end now and then with an AssertionError without a text."""


class PyTensor(ArrayLibrary):
    """pytensor.tensor.reshape, rewritten and compiled to C."""

    name, version = "pytensor", pytensor.__version__
    not_claimed = (
        *ArrayLibrary.not_claimed, "type:bf16", "threads:one-program", *(f"shape-type:{name}" for name in UNSIGNED)
    )  # fmt: skip
    rejections = (*ArrayLibrary.rejections, AssertionError)  # the last: a constant length below -1
    mode = "CVM"

    def __init__(self) -> None:
        if self.mode not in predefined_modes:
            known = ", ".join(sorted(predefined_modes))
            raise CannotStart(f"{self.name}: version {self.version} has no mode {self.mode}; it has {known}")
        self.detail = (("mode", self.mode),)

    def run_chain(self, src: Array, calls: NodeCalls) -> Array:
        for call in calls:
            if call.shape_type in UNSIGNED:  # "Shape must be integers; got uint8"
                raise Unsupported(f"shape-type:{call.shape_type}")
        arriving = [np.array(call.shape, dtype_of(call.shape_type)) for call in calls if call.runtime]
        known = tuple(call._replace(shape=(0,) * len(call.shape)) if call.runtime else call for call in calls)
        dims = (None,) * src.ndim if arriving else src.shape
        try:
            with COMPILING:
                compiled = function(src.dtype.name, dims, known, self.mode)
            dst: Array = compiled(src, *arriving)
        except SystemError as error:
            if isinstance(error.__cause__, ValueError):  # how Numba's code rejects what is too large for an array
                raise error.__cause__ from None
            raise
        return dst


class PyTensorNumba(PyTensor):
    """pytensor.tensor.reshape, rewritten and compiled by Numba, which is the default."""

    name = "pytensor-numba"
    not_claimed = (*PyTensor.not_claimed, "type:f16")
    mode = "NUMBA"


@lru_cache(maxsize=64)
def function(dtype: str, dims: tuple[int | None, ...], calls: NodeCalls, mode: str) -> Any:
    """Return the calls as one compiled function, which has no state."""
    src = dst = pt.tensor("src", dtype=dtype, shape=dims)
    arriving = []
    for call in calls:
        shape: Any = call.shape
        if call.runtime:
            shape = pt.tensor("shape", dtype=dtype_of(call.shape_type), shape=(len(call.shape),))
            arriving.append(shape)
        dst = pt.reshape(dst, lengths(dst, shape, call), ndim=len(call.shape))
    return pytensor.function([src, *arriving], dst, mode=mode, on_unused_input="ignore")


def lengths(src: Any, shape: Any, call: NodeCall) -> Any:
    """Return the shape of `resolve_zeros` for a tensor with lengths that are known later."""
    if not call.special_zero:
        return shape
    among = range(len(call.shape))
    if call.runtime:
        return [pt.switch(pt.eq(shape[i], 0), src.shape[i], shape[i]) if i < src.ndim else shape[i] for i in among]
    return [src.shape[i] if shape[i] == 0 and i < src.ndim else shape[i] for i in among]
