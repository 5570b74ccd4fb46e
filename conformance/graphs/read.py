"""Choose the reader of a model file by the end of its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .nodes import CannotRead, ModelFile
from .onednn_json import read_onednn_json
from .onnx_model import read_onnx
from .openvino_ir import read_openvino_ir
from .tensors import Cycle
from .tflite import read_tflite
from .torch_pt2 import read_pt2

READERS: dict[str, Callable[[Path], ModelFile]] = {
    ".json": read_onednn_json,
    ".onnx": read_onnx,
    ".pt2": read_pt2,
    ".tflite": read_tflite,
    ".xml": read_openvino_ir,
}
"""Readers by the end of the file's name."""


def read_model(path: Path) -> ModelFile:
    """Read a model file; CannotRead says which part of it cannot be read."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise CannotRead(path, "", f"the name tells no format; names that end with {known} are read")
    try:
        return reader(path)
    except Cycle as cycle:
        raise CannotRead(path, "", str(cycle)) from None
