"""Choose the reader of a model file by its name and its first bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..system.files import read_bytes
from .nodes import MOST_BYTES, CannotRead, ModelFile
from .onednn_json import read_onednn_json
from .onnx_model import read_onnx
from .tensors import Cycle, in_order

READERS: dict[str, Callable[[Path, bytes], ModelFile]] = {".json": read_onednn_json, ".onnx": read_onnx}
"""Readers by the end of the file's name."""


def read_model(path: Path) -> ModelFile:
    """Read a model file; CannotRead says which part of it cannot be read."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise CannotRead(path, "", f"the name tells no format; names that end with {known} are read")
    try:
        content = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise CannotRead(path, "", error.strerror or str(error)) from None
    try:
        file = reader(path, content)
        if hasattr(file, "operations"):
            in_order(file.operations)
    except Cycle as cycle:
        raise CannotRead(path, "", str(cycle)) from None
    return file
