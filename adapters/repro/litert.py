"""LiteRT's RESHAPE as a script, which makes the model too."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import Parts, body, function_calls, numpy_array, numpy_imports, script
from .plain import checked_steps

TYPES = {
    "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "bool": "BOOL", "s8": "INT8",
    "u8": "UINT8", "s16": "INT16", "u16": "UINT16", "s32": "INT32", "u32": "UINT32", "s64": "INT64", "u64": "UINT64",
}  # fmt: skip
RESOLVERS = {"litert": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-xnnpack": "BUILTIN"}
BEFORE = """
def describe_dst(dims, lengths):
    # The lengths of dst as converters write them: -1 where they know nothing.
    rest = prod(length for length in lengths if length != -1)
    if lengths.count(-1) == 1 and rest > 0 and prod(dims) % rest == 0:
        lengths = [prod(dims) // rest if length == -1 else length for length in lengths]
    return [length if 0 <= length < 2**31 else -1 for length in lengths]


def interpreter(dims, shape, entries):
    type_, code = schema.TensorType.{type}, schema.BuiltinOperator.RESHAPE
    src = schema.TensorT(name="src", shape=np.array(dims, np.int32), type=type_, hasRank=True)
    lengths = schema.TensorT(name="shape", shape=[entries], type=schema.TensorType.INT32, buffer=1, hasRank=True)
    known = describe_dst(dims, [-1] * entries if shape is None else shape.tolist())
    dst = schema.TensorT(
        name="dst", shape=[abs(length) for length in known], shapeSignature=known, type=type_, hasRank=True
    )
    operator = schema.OperatorT(opcodeIndex=0, inputs=[0, 1], outputs=[2])
    given = [0, 1] if shape is None else [0]
    graph = schema.SubGraphT(tensors=[src, lengths, dst], inputs=given, outputs=[2], operators=[operator])
    data = None if shape is None else np.frombuffer(shape.tobytes(), np.uint8)
    codes = [schema.OperatorCodeT(deprecatedBuiltinCode=code, builtinCode=code)]
    buffers = [schema.BufferT(), schema.BufferT(data=data)]
    model = schema.ModelT(version=3, operatorCodes=codes, subgraphs=[graph], buffers=buffers)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return litert.Interpreter(
        model_content=bytes(builder.Output()), num_threads=1,
        experimental_op_resolver_type=litert.OpResolverType.{resolver},
    )


kept = {{}}


def reshape(src, shape, node):
    shape = np.array(shape, np.int32)
    if {runtime}:  # one interpreter for all steps
        if (node, len(shape)) not in kept:
            kept[node, len(shape)] = interpreter(src.shape, None, len(shape))
        program = kept[node, len(shape)]
        program.resize_tensor_input(0, src.shape)
    else:
        program = interpreter(src.shape, shape, len(shape))
    program.allocate_tensors()
    program.set_tensor(0, src)
    if {runtime}:
        program.set_tensor(1, shape)
    program.invoke()
    return program.get_tensor(2)
"""
LOOK = """
def look(answer):
    return answer.dtype, answer.shape, answer.tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row; a static shape is a constant of the model, and one that comes later is an input."""
    steps, type_ = [], checked_steps(row)[0].source.type
    for step in row.steps:
        if step.source.type != type_:
            raise Unsupported("types that change between the steps")
        calls = [f"src = reshape(src, {shape}, {node})" for node, (shape, _) in enumerate(function_calls(step))]
        steps.append(body(step, numpy_array(step.source), calls))
    before = BEFORE.format(type=TYPES[type_], resolver=RESOLVERS[backend], runtime=row.given == "runtime")
    imports = ["import ai_edge_litert.interpreter as litert", "import ai_edge_litert.schema_py_generated as schema"]
    imports += ["from math import prod", "import flatbuffers", *numpy_imports(row)]
    return script(Parts(imports, "(ValueError, RuntimeError, OverflowError, IndexError)", LOOK, steps, before))
