"""ExecuTorch: the portable kernel view_copy, in a program of one call that the adapter writes.

The exporter is not used: it asks PyTorch about each shape first, so that the verdict would be about PyTorch.
"""

from __future__ import annotations

from importlib import metadata
from math import prod
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
from executorch.exir import schema  # type: ignore[import-not-found,import-untyped,unused-ignore]
from executorch.exir._serialize._program import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    PTEFile,
    serialize_pte_binary,
)
from executorch.runtime import Runtime  # type: ignore[import-not-found,import-untyped,unused-ignore]

from conformance import Tensor, Unsupported
from conformance.model import STRIDED_FACETS

from .shared import ArrayLibrary
from .torch import NAMES, Torch

TYPES = {
    "f16": "HALF", "bf16": "BFLOAT16", "f32": "FLOAT", "f64": "DOUBLE", "bool": "BOOL", "s8": "CHAR", "u8": "BYTE",
    "s16": "SHORT", "u16": "UINT16", "s32": "INT", "u32": "UINT32", "s64": "LONG", "u64": "UINT64",
}  # fmt: skip


class ExecuTorch(ArrayLibrary):
    """ExecuTorch's view_copy, by its portable kernel."""

    name, version = "executorch", metadata.version("executorch")
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = ("declared", "form", "runtime-shape", "length:2^31", "threads:one-program", *STRIDED_FACETS)

    def __init__(self) -> None:
        self.tensors = Torch()
        self.detail = (("torch", str(torch.__version__)),)
        self.runtime: Any = Runtime.get()

    def import_src(self, src: Tensor) -> torch.Tensor:
        given = self.tensors.import_src(src)
        if 0 in src.dims:  # other strides than these end the process, though there is nothing to find by them
            return torch.empty(src.dims, dtype=given.dtype)
        if not given.is_contiguous():  # it takes dense tensors only
            raise Unsupported("layout")
        return given

    def reshape(self, src: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        try:
            code = getattr(schema.ScalarType, TYPES[NAMES[src.dtype]])
            content = program(code, tuple(src.shape), shape, src.element_size())
        except TypeError as error:
            if "bad number" in str(error):  # a program has lengths of 32 bits
                raise Unsupported("length:2^31") from error
            raise
        (dst,) = self.runtime.load_program(content).load_method("forward").execute([src])
        return dst

    def export_dst(self, dst: torch.Tensor) -> Tensor:
        return self.tensors.export_dst(dst)


def program(code: Any, src: tuple[int, ...], shape: tuple[int, ...], width: int) -> bytes:
    """Return a program that calls view_copy once; the kernel itself resizes dst, up to as many elements as src has."""
    count = prod(src)
    room = max(count * width + 15 & ~15, 16)
    bound = (count, *(1,) * (len(shape) - 1)) if shape else ()
    dynamic = schema.TensorShapeDynamism.DYNAMIC_BOUND
    lengths = [schema.EValue(schema.Int(entry)) for entry in shape]
    values = [
        tensor(code, src, schema.TensorShapeDynamism.STATIC, 0), tensor(code, bound, dynamic, room), *lengths,
        schema.EValue(schema.IntList(list(range(2, 2 + len(shape))))),
    ]  # fmt: skip
    call = schema.Instruction(schema.KernelCall(op_index=0, args=[0, len(values) - 1, 1, 1]))
    plan = schema.ExecutionPlan(
        name="forward", container_meta_type=schema.ContainerMetadata("", ""), values=values, inputs=[0], outputs=[1],
        chains=[schema.Chain(inputs=[], outputs=[], instructions=[call], stacktrace=None)],
        operators=[schema.Operator("aten::view_copy", "out")], delegates=[], non_const_buffer_sizes=[0, 2 * room],
    )  # fmt: skip
    whole = schema.Program(
        version=0, execution_plan=[plan], constant_buffer=[schema.Buffer(storage=b"")], backend_delegate_data=[],
        segments=[], constant_segment=schema.SubsegmentOffsets(0, []),
    )  # fmt: skip
    return bytes(serialize_pte_binary(PTEFile(program=whole)))


def tensor(code: Any, sizes: tuple[int, ...], dynamism: Any, place: int) -> Any:
    """Return a tensor of a program, at a place of its planned memory."""
    fields = {
        "scalar_type": code, "storage_offset": 0, "sizes": list(sizes), "dim_order": list(range(len(sizes))),
        "requires_grad": False, "layout": 0, "data_buffer_idx": 0,
        "allocation_info": schema.AllocationDetails(1, place, 0), "shape_dynamism": dynamism,
    }  # fmt: skip
    return schema.EValue(schema.Tensor(**fields))
