"""ncnn: a net of Reshape layers; a 0 copies the length of the same axis, counted from the last one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ncnn  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, Rejected, Tensor, Unsupported, array_of
from conformance.model import STRIDED_FACETS

from .shared import ArrayLibrary, NodeCalls, has_elements, types_except, without_elements

LENGTHS = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}
"""The numbers by which a layer knows the lengths of 1 to 4 axes: w is 0, h 1, d 11 and c 2."""


class Ncnn(ArrayLibrary):
    """ncnn's Reshape layer in a net that is loaded for each call; tensors have one to four axes."""

    name, version = "ncnn", ncnn.__version__
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = ("declared", "form", "runtime-shape", "rank", *STRIDED_FACETS, *types_except(["f32"]))
    answers_special_zero = False

    def import_src(self, src: Tensor) -> Any:
        array = array_of(src)
        if not array.flags.c_contiguous:  # it treats every array as dense
            raise Unsupported("layout")
        return array

    def run_chain(self, src: Any, calls: NodeCalls) -> Any:
        for call in calls:
            if len(call.shape) not in LENGTHS:
                raise Rejected("compile", f"a layer has 1 to 4 lengths, and here are {len(call.shape)}")
        net = ncnn.Net()
        net.opt.num_threads = 1
        if net.load_param_mem(text_of([call.shape for call in calls])):
            raise Rejected("compile", "load_param_mem")
        extractor = net.create_extractor()
        extractor.input("src", blob(src))
        status, dst = extractor.extract("dst")
        if status or not dst.dims:
            raise Rejected("run", f"extract: {status}, of {dst.dims} axes")
        return dst, src.size

    def export_dst(self, dst: Any) -> Tensor | Array:
        dst, size = dst
        dims = {1: (dst.w,), 2: (dst.h, dst.w), 3: (dst.c, dst.h, dst.w), 4: (dst.c, dst.d, dst.h, dst.w)}[dst.dims]
        if not has_elements(dims) or prod(dims) > size:  # it has no memory for more than src holds
            return without_elements("f32", dims)
        return np.array(dst)


def blob(src: Any) -> Any:
    try:
        return ncnn.Mat(src)
    except TypeError as error:  # how the binding rejects an array of rank 0
        raise ValueError(str(error)) from error


def text_of(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return the net as the text of its file format."""
    lines = ["7767517", f"{len(shapes) + 1} {len(shapes) + 1}", "Input src 0 1 src"]
    blobs = ["src", *(f"between{k}" for k in range(1, len(shapes))), "dst"]
    for k, shape in enumerate(shapes):
        lengths = (f"{key}={value}" for key, value in zip(LENGTHS[len(shape)], shape, strict=True))
        lines.append(f"Reshape reshape{k} 1 1 {blobs[k]} {blobs[k + 1]} {' '.join(lengths)}")
    return "\n".join([*lines, ""])
