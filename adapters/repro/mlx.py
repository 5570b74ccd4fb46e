"""mlx.core.reshape as a script."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import Parts, body, constant_steps, function_calls, numpy_array, numpy_imports, script
from .literals import python

TYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "bool": "bool_", "s8": "int8", "u8": "uint8",
    "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64",
}  # fmt: skip
LOOK = """
def look(answer):
    mx.eval(answer)
    if answer.size == 0 or min(answer.shape, default=1) < 0:
        return answer.dtype, answer.shape, b""
    bits = answer.view(mx.uint16) if answer.dtype == mx.bfloat16 else answer  # NumPy has no bfloat16
    return answer.dtype, answer.shape, np.array(bits).tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in constant_steps(row, TYPES):
        source = step.source
        if source.layout == "reversed":
            raise Unsupported("layout:reversed")
        src = f"mx.array({numpy_array(source)})"
        if 0 in source.dims:
            src = f"mx.zeros({python(source.dims)}, mx.{TYPES[source.type]})"
        calls = [f"src = {call_code(backend, shape)}" for shape, _ in function_calls(step)]
        steps.append(body(step, src, calls))
    imports = ["import mlx.core as mx", *numpy_imports(row)]
    return script(Parts(imports, "(ValueError, RuntimeError, OverflowError, TypeError)", LOOK, steps))


def call_code(backend: str, shape: str) -> str:
    """Return the call of the function, or of the method with each length as an argument."""
    if backend == "mlx-method":
        return "src.reshape(())" if shape == "()" else f"src.reshape{shape}"
    return f"mx.reshape(src, {shape})"
