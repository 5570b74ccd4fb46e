"""tinygrad on the CPU; it compiles each copy of elements with clang."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from threading import Lock
from typing import Any

import numpy as np
import tinygrad  # type: ignore[import-not-found,unused-ignore]
from tinygrad import dtypes, helpers

from conformance import Array, CannotStart, Graph, Tensor, Unsupported, array_of
from conformance.model.types import WIDTH, dtype_of

from .shared import ArrayLibrary, ArrayProgram, read_answer

TYPES = {name: getattr(dtypes, dtype_of(name).name) for name in WIDTH}
NAMES = {dtype: name for name, dtype in TYPES.items()}
CPU = "CPU"


class TinyGrad(ArrayLibrary):
    """tinygrad.Tensor.reshape on the CPU."""

    name, version = "tinygrad", metadata.version("tinygrad")
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape", "threads")
    rejections = (*ArrayLibrary.rejections, ZeroDivisionError)  # the last: what it raises where a 0 meets a -1

    def __init__(self) -> None:
        compiler = os.environ.get("CC", "clang")
        if shutil.which(compiler) is None:
            raise CannotStart(f"tinygrad: there is no {compiler}, which compiles its kernels; install clang, or set CC")
        helpers.CACHELEVEL.value = 0  # each process compiles its own kernels, so that two runs load the same files
        self.detail = (("device", CPU), ("compiler", compiler))

    def compile(self, graph: Graph) -> OneAtATime:
        super().compile(graph)  # it checks the graph
        return OneAtATime(self, graph)

    def import_src(self, src: Tensor) -> Any:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return tinygrad.Tensor.zeros(*src.dims, dtype=TYPES[src.type], device=CPU)
        array = array_of(src)
        if src.type == "bf16":
            return tinygrad.Tensor(array.view(np.uint16), device=CPU).bitcast(dtypes.bfloat16)
        return tinygrad.Tensor(array, device=CPU)

    def reshape(self, src: Any, shape: tuple[int, ...]) -> Any:
        return src.reshape(shape)

    def export_dst(self, dst: Any) -> Tensor | Array:
        if dst.dtype == dtypes.bfloat16:
            return read_answer("bf16", dst.shape, lambda: dst.bitcast(dtypes.uint16).numpy().view(dtype_of("bf16")))
        return read_answer(NAMES[dst.dtype], dst.shape, lambda: np.asarray(dst.numpy()))


class OneAtATime(ArrayProgram):
    """A program that rejects to run beside another: all threads share tinygrad's settings, and would spoil them."""

    running = Lock()

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        if not self.running.acquire(blocking=False):
            raise Unsupported("threads")
        try:
            return super().run(src, shapes, may_overwrite)
        finally:
            self.running.release()
