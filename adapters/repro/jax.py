"""jax.numpy.reshape as a script, eager and under jit."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import NUMPY, Parts, body, compile_calls, function_calls, numpy_array, numpy_imports, script
from .literals import python
from .plain import checked_steps

LOOK = """
def look(answer):
    return answer.dtype, answer.shape, b"" if 0 in answer.shape else np.asarray(answer).tobytes()
"""
LAX = """
def reshape(src, shape):  # jax.lax.reshape has no -1
    known = math.prod(entry for entry in shape if entry != -1)
    if shape.count(-1) == 1 and known > 0 and src.size % known == 0:
        shape = tuple(src.size // known if entry == -1 else entry for entry in shape)
    return jax.lax.reshape(src, shape)
"""
WIDE = '\njax.config.update("jax_enable_x64", True)\n'


def write_script(row: Row, backend: str) -> str:
    """The script of a row; what follows an @ is a device."""
    name, _, device = backend.partition("@")
    if row.given == "runtime":
        raise Unsupported("runtime-shape")
    steps = []
    for step in checked_steps(row):
        source = step.source
        if len(source.dims) > 64:
            raise Unsupported(f"rank:{len(source.dims)}")
        src = f"jnp.asarray({numpy_array(source)})"
        if 0 in source.dims:
            src = f"jnp.zeros({python(source.dims)}, {NUMPY[source.type]})"
        if device:
            src = f"jax.device_put({src}, jax.devices({python(device)})[0])"
        function = "reshape" if name == "jax-lax" else "jnp.reshape"
        calls = [f"src = {function}(src, {shape})" for shape, _ in function_calls(step)]
        if name == "jax-jit":
            calls = compile_calls("@jax.jit", calls)
        steps.append(body(step, src, calls))
    imports = ["import jax", "import jax.numpy as jnp", *numpy_imports(row)]
    refusals = "(ValueError, RuntimeError, OverflowError, ZeroDivisionError, TypeError)"
    if name == "jax-lax":
        imports.insert(0, "import math")
    return script(Parts(imports, refusals, LOOK, steps, WIDE + LAX * (name == "jax-lax")))
