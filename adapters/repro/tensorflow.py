"""tf.reshape as a script: eager, in a tf.function, and compiled by XLA."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import NUMPY, Parts, body, compile_calls, function_calls, numpy_array, numpy_imports, script
from .literals import python
from .plain import checked_steps

LOOK = """
def look(answer):
    return answer.dtype, answer.shape.as_list(), b"" if 0 in answer.shape else answer.numpy().tobytes()
"""
SHAPE_TYPES = {"s32": "tf.int32", "s64": "tf.int64"}
COMPILED = {
    "tensorflow-function": "@tf.function(autograph=False)",
    "tensorflow-xla": "@tf.function(autograph=False, jit_compile=True)",
}
ANY_RANK = """
{decorator}
def reshape(src, shape):  # one for every rank, as where shapes arrive with the call
    return tf.reshape(src, shape)
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    decorator, runtime = COMPILED.get(backend, ""), row.given == "runtime"
    steps = []
    for step in checked_steps(row):
        source, calls = step.source, []
        src = f"tf.convert_to_tensor({numpy_array(source)})"
        if 0 in source.dims:
            src = f"tf.zeros({python(source.dims)}, {NUMPY[source.type]})"
        for shape, type_ in function_calls(step):
            given = shape_code(backend, shape, type_)
            calls.append(f"src = {'reshape' if decorator and runtime else 'tf.reshape'}(src, {given})")
        if decorator and not runtime:
            calls = compile_calls(decorator, calls)
        steps.append(body(step, src, calls))
    quiet = 'os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")'
    imports = ["import os", quiet, *numpy_imports(row), "import tensorflow as tf"]
    before = ANY_RANK.format(decorator=add_signature(decorator, row)) if decorator and runtime else ""
    return script(Parts(imports, "(ValueError, RuntimeError, OverflowError, tf.errors.OpError)", LOOK, steps, before))


def shape_code(backend: str, shape: str, type_: str) -> str:
    """Return a shape as the backend gives it to the library."""
    if backend == "tensorflow-list":
        return f"list({shape})"
    if backend == "tensorflow-array":
        return f"np.array({shape}, {NUMPY[type_]})"
    if type_ not in SHAPE_TYPES:
        raise Unsupported(f"shape-type:{type_}")
    return f"tf.constant({shape}, {SHAPE_TYPES[type_]})"


def add_signature(decorator: str, row: Row) -> str:
    """The decorator with a signature of any rank."""
    type_ = f"tf.as_dtype({NUMPY[row.steps[0].source.type]})"
    signature = f"[tf.TensorSpec(None, {type_}), tf.TensorSpec([None], {SHAPE_TYPES.get(row.shape_type, 'tf.int64')})]"
    return f"{decorator[:-1]}, input_signature={signature})"
