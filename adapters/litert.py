"""LiteRT, TensorFlow Lite's interpreter: RESHAPE in a model of one operator, its shape a constant or an input."""

from __future__ import annotations

from copy import copy
from importlib import metadata
from typing import Any

import ai_edge_litert.interpreter as litert  # type: ignore[import-not-found,unused-ignore]
import ai_edge_litert.schema_py_generated as schema  # type: ignore[import-not-found,unused-ignore]
import flatbuffers  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np

from conformance import Array, Graph

from .shared import ArrayLibrary, ArrayProgram, NodeCalls, check_31_bits, resolve_infer, resolve_zeros

OTHERS = tuple(f"shape-type:{name}" for name in ("s8", "u8", "s16", "u16", "u32", "s64", "u64"))
"""Shape types that RESHAPE does not take; values that fit are passed as s32."""


class LiteRt(ArrayLibrary):
    """LiteRT's RESHAPE by the interpreter's own kernel, without delegates."""

    name, version = "litert", metadata.version("ai-edge-litert")
    not_claimed = (*ArrayLibrary.not_claimed, "length:2^31", "threads:one-program", *OTHERS)
    resolver: Any = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

    def __init__(self) -> None:
        self.detail = (("resolver", self.resolver.name),)
        self.interpreters: dict[tuple[int, int], Any] = {}

    def compile(self, graph: Graph) -> ArrayProgram:
        own = copy(self)
        own.interpreters = {}  # an interpreter keeps state, which only calls of the same program may share
        return super(LiteRt, own).compile(graph)

    def run_chain(self, src: Array, calls: NodeCalls) -> Array:
        for number, call in enumerate(calls):
            check_31_bits(src.shape)
            shape = np.array(check_31_bits(resolve_zeros(src.shape, call)), np.int32)
            interpreter = self.interpreters.get((number, len(shape))) if call.runtime else None
            if interpreter is None:
                content = model(src.dtype.name, src.shape, len(shape) if call.runtime else shape)
                interpreter = self.interpreter(content)
            if call.runtime:
                self.interpreters[number, len(shape)] = interpreter
                interpreter.resize_tensor_input(0, src.shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, src)
            if call.runtime:
                interpreter.set_tensor(1, shape)
            interpreter.invoke()
            src = interpreter.get_tensor(2)
        return src

    def interpreter(self, content: bytes) -> Any:
        return litert.Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=self.resolver)


class LiteRtXnnpack(LiteRt):
    """LiteRT's RESHAPE with the default delegate XNNPACK."""

    name = "litert-xnnpack"
    resolver = litert.OpResolverType.BUILTIN
    rejections = (*LiteRt.rejections, IndexError)  # the last: XNNPACK's std::out_of_range, past six dims


def part(kind: str, **fields: Any) -> Any:
    """Return a part of a model with its fields; up to 2.0 its class takes no arguments."""
    made = getattr(schema, kind)()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def describe_dst(src: tuple[int, ...], shape: Array | int) -> dict[str, Any]:
    """Return the lengths of dst as converters write them; one that they do not know is -1, and stored as 1.

    A dst of no declared rank counts as one of rank 0 for XNNPACK, which then takes calls that it does not support.
    """
    known = [-1] * shape if isinstance(shape, int) else resolve_infer(src, tuple(shape.tolist()))
    lengths = [length if 0 <= length < 1 << 31 else -1 for length in known]
    return {"shape": [abs(length) for length in lengths], "shapeSignature": lengths}


def model(type_: str, dims: tuple[int, ...], shape: Array | int) -> bytes:
    """Return a model that reshapes tensor 0 by 1 into 2; `shape` is a constant, or the length of an input.

    `type_` is NumPy's name of the type, which is that of the schema in small letters.
    """
    is_constant = isinstance(shape, np.ndarray)
    entries = shape.size if isinstance(shape, np.ndarray) else shape
    data = np.frombuffer(shape.tobytes(), np.uint8) if isinstance(shape, np.ndarray) else None
    code = getattr(schema.TensorType, type_.upper())
    operator = schema.BuiltinOperator.RESHAPE
    tensors = [
        part("TensorT", name="src", shape=np.array(dims, np.int32), type=code, hasRank=True),
        part("TensorT", name="shape", shape=[entries], type=schema.TensorType.INT32, buffer=1, hasRank=True),
        part("TensorT", name="dst", **describe_dst(dims, shape), type=code, hasRank=True),
    ]
    graph = part(
        "SubGraphT",
        tensors=tensors,
        inputs=[0] if is_constant else [0, 1],
        outputs=[2],
        operators=[part("OperatorT", opcodeIndex=0, inputs=[0, 1], outputs=[2])],
    )
    whole = part(
        "ModelT",
        version=3,
        operatorCodes=[part("OperatorCodeT", deprecatedBuiltinCode=operator, builtinCode=operator)],
        subgraphs=[graph],
        buffers=[part("BufferT"), part("BufferT", data=data)],
    )
    builder = flatbuffers.Builder(1024)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())
