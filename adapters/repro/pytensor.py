"""pytensor.tensor.reshape as a script; a shape that comes with the call is an input of the function."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan import Row

from . import NUMPY, Parts, body, function_calls, numpy_array, numpy_imports, script

LOOK = """
def look(answer):
    return answer.dtype, answer.shape, answer.tobytes()
"""
FUNCTIONS = """
@cache
def constant(type_, rank, shape):
    src = pt.tensor("src", dtype=type_, shape=(None,) * rank)
    return pytensor.function([src], pt.reshape(src, shape))


@cache
def arriving(type_, rank, shape_type, entries):
    src, shape = pt.tensor("src", dtype=type_, shape=(None,) * rank), pt.vector("shape", dtype=shape_type)
    return pytensor.function([src, shape], pt.reshape(src, shape, ndim=entries))
""".lstrip()
REFUSALS = "(ValueError, RuntimeError, OverflowError, AssertionError, SystemError)"


def of(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for task in row.tasks:
        if task.source.type in ("f16", "bf16"):
            raise Unsupported(f"type:{task.source.type}")
        calls = []
        for shape, type_ in function_calls(task, mapped=True):
            if row.given == "runtime":
                calls.append(f"shape = np.array({shape}, {NUMPY[type_]})")
                calls.append("src = arriving(src.dtype.name, src.ndim, shape.dtype.name, shape.size)(src, shape)")
            else:
                calls.append(f"src = constant(src.dtype.name, src.ndim, {shape})(src)")
        steps.append(body(task, numpy_array(task.source), calls))
    imports = ["from functools import cache", *numpy_imports(row), "import pytensor", "import pytensor.tensor as pt"]
    return script(Parts(imports, REFUSALS, LOOK, steps, FUNCTIONS))
