"""MNN.expr.reshape as a script; it refuses by an answer that is not valid."""

from __future__ import annotations

from conformance.plan.rows import Row

from . import Parts, body, constant_steps, function_calls, numpy_array, numpy_imports, script
from .literals import python

TYPES = {"f32": "float", "s32": "int", "u8": "uint8"}
BEFORE = """
def reshape(src, shape):
    answer = mnn.reshape(src, shape, mnn.NCHW)
    if not answer.valid:
        raise ValueError("the answer is not valid")
    return answer
"""
LOOK = """
def look(answer):
    if min(answer.shape, default=1) < 1 or math.prod(answer.shape) != answer.size:  # there is no such memory to be read
        return answer.dtype, answer.shape, b""
    return answer.dtype, answer.shape, np.array(answer.read()).tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in constant_steps(row, TYPES):
        source = step.source
        array = f'np.array({numpy_array(source)}, order="C")'
        src = f"mnn.const({array}, {python(list(source.dims))}, mnn.NCHW, mnn.{TYPES[source.type]})"
        calls = [f"src = reshape(src, list({shape}))" for shape, _ in function_calls(step, mapped=False)]
        steps.append(body(step, src, calls))
    imports = ["import math", "import MNN.expr as mnn", *numpy_imports(row)]
    return script(Parts(imports, "(ValueError, RuntimeError, OverflowError)", LOOK, steps, BEFORE))
