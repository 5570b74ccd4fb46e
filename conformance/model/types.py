"""Element types: their names in the specification, widths and NumPy equivalents."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

WIDTH = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "bool": 1,
    "s8": 1, "u8": 1, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "s64": 8, "u64": 8,
}  # fmt: skip
"""Bytes per element."""

_NUMPY = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "bool": "?"} | {
    f"{sign}{bits}": f"<{kind}{bits // 8}" for sign, kind in (("s", "i"), ("u", "u")) for bits in (8, 16, 32, 64)
}


def range_of(type_: str) -> range:
    values = 1 << 8 * WIDTH[type_]
    return range(-values // 2, values // 2) if type_[0] == "s" else range(values)


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a type of the specification."""
    if name == "bf16":
        from ml_dtypes import bfloat16

        bf16: np.dtype[Any] = np.dtype(bfloat16)
        return bf16
    return np.dtype(_NUMPY[name])


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the specification's name of a NumPy dtype, or NumPy's own if it has none."""
    if dtype.name == "bfloat16":
        return "bf16"
    return next((name for name, code in _NUMPY.items() if np.dtype(code) == dtype), dtype.name)
