"""The C interface of oneDNN Graph: its numbers, structures and functions; find and load the library."""

from __future__ import annotations

import ctypes as c
import importlib.metadata
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance import CannotStart, Rejected

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
"""Attribute numbers that the library does not use, for names that it does not know."""
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
        ("id", c.c_size_t), ("ndims", c.c_int), ("dims", Dims), ("data_type", c.c_int), ("property", c.c_int),
        ("layout_type", c.c_int), ("strides", Dims),
    )  # fmt: skip

    def read(self, field: str) -> tuple[int, ...]:
        """Read dims or strides as C does: past 12 entries come the next fields of the struct, and then zeros."""
        start, end = getattr(LogicalTensor, field).offset, c.sizeof(LogicalTensor)
        places = range(start, start + 8 * self.ndims, 8)
        return tuple(c.c_int64.from_buffer(self, at).value if at + 8 <= end else 0 for at in places)


def type_of(tensor: LogicalTensor) -> str:
    """Return the specification's name of a tensor's type."""
    for name, number in TYPES.items():
        if number == tensor.data_type:
            return name
    raise ValueError(f"the library reports an output of data type {tensor.data_type}, which is none of {TYPES}")


class InplacePair(c.Structure):
    """dnnl_graph_inplace_pair_t."""

    _fields_ = (("input_id", c.c_size_t), ("output_id", c.c_size_t))


class Version(c.Structure):
    """dnnl_version_t."""

    _fields_ = (
        ("major", c.c_int), ("minor", c.c_int), ("patch", c.c_int), ("hash", c.c_char_p), ("cpu_runtime", c.c_uint),
        ("gpu_runtime", c.c_uint),
    )  # fmt: skip


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
"""Every function that returns a status, and the types of its arguments."""

# ── the loaded library ────────────────────────────────────────────────────────────────────────────


class DnnLibrary:
    """The C API; a status other than success is a rejection."""

    def __init__(self, path: str) -> None:
        self.dll = load_library(path)
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
        """Return the library's name of one of its numbers."""
        text: bytes = getattr(self.dll, f"dnnl_{table}")(number)
        return text.decode()

    @property
    def release(self) -> str:
        return f"{self.version.major}.{self.version.minor}.{self.version.patch}"

    @property
    def detail(self) -> tuple[tuple[str, str], ...]:
        """Facts that identify this build on this processor."""
        isa = self.words("cpu_isa2str", self.dll.dnnl_get_effective_cpu_isa()).removeprefix("cpu_isa_")
        runtime = self.words("runtime2str", self.version.cpu_runtime)
        threads = (("OMP_NUM_THREADS", os.environ["OMP_NUM_THREADS"]),) if runtime == "OpenMP" else ()
        return (("commit", self.version.hash.decode()), ("instruction set", isa), ("runtime", runtime), *threads)


INSTALL = "set ONEDNN_LIBRARY to a libdnnl.so.3, or pip install onednn"


def find_library() -> str:
    """Return the library's file: that of ONEDNN_LIBRARY, else that of the wheel, else a name for the loader."""
    path = os.environ.get("ONEDNN_LIBRARY")
    if path:
        if not Path(path).is_file():
            raise CannotStart(f"onednn: ONEDNN_LIBRARY names {path}, which is no file: {INSTALL}")
        return path
    try:
        files = importlib.metadata.files("onednn") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return next((str(Path(str(file.locate())).resolve()) for file in files if file.name in FILES), FILES[0])


def load_library(path: str) -> c.CDLL:
    """Load the library, with the environment that it reads while it is loaded."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # rows are small, and v3.6.2 is slow with more
    opencl = Path(path).with_name("libintelocl.so")
    if opencl.is_file():
        os.environ.setdefault("OCL_ICD_FILENAMES", str(opencl))
    try:
        return open_library(Path(path), c.DEFAULT_MODE)
    except OSError as error:
        raise CannotStart(f"onednn: cannot be loaded: {error}; {INSTALL}") from None


def open_library(path: Path, mode: int, tried: frozenset[str] = frozenset()) -> c.CDLL:
    """Open a library, after the libraries beside it that it needs; a wheel's folder is on no search path."""
    try:
        return c.CDLL(str(path), mode)
    except OSError as error:
        missing = re.match(r"(\S+?): cannot open shared object file", str(error))
        if missing is None or missing[1] in tried or not path.with_name(missing[1]).is_file():
            raise
        needed = path.with_name(missing[1])
    open_library(needed, c.RTLD_GLOBAL)
    return open_library(path, mode, tried | {needed.name})
