"""oneDNN Graph, the library that the documents were written for, through its C interface.

A graph is first put down in the library's own numbers, as a Blueprint of logical tensors and ops; only then is it
built, so that the calls it takes can also be listed. Only StaticReshape: the library no longer has the other two.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from conformance import Claims, Declared, Graph, Identity, Node, Operand, Rejected, Tensor, Unsupported
from conformance.model.types import WIDTH

from . import onednn_api as api
from .onednn_api import Dims, InplacePair, Library, LogicalTensor

# ── a graph in the library's numbers ──────────────────────────────────────────────────────────────


class Said(NamedTuple):
    """What a logical tensor is to say; strides in elements, None: left to the library."""

    id: int
    type: int
    dims: tuple[int | None, ...] | None
    strides: tuple[int, ...] | None = None


class Attribute(NamedTuple):
    id: int
    type: str
    values: tuple[Any, ...]
    scalar: bool


class Op(NamedTuple):
    id: int
    attributes: tuple[Attribute, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Blueprint(NamedTuple):
    """All that the library is told of a graph."""

    tensors: Mapping[int, Said]
    ops: tuple[Op, ...]
    src: int
    dst: int


SRC = 0
_EXTRA = 100
"""Ids from here on are those of inputs and outputs that no StaticReshape has."""


def blueprint(graph: Graph) -> Blueprint:
    """The graph in the library's numbers; raises Unsupported for what these cannot say."""
    src = graph.src
    tensors = {SRC: said(SRC, src)}
    ops = []
    for k, node in enumerate(graph.nodes):
        if node.operation != "StaticReshape":
            raise Unsupported("runtime-shape")
        inputs = [k, *(_EXTRA + 10 * k + extra for extra in range(1, node.inputs))][: node.inputs]
        outputs = [k + 1, *(_EXTRA + 10 * k + 5 + extra for extra in range(1, node.outputs))][: node.outputs]
        result = node.result or Declared(src.type, None)
        tensors |= {id_: said(id_, src) for id_ in inputs[1:]} | {id_: said(id_, result) for id_ in outputs}
        ops.append(Op(k, tuple(attributes(node)), tuple(inputs), tuple(outputs)))
    return Blueprint(tensors, tuple(ops), SRC, len(ops))


def said(id_: int, declared: Declared) -> Said:
    """A tensor as declared."""
    if declared.type not in api.TYPES:
        raise Unsupported(f"type:{declared.type}")
    if len(declared.dims or ()) > api.MOST_DIMS:
        raise Unsupported(f"rank:{len(declared.dims or ())}")
    strides = declared.strides
    if strides is not None:
        if min(strides, default=0) < 0:  # the library's header rules them out, and they end the process
            raise Unsupported("layout:reversed")
        strides = tuple(step // WIDTH[declared.type] for step in strides)
    return Said(id_, api.TYPES[declared.type], declared.dims, strides)


def attributes(node: Node) -> Iterator[Attribute]:
    """The attributes that are set, in the order in which they are set; one that is missing is not."""
    if node.shape is not None:
        yield attribute(api.SHAPE, node.shape)
    if node.special_zero is not None:
        yield attribute(api.SPECIAL_ZERO, node.special_zero)
    for name, operand in node.attributes:
        yield attribute(api.ATTRIBUTES.get(name, api.NOBODYS.get(operand.type, 0)), operand)


def attribute(id_: int, operand: Operand) -> Attribute:
    if operand.values is None:
        raise Unsupported("runtime-shape")
    if operand.type not in api.SETTERS:
        raise Unsupported("form:attribute-types")
    return Attribute(id_, operand.type, operand.values, scalar=operand.dims == ())


# ── building it ───────────────────────────────────────────────────────────────────────────────────


def logical_tensor(library: Library, said: Said) -> LogicalTensor:
    tensor = LogicalTensor()
    at = c.byref(tensor)
    if said.dims is None:
        library.call("dnnl_graph_logical_tensor_init", at, said.id, said.type, api.UNKNOWN_NDIMS, api.STRIDED, 0)
        return tensor
    dims = Dims(*(api.UNKNOWN_DIM if length is None else length for length in said.dims))
    rank = len(said.dims)
    if said.strides is None:
        library.call("dnnl_graph_logical_tensor_init_with_dims", at, said.id, said.type, rank, dims, api.STRIDED, 0)
    else:
        strides = Dims(*said.strides)
        library.call("dnnl_graph_logical_tensor_init_with_strides", at, said.id, said.type, rank, dims, strides, 0)
    return tensor


def set_attribute(library: Library, op: c.c_void_p, attribute: Attribute) -> None:
    setter, kind = api.SETTERS[attribute.type]
    values: Any = attribute.values
    if attribute.type == "string":
        values = "".join(map(str, values)).encode()
    length = 0 if attribute.scalar and attribute.type in ("s64", "f32") else len(values)  # as the C++ interface does
    array = (kind * max(len(values), 1))(*values)  # an empty shape is no null pointer
    library.call(setter, op, attribute.id, array, length)


class Partition:
    """A part of the graph that the library took, compiled."""

    def __init__(self, library: Library, handle: c.c_void_p, known: dict[int, LogicalTensor], keep: ExitStack) -> None:
        """`known` holds the logical tensors as far as they are settled, and afterwards those of the outputs too."""
        self.library, self.compiled = library, c.c_void_p()
        self.inputs = [known[id_] for id_ in ports(library, handle, "input")]
        declared = [known[id_] for id_ in ports(library, handle, "output")]
        library.call("dnnl_graph_compiled_partition_create", c.byref(self.compiled), handle)
        keep.callback(library.dll.dnnl_graph_compiled_partition_destroy, self.compiled)
        library.call(
            "dnnl_graph_partition_compile", handle, self.compiled,
            len(self.inputs), pointers(self.inputs), len(declared), pointers(declared), library.engine,
        )  # fmt: skip
        self.outputs = [self.settled(tensor.id) for tensor in declared]
        known.update((tensor.id, tensor) for tensor in self.outputs)
        self.sizes = [self.size(tensor) for tensor in self.outputs]
        self.in_place = dict(self.inplace_ports())

    def settled(self, id_: int) -> LogicalTensor:
        """What an output turned out to be."""
        tensor = LogicalTensor()
        self.library.call("dnnl_graph_compiled_partition_query_logical_tensor", self.compiled, id_, c.byref(tensor))
        return tensor

    def size(self, tensor: LogicalTensor) -> int:
        """How many bytes the library wants for it."""
        size = c.c_size_t()
        self.library.call("dnnl_graph_logical_tensor_get_mem_size", c.byref(tensor), c.byref(size))
        return size.value

    def inplace_ports(self) -> list[tuple[int, int]]:
        """Which output may lie where which input lies: id of the output, id of the input."""
        count, pairs = c.c_size_t(), c.POINTER(InplacePair)()
        self.library.call(
            "dnnl_graph_compiled_partition_get_inplace_ports", self.compiled, c.byref(count), c.byref(pairs)
        )
        return [(pairs[k].output_id, pairs[k].input_id) for k in range(count.value)]

    def run(self, held: dict[int, Memory], may_overwrite: bool) -> None:
        """Executes on the inputs held, and holds the outputs."""
        for tensor, size in zip(self.outputs, self.sizes, strict=True):
            shared = self.in_place.get(tensor.id) if may_overwrite else None
            held[tensor.id] = held[shared] if shared is not None else Memory.fresh(size)
        with ExitStack() as keep:
            arguments = [
                array
                for tensors in (self.inputs, self.outputs)
                for array in (len(tensors), self.handles([(t, held[t.id]) for t in tensors], keep))
            ]
            self.library.call(
                "dnnl_graph_compiled_partition_execute", self.compiled, self.library.stream, *arguments, stage="run"
            )
            self.library.call("dnnl_stream_wait", self.library.stream, stage="run")

    def handles(self, tensors: list[tuple[LogicalTensor, Memory]], keep: ExitStack) -> Any:
        """The tensors with their memory, as an array that C takes."""
        array = (c.c_void_p * max(len(tensors), 1))()
        for k, (tensor, memory) in enumerate(tensors):
            handle = c.c_void_p()
            self.library.call(
                "dnnl_graph_tensor_create", c.byref(handle), c.byref(tensor), self.library.engine, memory.address,
                stage="run",
            )  # fmt: skip
            keep.callback(self.library.dll.dnnl_graph_tensor_destroy, handle)
            array[k] = handle
        return array


def ports(library: Library, partition: c.c_void_p, side: str) -> list[int]:
    """The ids of the tensors that go into a partition, or come out of it."""
    count = c.c_size_t()
    library.call(f"dnnl_graph_partition_get_{side}_ports_num", partition, c.byref(count))
    tensors = (LogicalTensor * max(count.value, 1))()
    library.call(f"dnnl_graph_partition_get_{side}_ports", partition, count.value, tensors)
    return [tensor.id for tensor in tensors[: count.value]]


def pointers(tensors: list[LogicalTensor]) -> Any:
    return (c.POINTER(LogicalTensor) * max(len(tensors), 1))(*map(c.pointer, tensors))


def partitions(
    library: Library, plan: Blueprint, known: Mapping[int, LogicalTensor], keep: ExitStack
) -> list[c.c_void_p]:
    """The parts that the library makes of a graph."""
    graph = c.c_void_p()
    library.call("dnnl_graph_graph_create", c.byref(graph), api.CPU)
    keep.callback(library.dll.dnnl_graph_graph_destroy, graph)
    for op in plan.ops:
        handle = c.c_void_p()
        library.call("dnnl_graph_op_create", c.byref(handle), op.id, api.STATIC_RESHAPE, b"reshape")
        keep.callback(library.dll.dnnl_graph_op_destroy, handle)
        for attribute in op.attributes:
            set_attribute(library, handle, attribute)
        for id_ in op.inputs:
            library.call("dnnl_graph_op_add_input", handle, c.byref(known[id_]))
        for id_ in op.outputs:
            library.call("dnnl_graph_op_add_output", handle, c.byref(known[id_]))
        library.call("dnnl_graph_add_op", graph, handle)
    library.call("dnnl_graph_graph_finalize", graph)
    library.call("dnnl_graph_graph_filter", graph, api.FUSION)
    count = c.c_size_t()
    library.call("dnnl_graph_graph_get_partition_num", graph, c.byref(count))
    array = (c.c_void_p * max(count.value, 1))()
    library.call("dnnl_graph_graph_get_partitions", graph, count.value, array)
    handles = [c.c_void_p(each) for each in array[: count.value]]
    for each in handles:
        keep.callback(library.dll.dnnl_graph_partition_destroy, each)
    return handles


# ── memory ────────────────────────────────────────────────────────────────────────────────────────

_GUARD = 64
_UNWRITTEN = 0xEE


class WroteOutside(Exception):
    """The library wrote where no tensor lies."""


class Memory(NamedTuple):
    """Where a tensor begins."""

    memory: bytearray | memoryview
    offset: int
    guarded: bool

    @classmethod
    def fresh(cls, size: int) -> Memory:
        """As many bytes as the library wants, between guards, and none of them what a tensor is likely to hold."""
        return cls(bytearray([_UNWRITTEN]) * (size + 2 * _GUARD), _GUARD, True)

    @property
    def address(self) -> int:
        return c.addressof(c.c_char.from_buffer(self.memory, self.offset))

    def check(self) -> None:
        """Raises WroteOutside where a guard is not as it was."""
        if not self.guarded:
            return
        for where, guard in (("before", self.memory[:_GUARD]), ("after", self.memory[-_GUARD:])):
            if bytes(guard) != bytes([_UNWRITTEN]) * _GUARD:
                size = len(self.memory) - 2 * _GUARD
                raise WroteOutside(f"the library wrote {where} the {size} bytes of an output")


# ── the adapter ───────────────────────────────────────────────────────────────────────────────────


class OneDnn:
    """StaticReshape of whatever oneDNN is found."""

    def __init__(self) -> None:
        self.library = Library(api.found())
        self.identity = Identity("onednn", self.library.release, self.library.detail)
        named = {name for name, number in api.TYPES.items() if self.library.words("dt2str", number) != "unknown dt"}
        self.unnamed = tuple(name for name in WIDTH if name not in named)
        self.declined = tuple(name for name in ("f32", "bf16", "f16") if not self.supports(name))
        types = tuple(f"type:{name}" for name in (*self.declined, *self.unnamed))
        self.claims = Claims(("StaticReshape",), (*types, "form:attribute-types", "layout:reversed", "rank"))

    def supports(self, type_: str) -> bool:
        """Whether the library takes the plainest of reshapes of this type on this processor."""
        node = Node("StaticReshape", Operand("s64", (1,), (2,)), Operand("bool", (), (False,)))
        plan = blueprint(Graph(Declared(type_, (2,)), (node,)))
        with ExitStack() as keep:
            known = {said.id: logical_tensor(self.library, said) for said in plan.tensors.values()}
            return self.takes(partitions(self.library, plan, known, keep))

    def takes(self, handles: list[c.c_void_p]) -> bool:
        """Whether the library says that it can compile every part, and made any."""
        answers = [c.c_uint8() for _ in handles]
        for handle, answer in zip(handles, answers, strict=True):
            self.library.call("dnnl_graph_partition_is_supported", handle, c.byref(answer))
        return bool(handles) and all(answer.value for answer in answers)

    def compile(self, graph: Graph) -> Compiled:
        plan = blueprint(graph)
        if graph.src.type in self.unnamed:
            raise Unsupported(f"type:{graph.src.type}")
        with ExitStack() as passing, ExitStack() as keep:
            known = {said.id: logical_tensor(self.library, said) for said in plan.tensors.values()}
            handles = partitions(self.library, plan, known, passing)
            if not self.takes(handles):
                if graph.src.type in self.declined:
                    raise Unsupported(f"type:{graph.src.type}")
                raise Rejected("compile", "not supported, says dnnl_graph_partition_is_supported")
            handles.sort(key=lambda handle: min(ports(self.library, handle, "output"), default=0))  # along the chain
            parts = [Partition(self.library, handle, known, keep) for handle in handles]
            return Compiled(plan, parts, keep.pop_all().close)


class Compiled:
    """A graph that the library compiled, in one part or several."""

    def __init__(self, plan: Blueprint, parts: list[Partition], close: Callable[[], None]) -> None:
        self.plan, self.parts, self.close = plan, parts, close

    def __del__(self) -> None:
        self.close()

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        place = Memory(src.memory, src.offset, False)
        held = dict.fromkeys((id_ for op in self.plan.ops for id_ in op.inputs if id_ == SRC or id_ >= _EXTRA), place)
        for part in self.parts:
            part.run(held, may_overwrite)
        for memory in held.values():
            memory.check()
        dst = next(tensor for part in self.parts for tensor in part.outputs if tensor.id == self.plan.dst)
        memory, type_ = held[dst.id], api.type_of(dst)
        strides = tuple(step * WIDTH[type_] for step in dst.read("strides"))
        return Tensor(type_, dst.read("dims"), strides, memory.memory, memory.offset)
