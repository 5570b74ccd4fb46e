"""Choose the reader of a model file by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from ..model import Spec
from .nodes import InferDst, Model, UnreadableModel
from .onednn_json import read_onednn_json
from .onnx_model import read_onnx
from .openvino_ir import read_openvino_ir
from .pt2 import read_pt2
from .tflite import read_tflite


def read_model(path: Path, spec: Spec, answer: InferDst) -> Model:
    """Return the model of a file; UnreadableModel if it is none that we know."""
    kinds = {operation.kind: operation for operation in spec.operations.values()}
    match path.suffix.lower():
        case ".json":
            return read_onednn_json(path, answer, kinds)
        case ".onnx":
            return read_onnx(path)
        case ".xml":
            return read_openvino_ir(path, answer)
        case ".pt2":
            return read_pt2(path, answer)
        case ".tflite":
            return read_tflite(path, answer)
        case _:
            raise UnreadableModel(f"a file {path.suffix or 'without an ending'} is not read; give {', '.join(ENDINGS)}")


ENDINGS = (".json (oneDNN Graph)", ".onnx", ".xml (OpenVINO IR)", ".pt2 (PyTorch)", ".tflite")
