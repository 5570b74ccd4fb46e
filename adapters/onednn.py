"""oneDNN Graph, the library that the documents describe, through its C interface.

A graph is first turned into a Blueprint of logical tensors and ops in the library's own numbers, from which scripts can
be written too, and then built. Only StaticReshape is supported: the library no longer has the other two operations.
"""

from __future__ import annotations

import ctypes as c
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from conformance import Claims, Declared, Graph, Identity, Node, Operand, Rejected, Tensor, Unsupported
from conformance.model.types import WIDTH

from . import onednn_api as api
from .onednn_api import Dims, DnnLibrary, InplacePair, LogicalTensor

# ── a graph in the library's numbers ──────────────────────────────────────────────────────────────


class TensorFields(NamedTuple):
    """The fields of a logical tensor; strides in elements, None if the library chooses them."""

    id: int
    type: int
    dims: tuple[int | None, ...] | None
    strides: tuple[int, ...] | None = None


class Attribute(NamedTuple):
    id: int
    type: str
    values: tuple[Any, ...]


class Op(NamedTuple):
    id: int
    attributes: tuple[Attribute, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Blueprint(NamedTuple):
    """A graph in the library's numbers."""

    tensors: Mapping[int, TensorFields]
    ops: tuple[Op, ...]
    src: int
    dst: int


SRC = 0
_EXTRA = 100
"""The first id of inputs and outputs that no StaticReshape has."""


def blueprint(graph: Graph) -> Blueprint:
    """Return the graph in the library's numbers; Unsupported if they cannot express it."""
    src = graph.src
    tensors = {SRC: tensor_fields(SRC, src)}
    ops = []
    for k, node in enumerate(graph.nodes):
        if node.operation != "StaticReshape":
            raise Unsupported("runtime-shape")
        own = SRC if node.takes_src else k
        inputs = [own, *(_EXTRA + 10 * k + extra for extra in range(1, node.inputs))][: node.inputs]
        outputs = [k + 1, *(_EXTRA + 10 * k + 5 + extra for extra in range(1, node.outputs))][: node.outputs]
        result = node.result or Declared(src.type, None)
        tensors |= {id_: tensor_fields(id_, src) for id_ in inputs[1:]} | {
            id_: tensor_fields(id_, result) for id_ in outputs
        }
        ops.append(Op(k, tuple(attributes(node)), tuple(inputs), tuple(outputs)))
    return Blueprint(tensors, tuple(ops), SRC, len(ops))


def tensor_fields(id_: int, declared: Declared) -> TensorFields:
    if declared.type not in api.TYPES:
        raise Unsupported(f"type:{declared.type}")
    if len(declared.dims or ()) > api.MOST_DIMS:
        raise Unsupported(f"rank:{len(declared.dims or ())}")
    strides = declared.strides
    if strides is not None:
        if min(strides, default=0) < 0:  # the header forbids them, and they crash the library
            raise Unsupported("layout:reversed")
        strides = tuple(step // WIDTH[declared.type] for step in strides)
    return TensorFields(id_, api.TYPES[declared.type], declared.dims, strides)


def attributes(node: Node) -> Iterator[Attribute]:
    """Yield the attributes of a node in the order in which they are set."""
    if node.shape is not None:
        if len(node.shape.dims) != 1 and node.shape.type != "string":
            raise Unsupported("form:shape-rank")  # the C interface takes the entries alone
        yield attribute(api.SHAPE, node.shape)
    if node.special_zero is not None:
        if (node.special_zero.type, node.special_zero.dims) == ("bool", (1,)):
            raise Unsupported("form:attribute-types")  # and a list of one bool is a bool
        yield attribute(api.SPECIAL_ZERO, node.special_zero)
    for name, operand in node.attributes:
        yield attribute(api.ATTRIBUTES.get(name, api.NOBODYS.get(operand.type, 0)), operand)


def attribute(id_: int, operand: Operand) -> Attribute:
    if operand.values is None:
        raise Unsupported("runtime-shape")
    if operand.type not in api.SETTERS:
        raise Unsupported("form:attribute-types")
    return Attribute(id_, operand.type, operand.values)


# ── building it ───────────────────────────────────────────────────────────────────────────────────


def has_unknown_dims(graph: Graph) -> bool:
    """Ask whether the library can compile a graph only once the dims of src are known."""
    return graph.src.dims is None or None in graph.src.dims


def logical_tensor(library: DnnLibrary, fields: TensorFields) -> LogicalTensor:
    tensor = LogicalTensor()
    at = c.byref(tensor)
    if fields.dims is None:
        library.call("dnnl_graph_logical_tensor_init", at, fields.id, fields.type, api.UNKNOWN_NDIMS, api.STRIDED, 0)
        return tensor
    dims = Dims(*(api.UNKNOWN_DIM if length is None else length for length in fields.dims))
    rank = len(fields.dims)
    if fields.strides is None:
        library.call("dnnl_graph_logical_tensor_init_with_dims", at, fields.id, fields.type, rank, dims, api.STRIDED, 0)
    else:
        strides = Dims(*fields.strides)
        library.call("dnnl_graph_logical_tensor_init_with_strides", at, fields.id, fields.type, rank, dims, strides, 0)
    return tensor


def set_attribute(library: DnnLibrary, op: c.c_void_p, attribute: Attribute) -> None:
    setter, kind = api.SETTERS[attribute.type]
    values: Any = attribute.values
    if attribute.type == "string":
        values = "".join(map(str, values)).encode()
    array = (kind * (len(values) + 1))(*values)  # an empty shape is no null pointer, and a string ends with a zero
    library.call(setter, op, attribute.id, array, len(values))


class Partition:
    """A part of the graph that the library has compiled."""

    def __init__(
        self, library: DnnLibrary, handle: c.c_void_p, tensors: dict[int, LogicalTensor], stack: ExitStack
    ) -> None:
        """`tensors` holds the logical tensors by id; those of the outputs are replaced by the compiled ones."""
        self.library, self.compiled = library, c.c_void_p()
        self.inputs = [tensors[id_] for id_ in ports(library, handle, "input")]
        declared = [tensors[id_] for id_ in ports(library, handle, "output")]
        library.call("dnnl_graph_compiled_partition_create", c.byref(self.compiled), handle)
        stack.callback(library.dll.dnnl_graph_compiled_partition_destroy, self.compiled)
        library.call(
            "dnnl_graph_partition_compile", handle, self.compiled,
            len(self.inputs), pointers(self.inputs), len(declared), pointers(declared), library.engine,
        )  # fmt: skip
        self.outputs, self.sizes = list[LogicalTensor](), list[int]()
        for id_ in (tensor.id for tensor in declared):
            tensors[id_], size = LogicalTensor(), c.c_size_t()
            at = c.byref(tensors[id_])
            library.call("dnnl_graph_compiled_partition_query_logical_tensor", self.compiled, id_, at)
            library.call("dnnl_graph_logical_tensor_get_mem_size", at, c.byref(size))
            self.outputs.append(tensors[id_])
            self.sizes.append(size.value)
        self.in_place = dict(self.inplace_ports())

    def inplace_ports(self) -> list[tuple[int, int]]:
        """Return the pairs (output id, input id) that may share memory."""
        count, pairs = c.c_size_t(), c.POINTER(InplacePair)()
        self.library.call(
            "dnnl_graph_compiled_partition_get_inplace_ports", self.compiled, c.byref(count), c.byref(pairs)
        )
        return [(pairs[k].output_id, pairs[k].input_id) for k in range(count.value)]

    def run(self, memories: dict[int, Memory], may_overwrite: bool) -> None:
        """Execute on the inputs in `memories`, and add the outputs to it."""
        for tensor, size in zip(self.outputs, self.sizes, strict=True):
            shared = self.in_place.get(tensor.id) if may_overwrite else None
            memories[tensor.id] = memories[shared] if shared is not None else Memory.allocate(size)
        with ExitStack() as stack:
            arguments = [
                array
                for tensors in (self.inputs, self.outputs)
                for array in (len(tensors), self.handles([(t, memories[t.id]) for t in tensors], stack))
            ]
            self.library.call(
                "dnnl_graph_compiled_partition_execute", self.compiled, self.library.stream, *arguments, stage="run"
            )
            self.library.call("dnnl_stream_wait", self.library.stream, stage="run")

    def handles(self, tensors: list[tuple[LogicalTensor, Memory]], stack: ExitStack) -> Any:
        """Return the tensors with their memory, as a C array."""
        array = (c.c_void_p * max(len(tensors), 1))()
        for k, (tensor, memory) in enumerate(tensors):
            handle = c.c_void_p()
            self.library.call(
                "dnnl_graph_tensor_create", c.byref(handle), c.byref(tensor), self.library.engine, memory.address,
                stage="run",
            )  # fmt: skip
            stack.callback(self.library.dll.dnnl_graph_tensor_destroy, handle)
            array[k] = handle
        return array


def ports(library: DnnLibrary, partition: c.c_void_p, side: str) -> list[int]:
    """Return the ids of a partition's inputs or outputs."""
    count = c.c_size_t()
    library.call(f"dnnl_graph_partition_get_{side}_ports_num", partition, c.byref(count))
    tensors = (LogicalTensor * max(count.value, 1))()
    library.call(f"dnnl_graph_partition_get_{side}_ports", partition, count.value, tensors)
    return [tensor.id for tensor in tensors[: count.value]]


def pointers(tensors: list[LogicalTensor]) -> Any:
    return (c.POINTER(LogicalTensor) * max(len(tensors), 1))(*map(c.pointer, tensors))


def partitions(
    library: DnnLibrary, plan: Blueprint, tensors: Mapping[int, LogicalTensor], stack: ExitStack
) -> list[c.c_void_p]:
    """Return the parts into which the library divides a graph."""
    graph = c.c_void_p()
    library.call("dnnl_graph_graph_create", c.byref(graph), api.CPU)
    stack.callback(library.dll.dnnl_graph_graph_destroy, graph)
    for op in plan.ops:
        handle = c.c_void_p()
        library.call("dnnl_graph_op_create", c.byref(handle), op.id, api.STATIC_RESHAPE, b"reshape")
        stack.callback(library.dll.dnnl_graph_op_destroy, handle)
        for attribute in op.attributes:
            set_attribute(library, handle, attribute)
        for id_ in op.inputs:
            library.call("dnnl_graph_op_add_input", handle, c.byref(tensors[id_]))
        for id_ in op.outputs:
            library.call("dnnl_graph_op_add_output", handle, c.byref(tensors[id_]))
        library.call("dnnl_graph_add_op", graph, handle)
    library.call("dnnl_graph_graph_finalize", graph)
    library.call("dnnl_graph_graph_filter", graph, api.FUSION)
    count = c.c_size_t()
    library.call("dnnl_graph_graph_get_partition_num", graph, c.byref(count))
    array = (c.c_void_p * max(count.value, 1))()
    library.call("dnnl_graph_graph_get_partitions", graph, count.value, array)
    handles = [c.c_void_p(partition) for partition in array[: count.value]]
    for handle in handles:
        stack.callback(library.dll.dnnl_graph_partition_destroy, handle)
    return handles


# ── memory ────────────────────────────────────────────────────────────────────────────────────────

_GUARD = 64
_UNWRITTEN = 0xEE


class Memory(NamedTuple):
    """Memory of a tensor, and the offset of its first element."""

    memory: bytearray | memoryview
    offset: int
    guarded: bool

    @classmethod
    def allocate(cls, size: int) -> Memory:
        """Allocate memory between guards, filled with a byte that tensors seldom hold."""
        return cls(bytearray([_UNWRITTEN]) * (size + 2 * _GUARD), _GUARD, True)

    @property
    def address(self) -> int:
        return c.addressof(c.c_char.from_buffer(self.memory, self.offset))


def end_process_if_overrun(memories: Iterable[Memory]) -> None:
    """End this process if the library wrote outside a tensor: that is its crash, and no later answer counts."""
    for bytes_, _, guarded in memories:
        for where, guard in (("before", bytes_[:_GUARD]), ("after", bytes_[-_GUARD:])) if guarded else ():
            if bytes(guard) != bytes([_UNWRITTEN]) * _GUARD:
                size = len(bytes_) - 2 * _GUARD
                print(f"the library wrote {where} the {size} bytes of an output", file=sys.stderr, flush=True)
                os.abort()


# ── the adapter ───────────────────────────────────────────────────────────────────────────────────


class OneDnn:
    """StaticReshape of oneDNN Graph, in the library that ONEDNN_LIBRARY names or that is installed."""

    def __init__(self) -> None:
        self.library = DnnLibrary(api.find_library())
        self.identity = Identity("onednn", self.library.release, self.library.detail)
        named = {name for name, number in api.TYPES.items() if self.library.words("dt2str", number) != "unknown dt"}
        self.unnamed = tuple(name for name in WIDTH if name not in named)
        self.unsupported = tuple(name for name in ("f32", "bf16", "f16") if not self.supports(name))
        types = tuple(f"type:{name}" for name in (*self.unsupported, *self.unnamed))
        forms = ("form:attribute-types", "form:shape-rank")
        self.claims = Claims(("StaticReshape",), (*types, *forms, "layout:reversed", "rank"))

    def supports(self, type_: str) -> bool:
        """Ask whether the library takes the simplest reshape of this type on this processor."""
        node = Node("StaticReshape", Operand("s64", (1,), (2,)), Operand("bool", (), (False,)))
        plan = blueprint(Graph(Declared(type_, (2,)), (node,)))
        with ExitStack() as stack:
            tensors = {fields.id: logical_tensor(self.library, fields) for fields in plan.tensors.values()}
            return self.takes(partitions(self.library, plan, tensors, stack))

    def takes(self, handles: list[c.c_void_p]) -> bool:
        """Ask whether the library can compile each of the parts; it must have made one at least."""
        answers = [c.c_uint8() for _ in handles]
        for handle, answer in zip(handles, answers, strict=True):
            self.library.call("dnnl_graph_partition_is_supported", handle, c.byref(answer))
        return bool(handles) and all(answer.value for answer in answers)

    def compile(self, graph: Graph) -> OneDnnProgram | OneDnnGraph:
        plan = blueprint(graph)
        if graph.src.type in self.unnamed:
            raise Unsupported(f"type:{graph.src.type}")
        with ExitStack() as temporary, ExitStack() as stack:
            tensors = {fields.id: logical_tensor(self.library, fields) for fields in plan.tensors.values()}
            handles = partitions(self.library, plan, tensors, temporary)
            if not self.takes(handles):
                if graph.src.type in self.unsupported:
                    raise Unsupported(f"type:{graph.src.type}")
                raise Rejected("compile", "not supported, says dnnl_graph_partition_is_supported")
            handles.sort(key=lambda handle: min(ports(self.library, handle, "output"), default=0))  # along the chain
            if has_unknown_dims(graph):
                return OneDnnGraph(self.library, plan, handles, tensors, temporary.pop_all().close)
            parts = [Partition(self.library, handle, tensors, stack) for handle in handles]
            return OneDnnProgram(plan, parts, stack.pop_all().close)


class OneDnnGraph:
    """A graph with unknown dims of src. The library compiles its parts only when they are known: for each run."""

    def __init__(
        self, library: DnnLibrary, plan: Blueprint, handles: list[c.c_void_p], tensors: dict[int, LogicalTensor],
        close: Callable[[], None],
    ) -> None:  # fmt: skip
        self.library, self.plan, self.handles, self.tensors, self.close = library, plan, handles, tensors, close

    def __del__(self) -> None:
        self.close()

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        fields = tensor_fields(SRC, Declared(src.type, src.dims, src.strides))
        tensors = {**self.tensors, SRC: logical_tensor(self.library, fields)}
        with ExitStack() as stack:
            parts = [Partition(self.library, handle, tensors, stack) for handle in self.handles]
            return OneDnnProgram(self.plan, parts, stack.pop_all().close).run(src, shapes, may_overwrite)


class OneDnnProgram:
    """A graph that the library has compiled, in one or several parts."""

    def __init__(self, plan: Blueprint, parts: list[Partition], close: Callable[[], None]) -> None:
        self.plan, self.parts, self.close = plan, parts, close

    def __del__(self) -> None:
        self.close()

    def run(self, src: Tensor, shapes: tuple[Tensor, ...], may_overwrite: bool) -> Tensor:
        src_memory = Memory(src.memory, src.offset, False)
        memories = dict.fromkeys(
            (id_ for op in self.plan.ops for id_ in op.inputs if id_ == SRC or id_ >= _EXTRA), src_memory
        )
        is_fork = [op.inputs[:1] for op in self.plan.ops].count((SRC,)) > 1
        for part in self.parts:  # in a fork, only the last part may take the memory of src
            part.run(memories, may_overwrite and (not is_fork or part is self.parts[-1]))
        end_process_if_overrun(memories.values())
        dst = next(tensor for part in self.parts for tensor in part.outputs if tensor.id == self.plan.dst)
        memory, type_ = memories[dst.id], api.type_of(dst)
        strides = tuple(step * WIDTH[type_] for step in dst.read("strides"))
        return Tensor(type_, dst.read("dims"), strides, memory.memory, memory.offset)
