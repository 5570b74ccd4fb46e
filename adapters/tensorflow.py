"""TensorFlow: tf.reshape eager, in a tf.function, and compiled by XLA.

Shape is a tensor of s32 or s64; two further backends give it as a NumPy array and as a list of integers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # otherwise the import prints to the terminal
import numpy as np
import tensorflow as tf  # type: ignore[import-untyped,import-not-found,unused-ignore]

from conformance import Array, CannotStart, Tensor, Unsupported, array_of
from conformance.model.types import dtype_of, name_of

from .shared import ArrayLibrary, NodeCalls, read_answer, resolve_zeros

SHAPE_TYPES = {"s32": tf.int32, "s64": tf.int64}
OTHERS = tuple(f"shape-type:{name}" for name in ("s8", "u8", "s16", "u16", "u32", "u64"))
"""Shape types that Reshape does not list for its Tshape."""


class TensorFlow(ArrayLibrary):
    """tf.reshape, eager."""

    name, version = "tensorflow", tf.__version__
    not_claimed = (*ArrayLibrary.not_claimed, *OTHERS)
    rejections = (*ArrayLibrary.rejections, tf.errors.OpError)

    def __init__(self, device: str = "cpu") -> None:
        devices = [logical.name for logical in tf.config.list_logical_devices()]
        self.device = next((name for name in devices if device.upper() in name), "")
        if not self.device:
            raise CannotStart(f"{self.name}@{device}: no such device; there are {', '.join(devices)}")
        self.detail = (("build", tf.version.GIT_VERSION), ("device", self.device))

    def import_src(self, src: Tensor) -> Any:
        with tf.device(self.device):
            if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
                return tf.zeros(src.dims, tf.as_dtype(dtype_of(src.type)))
            return tf.convert_to_tensor(array_of(src))

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        for call in calls:
            src = self.reshape(src, self.shape_argument(resolve_zeros(src.shape, call), call.shape_type))
        return src

    def shape_argument(self, shape: tuple[int, ...], shape_type: str) -> Any:
        """Return shape as the library is given it."""
        if shape_type not in SHAPE_TYPES:
            raise Unsupported(f"shape-type:{shape_type}")
        fits = max(shape, default=0) >> 31 == 0  # a copied length may not fit
        return tf.constant(shape, SHAPE_TYPES[shape_type] if fits else tf.int64)

    def reshape(self, src: Any, shape: Any) -> Any:
        return tf.reshape(src, shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        dtype = np.dtype(dst.dtype.as_numpy_dtype)
        return read_answer(name_of(dtype), dst.shape, lambda: np.asarray(dst.numpy(), dtype))  # a scalar at rank 0


class TensorFlowFunction(TensorFlow):
    """tf.reshape in a tf.function: one for a graph of static shapes, one for any rank where shape comes later."""

    name = "tensorflow-function"
    options: Mapping[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.static = lru_cache(4096)(self.make_static_function)
        self.runtime = lru_cache(64)(self.make_runtime_function)

    def make_static_function(self, calls: NodeCalls, src: Any) -> Any:
        plain = super().run_chain
        return tf.function(lambda tensor: plain(tensor, calls), input_signature=[src], autograph=False, **self.options)

    def make_runtime_function(self, type_: Any, shape_type: Any) -> Any:
        signature = [tf.TensorSpec(None, type_), tf.TensorSpec([None], shape_type)]
        return tf.function(super().reshape, input_signature=signature, autograph=False, **self.options)

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        if not any(call.runtime for call in calls) and tf.executing_eagerly():
            return self.static(calls, tf.TensorSpec.from_tensor(src))(src)
        return super().run_chain(src, calls)

    def reshape(self, src: Any, shape: Any) -> Any:
        if tf.executing_eagerly():
            return self.runtime(src.dtype, shape.dtype)(src, shape)
        return super().reshape(src, shape)


class TensorFlowXla(TensorFlowFunction):
    """tf.reshape in a tf.function that XLA compiles."""

    name = "tensorflow-xla"
    options: Mapping[str, Any] = {"jit_compile": True}


class TensorFlowArray(TensorFlow):
    """tf.reshape, eager, with shape as a NumPy array of its type."""

    name = "tensorflow-array"
    not_claimed = tuple(facet for facet in TensorFlow.not_claimed if facet not in OTHERS)

    def shape_argument(self, shape: tuple[int, ...], shape_type: str) -> Any:
        bounds = np.iinfo(dtype_of(shape_type))
        fits = all(bounds.min <= entry <= bounds.max for entry in shape)  # a copied length may not fit
        return np.array(shape, dtype_of(shape_type) if fits else np.int64)


class TensorFlowList(TensorFlowArray):
    """tf.reshape, eager, with shape as a list of Python integers."""

    name = "tensorflow-list"

    def shape_argument(self, shape: tuple[int, ...], shape_type: str) -> Any:
        return list(shape)
