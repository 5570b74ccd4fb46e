"""numpy.reshape as a script; and array-api-strict, Dask, ndonnx, CuPy, tinygrad and sparse, called in like words."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import Parts, body, function_calls, numpy_array, numpy_imports, script
from .plain import checked_steps

LOOK = """
def look(answer):
    answer = np.asarray(answer)
    return answer.dtype, answer.shape, answer.tobytes()
"""
KINDS = {
    "numpy": ((), "{}", "src = np.reshape(src, {})", "src"),
    "array-api-strict": (
        ("import array_api_strict as xp",), "xp.asarray({})", "src = xp.reshape(src, {})", "src",
    ),
    "dask": (
        ("import dask.array as da",), "da.from_array({}, chunks=-1)", "src = da.reshape(src, {})",
        'src.compute(scheduler="synchronous")',
    ),
    "ndonnx": (
        ("import ndonnx as ndx", "from onnx import shape_inference"), "ndx.asarray({})",
        "src = ndx.reshape(src, {})", "src.unwrap_numpy()",
    ),
    "tinygrad": (("from tinygrad import Tensor",), "Tensor({}, device='CPU')", "src = src.reshape({})", "src.numpy()"),
    "sparse": (("import sparse",), "sparse.COO.from_numpy({})", "src = src.reshape({})", "src.todense()"),
    "cupy": (("import cupy",), "cupy.asarray({})", "src = cupy.reshape(src, {})", "cupy.asnumpy(src)"),
}  # fmt: skip
"""Imports, src, the call and the answer of each backend."""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    backend = backend.partition("@")[0]
    if backend not in KINDS:
        raise Unsupported("a backend that is not the suite’s own reference")
    imports, src, call, answer = KINDS[backend]
    steps = []
    for step in checked_steps(row):
        if backend == "array-api-strict" and step.source.type in ("f16", "bf16"):
            raise Unsupported(f"type:{step.source.type}")  # the standard has neither
        if backend in ("cupy", "tinygrad") and step.source.type == "bf16":
            raise Unsupported("type:bf16")
        if backend == "tinygrad" and row.given == "runtime":
            raise Unsupported("runtime-shape")
        if backend == "ndonnx" and (step.source.type == "bf16" or row.given == "runtime"):
            raise Unsupported("type:bf16" if step.source.type == "bf16" else "runtime-shape")
        calls = [call.format(shape) for shape, _ in function_calls(step, mapped=backend != "numpy")]
        steps.append(body(step, src.format(numpy_array(step.source)), calls, answer))
    own = ", shape_inference.InferenceError" if backend == "ndonnx" else ""
    refusals = f"(ValueError, RuntimeError, OverflowError, ZeroDivisionError, IndexError{own})"
    return script(Parts([*numpy_imports(row), *imports], refusals, LOOK, steps))
