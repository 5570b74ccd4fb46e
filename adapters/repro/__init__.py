"""Write scripts that repeat one row in the library's own Python, without this suite.

A script has a function for each step, which returns src's words and the answer. `functions.py` has a table of the
libraries that are called as a function of arrays; each other library has a module. No library is imported here, so
that a script can be written where the library is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.plan.rows import Row

from . import functions, onednn, onnx, openvino, pytensor
from .script import ScriptParts

WRITERS: Mapping[str, Callable[[Row, str], ScriptParts]] = {
    **dict.fromkeys(functions.CONSTANT, functions.write_script),
    **dict.fromkeys((*onnx.LEVELS, *onnx.CONSTANT, "onnx-reference"), onnx.write_script),
    **dict.fromkeys((*openvino.THREADS, "openvino-reference"), openvino.write_script),
    **dict.fromkeys(pytensor.MODES, pytensor.write_script),
    "onednn": onednn.write_script,
}
"""A backend → the function that writes the parts of a row's script; Unsupported if no script can make the call."""
WITH_DEVICE = ("torch", "torch-raw", "jax", "jax-jit", "jax-lax", "cupy")
"""The backends that take a device after an `@`."""
