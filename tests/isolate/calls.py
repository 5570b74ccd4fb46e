"""Calls of a backend in another process; scripts of tests import this too, so it imports little."""

from __future__ import annotations

import math

from conformance.isolate.protocol.remote import Remote
from conformance.model import Declared, Graph, Node, Operand, Tensor
from conformance.plan.memory import TensorSpec, image_of


def reshape(dims: tuple[int, ...], shape: tuple[int, ...], type_: str = "f32") -> Graph:
    node = Node("StaticReshape", Operand("s64", (len(shape),), shape), Operand("bool", (), (False,)))
    return Graph(Declared(type_, dims), (node,))


def called(remote: Remote, dims: tuple[int, ...], type_: str = "f32", may_overwrite: bool = False) -> Tensor:
    src = image_of(TensorSpec(type_, dims)).tensor
    return remote.compile(reshape(dims, (math.prod(dims),), type_)).run(src, (), may_overwrite)
