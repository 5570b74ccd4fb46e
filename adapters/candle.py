"""Candle, which is written in Rust, by its own Python package, on the CPU."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
from candle import utils  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of
from conformance.model.types import dtype_of

from .shared import ArrayLibrary, read_answer, types_except

TYPES = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "u8": "U8", "u32": "U32", "s64": "I64"}
NAMES = {theirs: ours for ours, theirs in TYPES.items()}


class Candle(ArrayLibrary):
    """candle.Tensor.reshape.

    Elements come and go in safetensors files: a list of Python's floats, the other way, would change a NaN.
    """

    name, version = "candle", metadata.version("candle-nn")
    not_claimed = (*ArrayLibrary.not_claimed, *types_except(TYPES))

    def __init__(self) -> None:
        os.environ["RUST_LIB_BACKTRACE"] = "0"  # a stack in a message names files of the machine

    def import_src(self, src: Tensor) -> Any:
        type_ = TYPES[src.type]
        return load(type_, src.dims, b"") if 0 in src.dims else take_over(type_, array_of(src))

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        type_ = NAMES[str(dst.dtype)]
        return read_answer(type_, dst.shape, lambda: np.frombuffer(save(dst), dtype_of(type_)).reshape(dst.shape))


def take_over(type_: str, array: Array) -> Any:
    """Return a dense tensor, with its axes moved if that is how the array lies in memory."""
    axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    tensor = load(type_, [array.shape[axis] for axis in axes], array.transpose(axes).tobytes())
    for axis in range(array.ndim):
        if (at := axes.index(axis)) != axis:
            tensor = tensor.transpose(axis, at)
            axes[axis], axes[at] = axes[at], axes[axis]
    return tensor


def load(type_: str, dims: Sequence[int], elements: bytes) -> Any:
    """Return a tensor of elements, by a file in memory."""
    header = json.dumps({"src": {"dtype": type_, "shape": list(dims), "data_offsets": [0, len(elements)]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(os.memfd_create("src"), "w+b", 0) as file:
        file.write(len(header).to_bytes(8, "little") + header + elements)
        return utils.load_safetensors(f"/proc/self/fd/{file.fileno()}")["src"]


def save(tensor: Any) -> bytes:
    """Return the elements of a tensor, by a file in memory."""
    with open(os.memfd_create("dst"), "w+b", 0) as file:
        utils.save_safetensors(f"/proc/self/fd/{file.fileno()}", {"dst": tensor})
        content = file.read()
    return content[8 + int.from_bytes(content[:8], "little") :]
