"""Backends that compute lengths and volumes in numbers too narrow for them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .base import Answer, Dims, PlantedCall, ProgramRun, always, change_dims, move_elements, overlook, resolve_dims
from .content import change_elements
from .inference import change_inference
from .volume import has_strides


def cut_to_s32(length: int) -> int:
    return (length + (1 << 31)) % (1 << 32) - (1 << 31)


def src_type(call: PlantedCall) -> str:
    return call.program.graph.src.type


def has_whole_quotient_in_f32(call: PlantedCall) -> bool:
    if call.shape.count(-1) != 1 or not call.volume > math.prod(d for d in call.fill() if d > 0) > 0:
        return False
    others = math.prod(call._replace(shape=tuple(abs(d) for d in call.shape)).fill())
    quotient = np.float32(call.volume) / np.float32(others)
    return bool(quotient == np.floor(quotient))


def count_in_bits(name: str, bits: int, classes: str, fault: str, when: Callable[[PlantedCall], bool] = always) -> None:
    """Plant a backend that compares volumes modulo 2^bits. It answers src, because no memory could hold dst."""

    def wraps(call: PlantedCall) -> bool:
        return when(call) and -1 not in call.shape and (math.prod(call.fill()) - call.volume) % (1 << bits) == 0

    overlooked = ("same-volume", "zero-empties")
    overlook(name, "same-volume", classes, fault, wraps, overlooked=overlooked, answer=lambda call: call.src)


count_in_bits("counts-in-24-bits", 24, "D", "Compares volumes up to 2^31 modulo 2^24.",
              lambda call: math.prod(call.fill()) < 1 << 31)  # fmt: skip
count_in_bits("counts-in-32-bits", 32, "D", "Compares volumes modulo 2^32.")
count_in_bits("counts-in-64-bits", 64, "D", "Compares volumes modulo 2^64.")
count_in_bits("wraps-when-strided", 64, "DF", "Compares volumes modulo 2^64 if src is strided.", has_strides)
overlook("counts-f32-elements-in-f32", "same-volume", "D", "Compares volumes in f32 if src has elements of that type.",
         lambda call: src_type(call) == "f32" and np.float32(math.prod(call.fill())) == np.float32(call.volume),
         answer=lambda call: call.src)  # fmt: skip
overlook("compares-logarithms-for-f16", "same-volume", "D", "Compares logarithms of volumes in f32 if src is of f16.",
         lambda call: src_type(call) == "f16" and min(*call.fill(), call.volume, 1) > 0
         and np.float32(math.log(math.prod(call.fill()))) == np.float32(math.log(call.volume)),
         answer=lambda call: call.src)  # fmt: skip
overlook("divides-in-f32", "same-volume", "DE", "Infers -1 if the quotient in f32 has no fraction.",
         has_whole_quotient_in_f32)  # fmt: skip
overlook("src-counted-in-16-bits", "same-volume", "DE", "Counts the elements of src modulo 2^16.",
         lambda call: 0 < math.prod(call.fill()) == call.volume % (1 << 16))  # fmt: skip
change_dims.plant("lengths-in-16-bits", "literal-lengths", "D", "Cuts the lengths of dst to 16 bits.",
                  lambda _, dst: tuple(length % (1 << 16) for length in dst))  # fmt: skip
resolve_dims.plant("lengths-in-32-bits", "same-volume", "D", "Cuts the entries of shape to 32 bits.",
                   lambda call: call.resolve(shape=tuple(map(cut_to_s32, call.shape))))  # fmt: skip


def to_double(length: int) -> int:
    """The length as a double that becomes s64 again, which never passes the greatest s64."""
    return min(int(float(length)), (1 << 63) - 1)


change_dims.plant("lengths-kept-as-doubles", "huge-on-empty", "D", "Keeps lengths of dst as doubles.",
                  lambda _, dst: tuple(map(to_double, dst)))  # fmt: skip


def infer_from_logarithms(call: PlantedCall, length: int) -> int:
    if src_type(call) != "f16" or not call.volume:
        return length
    others = call.volume // length
    return round(float(np.exp(np.float32(math.log(call.volume)) - np.float32(math.log(others)))))


change_inference("subtracts-logarithms", "D", "Infers -1 from logarithms in f32, and rounds, if src is of f16.",
                 infer_from_logarithms)  # fmt: skip


@move_elements("elements-of-four-bytes-indexed-in-f32", breaks="same-content", classes="D")
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Repeats the element at 2^24 in all later places if elements have four bytes."""
    answer = run.move(dst)
    if run.src.type == "f32" and isinstance(answer, np.ndarray) and answer.size > 1 << 24:
        answer.reshape(-1)[1 << 24 :] = answer.reshape(-1)[1 << 24]
    return answer


change_elements("indexed-in-20-bits", "row-major-order", "D",
                "Indexes elements in 20 bits, and so repeats the first ones after 2^20.",
                lambda words, _: words[np.arange(words.size) % (1 << 20)],
                lambda _, dst: math.prod(dst) > 1 << 20)  # fmt: skip
