"""Scripts for the libraries that are called as a function of arrays: one template, and an entry for each backend."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from conformance.model import LAYOUTS, STRIDED, Unsupported
from conformance.plan.facets import has_constant_nodes
from conformance.plan.memory import TensorSpec, strides_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from .plain import check_steps, spell
from .script import (
    LOOK,
    NUMPY,
    ScriptParts,
    find_memory_layout,
    source_of,
    write_body,
    write_function_calls,
    write_numpy_array,
    write_numpy_imports,
)


class ScriptTemplate(NamedTuple):
    """The parts of a script that a library decides. A {name} in a text is replaced by its value."""

    imports: tuple[str, ...]
    """{numpy}: NumPy, and ml_dtypes if it is needed."""
    look: str
    """The function that returns an answer's type, dims and bytes."""
    call: str
    """The call of a node, with its {shape} as a tuple; with {shapes}, the call of all nodes."""
    src: str = "{array}"
    """src, from an {array} of NumPy or from {memory}."""
    empty: str | None = None
    """src without elements, if it is made in another way."""
    bf16: str | None = None
    """src of bf16, if it is made in another way."""
    answer: str = "src"
    before: str = ""
    rejections: str = "(ValueError, RuntimeError, OverflowError)"
    types: Mapping[str, str] = NUMPY
    """The library's names of element types that it takes."""
    shape_types: Mapping[str, str] | None = None
    """The library's names of shape types; None if a shape has no type there."""
    layouts: Collection[str] = LAYOUTS
    max_rank: int | None = None
    copies_zeros: bool = True
    """The script replaces a 0 by the length that it copies."""
    decorator: str = ""
    """Put before a function of all calls, so that the library compiles it."""
    on_device: str = "{src}"
    """src on a {device}."""


def write_script(row: Row, backend: str) -> ScriptParts:
    """Return the script of a row; a device may follow the backend's name after an `@`."""
    name, _, device = backend.partition("@")
    steps, runtime = check_steps(row), row.shape_passed_as == "runtime"
    template = (RUNTIME if runtime else CONSTANT).get(name)
    if template is None:
        raise Unsupported("runtime-shape")
    if runtime and ("{runtime}" in template.before or template is not CONSTANT[name]) and has_constant_nodes(row.case):
        raise Unsupported("constant shapes beside one that arrives")
    type_ = steps[0].src_spec.type
    if "{type}" in template.before and any(step.src_spec.type != type_ for step in steps):
        raise Unsupported("types that change between the steps")
    bodies = []
    for step in steps:
        src = _write_src(template, step.src_spec, device)
        bodies.append(write_body(step, src, _write_calls(template, step), template.answer))
    before = _fill(
        template.before, type=template.types[type_], numpy_type=NUMPY[type_], runtime=str(runtime),
        shape_type=(template.shape_types or {}).get(row.shape_type, ""),
    )  # fmt: skip
    imports = [_fill(line, numpy="\n".join(write_numpy_imports(row))) for line in template.imports]
    return ScriptParts(imports, template.rejections, template.look, bodies, before)


def _fill(text: str, **values: str) -> str:
    """Replace each {name} that has a value. Other braces stay, also those of the values."""
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def _write_src(template: ScriptTemplate, src_spec: TensorSpec, device: str) -> str:
    if src_spec.type not in template.types:
        raise Unsupported(f"type:{src_spec.type}")
    if src_spec.layout not in template.layouts:
        raise Unsupported(f"layout:{src_spec.layout}")
    if template.max_rank is not None and len(src_spec.dims) > template.max_rank:
        raise Unsupported("rank")
    text = (template.bf16 if src_spec.type == "bf16" else None) or template.src
    if template.empty and 0 in src_spec.dims:
        text = template.empty
    at = find_memory_layout(src_spec)
    memory, strides, offset = (
        ("memory", at.strides, at.offset) if at else ("words", strides_of(src_spec.dims, "dense", 1), 0)
    )
    src = _fill(
        text, array=write_numpy_array(src_spec) if "{array}" in text else "", type=template.types[src_spec.type],
        dims=spell(src_spec.dims), list=spell(list(src_spec.dims)),
        memory=memory, strides=spell(strides), offset=spell(offset),
    )  # fmt: skip
    return _fill(template.on_device, src=src, device=spell(device)) if device else src


def _write_calls(template: ScriptTemplate, step: RowStep) -> Iterator[str]:
    shapes = []
    for shape, type_ in write_function_calls(step, template.copies_zeros):
        if template.shape_types is not None and type_ not in template.shape_types:
            raise Unsupported(f"shape-type:{type_}")
        shapes.append((shape, type_))
    if "{shapes}" in template.call:
        yield "src = " + _fill(template.call, shapes=", ".join(shape for shape, _ in shapes))
        return
    calls = [
        "src = " + _fill(
            template.call, shape=shape, node=str(node),
            type=template.types[step.src_spec.type], shape_type=(template.shape_types or {}).get(type_, ""),
        )
        for node, (shape, type_) in enumerate(shapes)
    ]  # fmt: skip
    if not template.decorator:
        yield from calls
        return
    yield from (template.decorator, "def compiled(src):", *(f"    {call}" for call in calls), "    return src")
    yield "src = compiled(src)"


NAMES = {name: code.rpartition(".")[2].rstrip("_") for name, code in NUMPY.items()}
"""The names that most libraries have for the element types."""
WITHOUT_BF16 = {name: code for name, code in NUMPY.items() if name != "bf16"}

# ── libraries of arrays ───────────────────────────────────────────────────────────────────────────

NUMPY_FUNCTION = ScriptTemplate(
    ("{numpy}",),
    """
def look(answer):
    answer = np.asarray(answer)
    return answer.dtype, answer.shape, answer.tobytes()
""",
    "np.reshape(src, {shape})",
    rejections="(ValueError, RuntimeError, OverflowError, ZeroDivisionError, IndexError)",
    copies_zeros=False,
)
ARRAYS = NUMPY_FUNCTION._replace(copies_zeros=True)
TORCH = ScriptTemplate(
    ("import torch",),
    """
def look(answer):
    answer = answer.cpu()
    return answer.dtype, answer.shape, answer.flatten().view(torch.uint8).numpy().tobytes()
""",
    "torch.reshape(src, {shape})",
    "torch.as_strided(torch.frombuffer({memory}, dtype={type}), {dims}, {strides}, {offset})",
    "torch.empty({dims}, dtype={type})",
    rejections="(ValueError, RuntimeError, OverflowError, TypeError)",
    types={name: f"torch.{theirs}" for name, theirs in NAMES.items()},
    layouts=[layout for layout in LAYOUTS if layout != "reversed"],
    on_device="{src}.to({device})",
)
TORCH_COMPILE = 'torch.set_grad_enabled(False)\n@torch.compile(fullgraph=True, dynamic=False, backend="{}")'
JAX = ScriptTemplate(
    ("import jax", "import jax.numpy as jnp", "{numpy}"),
    """
def look(answer):
    return answer.dtype, answer.shape, b"" if 0 in answer.shape else np.asarray(answer).tobytes()
""",
    "jnp.reshape(src, {shape})",
    "jnp.asarray({array})",
    "jnp.zeros({dims}, {type})",
    before='\njax.config.update("jax_enable_x64", True)\n',
    rejections="(ValueError, RuntimeError, OverflowError, ZeroDivisionError, TypeError)",
    on_device="jax.device_put({src}, jax.devices({device})[0])",
)
KERAS = ScriptTemplate(
    ("import os", 'os.environ["KERAS_BACKEND"] = "jax"', "import keras", "{numpy}", "import jax"),
    """
def look(answer):
    array = keras.ops.convert_to_numpy(answer) if 0 not in answer.shape else np.empty(0)
    return answer.dtype, tuple(answer.shape), array.tobytes()
""",
    "keras.ops.reshape(src, {shape})",
    "keras.ops.convert_to_tensor({array})",
    "keras.ops.zeros({dims}, {type})",
    before=JAX.before,
    rejections=JAX.rejections,
    types={name: spell(theirs) for name, theirs in NAMES.items()},
)
TENSORFLOW = ScriptTemplate(
    ("import os", 'os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")', "{numpy}", "import tensorflow as tf"),
    """
def look(answer):
    return answer.dtype, answer.shape.as_list(), b"" if 0 in answer.shape else answer.numpy().tobytes()
""",
    "tf.reshape(src, tf.constant({shape}, {shape_type}))",
    "tf.convert_to_tensor({array})",
    "tf.zeros({dims}, {type})",
    rejections="(ValueError, RuntimeError, OverflowError, tf.errors.OpError)",
    shape_types={"s32": "tf.int32", "s64": "tf.int64"},
)
TENSORFLOW_ANY_RANK = TENSORFLOW._replace(
    call="reshape(src, tf.constant({shape}, {shape_type}))",
    before="""
@tf.function(autograph=False{options}, input_signature=[tf.TensorSpec(None, tf.as_dtype({numpy_type})), \
tf.TensorSpec([None], {shape_type})])
def reshape(src, shape):  # one for every rank, as where shapes arrive with the call
    return tf.reshape(src, shape)
""",
)
MLX = ScriptTemplate(
    ("import mlx.core as mx", "{numpy}"),
    """
def look(answer):
    mx.eval(answer)
    if answer.size == 0 or min(answer.shape, default=1) < 0:
        return answer.dtype, answer.shape, b""
    bits = answer.view(mx.uint16) if answer.dtype == mx.bfloat16 else answer  # NumPy has no bfloat16
    return answer.dtype, answer.shape, np.array(bits).tobytes()
""",
    "mx.reshape(src, {shape})",
    "mx.array({array})",
    "mx.zeros({dims}, mx.{type})",
    rejections="(ValueError, RuntimeError, OverflowError, TypeError)",
    types={name: theirs for name, theirs in {**NAMES, "bool": "bool_"}.items() if name != "f64"},
    layouts=TORCH.layouts,
)
CANDLE = ScriptTemplate(
    ("import json", "import os", "from candle import utils", "{numpy}"),
    """
def look(answer):
    elements = b"" if 0 in answer.shape else save(answer)
    return str(answer.dtype), answer.shape, elements
""",
    "src.reshape({shape})",
    "take_over({type}, {array})",
    "load({type}, {dims}, b'')",
    before=source_of("candle", "take_over", "load", "save"),
    types={name: spell(theirs) for name, theirs in {
        "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "u8": "U8", "u32": "U32", "s64": "I64",
    }.items()},
)  # fmt: skip
PADDLE = ScriptTemplate(
    ("import math", "{numpy}", "import paddle"),
    """
def look(answer):
    if min(answer.shape, default=1) < 1 or math.prod(answer.shape) >> 60:  # there is no such memory to be read
        return answer.dtype, answer.shape, b""
    return answer.dtype, answer.shape, answer.numpy().tobytes()
""",
    "paddle.reshape(src, {shape})",
    "paddle.to_tensor(np.array({array}))",
    'paddle.zeros({dims}, "{type}")',
    'paddle.to_tensor(np.array({array}).view(np.int16)).view("bfloat16")',
    rejections="(ValueError, RuntimeError, OverflowError, OSError, SystemError)",
    types={name: theirs for name, theirs in NAMES.items() if name not in ("u16", "u32", "u64")},
    shape_types={name: code for name, code in NUMPY.items() if name not in ("u16", "u32", "u64")},
    copies_zeros=False,
)
MNN = ScriptTemplate(
    ("import math", "import MNN.expr as mnn", "{numpy}"),
    """
def look(answer):
    if min(answer.shape, default=1) < 1 or math.prod(answer.shape) != answer.size:  # there is no such memory to be read
        return answer.dtype, answer.shape, b""
    return answer.dtype, answer.shape, np.array(answer.read()).tobytes()
""",
    "reshape(src, list({shape}))",
    'mnn.const(np.array({array}, order="C"), {list}, mnn.NCHW, mnn.{type})',
    before="""
def reshape(src, shape):
    answer = mnn.reshape(src, shape, mnn.NCHW)
    if not answer.valid:
        raise ValueError("the answer is not valid")
    return answer
""",
    types={"f32": "float", "s32": "int", "u8": "uint8"},
    copies_zeros=False,
)

# ── programs of one operator, which the script makes too ──────────────────────────────────────────

NCNN = ScriptTemplate(
    ("import math", "import ncnn", "{numpy}"),
    """
def look(answer):
    dst, size = answer
    dims = {1: (dst.w,), 2: (dst.h, dst.w), 3: (dst.c, dst.h, dst.w), 4: (dst.c, dst.d, dst.h, dst.w)}[dst.dims]
    if min(dims) < 1 or math.prod(dims) > size:  # there is no such memory to be read
        return "float32", dims, b""
    return "float32", dims, np.array(dst).tobytes()
""",
    "reshape(src, {shapes})",
    before=source_of("ncnn", "LENGTHS", "text_of") + """

def reshape(src, *shapes):
    if any(len(shape) not in LENGTHS for shape in shapes):
        raise ValueError("a layer has 1 to 4 lengths")
    net = ncnn.Net()
    net.opt.num_threads = 1
    if net.load_param_mem(text_of(shapes)):
        raise ValueError("load_param_mem")
    extractor = net.create_extractor()
    extractor.input("src", ncnn.Mat(src))
    status, dst = extractor.extract("dst")
    if status or not dst.dims:
        raise ValueError(f"extract: {status}, of {dst.dims} axes")
    return dst, src.size
""",
    rejections="(ValueError, RuntimeError, TypeError)",
    types={"f32": ""},
    layouts=[layout for layout in LAYOUTS if layout not in STRIDED],
    max_rank=12,
    copies_zeros=False,
)  # fmt: skip
LITERT = ScriptTemplate(
    (
        "import math", "import ai_edge_litert.interpreter as litert",
        "import ai_edge_litert.schema_py_generated as schema", "import flatbuffers", "{numpy}",
    ),
    LOOK,
    "reshape(src, {shape}, {node})",
    before=source_of("shared", "resolve_infer") + source_of("litert", "part", "describe_dst", "model") + """

kept = {}


def reshape(src, shape, node):
    shape = np.array(shape, np.int32)
    program = kept.get((node, len(shape)))
    if program is None:
        program = litert.Interpreter(
            model_content=model(src.dtype.name, src.shape, len(shape) if {runtime} else shape), num_threads=1,
            experimental_op_resolver_type=litert.OpResolverType.{resolver},
        )
    if {runtime}:  # one interpreter for all steps
        kept[node, len(shape)] = program
        program.resize_tensor_input(0, src.shape)
    program.allocate_tensors()
    program.set_tensor(0, src)
    if {runtime}:
        program.set_tensor(1, shape)
    program.invoke()
    return program.get_tensor(2)
""",
    rejections="(ValueError, RuntimeError, OverflowError, IndexError)",
    types={name: theirs.upper() for name, theirs in NAMES.items()},
)  # fmt: skip
TOSA = ScriptTemplate(
    ("import math", "import tosa_reference_model as model", "import tosa_serializer as serializer", "{numpy}"),
    """
def look(answer):
    name = "bf16" if answer.dtype == np.uint16 else answer.dtype  # the binding has no name for bf16
    return name, answer.shape, answer.tobytes()
""",
    "reshape(src, {shape}, serializer.DType.{type})",
    bf16="{array}.view(np.uint16)",
    before=source_of("shared", "resolve_infer") + source_of("tosa", "serialize") + """

def reshape(src, shape, code):
    graph = serialize(code, src.shape, (resolve_infer(src.shape, shape),))
    (answer,), status = model.run(graph, [src])
    if status != model.GraphStatus.TOSA_VALID:
        raise ValueError(status)
    return answer.view(src.dtype)
""",
    rejections="(ValueError, RuntimeError, TypeError)",
    types={
        "f16": "FP16", "bf16": "BF16", "f32": "FP32", "bool": "BOOL", "s8": "INT8", "s16": "INT16", "s32": "INT32",
        "s64": "INT64",
    },
)  # fmt: skip
EXECUTORCH = ScriptTemplate(
    (
        "from math import prod", "{numpy}", "import torch", "from executorch.exir import schema",
        "from executorch.exir._serialize._program import PTEFile, serialize_pte_binary",
        "from executorch.runtime import Runtime",
    ),
    """
def look(answer):
    return answer.dtype, tuple(answer.shape), answer.reshape(-1).view(torch.uint8).numpy().tobytes()
""",
    "reshape(src, {shape}, schema.ScalarType.{type})",
    "torch.from_numpy({array})",
    bf16="torch.from_numpy({array}.view(np.int16)).view(torch.bfloat16)",
    before=source_of("executorch", "program", "tensor") + """

def reshape(src, shape, code):
    content = program(code, tuple(src.shape), shape, src.element_size())
    return Runtime.get().load_program(content).load_method("forward").execute([src])[0]
""",
    rejections="(ValueError, RuntimeError, TypeError)",
    types={
        "f16": "HALF", "bf16": "BFLOAT16", "f32": "FLOAT", "f64": "DOUBLE", "bool": "BOOL", "s8": "CHAR", "u8": "BYTE",
        "s16": "SHORT", "s32": "INT", "s64": "LONG",
    },
    layouts=("dense",),
)  # fmt: skip

# ── the backends ──────────────────────────────────────────────────────────────────────────────────

CONSTANT: Mapping[str, ScriptTemplate] = {
    "numpy": NUMPY_FUNCTION,
    "array-api-strict": ARRAYS._replace(
        imports=("{numpy}", "import array_api_strict as xp"), src="xp.asarray({array})",
        call="xp.reshape(src, {shape})", types={name: code for name, code in WITHOUT_BF16.items() if name != "f16"},
    ),
    "dask": ARRAYS._replace(
        imports=("{numpy}", "import dask.array as da"), src="da.from_array({array}, chunks=-1)",
        call="da.reshape(src, {shape})", answer='src.compute(scheduler="synchronous")',
    ),
    "ndonnx": ARRAYS._replace(
        imports=("{numpy}", "import ndonnx as ndx", "from onnx import shape_inference"), src="ndx.asarray({array})",
        call="ndx.reshape(src, {shape})", answer="src.unwrap_numpy()", types=WITHOUT_BF16,
        rejections=f"{ARRAYS.rejections[:-1]}, shape_inference.InferenceError)",
    ),
    "tinygrad": ARRAYS._replace(
        imports=("{numpy}", "from tinygrad import Tensor"), src="Tensor({array}, device='CPU')",
        call="src.reshape({shape})", answer="src.numpy()", types=WITHOUT_BF16,
    ),
    "sparse": ARRAYS._replace(
        imports=("{numpy}", "import sparse"), src="sparse.COO.from_numpy({array})", call="src.reshape({shape})",
        answer="src.todense()",
    ),
    "cupy": ARRAYS._replace(
        imports=("{numpy}", "import cupy"), src="cupy.asarray({array})", call="cupy.reshape(src, {shape})",
        answer="cupy.asnumpy(src)", types=WITHOUT_BF16,
    ),
    "torch": TORCH,
    "torch-raw": TORCH._replace(copies_zeros=False),
    "torch-compile": TORCH._replace(decorator=TORCH_COMPILE.format("aot_eager")),
    "torch-inductor": TORCH._replace(decorator=TORCH_COMPILE.format("inductor")),
    "torch-mkldnn": TORCH._replace(
        src=f"{TORCH.src}.to_mkldnn()", empty=f"{TORCH.empty}.to_mkldnn()", answer="src.to_dense()"
    ),
    "jax": JAX,
    "jax-jit": JAX._replace(decorator="@jax.jit"),
    "jax-lax": JAX._replace(
        imports=("import math", *JAX.imports), call="jax.lax.reshape(src, resolve_infer(src.shape, {shape}))",
        before=JAX.before + source_of("shared", "resolve_infer"),
    ),
    "keras-jax": KERAS,
    "keras-tensorflow": KERAS._replace(
        imports=("import os", 'os.environ["KERAS_BACKEND"] = "tensorflow"', "import keras", "{numpy}",
                 "import tensorflow as tf"),
        before="", rejections=TENSORFLOW.rejections,
    ),
    "tensorflow": TENSORFLOW,
    "tensorflow-array": TENSORFLOW._replace(
        call="tf.reshape(src, np.array({shape}, {shape_type}))", shape_types=NUMPY
    ),
    "tensorflow-list": TENSORFLOW._replace(call="tf.reshape(src, list({shape}))", shape_types=None),
    "tensorflow-function": TENSORFLOW._replace(decorator="@tf.function(autograph=False)"),
    "tensorflow-xla": TENSORFLOW._replace(decorator="@tf.function(autograph=False, jit_compile=True)"),
    "mlx": MLX,
    "candle": CANDLE,
    "paddle": PADDLE,
    "mnn": MNN,
    "ncnn": NCNN,
    "litert": LITERT._replace(before=_fill(LITERT.before, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES")),
    "litert-xnnpack": LITERT._replace(before=_fill(LITERT.before, resolver="BUILTIN")),
    "tosa": TOSA,
    "executorch": EXECUTORCH,
}  # fmt: skip
"""Every backend here, when shape is constant."""
_TENSOR = "paddle.to_tensor(np.array({shape}, {shape_type}))"
RUNTIME: Mapping[str, ScriptTemplate] = {
    **{name: CONSTANT[name] for name in (
        "numpy", "array-api-strict", "dask", "sparse", "cupy", "torch", "torch-raw", "torch-mkldnn", "candle",
        "keras-tensorflow", "tensorflow", "tensorflow-array", "tensorflow-list", "litert", "litert-xnnpack",
    )},
    "tensorflow-function": TENSORFLOW_ANY_RANK._replace(before=_fill(TENSORFLOW_ANY_RANK.before, options="")),
    "tensorflow-xla": TENSORFLOW_ANY_RANK._replace(
        before=_fill(TENSORFLOW_ANY_RANK.before, options=", jit_compile=True")
    ),
    "paddle": PADDLE._replace(call=f"paddle.reshape(src, {_TENSOR})"),
}  # fmt: skip
"""The backends that also take a shape at run time, and how."""
