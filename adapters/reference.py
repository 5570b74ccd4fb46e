"""The reference backend: plain integers decide the dims of dst, and NumPy only moves bytes.

It shares no code with the contracts on purpose, because spec/rules.yaml is checked against it.
The message of every rejection is the id of the rule that the call breaks.
"""

from __future__ import annotations

from math import prod

import numpy as np

from conformance import Array, Claims, Declared, Graph, Identity, Node, Program, Rejected, Tensor, __version__
from conformance.model.types import dtype_of

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
Decided = tuple[tuple[int | None, ...] | None, str | None]
"""The dims of dst and None; of an illegal call None and the broken rule; else the known lengths and the silent rule."""
MOST_DIMS = 32
"""The largest rank of NumPy 1; beyond it, elements are copied as a flat row."""


def decide(src: tuple[int, ...], shape: tuple[int, ...], special_zero: bool, zero_may_meet_infer: bool) -> Decided:
    """Decide a call. `zero_may_meet_infer` is for the documents that do not forbid a literal 0 beside a -1."""
    free = shape.count(-1)
    if free > 1:
        return None, "one-infer"
    for length in shape:
        if length < -1:
            return None, "lower-bound"
    if free and 0 in shape and not (special_zero or zero_may_meet_infer):
        return None, "zero-meets-infer"
    volume = prod(src)
    dst = known_lengths(src, shape, special_zero) if free or 0 in shape else shape
    if None in dst:
        return infer_lengths(volume, dst, special_zero and 0 in shape[len(src) :])
    if prod(dst) != volume:  # type: ignore[arg-type] # no length is None
        return None, "zero-empties" if 0 in shape and not special_zero else "same-volume"
    return dst, None


def infer_lengths(volume: int, dst: tuple[int | None, ...], past_rank: bool) -> Decided:
    """Decide a call with free lengths; `past_rank`: one of them is a 0 past the rank of src."""
    known = prod([length for length in dst if length is not None])
    if known == 0:
        if volume != 0:  # src has no 0 to copy, so that the 0 of dst is a literal one
            return None, "zero-empties"
        return dst, "zero-past-rank" if past_rank else "infer-undetermined"
    if volume % known != 0:
        return None, "same-volume"
    if dst.count(None) == 1 or volume == known:
        dst = tuple([volume // known if length is None else length for length in dst])
    return dst, "zero-past-rank" if past_rank else None


def known_lengths(src: tuple[int, ...], shape: tuple[int, ...], special_zero: bool) -> tuple[int | None, ...]:
    """Return the lengths of dst that shape states or copies; None for the others."""
    dst: list[int | None] = []
    for index, length in enumerate(shape):
        if length == 0 and special_zero:
            dst.append(src[index] if index < len(src) else None)
        else:
            dst.append(None if length == -1 else length)
    return tuple(dst)


def check_form(node: Node, src_type: str) -> None:
    """Raise Rejected for a node that does not fit the signature of its operation."""
    operation, shape, special_zero, result, _, inputs, outputs, *_ = node
    if special_zero is None:
        raise Rejected("compile", "attributes-required")
    if shape is None and operation == "StaticReshape":
        raise Rejected("compile", "shape-attribute-required")
    if shape is None or inputs < 1:
        raise Rejected("compile", "operands-required")
    if outputs < 1:
        raise Rejected("compile", "output-required")
    if inputs > 1 or outputs > 1:
        raise Rejected("compile", "operands-as-listed")
    if special_zero.type != "bool":
        is_exact = special_zero.type in INTEGERS and special_zero.values in ((0,), (1,))
        raise Rejected("compile", "flag-types-listed" if is_exact else "special-zero-is-boolean")
    if shape.type not in INTEGERS:
        raise Rejected("compile", "shape-is-integer")
    if len(shape.dims) != 1:
        raise Rejected("compile", "shape-has-one-dimension")
    if result is not None and result.type != src_type:
        raise Rejected("compile", "declared-type-is-that-of-src")


class Reference:
    """The suite's own reference in NumPy: all three operations, every facet."""

    identity = Identity("reference", __version__, (("numpy", np.__version__),))
    claims = Claims(operations=("StaticReshape", "DynamicReshape-1", "Reshape-1"))

    def compile(self, graph: Graph) -> Program:
        (src_type, dims, _), nodes = graph
        early = dims is not None and None not in dims
        for node in nodes:
            self.check(node, src_type)
            early = early and node.shape.values is not None  # type: ignore[union-attr] # which was checked
        return ReferenceProgram(self, graph, self.settle("compile", nodes, dims, ()) if early else None)  # type: ignore[arg-type]

    check = staticmethod(check_form)

    def settle(
        self, stage: str, nodes: tuple[Node, ...], dims: tuple[int, ...], shapes: tuple[Tensor, ...]
    ) -> tuple[int, ...]:
        """Return the dims of the last node's dst; Rejected for the first node that has none."""
        arriving, src = iter(shapes), dims
        for node in nodes:
            entries = node.shape.values  # type: ignore[union-attr] # which was checked
            if entries is None:
                entries = tuple(next(arriving).array().ravel().tolist())
            dst, rule = self.answer(node, src if node.takes_src else dims, entries)
            if node.result is not None and dst is not None and not self.agrees(node.result, dst):
                rule = "declared-output"
            if rule is not None:
                raise Rejected(stage, rule)
            dims = dst  # type: ignore[assignment] # all its lengths are known
        return dims

    def answer(self, node: Node, src: tuple[int, ...], shape: tuple[int, ...]) -> Decided:
        """Decide the call of one node, as `decide` does."""
        (special_zero,) = node.special_zero.values  # type: ignore[union-attr, misc] # which was checked
        return decide(src, shape, special_zero, node.operation != "StaticReshape")

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        return can_be_true(declared, dims)

    def copy_elements(self, src: Tensor, dst: tuple[int, ...], may_overwrite: bool) -> Tensor | Array:
        return copy_elements(src, dst)


class ReferenceProgram:
    """A graph, and the dims of its dst if they are known at compilation."""

    def __init__(self, backend: Reference, graph: Graph, dst: tuple[int, ...] | None) -> None:
        self.backend, self.nodes, self.dst = backend, graph.nodes, dst

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        dst = self.dst
        if dst is None:
            dst = self.backend.settle("run", self.nodes, src.dims, shapes)
        return lay_out(self.backend.copy_elements(src, dst, may_overwrite), self.nodes[-1].result)


def can_be_true(declared: Declared, dims: tuple[int | None, ...]) -> bool:
    """Compare a declaration with the known lengths of dst."""
    if declared.dims is None:
        return True
    if len(declared.dims) != len(dims):
        return False
    for want, length in zip(declared.dims, dims, strict=True):
        if want is not None and length is not None and want != length:
            return False
    return True


def copy_elements(src: Tensor, dst: tuple[int, ...]) -> Tensor | Array:
    """Return a copy of src's elements in row-major order, with the dims of dst."""
    if 0 in dst:
        return Tensor(src.type, dst, (0,) * len(dst), bytearray(), 0)
    if len(src.dims) <= MOST_DIMS and len(dst) <= MOST_DIMS:
        return src.array().reshape(dst).copy()
    return dense(src.type, dst, bytearray(elements(src)))


def lay_out(answer: Tensor | Array, declared: Declared | None) -> Tensor | Array:
    """Return an answer with the strides that a graph declares for dst; Rejected if its elements have no room there."""
    if declared is None or not declared.strides or not isinstance(answer, np.ndarray):
        return answer
    size = int(np.dot(answer.shape, declared.strides)) + answer.itemsize
    dst = Tensor(declared.type, answer.shape, declared.strides, bytearray(size), 0)
    dst.array()[...] = answer
    if dst.array().tobytes() != answer.tobytes():
        raise Rejected("run", "strides-of-dst-overlap")
    return dst


def dense(type_: str, dims: tuple[int, ...], memory: bytearray) -> Tensor:
    """Return a tensor with its elements in memory in row-major order, without gaps."""
    strides, step = [], dtype_of(type_).itemsize
    for length in reversed(dims):
        strides.append(step)
        step *= max(length, 1)
    return Tensor(type_, dims, tuple(reversed(strides)), memory, 0)


def elements(src: Tensor) -> bytes:
    """Return src's elements in row-major order; dims of length 1 are dropped, since NumPy has no high ranks."""
    axes = [(length, stride) for length, stride in zip(src.dims, src.strides, strict=True) if length != 1]
    dims, strides = tuple(length for length, _ in axes), tuple(stride for _, stride in axes)
    return Tensor(src.type, dims, strides, src.memory, src.offset).array().tobytes()
