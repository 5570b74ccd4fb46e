"""oneDNN Graph, the library that the documents were written for, through its C API.

A graph is first put down in the library's own numbers, as a Blueprint of logical tensors and ops; only then is it built,
so that the calls it takes can also be listed. Only StaticReshape: the library no longer has the other two.
"""

from __future__ import annotations

import ctypes as c
import importlib.metadata
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from conformance.adapter import CannotStart
from conformance.model import Claims, Declared, Graph, Identity, Node, Operand, Rejected, Tensor, Unsupported
from conformance.types import WIDTH

# ── the library's numbers ─────────────────────────────────────────────────────────────────────────

FILES = ("libdnnl.so.3", "libdnnl.3.dylib", "dnnl.dll")
OLDEST = (3, 6)
MOST_DIMS = 12
UNKNOWN_DIM = -(1 << 63)
UNKNOWN_NDIMS = -1
STRIDED = 2
CPU = 1
IN_ORDER = 1
FUSION = 1
STATIC_RESHAPE = 72
TYPES = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f64": 7, "bool": 8, "s64": 16}
SHAPE, SPECIAL_ZERO = 0x48, 0x64
ATTRIBUTES = {"axis": 0x30, "groups": 0x32, "axes": 0x40, "order": 0x44, "keep_dims": 0x61, "mode": 0x84}
"""Some attributes of other operations."""
NOBODYS = {"f32": 0x1F, "s64": 0x3F, "bool": 0x7F, "string": 0x9F}
"""A number that no attribute has, for a name that the library does not know."""
SETTERS: Mapping[str, tuple[str, Any]] = {
    "s64": ("dnnl_graph_op_set_attr_s64", c.c_int64),
    "f32": ("dnnl_graph_op_set_attr_f32", c.c_float),
    "bool": ("dnnl_graph_op_set_attr_bool", c.c_uint8),
    "string": ("dnnl_graph_op_set_attr_str", c.c_char),
}

Dims = c.c_int64 * MOST_DIMS


class LogicalTensor(c.Structure):
    """dnnl_graph_logical_tensor_t."""

    _fields_ = (
        ("id", c.c_size_t),
        ("ndims", c.c_int),
        ("dims", Dims),
        ("data_type", c.c_int),
        ("property", c.c_int),
        ("layout_type", c.c_int),
        ("strides", Dims),
    )

    def read(self, field: str) -> tuple[int, ...]:
        """As C reads it: where the library reports more dims than there is room for, what lies behind them, or 0."""
        start, end = getattr(LogicalTensor, field).offset, c.sizeof(LogicalTensor)
        places = range(start, start + 8 * self.ndims, 8)
        return tuple(c.c_int64.from_buffer(self, at).value if at + 8 <= end else 0 for at in places)


class InplacePair(c.Structure):
    """dnnl_graph_inplace_pair_t."""

    _fields_ = (("input_id", c.c_size_t), ("output_id", c.c_size_t))


class Version(c.Structure):
    """dnnl_version_t."""

    _fields_ = (
        ("major", c.c_int),
        ("minor", c.c_int),
        ("patch", c.c_int),
        ("hash", c.c_char_p),
        ("cpu_runtime", c.c_uint),
        ("gpu_runtime", c.c_uint),
    )


_H, _Z, _I = c.c_void_p, c.c_size_t, c.c_int
_TENSOR, _TENSORS, _LIST = c.POINTER(LogicalTensor), c.POINTER(c.POINTER(LogicalTensor)), c.POINTER(c.c_void_p)
PROTOTYPES: Mapping[str, tuple[Any, ...]] = {
    "dnnl_engine_create": (_LIST, _I, _Z),
    "dnnl_stream_create": (_LIST, _H, c.c_uint),
    "dnnl_stream_wait": (_H,),
    "dnnl_graph_logical_tensor_init": (_TENSOR, _Z, _I, c.c_int32, _I, _I),
    "dnnl_graph_logical_tensor_init_with_dims": (_TENSOR, _Z, _I, c.c_int32, Dims, _I, _I),
    "dnnl_graph_logical_tensor_init_with_strides": (_TENSOR, _Z, _I, c.c_int32, Dims, Dims, _I),
    "dnnl_graph_logical_tensor_get_mem_size": (_TENSOR, c.POINTER(_Z)),
    "dnnl_graph_op_create": (_LIST, _Z, _I, c.c_char_p),
    "dnnl_graph_op_destroy": (_H,),
    "dnnl_graph_op_add_input": (_H, _TENSOR),
    "dnnl_graph_op_add_output": (_H, _TENSOR),
    **{setter: (_H, _I, _H, _Z) for setter, _ in SETTERS.values()},
    "dnnl_graph_graph_create": (_LIST, _I),
    "dnnl_graph_graph_destroy": (_H,),
    "dnnl_graph_add_op": (_H, _H),
    "dnnl_graph_graph_finalize": (_H,),
    "dnnl_graph_graph_filter": (_H, _I),
    "dnnl_graph_graph_get_partition_num": (_H, c.POINTER(_Z)),
    "dnnl_graph_graph_get_partitions": (_H, _Z, _LIST),
    "dnnl_graph_partition_destroy": (_H,),
    "dnnl_graph_partition_is_supported": (_H, c.POINTER(c.c_uint8)),
    "dnnl_graph_partition_get_input_ports_num": (_H, c.POINTER(_Z)),
    "dnnl_graph_partition_get_input_ports": (_H, _Z, _TENSOR),
    "dnnl_graph_partition_get_output_ports_num": (_H, c.POINTER(_Z)),
    "dnnl_graph_partition_get_output_ports": (_H, _Z, _TENSOR),
    "dnnl_graph_partition_compile": (_H, _H, _Z, _TENSORS, _Z, _TENSORS, _H),
    "dnnl_graph_compiled_partition_create": (_LIST, _H),
    "dnnl_graph_compiled_partition_destroy": (_H,),
    "dnnl_graph_compiled_partition_query_logical_tensor": (_H, _Z, _TENSOR),
    "dnnl_graph_compiled_partition_get_inplace_ports": (_H, c.POINTER(_Z), c.POINTER(c.POINTER(InplacePair))),
    "dnnl_graph_compiled_partition_execute": (_H, _H, _Z, _LIST, _Z, _LIST),
    "dnnl_graph_tensor_create": (_LIST, _TENSOR, _H, _H),
    "dnnl_graph_tensor_destroy": (_H,),
}
"""Every function that returns a status, and what it takes."""

# ── the loaded library ────────────────────────────────────────────────────────────────────────────


class Library:
    """The C API; whatever status is not success is the library's refusal."""

    def __init__(self, path: str) -> None:
        self.dll = loaded(path)
        for name in ("dnnl_status2str", "dnnl_dt2str", "dnnl_cpu_isa2str", "dnnl_runtime2str"):
            getattr(self.dll, name).restype = c.c_char_p
        self.dll.dnnl_version.restype = c.POINTER(Version)
        self.version: Version = self.dll.dnnl_version().contents
        if (self.version.major, self.version.minor) < OLDEST or self.version.major > 3:
            raise CannotStart(f"onednn: version {self.release} is loaded; 3.6 or a later 3 is needed: {INSTALL}")
        self.functions = {name: self.function(name) for name in PROTOTYPES}
        self.engine, self.stream = c.c_void_p(), c.c_void_p()
        try:
            self.call("dnnl_engine_create", c.byref(self.engine), CPU, 0)
            self.call("dnnl_stream_create", c.byref(self.stream), self.engine, IN_ORDER)
        except Rejected as rejected:
            raise CannotStart(f"onednn: no CPU engine in this build: {rejected.message}; {INSTALL}") from None

    def function(self, name: str) -> Any:
        try:
            function = getattr(self.dll, name)
        except AttributeError:
            raise CannotStart(f"onednn: the library loaded has no {name}: built without its graph; {INSTALL}") from None
        function.argtypes, function.restype = PROTOTYPES[name], c.c_int
        return function

    def call(self, name: str, *arguments: Any, stage: str = "compile") -> None:
        status = self.functions[name](*arguments)
        if status:
            raise Rejected(stage, f"{self.words('status2str', status)} at {name}")

    def words(self, table: str, number: int) -> str:
        """What the library calls one of its numbers."""
        text: bytes = getattr(self.dll, f"dnnl_{table}")(number)
        return text.decode()

    @property
    def release(self) -> str:
        return f"{self.version.major}.{self.version.minor}.{self.version.patch}"

    @property
    def detail(self) -> tuple[tuple[str, str], ...]:
        isa = self.words("cpu_isa2str", self.dll.dnnl_get_effective_cpu_isa())
        return (
            ("commit", self.version.hash.decode()),
            ("instruction set", isa.removeprefix("cpu_isa_")),
            ("runtime", self.words("runtime2str", self.version.cpu_runtime)),
            ("OMP_NUM_THREADS", os.environ["OMP_NUM_THREADS"]),
        )


INSTALL = "set ONEDNN_LIBRARY to a libdnnl.so.3, or pip install onednn"


def found() -> str:
    """The library's file: what ONEDNN_LIBRARY names, else that of the wheel, else whatever the loader knows."""
    given = os.environ.get("ONEDNN_LIBRARY")
    if given:
        if not Path(given).is_file():
            raise CannotStart(f"onednn: ONEDNN_LIBRARY names {given}, which is no file: {INSTALL}")
        return given
    try:
        files = importlib.metadata.files("onednn") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return next((str(Path(str(file.locate())).resolve()) for file in files if file.name in FILES), FILES[0])


def loaded(path: str) -> c.CDLL:
    """The library, with the settings that it reads when it is loaded."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # rows are small, and v3.6.2 is slow with more
    opencl = Path(path).with_name("libintelocl.so")
    if opencl.is_file():
        os.environ.setdefault("OCL_ICD_FILENAMES", str(opencl))
    try:
        return opened(Path(path), c.DEFAULT_MODE)
    except OSError as error:
        raise CannotStart(f"onednn: cannot be loaded: {error}; {INSTALL}") from None


def opened(path: Path, mode: int) -> c.CDLL:
    """A library, after those that lie beside it and that it needs: a wheel's folder is on no search path."""
    tried = {path.name}
    while True:
        try:
            return c.CDLL(str(path), mode)
        except OSError as error:
            missing = re.match(r"(\S+?): cannot open shared object file", str(error))
            if missing is None or missing[1] in tried or not path.with_name(missing[1]).is_file():
                raise
            tried.add(missing[1])
            opened(path.with_name(missing[1]), c.RTLD_GLOBAL)


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
            raise Unsupported("given:runtime")
        inputs = [k, *(_EXTRA + 10 * k + extra for extra in range(1, node.inputs))][: node.inputs]
        outputs = [k + 1, *(_EXTRA + 10 * k + 5 + extra for extra in range(1, node.outputs))][: node.outputs]
        result = node.result or Declared(src.type, None)
        tensors |= {id_: said(id_, src) for id_ in inputs[1:]} | {id_: said(id_, result) for id_ in outputs}
        ops.append(Op(k, tuple(attributes(node)), tuple(inputs), tuple(outputs)))
    return Blueprint(tensors, tuple(ops), SRC, len(ops))


def said(id_: int, declared: Declared) -> Said:
    """A tensor as declared."""
    if declared.type not in TYPES:
        raise Unsupported(f"type:{declared.type}")
    if len(declared.dims or ()) > MOST_DIMS:
        raise Unsupported(f"rank:{len(declared.dims or ())}")
    strides = declared.strides
    if strides is not None:
        if min(strides, default=0) < 0:  # the library's header rules them out, and they end the process
            raise Unsupported("layout:reversed")
        strides = tuple(step // WIDTH[declared.type] for step in strides)
    return Said(id_, TYPES[declared.type], declared.dims, strides)


def attributes(node: Node) -> Iterator[Attribute]:
    """The attributes that are set, in the order in which they are set; one that is missing is not."""
    if node.shape is not None:
        yield attribute(SHAPE, node.shape)
    if node.special_zero is not None:
        yield attribute(SPECIAL_ZERO, node.special_zero)
    for name, operand in node.attributes:
        yield attribute(ATTRIBUTES.get(name, NOBODYS.get(operand.type, 0)), operand)


def attribute(id_: int, operand: Operand) -> Attribute:
    if operand.values is None:
        raise Unsupported("given:runtime")
    if operand.type not in SETTERS:
        raise Unsupported("form:attributes")
    return Attribute(id_, operand.type, operand.values, scalar=operand.dims == ())


# ── building it ───────────────────────────────────────────────────────────────────────────────────


def logical_tensor(library: Library, said: Said) -> LogicalTensor:
    tensor = LogicalTensor()
    at = c.byref(tensor)
    if said.dims is None:
        library.call("dnnl_graph_logical_tensor_init", at, said.id, said.type, UNKNOWN_NDIMS, STRIDED, 0)
        return tensor
    dims = Dims(*(UNKNOWN_DIM if length is None else length for length in said.dims))
    rank = len(said.dims)
    if said.strides is None:
        library.call("dnnl_graph_logical_tensor_init_with_dims", at, said.id, said.type, rank, dims, STRIDED, 0)
    else:
        strides = Dims(*said.strides)
        library.call("dnnl_graph_logical_tensor_init_with_strides", at, said.id, said.type, rank, dims, strides, 0)
    return tensor


def set_attribute(library: Library, op: c.c_void_p, attribute: Attribute) -> None:
    setter, kind = SETTERS[attribute.type]
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


def partitions(library: Library, plan: Blueprint, known: Mapping[int, LogicalTensor], keep: ExitStack) -> list[c.c_void_p]:
    """The parts that the library makes of a graph."""
    graph = c.c_void_p()
    library.call("dnnl_graph_graph_create", c.byref(graph), CPU)
    keep.callback(library.dll.dnnl_graph_graph_destroy, graph)
    for op in plan.ops:
        handle = c.c_void_p()
        library.call("dnnl_graph_op_create", c.byref(handle), op.id, STATIC_RESHAPE, b"reshape")
        keep.callback(library.dll.dnnl_graph_op_destroy, handle)
        for attribute in op.attributes:
            set_attribute(library, handle, attribute)
        for id_ in op.inputs:
            library.call("dnnl_graph_op_add_input", handle, c.byref(known[id_]))
        for id_ in op.outputs:
            library.call("dnnl_graph_op_add_output", handle, c.byref(known[id_]))
        library.call("dnnl_graph_add_op", graph, handle)
    library.call("dnnl_graph_graph_finalize", graph)
    library.call("dnnl_graph_graph_filter", graph, FUSION)
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
        guard = bytes([_UNWRITTEN]) * _GUARD
        for where, found in (("before", self.memory[:_GUARD]), ("after", self.memory[-_GUARD:])):
            if self.guarded and found != guard:
                raise WroteOutside(f"the library wrote {where} the memory of an output of {len(self.memory) - 2 * _GUARD} bytes")


# ── the adapter ───────────────────────────────────────────────────────────────────────────────────


class OneDnn:
    """StaticReshape of whatever oneDNN is found."""

    def __init__(self) -> None:
        self.library = Library(found())
        self.identity = Identity("onednn", self.library.release, self.library.detail)
        named = {name for name, number in TYPES.items() if self.library.words("dt2str", number) != "unknown dt"}
        self.unnamed = tuple(name for name in WIDTH if name not in named)
        self.declined = tuple(name for name in ("f32", "bf16", "f16") if not self.supports(name))
        types = tuple(f"type:{name}" for name in (*self.declined, *self.unnamed))
        self.claims = Claims(("StaticReshape",), (*types, "layout:reversed", "rank"))

    def supports(self, type_: str) -> bool:
        """Whether the library takes the plainest of reshapes of this type on this processor."""
        node = Node("StaticReshape", Operand("s64", (1,), (2,)), Operand("bool", (), (False,)))
        plan = blueprint(Graph(Declared(type_, (2,)), (node,)))
        with ExitStack() as keep:
            known = {said.id: logical_tensor(self.library, said) for said in plan.tensors.values()}
            return all(self.takes(handle) for handle in partitions(self.library, plan, known, keep))

    def takes(self, partition: c.c_void_p) -> bool:
        answer = c.c_uint8()
        self.library.call("dnnl_graph_partition_is_supported", partition, c.byref(answer))
        return bool(answer.value)

    def compile(self, graph: Graph) -> Compiled:
        plan = blueprint(graph)
        if graph.src.type in self.unnamed:
            raise Unsupported(f"type:{graph.src.type}")
        with ExitStack() as passing, ExitStack() as keep:
            known = {said.id: logical_tensor(self.library, said) for said in plan.tensors.values()}
            handles = partitions(self.library, plan, known, passing)
            if not all(map(self.takes, handles)):
                if graph.src.type in self.declined:
                    raise Unsupported(f"type:{graph.src.type}")
                raise Rejected("compile", "not supported, says dnnl_graph_partition_is_supported")
            parts = [Partition(self.library, handle, known, keep) for handle in self.in_order(plan, handles)]
            return Compiled(plan, graph.src.type, parts, keep.pop_all().close)

    def in_order(self, plan: Blueprint, handles: list[c.c_void_p]) -> list[c.c_void_p]:
        """The parts, each after those whose outputs it takes: ids grow along the chain."""
        return sorted(handles, key=lambda handle: min(ports(self.library, handle, "output"), default=0))


class Compiled:
    """A graph that the library compiled, in one part or several."""

    def __init__(self, plan: Blueprint, type_: str, parts: list[Partition], close: Callable[[], None]) -> None:
        self.plan, self.type, self.parts, self.close = plan, type_, parts, close

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
        memory = held[dst.id]
        type_ = next(name for name, number in TYPES.items() if number == dst.data_type)
        strides = tuple(step * WIDTH[type_] for step in dst.read("strides"))
        return Tensor(type_, dst.read("dims"), strides, memory.memory, memory.offset)

