"""Small backends for tests, each named by what it does wrong."""

import asyncio
import os
from typing import Any, ClassVar, NoReturn

import numpy as np

from conformance.adapter import FunctionAdapter
from conformance.adapters.planted.base import Illegal, Unspecified, resolve
from conformance.adapters.reference import Reference
from conformance.model import Array, Claims, Crashed, Graph, Identity, Program, Rejected, Tensor, Unsupported
from conformance.model.types import dtype_of

ALL = ("StaticReshape", "DynamicReshape-1", "Reshape-1")


class Plain(FunctionAdapter):
    """Right in everything that a plain function can express."""

    name, version = "plain", "1.4"
    rejections = (*FunctionAdapter.rejections, Illegal, Unspecified)

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        return src.reshape(resolve(src.shape, shape, special_zero))


class Ran:
    """A program that hands everything to one function."""

    def __init__(self, run: Any) -> None:
        self.run = run


class Bent(Reference):  # type: ignore[misc]
    """The reference, with a way to bend each stage."""

    identity = Identity("bent", "1")

    def compile(self, graph: Graph) -> Program:
        program = super().compile(graph)
        return Ran(lambda src, shapes, over: self.bent(program.run(src, shapes, over), src, shapes))

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        return answer


class Answers(Bent):
    """Answers something else than a tensor; which is chosen by name."""

    kind = "None"
    KINDS: ClassVar[dict[str, Any]] = {
        "None": lambda a, t: None,
        "list": lambda a, t: np.asarray(a).tolist() if isinstance(a, np.ndarray) else [],
        "object": lambda a, t: object(),
        "class": lambda a, t: np.ndarray,
        "coroutine": lambda a, t: asyncio.Future,
        "object array": lambda a, t: np.array([None, 1], object),
        "text array": lambda a, t: np.array(["1.0"]),
        "complex array": lambda a, t: np.zeros(2, "c8"),
        "structured array": lambda a, t: np.zeros(2, [("f32", "<f4")]),
        "big-endian array": lambda a, t: np.zeros(t.dims, ">f4"),
        "dims that are text": lambda a, t: Tensor("f32", ("2", "3"), (12, 4), bytearray(24), 0),  # type: ignore[arg-type]
        "dims that are none": lambda a, t: Tensor("f32", None, (), bytearray(24), 0),  # type: ignore[arg-type]
        "a length below 0": lambda a, t: Tensor("f32", (-2, -3), (12, 4), bytearray(24), 0),
        "lengths with a fraction": lambda a, t: Tensor("f32", (0.5, 0.0), (0, 0), bytearray(), 0),  # type: ignore[arg-type]
        "too few strides": lambda a, t: Tensor("f32", (2, 3), (4,), bytearray(24), 0),
        "strides out of memory": lambda a, t: Tensor("f32", (2, 3), (1200, 4), bytearray(24), 0),
        "an offset out of memory": lambda a, t: Tensor("f32", (2, 3), (12, 4), bytearray(24), 1 << 40),
        "no memory": lambda a, t: Tensor("f32", (2, 3), (12, 4), None, 0),  # type: ignore[arg-type]
        "an unknown type": lambda a, t: Tensor("f8", (2, 3), (12, 4), bytearray(24), 0),
        "a type that is none": lambda a, t: Tensor([], (2, 3), (12, 4), bytearray(24), 0),  # type: ignore[arg-type]
        "more elements than there can be": lambda a, t: Tensor("f32", (1 << 40, 1 << 40), (4, 4), bytearray(4), 0),
    }  # fmt: skip

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        return self.KINDS[self.kind](answer, src)


class Unwritable(Exception):
    """An exception that fails when it is shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Bare(BaseException):
    """What no `except Exception` catches."""


def rejected(stage: Any, message: Any) -> Rejected:
    return Rejected(stage, message)


def hollow(kind: type[Exception]) -> Exception:
    """One of our exceptions that lacks what it should carry."""
    return kind.__new__(kind)


RAISED: dict[str, Any] = {
    "Exception": lambda: Exception("plain"),
    "SystemExit": lambda: SystemExit(0),
    "MemoryError": MemoryError,
    "RecursionError": lambda: RecursionError("too deep"),
    "KeyError": lambda: KeyError("lost"),
    "StopIteration": StopIteration,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "BaseException": lambda: Bare("bare"),
    "AssertionError": AssertionError,
    "surrogates": lambda: KeyError("\udcff\x1b[31m\x00"),
    "long": lambda: KeyError("x" * 100_000),
    "unwritable": Unwritable,
    "Rejected in no stage": lambda: rejected("dinner", "no"),
    "Rejected with an array": lambda: rejected(np.zeros(2), np.zeros(2)),
    "Rejected with an unwritable": lambda: rejected("run", Unwritable()),
    "Rejected without anything": lambda: hollow(Rejected),
    "Unsupported without anything": lambda: hollow(Unsupported),
    "Unsupported with an object": lambda: Unsupported(Unwritable()),  # type: ignore[arg-type]
}


class RaisesInCompile(Bent):
    """Raises whatever `what` names, when compiling."""

    what = "Exception"

    def compile(self, graph: Graph) -> Program:
        raise RAISED[self.what]()


class RaisesInRun(RaisesInCompile):
    """The same when running."""

    def compile(self, graph: Graph) -> Program:
        return Ran(self._run)

    def _run(self, *arguments: Any) -> NoReturn:
        raise RAISED[self.what]()


class Deep(Bent):
    """Calls itself for ever."""

    def compile(self, graph: Graph) -> Program:
        return self.compile(graph)


class NoProgram(Bent):
    """Compiles to nothing."""

    def compile(self, graph: Graph) -> Program:
        return None  # type: ignore[return-value]


class Moves(Bent):
    """Prints and changes the working directory, and answers well."""

    def __init__(self) -> None:
        print("begin")
        os.chdir("/")

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        print("noise")
        os.chdir("/")
        return answer


class Shrinks(Bent):
    """Cuts src's memory off."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        assert isinstance(src.memory, bytearray)
        del src.memory[len(src.memory) // 2 :]
        return answer


class Tires(Bent):
    """Rejects its 5,000th call."""

    calls, rejected, why = 0, 5000, "enough"

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        self.calls += 1
        if self.calls == self.rejected:
            raise Rejected("run", self.why)
        return answer


class StumblesOnce(Tires):
    """Rejects its second call."""

    rejected, why = 2, "busy"


class Falls(Tires):
    """Ends its process at its 5,000th call."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        self.calls += 1
        if self.calls == self.rejected:
            os._exit(1)
        return answer


class LosesOnce(StumblesOnce):
    """Answers its second call with zeros."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        self.calls += 1
        return 0 * abs(answer) if self.calls == 2 else answer


class YieldsOnce(Reference):  # type: ignore[misc]
    """Answers the third call that it should reject when it runs; its messages differ."""

    identity = Identity("yields", "1")
    rejected = 0

    def compile(self, graph: Graph) -> Program:
        program = super().compile(graph)

        def run(src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Any:
            try:
                return program.run(src, shapes, may_overwrite)
            except Rejected:
                self.rejected += 1
                if self.rejected == 3:
                    return src.array()
                raise Rejected("run", f"rejection {self.rejected}") from None

        return Ran(run)


class Scribbles(Bent):
    """Writes a byte `at` into src's memory, or into that of shape."""

    at, shape = 0, False

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        answer = np.array(answer) if isinstance(answer, np.ndarray) else answer
        for tensor in shapes if self.shape else (src,):
            tensor.memory[self.at] ^= 0xFF
        return answer


class ReusesItsAnswer(Bent):
    """Has one buffer for all answers of a program."""

    def compile(self, graph: Graph) -> Program:
        program, kept = Reference.compile(self, graph), list[Any]()

        def run(src: Tensor, shapes: tuple[Tensor, ...], over: bool) -> Any:
            answer = program.run(src, shapes, over)
            if kept and isinstance(answer, np.ndarray) and kept[0].nbytes == answer.nbytes:
                kept[0].reshape(-1)[...] = answer.reshape(-1)
                return kept[0].reshape(answer.shape)
            kept[:] = [answer]
            return answer

        return Ran(run)


def never_compiling(error: Exception) -> type[Bent]:
    """Make a backend that raises an error whatever it compiles."""

    def compile_(self: Bent, graph: Graph) -> Program:
        raise error

    return type("NeverCompiling", (Bent,), {"compile": compile_})


Unable, Refuses = never_compiling(Unsupported("everything")), never_compiling(Rejected("compile", "no"))
"""The first supports nothing that it claims, the second refuses everything."""


class RefusesPairs(Bent):
    """Refuses a src of two rows."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if len(src.dims) == 2 and src.dims[0] == 2:
            raise Rejected("run", "no two rows")
        return answer


class Instead(Bent):
    """Does something else wherever the reference rejects a call, in compile or in run."""

    def instead(self, src: Tensor | None) -> Any:
        raise NotImplementedError

    def compile(self, graph: Graph) -> Program:
        def run(src: Tensor, shapes: tuple[Tensor, ...], over: bool) -> Any:
            try:
                return program.run(src, shapes, over)
            except Rejected:
                return self.instead(src)

        try:
            program: Any = Reference.compile(self, graph)
        except Rejected:
            return Ran(self.instead(None))
        return Ran(run)


class AnswersMuch(Instead):
    """Answers what it should reject with more bytes than the suite reads, or than there is memory."""

    def instead(self, src: Tensor | None) -> Any:
        much = np.broadcast_to(np.float32(0), (2, (1 << 31) + 3))
        return much if src is not None else lambda src, shapes, over: much


class Accepts(Instead):
    """Answers everything, src where nothing better is known."""

    def instead(self, src: Tensor | None) -> Any:
        return src.array().copy() if src is not None else lambda src, shapes, over: src.array().copy()


def claiming(operations: tuple[str, ...], *not_claimed: str) -> type[Bent]:
    """Make a right backend that claims only these operations, without some facets."""
    return type("Claiming", (Bent,), {"claims": Claims(operations, not_claimed)})


ClaimsNothing, ClaimsOne = claiming(()), claiming(ALL[:1])
LeavesOutEveryType, LeavesOutOneType = claiming(ALL, "type"), claiming(ALL, "type:f16")


class LeavesOut(Bent):
    """Leaves reversed layouts out of its claims; what it does with them is up to `instead`."""

    claims = Claims(ALL, ("layout:reversed",))
    instead: ClassVar[str] = "right"

    def compile(self, graph: Graph) -> Program:
        program = super().compile(graph)
        if self.instead == "right" or not (graph.src.strides and min(graph.src.strides) < 0):
            return program
        if self.instead == "unsupported":
            raise Unsupported("layout:reversed")
        if self.instead == "refused":
            raise Rejected("compile", "no negative strides")
        return Ran(self._otherwise)

    def _otherwise(self, src: Tensor, shapes: tuple[Tensor, ...], over: bool) -> Any:
        if self.instead == "error":
            raise KeyError("lost")
        if self.instead == "crash":
            raise Crashed("SIGSEGV")
        return np.zeros((2, 6), dtype_of(src.type) if self.instead == "wrong" else np.float64)


class LeavesOutHalf(Bent):
    """Leaves out f16 and bf16; what it does with them is up to `instead`."""

    claims = Claims(ALL, ("type:f16", "type:bf16"))
    instead: ClassVar[str] = "wrong"

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if src.type == "f32" or self.instead == "right":
            return answer
        if self.instead == "crash" and src.type == "f16":
            raise Crashed("SIGSEGV")
        return np.zeros(np.shape(answer), dtype_of(src.type)) if isinstance(answer, np.ndarray) else answer


class UnableBeyond(Bent):
    """Claims everything, and does not support reversed layouts."""

    def compile(self, graph: Graph) -> Program:
        if graph.src.strides and min(graph.src.strides) < 0:
            raise Unsupported("layout:reversed")
        return super().compile(graph)


class Mapped(Bent):
    """Has special_zero answered by its adapter, and leaves chains out."""

    claims = Claims(ALL, ("chain", "large"), answers_special_zero=True)

    def compile(self, graph: Graph) -> Program:
        if len(graph.nodes) > 1:
            raise Unsupported("chain")
        return super().compile(graph)


class Flushes(Bent):
    """Flushes subnormals."""

    identity = Identity("flushes", "3.6.1")

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if src.type == "f32" and isinstance(answer, np.ndarray) and answer.size:
            bits = answer.view("<u4")
            bits[(bits & 0x7FFFFFFF) < 0x00800000] &= 0x80000000
        return answer


class Zeros(Bent):
    """Answers zeros for f16."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        return np.zeros_like(answer) if src.type == "f16" else answer


def raising(error: Exception) -> type[Instead]:
    """Make a backend that raises an error on the way to every refusal."""

    def instead(self: Instead, src: Tensor | None) -> Any:
        raise error from None

    return type("Raising", (Instead,), {"instead": instead})


Crashes, Errs = raising(Crashed("SIGSEGV")), raising(KeyError("lost"))


class SpoilsSrc(Bent):
    """Answers rightly, and changes src behind one's back."""

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        kept = np.array(answer) if isinstance(answer, np.ndarray) else answer
        if src.dims and 0 not in src.dims:
            src.memory[src.offset] ^= 1
        return kept
