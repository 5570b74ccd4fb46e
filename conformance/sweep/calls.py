"""The loop that makes the calls of a sweep, and what it is given: nodes, shapes in memory, wanted answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..meaning.domain import Lengths
from ..model import Adapter, Declared, Graph, Node, Operand, Rejected, ShapePassedAs, Tensor
from ..model.types import dtype_of
from ..plan.memory import GuardedBuffer, are_equal, lay_out_shape

Want = Any
"""The dims that are due, None where an answer is not due, or JUDGE."""
JUDGE = "judge"
"""Equal to no dims: every answer to such a call is judged."""
Judge = Callable[[int, Any, "BaseException | None"], None]
"""Judges a call by its number, and by its answer or the exception that it raised."""
_STAGES = ("compile", "run")


class ShapeArguments(NamedTuple):
    """The shapes that a call passes when it runs: at most one, with its memory and what that held before."""

    tensors: tuple[Tensor, ...] = ()
    memory: Any = None
    before: bytes | None = None


NO_SHAPE = ShapeArguments()


@lru_cache(12)
def make_nodes_of_calls(
    operation: str, shape_passed_as: ShapePassedAs, shape_type: str, shapes: tuple[Lengths, ...]
) -> list[tuple[Node, ...]]:
    """Make the nodes of calls: with special_zero false for every shape, then with true."""
    flags = [Operand("bool", (), (flag,)) for flag in (False, True)]
    operands = [Operand(shape_type, (len(shape),), None if shape_passed_as == "runtime" else shape) for shape in shapes]
    return [(Node(operation, operand, flag),) for flag in flags for operand in operands]


@lru_cache(4)
def lay_out_shapes(shape_type: str, shapes: tuple[Lengths, ...]) -> list[GuardedBuffer]:
    return [lay_out_shape(shape_type, (len(shape),), shape) for shape in shapes]


def call_each(
    adapter: Adapter, src: Declared, nodes: Sequence[tuple[Node, ...]], arguments: Sequence[ShapeArguments],
    wants: Sequence[Want], buffer: GuardedBuffer, judge: Judge,
) -> None:  # fmt: skip
    """Make calls of one src, and `judge` those that do not go as they should.

    A sweep spends its time here. A call goes as it should if type, dims and bytes are due, and src and shape unchanged.
    """
    compile_, tensor, elements = adapter.compile, buffer.tensor, buffer.elements[:]
    memory: Any = tensor.memory
    before = buffer.before
    type_, dtype, new, graph, array = src.type, dtype_of(src.type), tuple.__new__, Graph, np.ndarray
    for number, (node, want, (tensors, shape, shape_before)) in enumerate(zip(nodes, wants, arguments, strict=True)):
        try:
            answer = compile_(new(graph, (src, node))).run(tensor, tensors, False)
        except Rejected as rejected:  # noqa: PERF203 - a rejection is what half of the calls are made for
            if (
                want is not None or memory != before or shape != shape_before
                or rejected.stage not in _STAGES or type(rejected.message) is not str
            ):  # fmt: skip
                judge(number, None, rejected)
        except BaseException as error:
            judge(number, None, error)
        else:
            if type(answer) is array:
                if (
                    answer.shape != want
                    or (answer.dtype is not dtype and answer.dtype != dtype)
                    or not are_equal(answer.tobytes(), elements)
                    or memory != before
                    or shape != shape_before
                ):
                    judge(number, answer, None)
            elif elements or memory != before or shape != shape_before or not _is_empty_tensor_due(answer, type_, want):
                judge(number, answer, None)


def _is_empty_tensor_due(answer: Any, type_: str, want: Want) -> bool:
    return (
        type(answer) is Tensor
        and answer.dims == want
        and answer.type == type_
        and type(answer.memory) is bytearray
        and len(answer.strides) == len(answer.dims)
    )
