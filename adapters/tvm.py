"""TVM: an ONNX model imported into Relax and compiled by LLVM, its shapes constants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import tvm  # type: ignore[import-not-found,unused-ignore]
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx  # type: ignore[import-not-found,unused-ignore]
from tvm_ffi import StructuralKey  # type: ignore[import-not-found,unused-ignore]

from conformance import Claims, Identity, Tensor, array_of

from .onnx_model import OnnxLibrary

UNCLAIMED = ("runtime-shape", "unknown-src", "form:attributes", "rank:65", "shared-src", "threads:one-program")


class Tvm(OnnxLibrary):
    """tvm.compile with its default pipeline; equal modules share one virtual machine."""

    identity = Identity("tvm", tvm.__version__, (("target", "llvm"),))
    # Relax wants a Shape, which no tensor is, for a shape that arrives; a module of several outputs answers a tuple.
    claims = Claims(("StaticReshape", "Reshape-1"), UNCLAIMED)
    # The last three: a 0 that copies past the rank of src, and operands or outputs that the importer does not take.
    rejections = (ValueError, RuntimeError, OverflowError, IndexError, TypeError, AssertionError)

    def load(self, proto: Any) -> Any:
        return machine(StructuralKey(from_onnx(proto)))

    def run(self, loaded: Any, inputs: dict[str, Tensor]) -> Any:
        return loaded["main"](*(tvm.runtime.tensor(array_of(tensor)) for tensor in inputs.values())).numpy()


@lru_cache(512)
def machine(key: Any) -> Any:
    """Return the virtual machine of a module; it takes a twentieth of a second to make, and many modules are equal."""
    return relax.VirtualMachine(tvm.compile(key.key, target="llvm"), tvm.cpu())
