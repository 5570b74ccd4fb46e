"""numpy.reshape itself: every 0 is literal, and every negative entry is a -1."""

from __future__ import annotations

import numpy as np

from conformance import Array

from .shared import ArrayLibrary


class NumPy(ArrayLibrary):
    """numpy.reshape with the shape unchanged; it takes any negative number for -1."""

    name, version = "numpy", np.__version__
    answers_special_zero = False

    def reshape(self, src: Array, shape: tuple[int, ...]) -> Array:
        return np.reshape(src, shape)
