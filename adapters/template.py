"""NAME: a backend for `conformance run`, begun from a template that works without any change; change what is marked."""

from __future__ import annotations

import numpy as np

from conformance import Array, FunctionAdapter


class Template(FunctionAdapter):
    """Passes each call to the library. It never repairs an answer: a verdict must be about the library."""

    name = "template"
    version = np.__version__  # CHANGE: your library's own version
    not_claimed = ("declared", "form", "rank:65")  # facets that the library does not support; fewer is better
    answers_special_zero = True  # this file answers it because the library cannot; else leave the line out
    rejections = (ValueError,)  # the exceptions by which the library rejects a call; never Exception or TypeError

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        """src may have any strides; the answer is a new array of src's type."""
        if special_zero:  # NumPy has no such flag: a 0 copies the length that src has there
            if any(entry == 0 for entry in shape[src.ndim :]):
                raise ValueError("a 0 in shape copies a dimension that src does not have")
            shape = tuple(src.shape[i] if entry == 0 else entry for i, entry in enumerate(shape))
        return np.reshape(src, shape).copy()  # CHANGE: call your library here
