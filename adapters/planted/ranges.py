"""Backends that are right for the numbers, sizes, ranks and strides of small examples, and wrong for others."""

from __future__ import annotations

import math

import numpy as np

from conformance.model import Array, Tensor
from conformance.model.types import WIDTH

from .base import Dims, PlantedCall, change_dims
from .content import FRACTION, change_bits, change_elements, flush, infinity_of, is_nan, quiet, without_sign
from .layout import Condition, bytes_below, dense_strides, has_gaps, ignore_strides, read_layout, with_strides

# ── contents ──────────────────────────────────────────────────────────────────────────────────────


def cap_at_two_to_64(words: Array, type_: str) -> Array:
    """The elements with infinities for all numbers from 2^64 to 2^120."""
    size = without_sign(words, type_)
    large = (size >= 127 + 64 << FRACTION[type_]) & (size < 127 + 120 << FRACTION[type_])
    return np.where(large, words - size + np.array(infinity_of(type_), words.dtype), words)


change_bits("infinite-from-two-to-64", "Answers infinity for bf16 from 2^64 to 2^120 if src may be overwritten.",
            cap_at_two_to_64, lambda run, _: run.src.type == "bf16" and run.in_place)  # fmt: skip
change_bits("quiets-padded-bf16", "Makes NaNs of bf16 quiet if src has gaps and five dimensions or more.", quiet,
            lambda run, _: run.src.type == "bf16" and has_gaps(run.src) and len(run.src.dims) > 4,
            "layout-is-no-content")  # fmt: skip
change_bits("flushes-from-nine-dims", "Replaces subnormal numbers by 0 if src has nine dimensions or more.", flush,
            lambda run, _: len(run.src.dims) >= 9, "layout-is-no-content")  # fmt: skip
change_bits("signs-of-nans-lost-in-reverse", "Drops the sign of a NaN if a src of rank three runs backwards.",
            lambda words, type_: np.where(is_nan(words, type_), without_sign(words, type_), words),
            lambda run, _: len(run.src.dims) == 3 and min(run.src.strides) < 0, "layout-is-no-content")  # fmt: skip


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────


def lose_last(name: str, fault: str, when: Condition, breaks: str = "same-content") -> None:
    """Plant a backend that loses the last element in some runs."""
    change_elements(name, breaks, "", fault, lambda words, _: np.append(words[:-1], ~words[-1:]), when)


lose_last("a-thousand-lose-one", "Loses the last of exactly 1,000 elements.", lambda _, dst: math.prod(dst) == 1000)
lose_last("tails-of-37-lost", "Loses the last element if 37 elements follow the last full block of 64.",
          lambda _, dst: math.prod(dst) > 64 and math.prod(dst) % 64 == 37)  # fmt: skip
lose_last("odd-pages-lose-one", "Loses the last element after full pages of 4 KiB if src may be overwritten.",
          lambda run, dst: run.in_place and math.prod(dst) * WIDTH[run.src.type] % 4096 == WIDTH[run.src.type] > 0
          and math.prod(dst) > 4096)  # fmt: skip
lose_last("strided-tails-lost", "Loses the last element if a src with strides has one more than blocks of 1,024.",
          lambda run, dst: run.src.strides != dense_strides(run.src) and math.prod(dst) % 1024 == 1 < math.prod(dst),
          "layout-is-no-content")  # fmt: skip

# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────


def swap_first(name: str, src_rank: int, dst_rank: int) -> None:
    """Plant a backend that swaps the first two elements for one pair of ranks."""
    change_elements(name, "dst-has-shape-rank", "",
                    f"Swaps the first two elements from rank {src_rank} to rank {dst_rank}.",
                    lambda words, _: np.append(words[1::-1], words[2:]),
                    lambda run, dst: (len(run.src.dims), len(dst)) == (src_rank, dst_rank))  # fmt: skip


swap_first("rank-seven-to-three", 7, 3)
swap_first("rank-five-to-eleven", 5, 11)
change_dims.plant("infer-at-the-seventh-of-eight", "infer-keeps-count", "B",
                  "Infers 1 more if -1 is the seventh of eight entries.",
                  lambda call, dst: (*dst[:6], dst[6] + 1, dst[7]) if len(dst) == 8 and call.shape[6] == -1
                  else dst)  # fmt: skip


@change_dims("at-most-three-zeros", breaks="zero-copies", classes="A")
def _(call: PlantedCall, dst: Dims) -> Dims:
    """Copies at most three lengths of src, and reads a fourth 0 as 1."""
    zeros = [index for index, entry in enumerate(call.shape) if entry == 0]
    wrong = call.zero and 0 not in call.src
    return tuple(1 if wrong and index in zeros[3:] else length for index, length in enumerate(dst))


# ── strides ───────────────────────────────────────────────────────────────────────────────────────


def drop_first_sign(src: Tensor) -> Tensor:
    """src read without the signs of its strides, if the first of several has one."""
    if len(src.dims) < 2 or src.strides[0] >= 0:
        return src
    return Tensor(src.type, src.dims, tuple(map(abs, src.strides)), src.memory, src.offset - bytes_below(src))


def sort_outer(src: Tensor) -> Tensor:
    """src read with all strides but the last sorted."""
    outer, last = src.strides[:-1], src.strides[-1:]
    usable = len(outer) > 1 and min(src.strides) > 0 and last == (WIDTH[src.type],)
    return with_strides(src, (*sorted(outer, reverse=True), *last)) if usable else src


read_layout("first-direction-forgotten", "Drops the sign of the first stride.", drop_first_sign)
read_layout("outer-strides-sorted", "Reads src with its outer strides sorted if the last one is dense.", sort_outer)
read_layout("middle-repetition-forgotten", "Ignores a stride of 0 between the first and the last.",
            lambda src: ignore_strides(src) if 0 in src.strides[1:-1] else src)  # fmt: skip
read_layout("strides-in-sixteen-bits", "Cuts strides to 16 bits.",
            lambda src: with_strides(src, tuple(step % 65536 for step in src.strides))
            if src.strides and min(src.strides) >= 0 < max(src.strides) // 65536 and 0 not in src.dims
            and dense_strides(src) != src.strides else src)  # fmt: skip
read_layout("every-second-forgotten", "Reads neighbours for every second element if src has rank four.",
            lambda src: with_strides(src, (*src.strides[:-1], WIDTH[src.type]))
            if len(src.dims) == 4 and src.strides[-1] == 2 * WIDTH[src.type] else src)  # fmt: skip
