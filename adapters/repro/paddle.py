"""paddle.reshape as a script; a shape that comes with the call is a tensor."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import NUMPY, Parts, body, function_calls, numpy_array, numpy_imports, script
from .literals import python
from .plain import checked_steps

TYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "bool": "bool",
    "s8": "int8", "u8": "uint8", "s16": "int16", "s32": "int32", "s64": "int64",
}  # fmt: skip
LOOK = """
def look(answer):
    if min(answer.shape, default=1) < 1 or math.prod(answer.shape) >> 60:  # there is no such memory to be read
        return answer.dtype, answer.shape, b""
    return answer.dtype, answer.shape, answer.numpy().tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in checked_steps(row):
        source, calls = step.source, []
        if source.type not in TYPES:
            raise Unsupported(f"type:{source.type}")
        src = f"paddle.to_tensor(np.array({numpy_array(source)}))"
        if 0 in source.dims:
            src = f'paddle.zeros({python(source.dims)}, "{TYPES[source.type]}")'
        elif source.type == "bf16":
            src = f'paddle.to_tensor(np.array({numpy_array(source)}).view(np.int16)).view("bfloat16")'
        for shape, type_ in function_calls(step, mapped=False):
            if type_ not in TYPES:
                raise Unsupported(f"shape-type:{type_}")
            if row.given == "runtime":
                shape = f"paddle.to_tensor(np.array({shape}, {NUMPY[type_]}))"  # noqa: PLW2901 - as it is given
            call = "src.reshape_({})" if backend == "paddle-in-place" else "paddle.reshape(src, {})"
            calls.append(f"src = {call.format(shape)}")
        steps.append(body(step, src, calls))
    imports = ["import math", *numpy_imports(row), "import paddle"]
    return script(Parts(imports, "(ValueError, RuntimeError, OverflowError, OSError, SystemError)", LOOK, steps))
