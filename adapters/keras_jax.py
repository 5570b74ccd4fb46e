"""Keras on JAX: keras.ops.reshape, and the layer Reshape with a batch of one."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "jax"  # Keras reads it once, when it is imported
import jax  # type: ignore[import-not-found,unused-ignore]
import keras  # type: ignore[import-not-found,import-untyped,unused-ignore]

from conformance import CannotStart

from .jax import Jax


class KerasJax(Jax):
    """keras.ops.reshape on JAX, eager."""

    name, version = "keras-jax", keras.__version__

    def __init__(self) -> None:
        super().__init__()
        if keras.backend.backend() != "jax":
            raise CannotStart(f"{self.name}: Keras runs on {keras.backend.backend()} here; start another process")
        self.detail += (("jax", jax.__version__),)

    def call(self, src: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return keras.ops.reshape(src, shape)
