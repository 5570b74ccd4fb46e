"""TensorFlow: tf.reshape eager, in a tf.function, and compiled by XLA; shape is a tensor of s32 or s64."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # else it writes to the terminal before anyone can stop it
import numpy as np
import tensorflow as tf  # type: ignore[import-untyped,import-not-found,unused-ignore]

from conformance import Array, CannotStart, Tensor, Unsupported, array_of
from conformance.adapter import rank_in_numpy
from conformance.model.types import dtype_of, name_of

from .shared import ArrayLibrary, Calls, copied_zeros, without_elements

SHAPE_TYPES = {"s32": tf.int32, "s64": tf.int64}
OTHERS = tuple(f"shape-type:{name}" for name in ("s8", "u8", "s16", "u16", "u32", "u64"))
"""What Reshape does not list for its Tshape."""


class TensorFlow(ArrayLibrary):
    """tf.reshape, eager."""

    name, version = "tensorflow", tf.__version__
    leaves_out = ("declared", "form", "rank:65", *OTHERS)
    refusals = (*ArrayLibrary.refusals, tf.errors.OpError)

    def __init__(self, device: str = "cpu") -> None:
        found = [each.name for each in tf.config.list_logical_devices()]
        self.device = next((name for name in found if device.upper() in name), "")
        if not self.device:
            raise CannotStart(f"{self.name}@{device}: no such device; there are {', '.join(found)}")
        self.detail = (("build", tf.version.GIT_VERSION), ("device", self.device))

    def tensor(self, src: Tensor) -> Any:
        with tf.device(self.device):
            if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
                return tf.zeros(src.dims, tf.as_dtype(dtype_of(src.type)))
            return tf.convert_to_tensor(array_of(src))

    def chain(self, src: Any, calls: Calls) -> Any:
        for call in calls:
            if call.shape_type not in SHAPE_TYPES:
                raise Unsupported(f"shape-type:{call.shape_type}")
            shape = copied_zeros(src.shape, call)
            fits = max(shape, default=0) >> 31 == 0  # a length that was copied need not
            src = self.reshape(src, tf.constant(shape, SHAPE_TYPES[call.shape_type] if fits else tf.int64))
        return src

    def reshape(self, src: Any, shape: Any) -> Any:
        return tf.reshape(src, shape)

    def answer(self, dst: Any) -> Tensor | Array:
        rank_in_numpy(dst.shape)
        if 0 in dst.shape:
            return without_elements(name_of(np.dtype(dst.dtype.as_numpy_dtype)), dst.shape)
        return np.asarray(dst.numpy(), dst.dtype.as_numpy_dtype)  # of rank 0 it makes a scalar


class TensorFlowFunction(TensorFlow):
    """tf.reshape in a tf.function: one for a graph of static shapes, one for any rank where shape comes later."""

    name = "tensorflow-function"
    options: Mapping[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.static = lru_cache(4096)(self.of_constants)
        self.runtime = lru_cache(64)(self.of_any_rank)

    def of_constants(self, calls: Calls, src: Any) -> Any:
        plain = super().chain
        return tf.function(lambda tensor: plain(tensor, calls), input_signature=[src], autograph=False, **self.options)

    def of_any_rank(self, type_: Any, shape_type: Any) -> Any:
        signature = [tf.TensorSpec(None, type_), tf.TensorSpec([None], shape_type)]
        return tf.function(super().reshape, input_signature=signature, autograph=False, **self.options)

    def chain(self, src: Any, calls: Calls) -> Any:
        if not any(call.runtime for call in calls) and tf.executing_eagerly():
            return self.static(calls, tf.TensorSpec.from_tensor(src))(src)
        return super().chain(src, calls)

    def reshape(self, src: Any, shape: Any) -> Any:
        if tf.executing_eagerly():
            return self.runtime(src.dtype, shape.dtype)(src, shape)
        return super().reshape(src, shape)


class TensorFlowXla(TensorFlowFunction):
    """tf.reshape in a tf.function that XLA compiles."""

    name = "tensorflow-xla"
    options: Mapping[str, Any] = {"jit_compile": True}
