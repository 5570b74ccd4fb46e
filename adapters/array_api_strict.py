"""array-api-strict: the array API standard and no more, over NumPy."""

from __future__ import annotations

from typing import Any

import array_api_strict as xp  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, Tensor, array_of

from .shared import ArrayLibrary


class ArrayApiStrict(ArrayLibrary):
    """array_api_strict.reshape, the array API standard over NumPy."""

    name, version = "array-api-strict", xp.__version__
    detail = (("numpy", np.__version__),)
    not_claimed = (*ArrayLibrary.not_claimed, "type:f16", "type:bf16")  # the standard has neither type

    def import_src(self, src: Tensor) -> Any:
        return xp.asarray(array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return xp.reshape(src, shape)

    def export_dst(self, dst: Any) -> Array:
        return np.asarray(dst)
