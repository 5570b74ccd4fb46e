"""StaticReshape of oneDNN Graph as a script over ctypes."""

from __future__ import annotations

from conformance.model import Declared, Unsupported
from conformance.model.types import WIDTH
from conformance.plan.memory import strides_of, volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from ..onednn import Blueprint, Op, TensorFields, blueprint, has_unknown_dims
from .plain import check_steps, spell
from .script import ScriptParts, find_memory_layout, source_of, write_memory

LOAD = source_of("onednn_api", "FILES", "INSTALL", "find_library", "open_library", "load_library")
API = '''
dnnl = load_library(find_library())
dnnl.dnnl_status2str.restype = dnnl.dnnl_cpu_isa2str.restype = c.c_char_p
UNKNOWN = -(1 << 63)


class LogicalTensor(c.Structure):
    _fields_ = [("id", c.c_size_t), ("ndims", c.c_int), ("dims", c.c_int64 * 12), ("data_type", c.c_int),
                ("property", c.c_int), ("layout_type", c.c_int), ("strides", c.c_int64 * 12)]


class Rejected(Exception):
    """A status that is not success."""


def call(name, *arguments):
    arguments = [c.c_size_t(each) if isinstance(each, int) else each for each in arguments]
    status = getattr(dnnl, f"dnnl_{name}")(*arguments)
    if status:
        raise Rejected(f"{dnnl.dnnl_status2str(status).decode()} at dnnl_{name}")


def new(name, *arguments):
    """What the library makes, by its handle."""
    handle = c.c_void_p()
    call(name, c.byref(handle), *arguments)
    return handle


def tensor(id_, type_, dims=None, strides=None):
    """A logical tensor; dims None: not even the rank is told."""
    made = LogicalTensor()
    if dims is None:
        call("graph_logical_tensor_init", c.byref(made), id_, type_, c.c_int32(-1), 2, 0)
    elif strides is None:
        array = (c.c_int64 * 12)(*dims)
        call("graph_logical_tensor_init_with_dims", c.byref(made), id_, type_, c.c_int32(len(dims)), array, 2, 0)
    else:
        arrays = (c.c_int64 * 12)(*dims), (c.c_int64 * 12)(*strides)
        call("graph_logical_tensor_init_with_strides", c.byref(made), id_, type_, c.c_int32(len(dims)), *arrays, 0)
    return made


def op(id_, known, inputs, outputs, *attributes):
    made = new("graph_op_create", id_, 72, b"reshape")  # 72: static_reshape
    for setter, number, values, length in attributes:
        call(f"graph_op_set_attr_{setter}", made, number, values, length)
    for each in inputs:
        call("graph_op_add_input", made, c.byref(known[each]))
    for each in outputs:
        call("graph_op_add_output", made, c.byref(known[each]))
    return made


def ports(partition, side):
    count = c.c_size_t()
    call(f"graph_partition_get_{side}_ports_num", partition, c.byref(count))
    tensors = (LogicalTensor * max(count.value, 1))()
    call(f"graph_partition_get_{side}_ports", partition, count, tensors)
    return [tensors[k].id for k in range(count.value)]


def pointers(tensors):
    return (c.POINTER(LogicalTensor) * max(len(tensors), 1))(*map(c.pointer, tensors))


engine = new("engine_create", 1, 0)
stream = new("stream_create", engine, 1)
print("instruction set", dnnl.dnnl_cpu_isa2str(dnnl.dnnl_get_effective_cpu_isa()).decode())


def compiled(known, *ops):
    """The parts that the library makes of a graph, compiled in their order."""
    graph = new("graph_graph_create", 1)
    for each in ops:
        call("graph_add_op", graph, each)
    call("graph_graph_finalize", graph)
    call("graph_graph_filter", graph, 1)
    count, supported = c.c_size_t(), c.c_uint8()
    call("graph_graph_get_partition_num", graph, c.byref(count))
    partitions = (c.c_void_p * max(count.value, 1))()
    call("graph_graph_get_partitions", graph, count, partitions)
    parts = []
    handles = map(c.c_void_p, partitions[: count.value])
    for each in sorted(handles, key=lambda handle: min(ports(handle, "output"), default=0)):
        call("graph_partition_is_supported", each, c.byref(supported))
        if not supported:
            raise Rejected("not supported, says dnnl_graph_partition_is_supported")
        inputs, outputs = ([known[id_] for id_ in ports(each, side)] for side in ("input", "output"))
        part = new("graph_compiled_partition_create", each)
        given = (len(inputs), pointers(inputs), len(outputs), pointers(outputs))
        call("graph_partition_compile", each, part, *given, engine)
        for fields in outputs:
            call("graph_compiled_partition_query_logical_tensor", part, fields.id, c.byref(known[fields.id]))
        parts.append((part, inputs, [known[fields.id] for fields in outputs]))
    return parts


def executed(parts, memory, dst, *src):
    """Runs the parts; `src`: the ids of the tensors that lie in `memory`. The answer: its logical tensor and bytes."""
    held = dict.fromkeys(src, memory)
    for part, inputs, outputs in parts:
        for each in outputs:
            size = c.c_size_t()
            call("graph_logical_tensor_get_mem_size", c.byref(each), c.byref(size))
            held[each.id] = (c.c_char * max(size.value, 1))()
        lists = []
        for some in (inputs, outputs):
            made = [new("graph_tensor_create", c.byref(each), engine, held[each.id]) for each in some]
            lists += [len(made), (c.c_void_p * max(len(made), 1))(*[each.value for each in made])]
        call("graph_compiled_partition_execute", part, stream, *lists)
        call("stream_wait", stream)
    return next(each for _, _, outputs in parts for each in outputs if each.id == dst), held[dst]
'''
LOOK = """
TYPES = {1: ("f16", 2), 2: ("bf16", 2), 3: ("f32", 4), 4: ("s32", 4), 5: ("s8", 1), 6: ("u8", 1), 7: ("f64", 8)}


def look(answer):
    fields, memory = answer
    type_, width = TYPES[fields.data_type]
    dims = list((c.c_int64 * fields.ndims).from_buffer(fields, LogicalTensor.dims.offset))  # past 12 as C reads
    size = 0 if 0 in dims else prod(dims) * width
    strides = list(fields.strides[: fields.ndims])
    if not size or fields.ndims > 12 or strides == [prod(dims[axis + 1 :]) for axis in range(fields.ndims)]:
        return type_, dims, memory.raw[:size]
    places = (sum(map(mul, index, strides)) * width for index in product(*map(range, dims)))
    return type_, dims, b"".join(memory.raw[place : place + width] for place in places)
"""
IMPORTS = [
    "import ctypes as c", "import importlib.metadata", "import os", "import re", "from functools import cache",
    "from itertools import product", "from math import prod", "from operator import mul", "from pathlib import Path",
]  # fmt: skip
SETTERS = {"s64": "c_int64", "f32": "c_float", "bool": "c_uint8"}


def write_script(row: Row, backend: str) -> ScriptParts:
    graphs: dict[str, str] = {}
    steps, functions = [], []
    for step in check_steps(row):
        if step.large:
            raise Unsupported("large")
        graph, source = step.graph, step.src_spec
        if has_unknown_dims(graph):
            strides = strides_of(source.dims, source.layout, WIDTH[source.type])
            graph = graph._replace(src=Declared(source.type, source.dims, strides))
        plan = blueprint(graph)
        key = repr(plan)
        if key not in graphs:
            graphs[key] = f"graph_{len(graphs) + 1}"
            functions.append(write_graph(plan, graphs[key]))
        steps.append(write_step(step, plan, graphs[key]))
    return ScriptParts(
        IMPORTS, "Rejected", "", steps, "".join(functions), f"CannotStart = SystemExit\n{LOAD}{API}{LOOK}"
    )


def write_graph(plan: Blueprint, name: str) -> str:
    lines = ["known = {"]
    lines += [f"    {id_}: {write_tensor(fields)}," for id_, fields in plan.tensors.items()]
    lines += ["}"]
    lines += [f"op_{op.id} = {write_op(op)}" for op in plan.ops]
    lines.append(f"return compiled(known, {', '.join(f'op_{op.id}' for op in plan.ops)})")
    return f"\n@cache\ndef {name}():\n" + "".join(f"    {line}\n" for line in lines)


def write_tensor(fields: TensorFields) -> str:
    if fields.dims is None:
        return f"tensor({fields.id}, {fields.type})"
    dims = "[" + ", ".join("UNKNOWN" if length is None else spell(length) for length in fields.dims) + "]"
    strides = "" if fields.strides is None else f", {spell(list(fields.strides))}"
    return f"tensor({fields.id}, {fields.type}, {dims}{strides})"


def write_op(op: Op) -> str:
    arguments = [str(op.id), "known", str(list(op.inputs)), str(list(op.outputs))]
    for attribute in op.attributes:
        if attribute.type == "string":
            text = "".join(map(str, attribute.values)).encode()  # the library also takes the number of its bytes
            arguments.append(f'("str", {attribute.id:#x}, {spell(text)}, {len(text)})')
            continue
        values = [int(value) if attribute.type == "bool" else value for value in attribute.values]
        array = f"(c.{SETTERS[attribute.type]} * {max(len(values), 1)})({', '.join(map(spell, values))})"
        arguments.append(f'("{attribute.type}", {attribute.id:#x}, {array}, {len(values)})')
    return f"op({', '.join(arguments)})"


def write_step(step: RowStep, plan: Blueprint, name: str) -> str:
    at = find_memory_layout(step.src_spec)
    place = "c.c_void_p(words.buffer_info()[0])"
    if at:
        place = f"c.c_void_p(memory.buffer_info()[0] + {at.offset} * words.itemsize)"
    elif not volume_of(step.src_spec.dims):
        place = "bytes(64)"  # no elements, and yet no null pointer
    made = {id_ for op in plan.ops for id_ in op.outputs}
    sources = dict.fromkeys(id_ for op in plan.ops for id_ in op.inputs if id_ not in made)
    ids = "".join(f", {id_}" for id_ in sources)
    return "\n".join([write_memory(step.src_spec), f"return words, executed({name}(), {place}, {plan.dst}{ids})"])
