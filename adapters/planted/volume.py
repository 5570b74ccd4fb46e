"""Backends that overlook a rule in some calls, most often that src and dst hold equally many elements."""

from __future__ import annotations

import math

from .base import PlantedCall, overlook, reject_legal


def has_strides(call: PlantedCall) -> bool:
    return call.strides is not None


overlook("volume-unchecked", "same-volume", "E", "Does not compare volumes.")
overlook("volume-unchecked-at-run-time", "same-volume", "EI",
         "Does not compare volumes if the shape arrives with the run.",
         lambda call: not call.constant)  # fmt: skip
overlook("volume-unchecked-with-copies", "same-volume", "E",
         "Does not compare volumes if a constant shape copies a length.",
         lambda call: call.zero and call.constant and 0 in call.shape)  # fmt: skip
overlook("empty-needs-no-check", "same-volume", "E", "Does not compare volumes if src is empty.",
         lambda call: 0 in call.src)  # fmt: skip
overlook("larger-is-padded", "same-volume", "E", "Accepts a dst with more elements than src, and repeats the first.",
         lambda call: call.volume < math.prod(call.fill()) < 1 << 16)  # fmt: skip
overlook("reversed-is-not-checked", "reject-illegal-calls", "EF",
         "Does not compare volumes if src has a negative stride.",
         lambda call: min(call.strides or (0,)) < 0, overlooked=("same-volume",))  # fmt: skip
overlook("infers-of-strided-are-not-divided", "same-volume", "EF",
         "Rounds the quotient down if src is strided and a constant -1 cannot be inferred exactly.",
         lambda call: has_strides(call) and call.constant and -1 in call.shape)  # fmt: skip
overlook("second-infer-of-strided-is-not-seen", "one-infer", "MF", "Accepts several -1 if src is strided.", has_strides)
overlook("signs-of-strided-are-not-seen", "lower-bound", "LF", "Accepts lengths below -1 if src is strided.",
         has_strides)  # fmt: skip
overlook("zeros-of-strided-are-not-seen", "zero-empties", "EF", "Empties a strided src for a literal 0.", has_strides)
overlook("zero-meets-infer-of-strided", "zero-meets-infer", "BF", "Accepts -1 beside a literal 0 if src is strided.",
         has_strides)  # fmt: skip
reject_legal("lengths-of-sixteen-bits", "lengths-have-no-bound", "Q", "Rejects a length past 65535.",
             lambda call, dst: max((*call.src, *dst), default=0) > 65535)  # fmt: skip
