"""keras.ops.reshape and the layer Reshape as a script, on JAX or TensorFlow."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import NUMPY, Parts, body, function_calls, numpy_array, numpy_imports, script
from .literals import python
from .plain import checked_steps

LOOK = """
def look(answer):
    array = keras.ops.convert_to_numpy(answer) if 0 not in answer.shape else np.empty(0)
    return answer.dtype, tuple(answer.shape), array.tobytes()
"""
WIDE = '\njax.config.update("jax_enable_x64", True)\n'


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    engine = "tensorflow" if backend == "keras-tensorflow" else "jax"
    if engine == "jax" and row.given == "runtime":
        raise Unsupported("runtime-shape")
    steps = []
    for step in checked_steps(row):
        source = step.source
        src = f"keras.ops.convert_to_tensor({numpy_array(source)})"
        if 0 in source.dims:
            src = f"keras.ops.zeros({python(source.dims)}, {python(NUMPY[source.type].rpartition('.')[2].rstrip('_'))})"
        call = "src = keras.ops.reshape(src, {})"
        if backend == "keras-layer":
            call = "src = keras.layers.Reshape({}, autocast=False)(src[None])[0]"
        steps.append(body(step, src, [call.format(shape) for shape, _ in function_calls(step)]))
    imports = ["import os", f'os.environ["KERAS_BACKEND"] = "{engine}"', "import keras", *numpy_imports(row)]
    errors = "(ValueError, RuntimeError, OverflowError, ZeroDivisionError, TypeError)"
    if engine == "jax":
        return script(Parts([*imports, "import jax"], errors, LOOK, steps, WIDE))
    errors = "(ValueError, RuntimeError, OverflowError, tf.errors.OpError)"
    return script(Parts([*imports, "import tensorflow as tf"], errors, LOOK, steps))
