"""The backends that come with the suite."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

BUNDLED: Mapping[str, tuple[str, str]] = {
    "numpy": ("numpy_reference", "NumpyReference"),
    "numpy-raw": ("numpy_raw", "NumpyRaw"),
    "onednn": ("onednn", "OneDnn"),
    "torch": ("torch", "Torch"),
    "torch-raw": ("torch", "TorchRaw"),
    "torch-compile": ("torch", "TorchCompile"),
    "torch-inductor": ("torch", "TorchInductor"),
    "torch-mkldnn": ("torch", "TorchMkldnn"),
    "jax": ("jax", "Jax"),
    "jax-jit": ("jax", "JaxJit"),
    "array-api-strict": ("array_api_strict", "ArrayApiStrict"),
    "dask": ("dask", "Dask"),
    "mlx": ("mlx", "Mlx"),
    "tensorflow": ("tensorflow", "TensorFlow"),
    "tensorflow-function": ("tensorflow", "TensorFlowFunction"),
    "tensorflow-xla": ("tensorflow", "TensorFlowXla"),
    "ndonnx": ("ndonnx", "Ndonnx"),
    "paddle": ("paddle", "Paddle"),
    "pytensor": ("pytensor", "PyTensor"),
    "pytensor-numba": ("pytensor", "PyTensorNumba"),
    "litert": ("litert", "LiteRt"),
    "litert-xnnpack": ("litert", "LiteRtXnnpack"),
    "mnn": ("mnn", "Mnn"),
    "cupy": ("cupy", "CuPy"),
    "openvino": ("openvino", "OpenVino"),
    "openvino-one-thread": ("openvino", "OpenVinoOneThread"),
    "openvino-reference": ("openvino", "OpenVinoReference"),
    "onnxruntime": ("onnxruntime", "OnnxRuntime"),
    "onnxruntime-plain": ("onnxruntime", "OnnxRuntimePlain"),
    "onnx-reference": ("onnx_reference", "OnnxReference"),
    "ncnn": ("ncnn", "Ncnn"),
    "tract": ("tract", "Tract"),
    "tvm": ("tvm", "Tvm"),
}
"""The name of a backend that comes along → its module in adapters/ and its class."""
INSTALL: Mapping[str, str] = {
    "onednn": "pip install onednn==2026.1.0",
    "torch": "pip install torch==2.13.0",
    "jax": "pip install jax",
    "array_api_strict": "pip install array-api-strict",
    "dask": "pip install dask",
    "mlx": 'pip install "mlx[cpu]"',
    "tensorflow": "pip install tensorflow-cpu",
    "paddle": "pip install paddlepaddle 'numpy<2.4'",
    "pytensor": "pip install pytensor",
    "ndonnx": "pip install ndonnx onnxruntime",
    "litert": "pip install ai-edge-litert flatbuffers",
    "mnn": "pip install MNN",
    "ncnn": "pip install ncnn",
    "cupy": "pip install cupy-cuda12x",
    "openvino": "pip install openvino",
    "onnxruntime": "pip install onnxruntime onnx",
    "onnx_reference": "pip install onnx",
    "tract": "pip install tract onnx",
    "tvm": "pip install apache-tvm onnx",
}
"""A module in adapters/ → the command that installs what it needs."""


def bundled_folder() -> Path:
    """The adapters that come along."""
    return Path(importlib.import_module("conformance.adapters").__path__[0])


# ── what comes along ──────────────────────────────────────────────────────────────────────────────


class Bundled(NamedTuple):
    """A backend that comes along, and whether what it needs is here; nothing is imported to tell."""

    backend: str
    version: str | None
    about: str
    install: str | None


def bundled() -> list[Bundled]:
    """Every bundled backend."""
    return [_bundled(backend, module, name) for backend, (module, name) in BUNDLED.items()]


def _bundled(backend: str, module: str, name: str) -> Bundled:
    install = INSTALL.get(module)
    wanted = (install or "numpy").removeprefix("pip install").strip(" \"'")
    distribution = re.split(r"[\[=<>\"' ]", wanted)[0]
    from importlib import metadata  # slow to import, and only needed here

    try:
        version: str | None = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = f"by ONEDNN_LIBRARY ({os.environ['ONEDNN_LIBRARY']})" if _by_path(module) else None
    return Bundled(backend, version, _about(module, name), install)


def _by_path(module: str) -> bool:
    return module == "onednn" and bool(os.environ.get("ONEDNN_LIBRARY"))


def _about(module: str, name: str) -> str:
    """The first line of the class's docstring."""
    path = bundled_folder() / f"{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""
