"""tract: an ONNX model, its shapes constants."""

from __future__ import annotations

import os
import tempfile
from ctypes import POINTER, byref, c_char, c_size_t, c_void_p
from math import prod
from typing import Any

os.environ["RUST_LIB_BACKTRACE"] = "0"  # a stack trace takes longer than the call
import tract  # type: ignore[import-not-found,unused-ignore]
from tract.bindings import check, lib  # type: ignore[import-not-found,unused-ignore]

from conformance import Claims, Identity, Rejected, Tensor, array_of
from conformance.model.types import WIDTH

from .onnx_model import OnnxLibrary
from .shared import strides_of, types_except

OLD = not hasattr(tract, "DatumType")
"""Up to 0.22, the binding has other names and reads each answer as f32."""
TYPES = {None: "f32"} if OLD else {getattr(tract.DatumType, theirs): ours for ours, theirs in {
    "f16": "F16", "f32": "F32", "f64": "F64", "bool": "BOOL", "s8": "I8", "u8": "U8",
    "s16": "I16", "u16": "U16", "s32": "I32", "u32": "U32", "s64": "I64", "u64": "U64",
}.items()}  # fmt: skip


class Tract(OnnxLibrary):
    """tract on an ONNX model, with its optimisations."""

    identity = Identity("tract", tract.version())
    claims = Claims(
        ("StaticReshape", "Reshape-1"),
        ("runtime-shape", "unknown-src", "form:attributes", "rank:65", *types_except(TYPES.values())),
    )
    rejections = (tract.TractError,)

    def load(self, proto: Any) -> Any:
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:  # it loads from a path only
            file.write(proto.SerializeToString())
            file.flush()
            if OLD:
                return tract.onnx().model_for_path(file.name).into_optimized().into_runnable()
            return tract.onnx().load(file.name).into_model().into_runnable()

    def run(self, loaded: Any, inputs: dict[str, Tensor]) -> Tensor:
        answer, *_ = loaded.run([*map(array_of, inputs.values())])  # dst is first; a fork gives other outputs too
        return copy_answer(*(read_old(answer) if OLD else answer._parts()))

    def rejection(self, stage: str, error: Exception) -> Rejected:
        """Leave out the library's stack trace, which is different each time."""
        return Rejected(stage, str(error).partition("\n\nStack backtrace")[0])


def read_old(answer: Any) -> tuple[None, list[int], c_void_p]:
    """Return what `_parts` of newer versions returns: type, dims and address. NumPy has no array for some dims."""
    rank, dims, data = c_size_t(), POINTER(c_size_t)(), c_void_p()
    check(lib.tract_value_as_bytes(answer.ptr, None, byref(rank), byref(dims), byref(data)))
    return None, dims[: rank.value], data


def copy_answer(datum: Any, dims: list[int], data: Any) -> Tensor:
    """Copy an answer of any rank into new memory. If no memory can hold the elements, only the dims are read."""
    type_, count = TYPES[datum], prod(dims)
    size = count * WIDTH[type_] if 0 < count < 1 << 60 else 0
    memory = bytearray((c_char * size).from_address(data.value)) if size else bytearray()
    return Tensor(type_, tuple(dims), strides_of(type_, dims), memory, 0)
