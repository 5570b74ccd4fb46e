"""Backends that handle rank 0 or many dimensions wrongly."""

from __future__ import annotations

import math

from .base import (
    Answer,
    Dims,
    PlantedCall,
    ProgramRun,
    change_dims,
    move_elements,
    overlook,
    reject_legal,
    resolve_dims,
)
from .layout import dense_strides

change_dims.plant("ones-squeezed", "dst-has-shape-rank", "", "Drops a trailing dimension of length 1.",
                  lambda _, dst: dst[:-1] if dst[-1:] == (1,) else dst)  # fmt: skip
change_dims.plant("at-most-eight-dims", "dst-has-shape-rank", "J", "Merges the eighth dimension and all later ones.",
                  lambda _, dst: dst if len(dst) <= 8 else (*dst[:7], math.prod(dst[7:])))  # fmt: skip


@change_dims("writes-past-twelve-dims", breaks="rank-limit", classes="J")
def _(call: PlantedCall, dst: Dims) -> Dims:
    """Writes the lengths of dst into an array of twelve without a check."""
    lengths = [0] * 12
    for index, length in enumerate(dst):
        lengths[index] = length
    return tuple(lengths[: len(call.shape)])


@move_elements("steps-of-twelve-dims", breaks="rank-limit", classes="JF")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Writes the steps of a strided src into an array of twelve without a check."""
    if run.src.strides != dense_strides(run.src):
        steps = [0] * 12
        for index in range(max(len(run.src.dims), len(dst))):
            steps[index] = 1
    return run.move(dst)


reject_legal("vectors-rejected", "rank-from-one", "Q",
             "Rejects a src of one dimension, because it is not multidimensional.",
             lambda call, _: len(call.src) == 1)  # fmt: skip
resolve_dims.plant("scalar-has-no-elements", "empty-product-is-one", "K", "Takes the volume of rank 0 as 0.",
                   lambda call: call.resolve(src=call.src or (0,)) if call.src else (0,) * len(call.shape))  # fmt: skip
resolve_dims.plant("empty-shape-is-flat", "rank-zero", "K", "Reads a shape without entries as [-1].",
                   lambda call: call.resolve(shape=call.shape or (-1,)))  # fmt: skip
resolve_dims.plant("scalar-has-no-first-dimension", "rank-zero", "K", "Looks at the first length of src in rank 0 too.",
                   lambda call: call.resolve(src=(call.src[0], *call.src[1:])))  # fmt: skip
overlook("empty-shape-takes-the-first", "empty-product-is-one", "KE",
         "Answers the first element of src for a shape without entries, however many elements src has.",
         lambda call: not call.shape, overlooked=("same-volume",))  # fmt: skip
