"""TVM: an ONNX model imported into Relax and compiled by LLVM, its shapes constants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import tvm  # type: ignore[import-not-found,unused-ignore]
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx  # type: ignore[import-not-found,unused-ignore]
from tvm_ffi import StructuralKey  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Claims, Graph, Identity, Tensor, Unsupported, array_of
from conformance.adapter import rejection

from .onnx_model import arguments, model

REFUSALS = (ValueError, RuntimeError, OverflowError, IndexError, TypeError, AssertionError)
"""The last three: a 0 that copies past the rank of src, and operands or outputs that the importer does not take."""


class Tvm:
    """tvm.compile with its default pipeline; equal modules share one virtual machine."""

    identity = Identity("tvm", tvm.__version__, (("target", "llvm"),))
    claims = Claims(("StaticReshape", "Reshape-1"), ("runtime-shape", "form:attributes", "rank:65", "shared-src"))

    def compile(self, graph: Graph) -> Machine:
        if any(node.shape is not None and node.shape.values is None for node in graph.nodes):
            raise Unsupported("runtime-shape")  # Relax wants a Shape there, which no tensor is
        if any(node.takes_src for node in graph.nodes):
            raise Unsupported("shared-src")  # a module with several outputs answers a tuple
        try:
            return Machine(graph, machine(StructuralKey(from_onnx(model(graph)))))
        except REFUSALS as refusal:
            raise rejection("compile", refusal) from refusal


@lru_cache(512)
def machine(key: Any) -> Any:
    """Return the virtual machine of a module; it takes a twentieth of a second to make, and many modules are equal."""
    return relax.VirtualMachine(tvm.compile(key.key, target="llvm"), tvm.cpu())


class Machine:
    """A compiled model, ready to run."""

    def __init__(self, graph: Graph, machine: Any) -> None:
        self.graph, self.machine = graph, machine

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Array:
        try:
            inputs = [tvm.runtime.tensor(array_of(tensor)) for _, tensor in arguments(self.graph, src, shapes)]
            answer: Array = self.machine["main"](*inputs).numpy()
        except REFUSALS as refusal:
            raise rejection("run", refusal) from refusal
        return answer
