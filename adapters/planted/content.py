"""Backends that change elements on the way."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from conformance.model import Array
from conformance.model.types import WIDTH, dtype_of

from ..reference import dense, elements
from .base import Answer, Dims, ProgramRun, always, move_elements
from .layout import Condition, is_in_order

Change = Callable[[Array, str], Array]
"""Takes the elements as unsigned integers with their type, and returns the changed ones."""
FRACTION = {"f32": 23, "bf16": 7, "f16": 10, "f64": 52}
"""Bits of the fraction of a floating-point type."""


def change_elements(name: str, breaks: str, classes: str, fault: str, change: Change, when: Condition) -> None:
    """Plant a backend that changes elements, in some runs."""

    def move(run: ProgramRun, dst: Dims) -> Answer:
        src = run.src
        if 0 in dst or math.prod(dst) != math.prod(src.dims) or not when(run, dst):
            return run.move(dst)
        words = np.frombuffer(elements(src), f"<u{WIDTH[src.type]}").copy()
        with np.errstate(all="ignore"):
            return dense(src.type, dst, bytearray(change(words, src.type).tobytes()))

    move_elements.plant(name, breaks, classes, fault, move)


def change_bits(
    name: str, fault: str, change: Change, when: Condition = always, breaks: str = "same-content", classes: str = "G"
) -> None:
    """Plant a backend that changes floating-point elements, in some runs."""
    change_elements(name, breaks, classes, fault, change,
                    lambda run, dst: run.src.type in FRACTION and when(run, dst))  # fmt: skip


def sign_of(type_: str) -> int:
    return 1 << 8 * WIDTH[type_] - 1


def infinity_of(type_: str) -> int:
    return sign_of(type_) - (1 << FRACTION[type_])


def without_sign(words: Array, type_: str) -> Array:
    return np.asarray(words & np.array(sign_of(type_) - 1, words.dtype))


def is_nan(words: Array, type_: str) -> Array:
    return np.asarray(without_sign(words, type_) > infinity_of(type_))


def quiet(words: Array, type_: str) -> Array:
    """The elements with every NaN made quiet, as arithmetic does."""
    return np.where(is_nan(words, type_), words | np.array(1 << FRACTION[type_] - 1, words.dtype), words)


def flush(words: Array, type_: str) -> Array:
    """The elements with 0 for every subnormal number."""
    size = without_sign(words, type_)
    return np.where(size < 1 << FRACTION[type_], words - size, words)


def round_to_bf16(words: Array, type_: str) -> Array:
    """The elements of f32 that bf16 has, too; NaNs stay."""
    rounded = words.view(dtype_of(type_)).astype(dtype_of("bf16")).astype(dtype_of(type_)).view(words.dtype)
    return np.where(is_nan(words, type_), words, rounded)


change_bits("flushes-subnormals", "Replaces subnormal numbers by 0.", flush)
change_bits("zero-without-sign", "Replaces -0 by 0.",
            lambda words, type_: np.where(words == sign_of(type_), np.array(0, words.dtype), words))  # fmt: skip
change_bits("rounds-through-bf16", "Rounds f32 to bf16.", round_to_bf16, lambda run, _: run.src.type == "f32")
change_bits("quiets-nan", "Makes signalling NaNs quiet, as arithmetic does.", quiet, breaks="content-is-bits")
change_bits("quiets-in-place", "Makes NaNs quiet if src may be overwritten.",
            quiet, lambda run, _: run.in_place, classes="GH")  # fmt: skip
change_bits("quiets-under-the-same-dims", "Makes NaNs of f32 quiet if src and dst have the same dims.",
            quiet, lambda run, dst: run.src.type == "f32" and run.src.dims == dst)  # fmt: skip
change_bits("quiets-past-six-dims", "Makes NaNs quiet if dst has more than six dimensions.",
            quiet, lambda _, dst: len(dst) > 6)  # fmt: skip
change_bits("quiets-transposed-f16", "Makes NaNs of f16 quiet if strides are not in row-major order.",
            quiet, lambda run, _: run.src.type == "f16" and not is_in_order(run.src),
            "layout-is-no-content", "GF")  # fmt: skip
change_bits("quiets-bf16-in-chains", "Makes NaNs of bf16 quiet in a chain.",
            quiet, lambda run, _: run.src.type == "bf16" and run.program.chained, "nodes-compose")  # fmt: skip


@move_elements("bf16-answered-as-f32", breaks="same-type", classes="Q")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Answers f32 for bf16."""
    if run.src.type != "bf16" or 0 in dst:
        return run.move(dst)
    wide = np.frombuffer(elements(run.src), "<u2").astype("<u4") << 16
    return dense("f32", dst, bytearray(wide.tobytes()))
