"""TOSA's reference model as a script: a graph of one RESHAPE for each call; the script answers -1 and copied zeros."""

from __future__ import annotations

from conformance.plan.rows import Row

from . import Parts, body, constant_steps, function_calls, numpy_array, numpy_imports, script

TYPES = {
    "f16": "FP16", "bf16": "BF16", "f32": "FP32", "bool": "BOOL", "s8": "INT8", "s16": "INT16", "s32": "INT32",
    "s64": "INT64",
}  # fmt: skip
BEFORE = """
def reshape(src, shape, code):
    known = math.prod(entry for entry in shape if entry != -1)
    if shape.count(-1) == 1 and known > 0 and src.size % known == 0:
        shape = tuple(src.size // known if entry == -1 else entry for entry in shape)
    graph = ts.TosaSerializer()
    given = graph.addPlaceholder(list(src.shape), code, None)
    entries = graph.addConst([len(shape)], ts.DType.SHAPE, list(shape), "shape")
    dst = graph.addOutput(list(shape), code)
    attributes = ts.TosaSerializerAttribute()
    attributes.ReshapeAttribute()
    graph.addOperator(ts.Op.RESHAPE, [given.name, entries.name], [dst.name], attributes)
    (answer,), status = trm.run(graph.serialize(), [src])
    if status != trm.GraphStatus.TOSA_VALID:
        raise ValueError(status)
    return answer.view(src.dtype)
"""
LOOK = """
def look(answer):
    name = "bf16" if answer.dtype == np.uint16 else answer.dtype  # the binding has no name for bf16
    return name, answer.shape, answer.tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in constant_steps(row, TYPES):
        type_ = step.source.type
        src = numpy_array(step.source) + ".view(np.uint16)" * (type_ == "bf16")
        calls = [f"src = reshape(src, {shape}, ts.DType.{TYPES[type_]})" for shape, _ in function_calls(step)]
        steps.append(body(step, src, calls))
    imports = ["import math", "import tosa_reference_model as trm", "import tosa_serializer as ts", *numpy_imports(row)]
    return script(Parts(imports, "(ValueError, RuntimeError, TypeError)", LOOK, steps, BEFORE))
