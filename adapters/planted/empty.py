"""Backends that handle tensors without elements wrongly."""

from __future__ import annotations

from ..reference import dense
from .base import move_elements, reject_legal

move_elements.plant("empty-comes-back-flat", "zero-literal", "C", "Answers dims [0] for every empty dst.",
                    lambda run, dst: run.move((0,) if 0 in dst else dst))  # fmt: skip
move_elements.plant("empty-has-no-type", "same-type", "C", "Answers f32 for every empty dst.",
                    lambda run, dst: dense("f32", dst, bytearray()) if 0 in dst else run.move(dst))  # fmt: skip
reject_legal("empty-rejected", "empty-is-a-tensor", "CQ", "Rejects a src without elements.",
             lambda call, _: 0 in call.src)  # fmt: skip
reject_legal("two-empty-lengths-infer-nothing", "infer-keeps-count", "CQ", "Rejects a -1 if two lengths of src are 0.",
             lambda call, _: call.src.count(0) > 1 and -1 in call.shape)  # fmt: skip
