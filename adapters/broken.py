"""Backends with one false belief each, said in one line: what the suite must catch.

Each is the reference with one thing bent. `breaks` is the rule that the belief breaks, `classes` the kinds of bug
(letters, as in CLASSES) that it stands for. To add one, write a class: its name in kebab-case is its name in BROKEN.
None of them ends, hangs or endangers the process: where a real library would, they raise what it would become.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from conformance.model import Array, Declared, Graph, Identity, Layout, Node, Operand, Program, Rejected, Tensor
from conformance.model.types import WIDTH, dtype_of
from conformance.plan.memory import strides_of

from .numpy_reference import Compiled, Illegal, NumpyReference, dense, elements, resolve

Dims = tuple[int, ...]
_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=A)(?=[A-Z][a-z])|(?<=In)(?=\d)")
FALSE, TRUE = Operand("bool", (), (False,)), Operand("bool", (), (True,))

BROKEN: dict[str, type[Broken]] = {}
"""Every backend here, by name."""

CLASSES: Mapping[str, str] = {
    "A": "the zero flag ignored or inverted, or honoured on one path only",
    "B": "-1 computed without the copied zeros, or as 0/0",
    "C": "division by zero, or an exception that is no refusal, on empty tensors",
    "D": "lengths or counts cut to 32 bits, products that wrap",
    "E": "volume or divisibility not checked on one path",
    "F": "strides ignored, column-major order",
    "G": "bit patterns changed on the way",
    "H": "src changed, memory used again, an earlier answer returned",
    "I": "static and runtime form disagree, a program that cannot go on after its first call or after an error",
    "J": "rank growth past a fixed array",
    "K": "rank 0 and shapes of length 0",
    "L": "any negative taken for -1",
    "M": "two -1 accepted",
    "N": "copied zeros aligned to the right, or taken in turn",
    "O": "the operation refused when it stands alone",
    "P": "the declared output believed without a check",
    "Q": "a type, an empty tensor or a rank quietly not supported",
    "R": "everything refused, everything accepted, nothing answered",
}


class Broken(NumpyReference):
    """The reference with seams; a belief overrides one of them."""

    name: ClassVar[str]
    breaks: ClassVar[str]
    """The id of the rule that the belief breaks."""
    classes: ClassVar[str]
    """The kinds of bug that it stands for, a letter each; none where it is about the form of a node alone."""
    forgives: ClassVar[tuple[str, ...]] = ()
    """Breaches that are overlooked."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "breaks" in vars(cls):
            cls.name = _BETWEEN.sub("-", cls.__name__).lower()
            cls.identity = Identity(f"broken:{cls.name}", "1")
            BROKEN[cls.name] = cls

    def compile(self, graph: Graph) -> Program:
        nodes = tuple([self.mended(node, graph.src.type) for node in graph.nodes])
        program = super().compile(graph._replace(nodes=nodes))
        assert isinstance(program, Compiled)
        return Bent(self, graph._replace(nodes=nodes), program.dst)

    def mended(self, node: Node, src_type: str) -> Node:
        """The node as this backend takes it."""
        return node

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        zero = copies(node)
        try:
            return self.resolve(src, shape, zero, node.operation != "StaticReshape")
        except Illegal as breach:
            if str(breach) in self.overlooked(node):
                return filled(src, shape, zero)
            raise

    def overlooked(self, node: Node) -> tuple[str, ...]:
        """The breaches that are overlooked in a node."""
        return self.forgives

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        """The dims of dst."""
        return resolve(src, shape, zero, meet)

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        """One call of a program."""
        return Compiled.run(program, src, shapes, may_overwrite)

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if math.prod(src.dims) == math.prod(dst):
            return super().moved(src, dst, may_overwrite)
        return filled_up(src, dst)


class Bent(Compiled):
    """A compiled graph that asks its backend how to run."""

    memory: Any = None
    """What is left over from earlier calls."""
    last: Tensor | None = None
    """The src of the call before."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        assert isinstance(self.backend, Broken)
        return self.backend.run(self, src, shapes, may_overwrite)


def copies(node: Node) -> bool:
    """Whether special_zero is true."""
    return node.special_zero is not None and bool(node.special_zero.values and node.special_zero.values[0])


def known(node: Node) -> bool:
    """Whether the shape is known at compilation."""
    return node.shape is not None and node.shape.values is not None


def filled(src: Dims, shape: Dims, zero: bool) -> Dims:
    """A dst for any shape, nothing checked: zeros copied where they can be, every -1 the quotient rounded down."""
    dst = [src[i] if d == 0 and zero and i < len(src) else d for i, d in enumerate(shape)]
    known = math.prod(d for d in dst if d >= 0)
    return tuple((math.prod(src) // known if known else 0) if d < 0 else d for d in dst)


def filled_up(src: Tensor, dst: Dims) -> Tensor:
    """A dst of another volume: elements left off, or begun anew."""
    if math.prod(dst) > 1 << 20:  # a real backend would touch memory that is not its own
        raise MemoryError(f"dst would have {math.prod(dst)} elements")
    row = np.frombuffer(elements(src), f"V{WIDTH[src.type]}")
    return dense(src.type, dst, bytearray(np.resize(row, math.prod(dst)).tobytes()))


def negative_as_one(shape: Dims, keep: int) -> Dims:
    """The shape with 1 for every -1 but one."""
    return tuple(1 if d == -1 and i != keep else d for i, d in enumerate(shape))


# ── the zero flag ─────────────────────────────────────────────────────────────────────────────────


class ZeroFlagIgnored(Broken):
    """special_zero is never looked at: a 0 is always a length."""

    breaks, classes = "zero-copies", "A"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape, False, meet)


class ZeroAlwaysCopies(Broken):
    """special_zero is never looked at: a 0 always copies."""

    breaks, classes = "zero-literal", "A"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape, True, meet)


class ZeroFlagInverted(Broken):
    """special_zero true means that a 0 is a length."""

    breaks, classes = "zero-copies", "A"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape, not zero, meet)


class ZeroFlagForgottenAtRunTime(Broken):
    """special_zero is for shapes known at compilation; in one that arrives later a 0 is a length."""

    breaks, classes = "zero-copies", "AI"

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        return super().answer(node if known(node) else node._replace(special_zero=FALSE), src, shape)


class ZeroFlagForgottenInConstants(Broken):
    """Folding a constant shape needs no special_zero: a 0 in it always copies."""

    breaks, classes = "zero-literal", "AI"

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        return super().answer(node._replace(special_zero=TRUE) if known(node) else node, src, shape)


class ZeroFlagOfTheFirstNode(Broken):
    """All nodes of a graph share the special_zero of the first."""

    breaks, classes = "nodes-compose", "A"

    def compile(self, graph: Graph) -> Program:
        first = graph.nodes[0].special_zero
        return super().compile(graph._replace(nodes=tuple(node._replace(special_zero=first) for node in graph.nodes)))


class ZeroFlagForgottenOnEmpty(Broken):
    """A src without elements has no dimension worth copying: there a 0 is always a length."""

    breaks, classes = "zero-copies", "AC"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape, zero and 0 not in src, meet)


class ChainsFused(Broken):
    """Of several reshapes in a row only the last one counts."""

    breaks, classes = "nodes-compose", "A"

    def settle(self, stage: str, nodes: tuple[Node, ...], dims: Dims, shapes: tuple[Tensor, ...]) -> Dims:
        return super().settle(stage, nodes[-1:], dims, shapes[-1:])


class ChainsCopyFromTheFirst(Broken):
    """In a row of reshapes every 0 copies from the tensor that the row began with."""

    breaks, classes = "nodes-compose", "A"

    def settle(self, stage: str, nodes: tuple[Node, ...], dims: Dims, shapes: tuple[Tensor, ...]) -> Dims:
        answered, arriving = dims, iter(shapes)
        for node in nodes:
            assert node.shape is not None
            shape = self.entries(node.shape, arriving)
            if copies(node) and answered is not dims:
                shape = tuple(dims[i] if d == 0 and i < len(dims) else d for i, d in enumerate(shape))
            plain = node._replace(shape=Operand("s64", (len(shape),), shape))
            answered = super().settle(stage, (plain,), answered, ())
        return answered


class ZeroIsOne(Broken):
    """A literal 0 is a length left open, and an open length is 1."""

    breaks, classes = "zero-literal", "A"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape if zero else tuple(d or 1 for d in shape), zero, meet)


class ZerosCountedFromTheRight(Broken):
    """A copied 0 counts its dimension from the end, as broadcasting does."""

    breaks, classes = "zero-copies", "N"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        shift = len(src) - len(shape)
        copied = tuple(src[i + shift] if zero and d == 0 and i + shift >= 0 else d for i, d in enumerate(shape))
        return resolve(src, copied, zero and 0 not in src, meet)


class ZerosTakenInTurn(Broken):
    """The first copied 0 takes the first dimension of src, the second the second."""

    breaks, classes = "zero-copies", "N"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        taken = iter(src)
        copied = tuple(next(taken, 0) if zero and d == 0 else d for d in shape)
        return resolve(src, copied, zero and 0 not in src, meet)


class ZerosSpeakOfTheLastDimension(Broken):
    """A copied 0 at the last index of shape takes the last dimension of src."""

    breaks, classes = "zero-copies", "N"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        last = zero and shape[-1:] == (0,) and len(src) > 0
        return resolve(src, (*shape[:-1], src[-1]) if last else shape, zero, meet)


class ZeroEmptiesAnything(Broken):
    """A literal 0 empties dst, whatever src holds."""

    breaks, classes, forgives = "zero-empties", "E", ("zero-empties",)


class EmptyNeedsNoCheck(Broken):
    """Where src holds no elements there is no volume to compare."""

    breaks, classes = "same-volume", "E"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            if 0 in src and str(breach) == "same-volume":
                return filled(src, shape, zero)
            raise


class ZerosSkippedInTheCount(Broken):
    """A volume is the product of the lengths that are not 0."""

    breaks, classes = "zero-empties", "E"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if zero or 0 not in shape:
            return resolve(src, shape, zero, meet)
        resolve(tuple(d or 1 for d in src), tuple(d or 1 for d in shape), zero, meet)
        return filled(src, shape, zero)


class ZeroMeetsInfer(Broken):
    """A literal 0 beside a -1 makes the -1 a 0."""

    breaks, classes, forgives = "zero-meets-infer", "B", ("zero-meets-infer",)


class CopiesAtTheFirstFourIndices(Broken):
    """A tensor has four dimensions to copy from; a 0 behind them is 1, except for the last of twelve."""

    breaks, classes = "zero-copies", "AJ"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, tuple(1 if zero and d == 0 and 4 <= i < 11 else d for i, d in enumerate(shape)), zero, meet)


class OverflowIsNotEmpty(Broken):
    """Whose lengths overflow before a 0 comes is not empty, and is left as it is."""

    breaks, classes = "zero-empties", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        over = not zero and 0 in shape and 0 not in src and math.prod(d for d in shape if d > 0) >> 31
        return src if over else resolve(src, shape, zero, meet)


# ── -1 ────────────────────────────────────────────────────────────────────────────────────────────


class InferredBeforeZerosAreCopied(Broken):
    """-1 is the volume of src over the lengths written out, before any 0 is copied."""

    breaks, classes = "infer-keeps-count", "B"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        written = math.prod(d for d in shape if d > 0)
        return tuple(math.prod(src) // written if d == -1 else length for d, length in zip(shape, dst, strict=True))


class InferredAtLeastOne(Broken):
    """A dimension that is inferred has length 1 at least."""

    breaks, classes = "infer-keeps-count", "B"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        return tuple(max(length, 1) if d == -1 else length for d, length in zip(shape, dst, strict=True))


class InferredFromTheSameIndex(Broken):
    """-1 keeps the dimension of src where it stands, if src has one there."""

    breaks, classes = "infer-keeps-count", "B"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        kept = tuple(src[i] if d == -1 and i < len(src) and src[i] else d for i, d in enumerate(shape))
        return resolve(src, kept if -1 in shape and shape.count(-1) == 1 else shape, zero, meet)


class DivisibilityUnchecked(Broken):
    """Where -1 does not divide, the quotient is rounded down."""

    breaks, classes = "same-volume", "E"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            if shape.count(-1) == 1 and str(breach) == "same-volume":
                return filled(src, shape, zero)
            raise


class LastInferWins(Broken):
    """Of several -1 the last is inferred and the others are 1."""

    breaks, classes = "one-infer", "M"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        last = len(shape) - 1 - shape[::-1].index(-1) if -1 in shape else -1
        return resolve(src, negative_as_one(shape, last), zero, meet)


class FirstInferWins(Broken):
    """Of several -1 the first is inferred and the others are 1."""

    breaks, classes = "one-infer", "M"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, negative_as_one(shape, shape.index(-1) if -1 in shape else -1), zero, meet)


class SeveralInfersOnEmpty(Broken):
    """On a src without elements any number of -1 may stand: all are 0."""

    breaks, classes = "one-infer", "MC"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return filled(src, shape, zero) if 0 in src and shape.count(-1) > 1 else resolve(src, shape, zero, meet)


class AnyNegativeInfers(Broken):
    """Any negative entry is as good as -1."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, tuple(max(d, -1) for d in shape), zero, meet)


class NegativesCancel(Broken):
    """Two negative lengths make a positive volume, and only the volume matters."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        below = [d for d in shape if d < -1]
        return resolve(src, tuple(-d if d < -1 else d for d in shape) if len(below) == 2 else shape, zero, meet)


class SignIsDropped(Broken):
    """A length below -1 is read without its sign."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, tuple(abs(d) if d < -1 else d for d in shape), zero, meet)


class InferredAtTheEnds(Broken):
    """-1 stands at an end, or near the beginning."""

    breaks, classes = "infer-keeps-count", "Q"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if -1 in shape[4:-1]:
            raise Illegal("-1 is not supported there")
        return resolve(src, shape, zero, meet)


class InferredInF32(Broken):
    """An inferred length is a quotient in f32."""

    breaks, classes = "infer-keeps-count", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        return tuple(int(np.float32(n)) if d == -1 else n for d, n in zip(shape, dst, strict=True))


class DividesInF32(Broken):
    """-1 divides where the quotient in f32 is whole."""

    breaks, classes = "same-volume", "DE"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            known = math.prod(d for d in filled(src, shape, zero) if d > 0)
            if str(breach) == "same-volume" and shape.count(-1) == 1 and math.prod(src) > known > 0:
                one = negative_as_one(shape, -1)
                quotient = np.float32(math.prod(src)) / np.float32(math.prod(filled(src, one, zero)))
                if quotient == np.floor(quotient):
                    return filled(src, shape, zero)
            raise


# ── volumes and lengths ───────────────────────────────────────────────────────────────────────────


class VolumeUnchecked(Broken):
    """The caller has seen to it that the volumes agree."""

    breaks, classes, forgives = "same-volume", "E", ("same-volume",)


class VolumeUncheckedAtRunTime(Broken):
    """A shape that arrives with the call needs no check; compilation does that."""

    breaks, classes = "same-volume", "EI"

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return () if known(node) else ("same-volume",)


class VolumeUncheckedWithCopies(Broken):
    """A copied 0 keeps the volume, so that there is nothing left to check."""

    breaks, classes = "same-volume", "E"

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return ("same-volume",) if copies(node) and node.shape and 0 in (node.shape.values or ()) else ()


class SmallerIsEnough(Broken):
    """dst may hold fewer elements than src, never more."""

    breaks, classes = "same-volume", "E"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            if str(breach) == "same-volume" and 0 < math.prod(filled(src, shape, zero)) < math.prod(src):
                return filled(src, shape, zero)
            raise


class LargerIsPadded(Broken):
    """dst may hold more elements than src; the first ones come again."""

    breaks, classes = "same-volume", "E"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            if str(breach) == "same-volume" and math.prod(src) < math.prod(filled(src, shape, zero)) < 1 << 16:
                return filled(src, shape, zero)
            raise


class CountsModulo(Broken):
    """A volume that wraps."""

    bits: ClassVar[int]

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            dst = filled(src, shape, zero)
            wraps = -1 not in shape and (math.prod(dst) - math.prod(src)) % (1 << self.bits) == 0
            if str(breach) in ("same-volume", "zero-empties") and wraps:
                return src  # the true dst would not fit into any memory
            raise


class CountsIn32Bits(CountsModulo):
    """A volume is a number of 32 bits."""

    breaks, classes, bits = "same-volume", "D", 32


class CountsIn64Bits(CountsModulo):
    """A volume is a number of 64 bits, and what overflows is gone."""

    breaks, classes, bits = "same-volume", "D", 64


class WrapsWhenStrided(CountsModulo):
    """A volume that wraps is noticed when memory is asked for, which a src with gaps does not need."""

    breaks, classes, bits = "same-volume", "DF", 64

    def compile(self, graph: Graph) -> Program:
        self.strided = graph.src.strides is not None
        return super().compile(graph)

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return super().resolve(src, shape, zero, meet) if self.strided else resolve(src, shape, zero, meet)


class WrapsIn32BitsWhenStrided(WrapsWhenStrided):
    """The same, where a volume is a number of 32 bits."""

    breaks, classes, bits = "same-volume", "DF", 32


class CountsInF32(Broken):
    """A volume is a number in f32."""

    breaks, classes = "same-volume", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            volume = math.prod(filled(src, shape, zero))
            if str(breach) == "same-volume" and -1 not in shape and np.float32(volume) == np.float32(math.prod(src)):
                return src
            raise


class SrcCountedIn16Bits(Broken):
    """src has less than 65536 elements, or loses as many."""

    breaks, classes = "same-volume", "DE"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        try:
            return resolve(src, shape, zero, meet)
        except Illegal as breach:
            dst = filled(src, shape, zero)
            if str(breach) == "same-volume" and 0 < math.prod(dst) == math.prod(src) % (1 << 16):
                return dst
            raise


class MillionsNotSupported(Broken):
    """More than 2^20 elements are refused."""

    breaks, classes = "infer-keeps-count", "Q"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if math.prod(src) > 1 << 20:
            raise Illegal("too many elements")
        return resolve(src, shape, zero, meet)


class LengthsIn32Bits(Broken):
    """An entry of shape is a number of 32 bits."""

    breaks, classes = "same-volume", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, tuple((d + (1 << 31)) % (1 << 32) - (1 << 31) for d in shape), zero, meet)


class LengthsIn16Bits(Broken):
    """No dimension is longer than 65535."""

    breaks, classes = "literal-lengths", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return tuple(d % (1 << 16) for d in resolve(src, shape, zero, meet))


class LengthsCutToBytes(Broken):
    """An inferred length is kept in a byte."""

    breaks, classes = "infer-keeps-count", "D"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        return tuple(n % 256 if d == -1 else n for d, n in zip(shape, dst, strict=True))


class OnesSqueezed(Broken):
    """A trailing dimension of length 1 is no dimension."""

    breaks, classes = "dst-has-shape-rank", ""

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        return dst[:-1] if dst[-1:] == (1,) else dst


class AtMostEightDims(Broken):
    """dims[8] is all there is: what comes after goes into the last."""

    breaks, classes = "dst-has-shape-rank", "J"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dst = resolve(src, shape, zero, meet)
        return dst if len(dst) <= 8 else (*dst[:7], math.prod(dst[7:]))


class WritesPastTwelveDims(Broken):
    """dims[12] is written without asking how many there are."""

    breaks, classes = "rank-limit", "J"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        dims = [0] * 12
        for index, length in enumerate(resolve(src, shape, zero, meet)):
            dims[index] = length
        return tuple(dims[: len(shape)])


# ── empty tensors, rank 0, what is quietly not there ──────────────────────────────────────────────


class DividesByZero(Broken):
    """The other lengths beside a -1 are never 0, so that one can divide by them."""

    breaks, classes = "refuse-illegal-calls", "CB"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if shape.count(-1) == 1:
            copied = (src[i] if zero and d == 0 and i < len(src) else d for i, d in enumerate(shape))
            math.prod(src) // math.prod(d for d in copied if d != -1)
        return resolve(src, shape, zero, meet)


class DividesByAProductThatWraps(Broken):
    """With the 0 left out, the product of the lengths beside a -1 is never 0, in 64 bits."""

    breaks, classes = "refuse-illegal-calls", "CD"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if 0 in shape and shape.count(-1) == 1:
            math.prod(src) // (math.prod(d for d in shape if d > 0) % (1 << 64))
        return resolve(src, shape, zero, meet)


class EmptyHasNoMemory(Broken):
    """Every tensor has memory: one without elements cannot be allocated."""

    breaks, classes = "zero-literal", "C"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if 0 in dst:
            raise MemoryError("allocation of 0 bytes failed")
        return super().moved(src, dst, may_overwrite)


class EmptyNotSupported(Broken):
    """A tensor without elements is refused."""

    breaks, classes = "zero-literal", "Q"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if 0 in src:
            raise Illegal("empty tensors are not supported")
        return resolve(src, shape, zero, meet)


class EmptyComesBackFlat(Broken):
    """All tensors without elements are equal, and the shortest of them is of rank 1."""

    breaks, classes = "zero-literal", "C"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        return super().moved(src, (0,) if 0 in dst else dst, may_overwrite)


class EmptyHasNoType(Broken):
    """Where there are no elements they have the default type, f32."""

    breaks, classes = "same-type", "C"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        return dense("f32", dst, bytearray()) if 0 in dst else super().moved(src, dst, may_overwrite)


class EmptyShapeIsFlat(Broken):
    """A shape without entries asks for one dimension."""

    breaks, classes = "rank-zero", "K"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve(src, shape or (-1,), zero, meet)


class ScalarHasNoFirstDimension(Broken):
    """Every src has a first dimension to look at."""

    breaks, classes = "rank-zero", "K"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return resolve((src[0], *src[1:]), shape, zero, meet)


class EmptyShapeTakesTheFirst(Broken):
    """A shape without entries takes the first element of src, however many there are."""

    breaks, classes = "same-volume", "KE"

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return ("same-volume",) if node.shape and node.shape.dims == (0,) else ()


class RankFiveAtMost(Broken):
    """Nobody has more than five dimensions."""

    breaks, classes = "dst-has-shape-rank", "Q"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if max(len(src), len(shape)) > 5:
            raise Illegal("at most five dimensions are supported")
        return resolve(src, shape, zero, meet)


class HalfPrecisionNotSupported(Broken):
    """A CPU without f16 refuses f16."""

    breaks, classes = "same-content", "Q"

    def check(self, node: Node, src_type: str) -> None:
        super().check(node, src_type)
        if src_type == "f16":
            raise Rejected("compile", "f16 is not supported")


class StaticNeedsCompany(Broken):
    """A StaticReshape with nothing to fuse it with is refused."""

    breaks, classes = "literal-lengths", "O"

    def compile(self, graph: Graph) -> Program:
        if len(graph.nodes) == 1 and graph.nodes[0].operation == "StaticReshape":
            raise Rejected("compile", "a partition of one reshape is not supported")
        return super().compile(graph)


class NothingToDoIsRefused(Broken):
    """A reshape to the dims that src has already is folded away, and an empty graph is refused."""

    breaks, classes = "src-is-kept", "O"

    def settle(self, stage: str, nodes: tuple[Node, ...], dims: Dims, shapes: tuple[Tensor, ...]) -> Dims:
        dst = super().settle(stage, nodes, dims, shapes)
        if dst == dims and 0 not in dims and len(nodes) == 1:
            raise Rejected(stage, "the graph is empty")
        return dst


class AtMostThreeNodes(Broken):
    """A graph of more than three reshapes is refused."""

    breaks, classes = "nodes-compose", "Q"

    def compile(self, graph: Graph) -> Program:
        if len(graph.nodes) > 3:
            raise Rejected("compile", "at most three nodes are supported")
        return super().compile(graph)


class LaterNodesMayInferTwice(Broken):
    """Only the first node of a graph is checked for a second -1; in the others the first one counts."""

    breaks, classes = "nodes-compose", "ME"

    def settle(self, stage: str, nodes: tuple[Node, ...], dims: Dims, shapes: tuple[Tensor, ...]) -> Dims:
        self.first = True
        return super().settle(stage, nodes, dims, shapes)

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        first, self.first = self.first, False
        more = not first and shape.count(-1) > 1
        return super().answer(node, src, negative_as_one(shape, shape.index(-1)) if more else shape)


# ── order and layout ──────────────────────────────────────────────────────────────────────────────


class ColumnMajor(Broken):
    """The first index runs fastest, in src and in dst."""

    breaks, classes = "row-major-order", "F"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if len(src.dims) < 2 or max(len(src.dims), len(dst)) > 32 or 0 in dst:
            return super().moved(src, dst, may_overwrite)
        return src.array().reshape(dst, order="F")


class LayoutBelief(Broken):
    """Reads src as if it lay in memory otherwise."""

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if 0 in dst or math.prod(dst) != math.prod(src.dims):
            return super().moved(src, dst, may_overwrite)
        return super().moved(self.believed(src), dst, may_overwrite)

    def believed(self, src: Tensor) -> Tensor:
        raise NotImplementedError


def dense_strides(src: Tensor) -> Dims:
    return dense(src.type, src.dims, bytearray()).strides


def span(src: Tensor, strides: Dims) -> int:
    """The bytes from the first element to behind the last, for strides that do not go down."""
    return sum((n - 1) * s for n, s in zip(src.dims, strides, strict=True)) + WIDTH[src.type]


def reread(src: Tensor, strides: Dims, offset: int) -> Tensor:
    """src read with other strides; memory that is not there reads as 0."""
    missing = max(0, offset + span(src, strides) - len(src.memory))
    return Tensor(src.type, src.dims, strides, bytearray(src.memory) + bytearray(missing), offset)


class StridesIgnored(LayoutBelief):
    """The elements lie one after another from the first."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        strides = dense_strides(src)
        return src if strides == src.strides else reread(src, strides, src.offset)


class OffsetRoundedDown(LayoutBelief):
    """A tensor begins at a multiple of 64 bytes."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        return Tensor(src.type, src.dims, src.strides, src.memory, max(src.offset // 64 * 64, _lowest(src)))


def _lowest(src: Tensor) -> int:
    """How far the elements reach below the one with every index 0."""
    return -sum((n - 1) * s for n, s in zip(src.dims, src.strides, strict=True) if s < 0)


class StridesWithoutSign(LayoutBelief):
    """No stride is negative."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        if min(src.strides, default=0) >= 0:
            return src
        return Tensor(src.type, src.dims, tuple(map(abs, src.strides)), src.memory, src.offset - _lowest(src))


class StrideZeroIsUnset(LayoutBelief):
    """A stride of 0 says that nobody set one: dense."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        strides = dense_strides(src)
        return reread(src, strides, src.offset) if 0 in src.strides else src


class PaddingIsContent(LayoutBelief):
    """A row is followed by the next at once."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        strides = dense_strides(src)
        in_order = list(src.strides) == sorted(src.strides, reverse=True) and min(src.strides, default=0) > 0
        return reread(src, strides, src.offset) if in_order else src


class MemoryOrder(LayoutBelief):
    """Elements count in the order in which they lie in memory."""

    breaks, classes = "layout-is-no-content", "F"

    def believed(self, src: Tensor) -> Tensor:
        by_stride = sorted(range(len(src.dims)), key=lambda k: -abs(src.strides[k]))
        dims, strides = (tuple(part[k] for k in by_stride) for part in (src.dims, src.strides))
        return Tensor(src.type, dims, strides, src.memory, src.offset)


class FiveWaysToLie(LayoutBelief):
    """Memory is dense, transposed, padded, repeated or reversed, and nothing between."""

    breaks, classes = "layout-is-no-content", "F"
    ways: ClassVar[tuple[Layout, ...]] = ("dense", "transposed", "padded", "broadcast", "reversed")

    def believed(self, src: Tensor) -> Tensor:
        if any(src.strides == strides_of(src.dims, way, WIDTH[src.type]) for way in self.ways):
            return src
        return reread(src, dense_strides(src), src.offset)


class EightStrides(LayoutBelief):
    """strides[8] is all there is: a src of more dimensions is dense."""

    breaks, classes = "layout-is-no-content", "FJ"

    def believed(self, src: Tensor) -> Tensor:
        strided = src.strides != dense_strides(src) and min(src.strides, default=0) > 0
        return reread(src, dense_strides(src), src.offset) if strided and len(src.dims) > 8 else src


class StepsOfTwelveDims(Broken):
    """A dense src is copied as a row, and for any other step[12] is written without asking how many there are."""

    breaks, classes = "rank-limit", "JF"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if src.strides != dense_strides(src):
            steps = [0] * 12
            for index in range(max(len(src.dims), len(dst))):
                steps[index] = 1
        return super().moved(src, dst, may_overwrite)


class OneWayForgotten(LayoutBelief):
    """Reads a src that lies in one way as if it were dense, in some calls."""

    way: ClassVar[Layout]

    def here(self, src: Tensor, dst: Dims) -> bool:
        """Whether a call is one of them: those in which dst has more dimensions."""
        return len(dst) > len(src.dims)

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if self.here(src, dst):
            return super().moved(src, dst, may_overwrite)
        return Broken.moved(self, src, dst, may_overwrite)

    def believed(self, src: Tensor) -> Tensor:
        strides = dense_strides(src)
        if self.way == "offset" and src.strides == strides:
            return Tensor(src.type, src.dims, strides, src.memory, src.offset // 64 * 64)
        lies = src.strides == strides_of(src.dims, self.way, WIDTH[src.type])
        return reread(src, strides, src.offset) if lies else src


class OffsetForgottenWhenSplit(OneWayForgotten):
    """What has more dimensions than src begins where its memory begins."""

    breaks, classes, way = "layout-is-no-content", "F", "offset"


class PaddingForgottenWhenSplit(OneWayForgotten):
    """Rows that are split have no padding."""

    breaks, classes, way = "layout-is-no-content", "F", "padded"


class RepetitionForgottenWhenSplit(OneWayForgotten):
    """Rows that are split are not repeated."""

    breaks, classes, way = "layout-is-no-content", "F", "broadcast"


class DirectionForgottenWhenSplit(OneWayForgotten):
    """Rows that are split go forwards."""

    breaks, classes, way = "layout-is-no-content", "F", "reversed"


class ChannelsForgottenWhenSplit(OneWayForgotten):
    """Where dimensions are split the channels are no longer last."""

    breaks, classes, way = "layout-is-no-content", "F", "channels-last"


class SlicesForgotten(OneWayForgotten):
    """Where rows have no padding between them there is none at all."""

    breaks, classes, way = "layout-is-no-content", "F", "cropped"

    def here(self, src: Tensor, dst: Dims) -> bool:
        return len(dst) < len(src.dims)


class SlicesForgottenWhenSplit(OneWayForgotten):
    """Rows that are split lie in slices without gaps."""

    breaks, classes, way = "layout-is-no-content", "F", "cropped"


class OffsetForgottenInChains(OneWayForgotten):
    """What a row of reshapes begins with begins where its memory begins."""

    breaks, classes = "nodes-compose", "F"
    way: ClassVar[Layout] = "offset"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        self.chained = len(program.nodes) > 1
        return super().run(program, src, shapes, may_overwrite)

    def here(self, src: Tensor, dst: Dims) -> bool:
        return self.chained


class RepetitionForgottenInChains(OffsetForgottenInChains):
    """What a row of reshapes begins with has no repeated rows."""

    breaks, classes, way = "nodes-compose", "F", "broadcast"


class DirectionForgottenInChains(OffsetForgottenInChains):
    """What a row of reshapes begins with goes forwards."""

    breaks, classes, way = "nodes-compose", "F", "reversed"


class SlicesForgottenInChains(OffsetForgottenInChains):
    """What a row of reshapes begins with lies in slices without gaps."""

    breaks, classes, way = "nodes-compose", "F", "cropped"


class LastBlockOfChannelsLost(Broken):
    """Channels that run fastest come in blocks of sixteen; once there is one, what is over does not count."""

    breaks, classes = "layout-is-no-content", "F"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        last = src.strides == strides_of(src.dims, "channels-last", WIDTH[src.type]) != dense_strides(src)
        if not last or src.dims[1] < 16:
            return super().moved(src, dst, may_overwrite)
        blocks = src.array().copy()
        blocks[:, src.dims[1] // 16 * 16 :] = 0
        return blocks.reshape(dst)


class EndOfAnOddRowLost(Broken):
    """Two elements at a time are moved, where there are more than sixteen rows that do not lie in order."""

    breaks, classes = "layout-is-no-content", "F"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        in_order = list(src.strides) == sorted(src.strides, reverse=True)
        if in_order or len(src.dims) != 4 or src.dims[2] <= 16:
            return super().moved(src, dst, may_overwrite)
        pairs = src.array().copy()
        pairs[..., src.dims[3] // 2 * 2 :] = 0
        return pairs.reshape(dst)


class IndexedIn20Bits(Broken):
    """An index of 20 bits reaches every element."""

    breaks, classes = "row-major-order", "D"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        volume = math.prod(dst)
        if volume <= 1 << 20:
            return super().moved(src, dst, may_overwrite)
        row = np.frombuffer(elements(src), f"V{WIDTH[src.type]}")
        return dense(src.type, dst, bytearray(row[np.arange(volume) % (1 << 20)].tobytes()))


class ReversedIsNotChecked(Broken):
    """Only a src that goes forwards is checked."""

    breaks, classes = "refuse-illegal-calls", "EF"

    def compile(self, graph: Graph) -> Program:
        self.backwards = min(graph.src.strides or (0,), default=0) < 0
        return super().compile(graph)

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return ("same-volume",) if self.backwards else ()


class NotCheckedWhenStrided(Broken):
    """Overlooks a breach where src is not dense."""

    def compile(self, graph: Graph) -> Program:
        self.strided = graph.src.strides is not None
        return super().compile(graph)

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return self.forgives if self.strided else ()


class TransposedIsNotChecked(NotCheckedWhenStrided):
    """Only a dense src is checked; another one takes the path that copies as it comes."""

    breaks, classes, forgives = "refuse-illegal-calls", "EF", ("same-volume",)


class InfersOfStridedAreNotDivided(NotCheckedWhenStrided):
    """Of a src that is not dense the length that is inferred need not divide."""

    breaks, classes, forgives = "same-volume", "EF", ("same-volume",)

    def overlooked(self, node: Node) -> tuple[str, ...]:
        entries = node.shape.values if node.shape else None
        return super().overlooked(node) if -1 in (entries or ()) else ()


class SecondInferOfStridedIsNotSeen(NotCheckedWhenStrided):
    """Of a src that is not dense several lengths may be inferred."""

    breaks, classes, forgives = "one-infer", "MF", ("one-infer",)


class SignsOfStridedAreNotSeen(NotCheckedWhenStrided):
    """Of a src that is not dense only the product of the lengths matters."""

    breaks, classes, forgives = "lower-bound", "LF", ("lower-bound",)


class ZerosOfStridedAreNotSeen(NotCheckedWhenStrided):
    """Of a src that is not dense a literal 0 takes what it gets."""

    breaks, classes, forgives = "zero-empties", "EF", ("zero-empties",)


class ZeroMeetsInferOfStrided(NotCheckedWhenStrided):
    """Of a src that is not dense a literal 0 may stand beside a -1."""

    breaks, classes, forgives = "zero-meets-infer", "BF", ("zero-meets-infer",)


# ── bit patterns ──────────────────────────────────────────────────────────────────────────────────


class Altered(Broken):
    """Changes elements on the way, floats only."""

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if src.type not in FRACTION or 0 in dst or math.prod(dst) != math.prod(src.dims):
            return super().moved(src, dst, may_overwrite)
        words = np.frombuffer(elements(src), f"<u{WIDTH[src.type]}").copy()
        with np.errstate(all="ignore"):
            altered = self.altered(words, src.type)
        return dense(src.type, dst, bytearray(altered.tobytes()))

    def altered(self, words: Array, type_: str) -> Array:
        raise NotImplementedError


FRACTION = {"f32": 23, "bf16": 7, "f16": 10, "f64": 52}
"""Bits of the fraction of a floating-point type."""


def sign_of(type_: str) -> int:
    return 1 << 8 * WIDTH[type_] - 1


def infinity_of(type_: str) -> int:
    return sign_of(type_) - (1 << FRACTION[type_])


def nans(words: Array, type_: str) -> Array:
    """Which of the words are NaN."""
    return np.asarray((words & np.array(sign_of(type_) - 1, words.dtype)) > infinity_of(type_))


class FlushesSubnormals(Altered):
    """Subnormal numbers are 0."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        size = words & np.array(sign_of(type_) - 1, words.dtype)
        return np.where(size < 1 << FRACTION[type_], words - size, words)


class QuietsNan(Altered):
    """A signalling NaN is quieted, as arithmetic does."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        return np.where(nans(words, type_), words | np.array(1 << FRACTION[type_] - 1, words.dtype), words)


class QuietsSometimes(QuietsNan):
    """Elements are loaded and stored as numbers on one path."""

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        """Whether a call goes that way."""
        raise NotImplementedError

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        way = super().moved if self.takes(src, dst, may_overwrite) else super(Altered, self).moved
        return way(src, dst, may_overwrite)


class QuietsInVectors(QuietsSometimes):
    """f32 that fill a vector are loaded and stored as numbers; the few that do not are copied."""

    breaks, classes = "same-content", "G"

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return src.type == "f32" and math.prod(dst) > 32


class QuietsInPlace(QuietsSometimes):
    """With leave to overwrite src, its elements are loaded and stored as numbers."""

    breaks, classes = "same-content", "GH"

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return may_overwrite


class QuietsUnderTheSameDims(QuietsSometimes):
    """f32 with nothing to move are added to 0."""

    breaks, classes = "same-content", "G"

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return src.type == "f32" and src.dims == dst


class QuietsPastSixDims(QuietsSometimes):
    """The loop for any number of dimensions, which few calls take, reads numbers."""

    breaks, classes = "same-content", "G"

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return len(dst) > 6


class QuietsTransposedF16(QuietsSometimes):
    """f16 that is not in order is transposed as f32."""

    breaks, classes = "layout-is-no-content", "GF"

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return src.type == "f16" and list(src.strides) != sorted(src.strides, reverse=True)


class QuietsBf16InChains(QuietsSometimes):
    """Between two nodes bf16 is kept as f32."""

    breaks, classes = "nodes-compose", "G"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        self.chained = len(program.nodes) > 1
        return super().run(program, src, shapes, may_overwrite)

    def takes(self, src: Tensor, dst: Dims, may_overwrite: bool) -> bool:
        return src.type == "bf16" and self.chained


class OneNan(Altered):
    """There is only one NaN."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        canonical = np.array(infinity_of(type_) | 1 << FRACTION[type_] - 1, words.dtype)
        return np.where(nans(words, type_), canonical, words)


class NanWithoutSign(Altered):
    """A NaN has no sign."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        return np.where(nans(words, type_), words & np.array(sign_of(type_) - 1, words.dtype), words)


class ZeroWithoutSign(Altered):
    """-0 is 0."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        return np.where(words == sign_of(type_), np.array(0, words.dtype), words)


class InfinityClamped(Altered):
    """An infinity is the greatest number."""

    breaks, classes = "same-content", "G"

    def altered(self, words: Array, type_: str) -> Array:
        size = words & np.array(sign_of(type_) - 1, words.dtype)
        return np.where(size == infinity_of(type_), words - np.array(1, words.dtype), words)


class Rounded(Altered):
    """Converts to another type and back."""

    through: ClassVar[str]
    of: ClassVar[tuple[str, ...]]

    def altered(self, words: Array, type_: str) -> Array:
        if type_ not in self.of:
            return words
        own = words.view(dtype_of(type_))
        rounded = own.astype(dtype_of(self.through)).astype(dtype_of(type_)).view(words.dtype)
        return np.where(nans(words, type_), words, rounded)


class RoundsThroughBf16(Rounded):
    """f32 is kept as bf16 inside."""

    breaks, classes, through, of = "same-content", "G", "bf16", ("f32",)


class RoundsThroughF16(Rounded):
    """f32 and bf16 are kept as f16 inside."""

    breaks, classes, through, of = "same-content", "G", "f16", ("f32", "bf16")


class Bf16AnsweredAsF32(Broken):
    """bf16 is computed, and answered, as f32."""

    breaks, classes = "same-type", "Q"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        if src.type != "bf16" or 0 in dst:
            return super().moved(src, dst, may_overwrite)
        wide = np.frombuffer(elements(src), "<u2").astype("<u4") << 16
        return dense("f32", dst, bytearray(wide.tobytes()))


# ── memory and programs ───────────────────────────────────────────────────────────────────────────


class StridedSrcIsTidied(Broken):
    """A src with gaps or of another order is made dense where it lies."""

    breaks, classes = "src-is-kept", "H"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        answer = super().moved(src, dst, may_overwrite)
        row = elements(src)
        if src.strides != dense_strides(src) and row and min(src.strides) > 0:
            src.memory[src.offset : src.offset + len(row)] = row
        return answer


class SrcIsScratch(Broken):
    """src of a chain holds what lies between."""

    breaks, classes = "src-is-kept", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        if len(program.nodes) > 1 and 0 not in src.dims:
            src.memory[src.offset] ^= 0xFF
        return answer


class LeaveToOverwriteForEver(Broken):
    """Who may overwrite src once may do so from then on."""

    breaks, classes = "src-is-kept", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        program.memory = program.memory or may_overwrite
        if program.memory and 0 not in src.dims:
            src.memory[src.offset] ^= 0xFF
        return answer


class WholeLinesAreWritten(Broken):
    """With leave to overwrite src, memory is written by whole lines of 64 bytes."""

    breaks, classes = "src-is-kept", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        if may_overwrite:
            src.memory[-1] ^= 0xFF
        return answer


class InPlaceWhateverTheLayout(LayoutBelief):
    """With leave to overwrite src, its memory is the answer as it lies."""

    breaks, classes = "layout-is-no-content", "HF"

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        return super().moved(src, dst, may_overwrite) if may_overwrite else Broken.moved(self, src, dst, may_overwrite)

    def believed(self, src: Tensor) -> Tensor:
        return src if src.strides == dense_strides(src) else reread(src, dense_strides(src), src.offset)


class NotCheckedInPlace(Broken):
    """Overlooks a breach where src may be overwritten, which is known at the run only."""

    leave = False

    def compile(self, graph: Graph) -> Program:
        for node in graph.nodes:
            self.check(node, graph.src.type)
        return Bent(self, graph, None)

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        self.leave = may_overwrite
        return super().run(program, src, shapes, may_overwrite)

    def overlooked(self, node: Node) -> tuple[str, ...]:
        return self.forgives if self.leave else ()


class SmallerFitsInPlace(NotCheckedInPlace):
    """With leave to overwrite src, what needs no more room than src will do."""

    breaks, classes = "refuse-illegal-calls", "EH"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        fits = self.leave and 0 < math.prod(filled(src, shape, zero)) < math.prod(src) and min(shape) >= 0
        return filled(src, shape, zero) if fits else resolve(src, shape, zero, meet)


class WrapsInPlace(NotCheckedInPlace):
    """With leave to overwrite src no memory is asked for, so that nobody notices a volume that wraps."""

    breaks, classes = "same-volume", "DH"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        wraps = self.leave and min(shape, default=0) > 0 and math.prod(shape) % (1 << 64) == math.prod(src)
        return src if wraps else resolve(src, shape, zero, meet)


class SecondInferInPlaceIsNotSeen(NotCheckedInPlace):
    """With leave to overwrite src several lengths may be inferred."""

    breaks, classes, forgives = "one-infer", "MH", ("one-infer",)


class SignsInPlaceAreNotSeen(NotCheckedInPlace):
    """With leave to overwrite src only the product of the lengths matters."""

    breaks, classes, forgives = "lower-bound", "LH", ("lower-bound",)


class ZerosInPlaceAreNotSeen(NotCheckedInPlace):
    """With leave to overwrite src a literal 0 takes what it gets."""

    breaks, classes, forgives = "zero-empties", "EH", ("zero-empties",)


class OneBufferForAllAnswers(Broken):
    """A program has one buffer, and each answer lies in it."""

    breaks, classes = "each-call-alone", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        if isinstance(answer, Tensor) or not answer.nbytes:
            return answer
        if program.memory is None or program.memory.nbytes < answer.nbytes:
            program.memory = np.zeros(answer.nbytes, np.uint8)
        program.memory[: answer.nbytes] = np.frombuffer(answer.tobytes(), np.uint8)
        held: Array = program.memory[: answer.nbytes].view(answer.dtype).reshape(answer.shape)
        return held


class StagesInTheSrcOfTheCallBefore(Broken):
    """The memory of the last src is free for use once its call is over."""

    breaks, classes = "src-is-kept", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        last, program.last = program.last, src
        if last is not None and last.memory is not src.memory and src.type == last.type and 0 not in last.dims:
            last.memory[last.offset] ^= 1
        return answer


class AnswersFromMemory(Broken):
    """The same dims have the same answer: it is kept."""

    breaks, classes = "each-call-alone", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        program.memory = program.memory or {}
        answer = super().run(program, src, shapes, may_overwrite)
        dims = answer.dims if isinstance(answer, Tensor) else answer.shape
        kept: Tensor | Array = program.memory.setdefault((src.dims, dims), answer)
        return kept


class Remembers(Broken):
    """Looks dst up by a key of the call, in a cache of so many entries."""

    entries_kept: ClassVar[int] = 64

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return src, shapes

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        program.memory = program.memory or []
        kept: list[tuple[Any, Dims]] = program.memory
        key = self.key(src.dims, [tuple(shape.array().ravel().tolist()) for shape in shapes])
        for known_key, dst in kept:
            if known_key == key:
                return self.moved(src, dst, may_overwrite)
        answer = super().run(program, src, shapes, may_overwrite)
        dims = answer.dims if isinstance(answer, Tensor) else answer.shape
        if len(kept) < self.entries_kept:
            kept.append((key, dims))
        else:
            kept[0] = key, kept[0][1]
        return answer


class FullCacheKeepsAnOldAnswer(Remembers):
    """In a cache of eight, a ninth call takes the first one's place, but not the place of its answer."""

    breaks, classes, entries_kept = "each-call-alone", "HI", 8


class CallsOfEqualHashAreEqual(Remembers):
    """Two shapes with the same hash are the same."""

    breaks, classes = "each-call-alone", "IL"

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return src, [hash(shape) for shape in shapes]


class LengthsInAnyOrderAreEqual(Remembers):
    """A src of the same lengths, in whatever order, gets the same dst."""

    breaks, classes = "each-call-alone", "IN"

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return sorted(src), shapes


class DigitsAreTheKey(Remembers):
    """The key of a call is the digits of its lengths in a row."""

    breaks, classes = "each-call-alone", "HI"

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return "".join(map(str, src)), "".join(str(d) for shape in shapes for d in shape)


class LengthsInARowAreTheKey(Remembers):
    """The key of a call is the lengths of src and shape in a row, and nobody asks where shape begins."""

    breaks, classes = "each-call-alone", "HI"

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return src + tuple(d for shape in shapes for d in shape)


class AWeakHashIsTheKey(Remembers):
    """The key of a call is a hash of 64 bits, which is as good as the lengths themselves."""

    breaks, classes = "each-call-alone", "HI"

    def key(self, src: Dims, shapes: list[Dims]) -> Any:
        return [self.hashed(dims) for dims in (src, *shapes)]

    def hashed(self, dims: Dims) -> int:
        """Each length mixed in by shifts and a constant, which spreads small numbers badly."""
        seed = 0
        for length in dims:
            seed ^= (length + 0x9E3779B9 + (seed << 6) + (seed >> 2)) % (1 << 64)
        return seed


class ConstantAfterThreeCalls(Broken):
    """What was asked three times will be asked for ever, and is compiled in."""

    breaks, classes = "each-call-alone", "I"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        program.memory = program.memory or []
        asked: list[Dims] = program.memory
        if shapes and any(asked.count(dst) >= 3 for dst in asked):
            return self.moved(src, max(asked, key=asked.count), may_overwrite)
        answer = super().run(program, src, shapes, may_overwrite)
        asked.append(answer.dims if isinstance(answer, Tensor) else answer.shape)
        return answer


class EightBuffersInTurn(Broken):
    """A program has eight buffers, and nobody looks at an answer for longer than that."""

    breaks, classes = "each-call-alone", "H"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        answer = super().run(program, src, shapes, may_overwrite)
        if isinstance(answer, Tensor) or not answer.nbytes:
            return answer
        program.memory = [*(program.memory or []), answer]
        if len(program.memory) > 8 and program.memory[-9].nbytes == answer.nbytes:
            program.memory[-9].view(np.uint8).reshape(-1)[:] = np.frombuffer(answer.tobytes(), np.uint8)
        return answer


class ShapeFrozenAtTheFirstCall(Broken):
    """The shape that arrives first is the shape of the program."""

    breaks, classes = "each-call-alone", "I"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        first: list[Dims] = [self.entries(Operand(s.type, s.dims, None), iter((s,))) for s in shapes]
        program.memory = program.memory or first
        frozen = [Operand("s64", (len(entries),), entries) for entries in program.memory]
        nodes = tuple(node._replace(shape=shape) for node, shape in zip(program.nodes, frozen, strict=False))
        dst = program.dst if program.dst is not None else self.settle("run", nodes or program.nodes, src.dims, ())
        return self.moved(src, dst, may_overwrite)


class DimsFrozenAtTheFirstCall(Broken):
    """The dims of the first src are those of every src."""

    breaks, classes = "each-call-alone", "I"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        program.memory = program.memory or (src.dims,)
        dst = program.dst if program.dst is not None else self.settle("run", program.nodes, program.memory[0], shapes)
        return self.moved(src, dst, may_overwrite)


class StridesFrozenAtTheFirstCall(Broken):
    """The strides of the first src of some lengths are those of every src of the same."""

    breaks, classes = "each-call-alone", "FI"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        program.memory = program.memory or {}
        strides = program.memory.setdefault(src.dims, src.strides)
        if 0 not in src.dims and min(strides, default=0) >= 0:
            src = reread(src, strides, src.offset)
        return super().run(program, src, shapes, may_overwrite)


class NeverAgainAfterARefusal(Broken):
    """A program that has refused a call refuses all later ones."""

    breaks, classes = "each-call-alone", "I"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        if program.memory:
            raise Rejected("run", "the program is in an error state")
        try:
            return super().run(program, src, shapes, may_overwrite)
        except Rejected:
            program.memory = True
            raise


class RefusesOnlyOnce(Broken):
    """What was refused before has been checked, and is answered the second time."""

    breaks, classes = "each-call-alone", "IE"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            return super().run(program, src, shapes, may_overwrite)
        except Rejected:
            if program.memory == src.dims:
                return filled_up(src, src.dims)
            program.memory = src.dims
            raise


class AnswersTheLastGoodCall(Broken):
    """After an answer, a call that fails answers that again."""

    breaks, classes = "each-call-alone", "HI"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            program.memory = super().run(program, src, shapes, may_overwrite)
        except Rejected:
            if program.memory is None:
                raise
        answer: Tensor | Array = program.memory
        return answer


# ── what is declared ──────────────────────────────────────────────────────────────────────────────


class DeclarationNotRead(Broken):
    """What is declared of dst is not looked at."""

    breaks, classes = "declared-output", "P"

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        return True


class DeclarationBelieved(Broken):
    """dst is what it was declared to be."""

    breaks, classes = "declared-output", "P"

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        said = node.result.dims if node.result is not None else None
        if said is None or None in said:
            return super().answer(node, src, shape)
        super().answer(node, src, shape)
        return tuple(d or 0 for d in said)


class DeclaredRankIsEnough(Broken):
    """Of a declaration only the rank counts."""

    breaks, classes = "declared-output", "P"

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        return declared.dims is None or len(declared.dims) == len(dims)


class DeclaredVolumeIsEnough(Broken):
    """A declaration with as many elements will do."""

    breaks, classes = "declared-output", "P"

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        said, volume = declared.dims or (), math.prod(d or 0 for d in dims)
        return super().agrees(declared, dims) or math.prod(d or 0 for d in said) == volume


class DeclaredInFullOrRefused(Broken):
    """A declaration that leaves a length open is wrong."""

    breaks, classes = "declared-output", "P"

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        return declared.dims is None or declared.dims == dims


class UnknownRankIsRankZero(Broken):
    """A declaration without a rank declares a rank of 0."""

    breaks, classes = "declared-output", "PK"

    def agrees(self, declared: Declared, dims: tuple[int | None, ...]) -> bool:
        return super().agrees(declared._replace(dims=declared.dims or ()), dims)


# ── the form of a node ────────────────────────────────────────────────────────────────────────────


class MissingFlagIsFalse(Broken):
    """special_zero may be left away and is false then."""

    breaks, classes = "attributes-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(special_zero=node.special_zero or FALSE)


class MissingShapeFlattens(Broken):
    """A StaticReshape without shape flattens."""

    breaks, classes = "attributes-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        static = node.operation == "StaticReshape"
        return node._replace(shape=node.shape or (Operand("s64", (1,), (-1,)) if static else None))


class MissingShapeInputFlattens(Broken):
    """Without a second input the operation flattens."""

    breaks, classes = "operands-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        static = node.operation == "StaticReshape"
        return node._replace(shape=node.shape or (None if static else Operand("s64", (1,), (-1,))))


class MissingSrcDoesNotMatter(Broken):
    """Who leaves src unconnected means the tensor at hand."""

    breaks, classes = "operands-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(inputs=max(node.inputs, 1))


class MissingDstDoesNotMatter(Broken):
    """Who leaves dst unconnected will find the answer somewhere."""

    breaks, classes = "output-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(outputs=max(node.outputs, 1))


class ExtraInputsIgnored(Broken):
    """An input too many does no harm."""

    breaks, classes = "operands-as-listed", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(inputs=min(node.inputs, 1))


class ExtraOutputsIgnored(Broken):
    """An output too many does no harm."""

    breaks, classes = "operands-as-listed", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(outputs=min(node.outputs, 1))


class ReshapeOfWideShapesRefused(Broken):
    """A supported integer type is one of 32 bits."""

    breaks, classes = "types-demanded-of-reshape", "Q"

    def check(self, node: Node, src_type: str) -> None:
        super().check(node, src_type)
        if node.operation == "Reshape-1" and node.shape is not None and node.shape.type == "s64":
            raise Rejected("compile", "shapes of s64 are not supported")


class ShapeOnlyBeforehand(Broken):
    """A shape is known at compilation, or there is none."""

    breaks, classes = "shape-given", "IQ"

    def check(self, node: Node, src_type: str) -> None:
        super().check(node, src_type)
        if node.shape is not None and node.shape.values is None:
            raise Rejected("compile", "dynamic shapes are not supported")


class AnyTensorIsAShape(Broken):
    """A shape may be a tensor of any rank: its elements count."""

    breaks, classes = "shape-has-one-dimension", ""

    def mended(self, node: Node, src_type: str) -> Node:
        shape = node.shape
        return node._replace(shape=shape._replace(dims=(-1,))) if shape and len(shape.dims) != 1 else node

    def entries(self, shape: Operand, arriving: Iterator[Tensor]) -> Dims:
        return shape.values if shape.values is not None else tuple(next(arriving).array().ravel().tolist())


class LengthsMayBeFloats(Broken):
    """A length is what is left of a number without its fraction."""

    breaks, classes = "shape-is-integer", ""

    def mended(self, node: Node, src_type: str) -> Node:
        shape = node.shape
        return node._replace(shape=shape._replace(type="s64")) if shape and shape.type[0] in "fb" else node

    def entries(self, shape: Operand, arriving: Iterator[Tensor]) -> Dims:
        return tuple(int(d) for d in super().entries(shape, arriving))


class FlagMayBeANumber(Broken):
    """special_zero is whatever counts as true."""

    breaks, classes = "special-zero-is-boolean", ""

    def mended(self, node: Node, src_type: str) -> Node:
        zero = node.special_zero
        return node if zero is None else node._replace(special_zero=TRUE if copies(node) else FALSE)


class DeclaredTypeIgnored(Broken):
    """dst has src's type, whatever is declared."""

    breaks, classes = "same-type", "P"

    def mended(self, node: Node, src_type: str) -> Node:
        return node._replace(result=node.result._replace(type=src_type)) if node.result else node


class Bf16MayBeDeclaredF32(Broken):
    """f32 has room for bf16, so that the declaration does no harm."""

    breaks, classes = "same-type", "P"

    def mended(self, node: Node, src_type: str) -> Node:
        harmless = node.result is not None and (src_type, node.result.type) == ("bf16", "f32")
        return node._replace(result=None) if harmless else node


class CastsToTheDeclaredType(DeclaredTypeIgnored):
    """dst has the type that was declared, and the elements are converted."""

    breaks, classes = "same-type", "P"

    def compile(self, graph: Graph) -> Program:
        self.wanted = graph.nodes[-1].result.type if graph.nodes[-1].result else graph.src.type
        return super().compile(graph)

    def moved(self, src: Tensor, dst: Dims, may_overwrite: bool) -> Tensor | Array:
        answer = super().moved(src, dst, may_overwrite)
        if isinstance(answer, Tensor) or self.wanted == src.type:
            return answer
        return answer.astype(dtype_of(self.wanted))


# ── forbidden calls, where a backend branches ─────────────────────────────────────────────────────


class MinusThreeMultiplies(Broken):
    """-3 stands for the product of the next two lengths of src, as some libraries read it."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        return super().resolve(src, self.multiplied(src, shape), zero, meet)

    def multiplied(self, src: Dims, shape: Dims) -> Dims:
        at, found = 0, []
        for length in shape:
            found.append(math.prod(src[at : at + 2]) if length == -3 and at + 2 <= len(src) else length)
            at += 2 if length == -3 else 1
        return tuple(found)


class MinusFourSplits(Broken):
    """-4 stands before the two lengths into which a length of src is split, and is none itself."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        splits = -4 in shape and shape.index(-4) + 2 < len(shape)
        return super().resolve(src, tuple(d for d in shape if d != -4) if splits else shape, zero, meet)


class LongSrcMayBeInferredTwice(Broken):
    """The check for a second -1 is in the code for up to four dimensions."""

    breaks, classes = "one-infer", "M"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if len(src) > 4 and shape.count(-1) > 1:
            return filled(src, shape, zero)
        return super().resolve(src, shape, zero, meet)


class NegativesOfManyElements(Broken):
    """What is copied in blocks takes a negative length for what is left."""

    breaks, classes = "lower-bound", "L"

    def resolve(self, src: Dims, shape: Dims, zero: bool, meet: bool) -> Dims:
        if math.prod(src) > 4096 and min(shape, default=0) < -1:
            return filled(src, shape, zero)
        return super().resolve(src, shape, zero, meet)


class DeclaredSettlesZeroBesideInfer(Broken):
    """Where dst is declared there is nothing to infer, and so nothing that forbids it."""

    breaks, classes = "zero-meets-infer", "P"

    def answer(self, node: Node, src: Dims, shape: Dims) -> Dims:
        try:
            return super().answer(node, src, shape)
        except Illegal as breach:
            declared = node.result.dims if node.result else None
            if str(breach) == "zero-meets-infer" and declared and None not in declared and 0 in declared:
                return tuple(d for d in declared if d is not None)
            raise


class MissingFlagBesideInfer(Broken):
    """Where a length is inferred, special_zero that is missing is false."""

    breaks, classes = "attributes-required", ""

    def mended(self, node: Node, src_type: str) -> Node:
        infers = node.shape is not None and -1 in (node.shape.values or ())
        return node._replace(special_zero=FALSE) if infers and not node.special_zero else node


class FlagIsAByte(Broken):
    """special_zero may be an integer of one byte, as in C."""

    breaks, classes = "special-zero-is-boolean", ""

    def mended(self, node: Node, src_type: str) -> Node:
        flag = node.special_zero
        if flag is None or flag.type not in ("u8", "s8") or flag.values is None:
            return node
        return node._replace(special_zero=Operand("bool", (), (bool(flag.values[0]),)))


class LaterNodesLackWhatTheyLike(Broken):
    """The first node of a graph is looked at; in others a missing special_zero is false."""

    breaks, classes = "attributes-required", ""

    def compile(self, graph: Graph) -> Program:
        first, *others = graph.nodes
        nodes = (first, *(node._replace(special_zero=node.special_zero or FALSE) for node in others))
        return super().compile(graph._replace(nodes=nodes))


class CubesAreVectors(AnyTensorIsAShape):
    """Of a shape with three dimensions or more the elements count."""

    breaks, classes = "shape-has-one-dimension", ""

    def mended(self, node: Node, src_type: str) -> Node:
        return super().mended(node, src_type) if node.shape and len(node.shape.dims) > 2 else node


class DeclaredLengthsExcuseTheType(DeclaredTypeIgnored):
    """Where the lengths of dst are declared nobody looks at its type."""

    breaks, classes = "same-type", "P"

    def mended(self, node: Node, src_type: str) -> Node:
        return super().mended(node, src_type) if node.result and node.result.dims is not None else node


# ── everything and nothing ────────────────────────────────────────────────────────────────────────


class RefusesEverything(Broken):
    """It is safest to refuse."""

    breaks, classes = "literal-lengths", "R"

    def compile(self, graph: Graph) -> Program:
        raise Rejected("compile", "not supported")


class AcceptsEverything(Broken):
    """There is an answer to every call."""

    breaks, classes = "refuse-illegal-calls", "R"

    def compile(self, graph: Graph) -> Program:
        return _Accepting(self, graph, None)


class _Accepting(Compiled):
    """The right answer where there is one, and src where there is none."""

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor | Array:
        try:
            for node in self.nodes:
                self.backend.check(node, src.type)
            return super().run(src, shapes, may_overwrite)
        except Rejected:
            return dense(src.type, src.dims, bytearray(elements(src)))


class AnswersNothing(Broken):
    """A call that raises no error has done its work."""

    breaks, classes = "same-content", "R"

    def run(self, program: Bent, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
        return None
