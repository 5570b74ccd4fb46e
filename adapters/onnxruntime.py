"""ONNX Runtime on the CPU, with and without its graph optimiser."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any, ClassVar

import numpy as np
import onnxruntime as ort  # type: ignore[import-not-found,unused-ignore]
from onnxruntime.capi import onnxruntime_pybind11_state as native  # type: ignore[import-not-found,unused-ignore]

from conformance import CannotStart, Claims, Identity, Tensor, Unsupported
from conformance.model import EVERY, STRIDED_FACETS
from conformance.model.types import WIDTH

from .onnx_model import TYPES, OnnxLibrary
from .shared import strides_of

NAMES = {number: name for name, number in TYPES.items()}
ERRORS = tuple(e for e in vars(native).values() if isinstance(e, type) and issubclass(e, Exception))
PROVIDER = "CPUExecutionProvider"
SILENT = 4

if (*map(int, ort.__version__.split(".")[:2]),) < (1, 20):
    raise CannotStart(
        f"onnxruntime {ort.__version__} binds no bf16; the oldest that does is 1.20; pip install -U onnxruntime"
    )
ort.set_default_logger_severity(SILENT)


class OnnxRuntime(OnnxLibrary):
    """ONNX Runtime on the CPU with every optimisation, which is its default."""

    name: ClassVar[str] = "onnxruntime"
    level: ClassVar[Any] = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    claims = Claims(EVERY, ("form:attributes", *STRIDED_FACETS))
    rejections = (*ERRORS, RuntimeError, ValueError, OverflowError)

    def __init__(self) -> None:
        build = ort.get_build_info().removeprefix("ORT Build Info: ")
        detail = (("build", build), ("provider", PROVIDER), ("opset", str(self.opset)))
        self.identity = Identity(self.name, ort.__version__, detail)

    def load(self, proto: Any) -> Any:
        options = ort.SessionOptions()
        options.graph_optimization_level = self.level
        options.log_severity_level = SILENT
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return ort.InferenceSession(proto.SerializeToString(), options, providers=[PROVIDER])

    def run(self, loaded: Any, inputs: dict[str, Tensor]) -> Any:
        """Bind dense inputs to the memory of the call, and copy the others."""
        binding = loaded.io_binding()
        strided = [name for name, tensor in inputs.items() if not is_dense(tensor)]
        if any(inputs[name].type == "bf16" for name in strided):  # of bf16 it takes dense arrays only
            raise Unsupported("layout")
        for name, tensor in inputs.items():
            if name in strided:
                binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(tensor.array()))
            else:
                binding.bind_input(name, "cpu", 0, TYPES[tensor.type], list(tensor.dims), address(tensor))
        binding.bind_output("dst", "cpu")
        loaded.run_with_iobinding(binding)
        return binding

    def export_dst(self, answer: Any) -> Tensor:
        return copy_answer(answer.get_outputs()[0])


class OnnxRuntimePlain(OnnxRuntime):
    """ONNX Runtime on the CPU without optimisation."""

    name = "onnxruntime-plain"
    level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


class OnnxRuntimeOpset18(OnnxRuntime):
    """ONNX Runtime on models of opset 18, on which it runs optimisations that later opsets do not have yet."""

    name = "onnxruntime-opset-18"
    opset = 18


def is_dense(tensor: Tensor) -> bool:
    steps = zip(tensor.dims, tensor.strides, strides_of(tensor.type, tensor.dims), strict=True)
    return 0 in tensor.dims or all(have == want for length, have, want in steps if length != 1)


def address(tensor: Tensor) -> int:
    """Return the address of the first element."""
    return int(np.ndarray((), np.uint8, tensor.memory, tensor.offset).ctypes.data)


def copy_answer(answer: Any) -> Tensor:
    """Copy an answer into new memory."""
    type_, dims = NAMES[answer.element_type()], tuple(answer.shape())
    memory = bytearray(ctypes.string_at(answer.data_ptr(), prod(dims) * WIDTH[type_])) if prod(dims) else bytearray()
    return Tensor(type_, dims, strides_of(type_, dims), memory, 0)
