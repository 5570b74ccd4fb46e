"""Keras on TensorFlow: keras.ops.reshape with shape as a list of Python integers."""

from __future__ import annotations

import os
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once, when it is imported
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # otherwise the import prints to the terminal
import keras  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow as tf  # type: ignore[import-untyped,import-not-found,unused-ignore]

from conformance import CannotStart

from .tensorflow import TensorFlowList


class KerasTensorFlow(TensorFlowList):
    """keras.ops.reshape on TensorFlow, eager."""

    name, version = "keras-tensorflow", keras.__version__

    def __init__(self) -> None:
        super().__init__()
        if keras.backend.backend() != "tensorflow":
            raise CannotStart(f"{self.name}: Keras runs on {keras.backend.backend()} here; start another process")
        self.detail += (("tensorflow", tf.__version__),)

    def reshape(self, src: Any, shape: Any) -> Any:
        return keras.ops.reshape(src, shape)
