"""Backends that handle rank 0 or many dimensions wrongly."""

from __future__ import annotations

import math

from .base import Answer, Dims, Illegal, PlantedCall, Run, move_elements, overlook, resolve_dims
from .layout import dense_strides


@resolve_dims("ones-squeezed", breaks="dst-has-shape-rank", classes="")
def _(call: PlantedCall) -> Dims:
    """Drops a trailing dimension of length 1."""
    dst = call.resolve()
    return dst[:-1] if dst[-1:] == (1,) else dst


@resolve_dims("at-most-eight-dims", breaks="dst-has-shape-rank", classes="J")
def _(call: PlantedCall) -> Dims:
    """Merges the eighth dimension and all later ones."""
    dst = call.resolve()
    return dst if len(dst) <= 8 else (*dst[:7], math.prod(dst[7:]))


@resolve_dims("writes-past-twelve-dims", breaks="rank-limit", classes="J")
def _(call: PlantedCall) -> Dims:
    """Writes the lengths of dst into an array of twelve without a check."""
    lengths = [0] * 12
    for index, length in enumerate(call.resolve()):
        lengths[index] = length
    return tuple(lengths[: len(call.shape)])


@move_elements("steps-of-twelve-dims", breaks="rank-limit", classes="JF")
def _(run: Run, dst: Dims) -> Answer:
    """Writes the steps of a strided src into an array of twelve without a check."""
    if run.src.strides != dense_strides(run.src):
        steps = [0] * 12
        for index in range(max(len(run.src.dims), len(dst))):
            steps[index] = 1
    return run.move(dst)


@resolve_dims("vectors-refused", breaks="rank-from-one", classes="Q")
def _(call: PlantedCall) -> Dims:
    """Rejects a src of one dimension, because it is not multidimensional."""
    dst = call.resolve()
    if len(call.src) == 1:
        raise Illegal("src has to be multidimensional")
    return dst


resolve_dims.plant("scalar-has-no-elements", "empty-product-is-one", "K", "Takes the volume of rank 0 as 0.",
                   lambda call: call.resolve(src=call.src or (0,)) if call.src else (0,) * len(call.shape))  # fmt: skip
resolve_dims.plant("empty-shape-is-flat", "rank-zero", "K", "Reads a shape without entries as [-1].",
                   lambda call: call.resolve(shape=call.shape or (-1,)))  # fmt: skip
resolve_dims.plant("scalar-has-no-first-dimension", "rank-zero", "K", "Looks at the first length of src in rank 0 too.",
                   lambda call: call.resolve(src=(call.src[0], *call.src[1:])))  # fmt: skip
overlook("empty-shape-takes-the-first", "empty-product-is-one", "KE",
         "Answers the first element of src for a shape without entries, however many elements src has.",
         lambda call: not call.shape, overlooked=("same-volume",))  # fmt: skip
