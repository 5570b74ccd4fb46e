"""AcmeReshape-1 of the Acme accelerator, played by NumPy."""

import numpy as np

from conformance import Array, FunctionAdapter


class AcmeReshape(FunctionAdapter):
    name, version = "acme-reshape", "2026"
    operations = ("AcmeReshape-1",)
    answers_special_zero = True
    rejections = (ValueError,)

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        if min(shape, default=0) < -1:
            raise ValueError("an entry of shape is below -1")
        if special_zero:
            if 0 in shape[src.ndim :]:
                raise ValueError("a 0 in shape copies a dimension that src does not have")
            shape = tuple(src.shape[i] if entry == 0 else entry for i, entry in enumerate(shape))
        return np.reshape(src, shape).copy()
