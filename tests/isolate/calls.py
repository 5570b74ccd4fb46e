"""Calls of a backend in another process. Scripts of tests import this module too, so it imports little."""

import math

from conformance.isolate.protocol.remote import RemoteAdapter
from conformance.model import Declared, Graph, Node, Operand, Tensor
from conformance.plan.memory import GuardedBuffer, TensorSpec, lay_out


def reshape(dims: tuple[int, ...], shape: tuple[int, ...]) -> Graph:
    node = Node("StaticReshape", Operand("s64", (len(shape),), shape), Operand("bool", (), (False,)))
    return Graph(Declared("f32", dims), (node,))


def call(remote: RemoteAdapter, dims: tuple[int, ...]) -> Tensor:
    return call_with_buffer(remote, dims, (math.prod(dims),))[0]


def call_with_buffer(
    remote: RemoteAdapter, dims: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[Tensor, GuardedBuffer]:
    buffer = lay_out(TensorSpec("f32", dims))
    return remote.compile(reshape(dims, shape)).run(buffer.tensor, (), False), buffer
