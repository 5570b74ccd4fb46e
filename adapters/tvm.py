"""TVM: an ONNX model imported into Relax and compiled by LLVM, its shapes constants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import tvm  # type: ignore[import-not-found,unused-ignore]
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx  # type: ignore[import-not-found,unused-ignore]
from tvm_ffi import StructuralKey  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Graph, Identity, Rejected, Tensor, Unsupported, array_of

from .onnx_model import arguments, model

REFUSALS = (ValueError, RuntimeError, OverflowError, IndexError, TypeError, AssertionError)
"""The last three: a 0 that copies past the rank of src, and operands and outputs that its importer finds unsuitable."""


class Tvm:
    """tvm.compile by its usual pipeline, on one virtual machine for equal modules."""

    identity = Identity("tvm", tvm.__version__, (("target", "llvm"),))
    claims = Claims(("StaticReshape", "Reshape-1"), ("runtime-shape", "form:attributes", "rank:65"))

    def compile(self, graph: Graph) -> Machine:
        if any(node.shape is not None and node.shape.values is None for node in graph.nodes):
            raise Unsupported("runtime-shape")  # Relax wants a Shape there, which no tensor is
        try:
            return Machine(graph, machine(StructuralKey(from_onnx(model(graph)))))
        except REFUSALS as refusal:
            raise rejected("compile", refusal) from refusal


@lru_cache(512)
def machine(key: Any) -> Any:
    """The virtual machine of a module; making one takes a twentieth of a second; many models are imported as equals."""
    compiled = tvm.compile(key.key, target="llvm")
    return relax.VirtualMachine(compiled, tvm.cpu())


class Machine:
    """A model to be run."""

    def __init__(self, graph: Graph, machine: Any) -> None:
        self.graph, self.machine = graph, machine

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        try:
            given = [tvm.runtime.tensor(array_of(tensor)) for _, tensor in arguments(self.graph, src, shapes)]
            answer: Array = self.machine["main"](*given).numpy()
        except REFUSALS as refusal:
            raise rejected("run", refusal) from refusal
        return answer


def rejected(stage: str, refusal: Exception) -> Rejected:
    return Rejected(stage, f"{type(refusal).__name__}: {refusal}")
