"""TOSA's reference model: RESHAPE nodes in one serialized graph, with the lengths of every tensor written in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from typing import Any
from unittest.mock import patch

import numpy as np
import tosa_reference_model as model  # type: ignore[import-not-found,unused-ignore]
import tosa_serializer as serializer  # type: ignore[import-not-found,unused-ignore]

from conformance import Array, Tensor, array_of
from conformance.model.types import dtype_of

from .shared import ArrayLibrary, NodeCalls, check_31_bits, resolve_infer, resolve_zeros, types_except

TYPES = {
    "f16": "FP16", "bf16": "BF16", "f32": "FP32", "bool": "BOOL", "s8": "INT8", "s16": "INT16", "s32": "INT32",
    "s64": "INT64",
}  # fmt: skip


class Tosa(ArrayLibrary):
    """TOSA's RESHAPE by the reference model; it has no -1 and no 0, so the adapter answers both."""

    name, version = "tosa", metadata.version("tosa-tools")
    detail = (("-1", "answered by the adapter"), ("level", "NONE"))
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape", "length:2^31", "threads", *types_except(TYPES))

    def import_src(self, src: Tensor) -> tuple[str, Array]:
        array = array_of(src)
        return src.type, array.view(np.uint16) if src.type == "bf16" else array  # the binding has no name for bf16

    def run_chain(self, src: tuple[str, Array], calls: NodeCalls) -> Array:
        type_, array = src
        dims, shapes = array.shape, []
        for call in calls:
            dims = resolve_infer(dims, resolve_zeros(dims, call))
            shapes.append(dims)
        for dims in (array.shape, *shapes):
            check_31_bits(dims)
        code = getattr(serializer.DType, TYPES[type_])
        with patch.dict(
            os.environ, PATH=os.devnull
        ):  # else it starts gdb for each graph that it rejects: a second each
            (dst,), status = model.run(serialize(code, array.shape, tuple(shapes)), [array])
        if status != model.GraphStatus.TOSA_VALID:
            raise ValueError(f"status {status.name}")
        answer: Array = dst.view(dtype_of(type_))
        return answer

    def export_dst(self, dst: Array) -> Array:
        return dst


@lru_cache(maxsize=256)
def serialize(code: Any, src: Sequence[int], shapes: Sequence[Sequence[int]]) -> Any:
    """Return a graph that reshapes src by one shape after another; each shape also declares the tensor it makes."""
    graph = serializer.TosaSerializer()
    tensor = graph.addPlaceholder(list(src), code, None)
    for number, shape in enumerate(shapes):
        entries = graph.addConst([len(shape)], serializer.DType.SHAPE, list(shape), f"shape-{number}")
        given = tensor.name
        declare = graph.addOutput if number == len(shapes) - 1 else graph.addIntermediate
        tensor = declare(list(shape), code)
        attributes = serializer.TosaSerializerAttribute()
        attributes.ReshapeAttribute()
        graph.addOperator(serializer.Op.RESHAPE, [given, entries.name], [tensor.name], attributes)
    return graph.serialize()
