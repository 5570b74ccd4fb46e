"""CuPy, on a device only: `cupy@cuda:1` is the second."""

from __future__ import annotations

from typing import Any

import cupy  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, CannotStart, Tensor
from conformance.model.types import WIDTH, dtype_of, name_of

from .shared import ArrayLibrary, read_answer


class CuPy(ArrayLibrary):
    """cupy.reshape on a GPU."""

    name, version = "cupy", cupy.__version__

    def __init__(self, device: str = "cuda") -> None:
        kind, _, number = device.partition(":")
        try:
            if kind != "cuda":
                raise CannotStart(f"cupy@{device}: no such device; give cuda or cuda:0")
            self.device = cupy.cuda.Device(int(number or 0))
            properties = cupy.cuda.runtime.getDeviceProperties(self.device.id)
        except (RuntimeError, ValueError) as error:  # the second: what is no number
            raise CannotStart(f"cupy@{device}: {str(error).splitlines()[0]}") from None
        self.detail = (("device", f"cuda:{self.device.id}: {properties['name'].decode()}"),)

    def import_src(self, src: Tensor) -> Any:
        """Return an array with the strides of src over a copy of its memory on the device."""
        width = WIDTH[src.type]
        memory = np.frombuffer(src.memory, np.uint8)[src.offset % width :]  # the device reads no unaligned element
        # The dense strides of a tensor without elements may pass 64 bits.
        strides = tuple(min(stride, (1 << 63) - 1) for stride in src.strides)
        with self.device:
            start = cupy.asarray(memory).data + (src.offset - src.offset % width)
            return cupy.ndarray(src.dims, dtype_of(src.type), start, strides)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        with self.device:
            return cupy.reshape(src, shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        return read_answer(name_of(dst.dtype), dst.shape, lambda: cupy.asnumpy(dst))
