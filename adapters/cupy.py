"""CuPy, on a device only: `cupy@cuda:1` is the second."""

from __future__ import annotations

from typing import Any

import cupy  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, CannotStart, Tensor, array_of

from .shared import ArrayLibrary


class CuPy(ArrayLibrary):
    """cupy.reshape on a GPU."""

    name, version = "cupy", cupy.__version__
    not_claimed = (*ArrayLibrary.not_claimed, "type:bf16")

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
        with self.device:
            return cupy.asarray(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        with self.device:
            return cupy.reshape(src, shape)

    def export_dst(self, dst: Any) -> Array:
        array: Array = cupy.asnumpy(dst)
        return array
