"""A net of ncnn's Reshape layers as a script."""

from __future__ import annotations

from conformance.model import STRIDED, Unsupported
from conformance.plan.rows import Row

from . import Parts, body, constant_steps, function_calls, numpy_array, numpy_imports, script

BEFORE = """
AXES = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}  # the numbers of the lengths: w 0, h 1, d 11, c 2


def reshape(src, *shapes):
    if any(len(shape) not in AXES for shape in shapes):
        raise ValueError("a layer has 1 to 4 lengths")
    blobs = ["src", *(f"between{k}" for k in range(1, len(shapes))), "dst"]
    lines = ["7767517", f"{len(blobs)} {len(blobs)}", "Input src 0 1 src"]
    for k, shape in enumerate(shapes):
        lengths = " ".join(f"{axis}={length}" for axis, length in zip(AXES[len(shape)], shape))
        lines.append(f"Reshape reshape{k} 1 1 {blobs[k]} {blobs[k + 1]} {lengths}")
    net = ncnn.Net()
    net.opt.num_threads = 1
    if net.load_param_mem("\\n".join([*lines, ""])):
        raise ValueError("load_param_mem")
    extractor = net.create_extractor()
    extractor.input("src", ncnn.Mat(src))
    status, dst = extractor.extract("dst")
    if status or not dst.dims:
        raise ValueError(f"extract: {status}, of {dst.dims} axes")
    return dst, src.size
"""
LOOK = """
def look(answer):
    dst, size = answer
    dims = {1: (dst.w,), 2: (dst.h, dst.w), 3: (dst.c, dst.h, dst.w), 4: (dst.c, dst.d, dst.h, dst.w)}[dst.dims]
    if min(dims) < 1 or math.prod(dims) > size:  # there is no such memory to be read
        return "float32", dims, b""
    return "float32", dims, np.array(dst).tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in constant_steps(row, ("f32",)):
        source = step.source
        if source.layout in STRIDED:
            raise Unsupported(f"layout:{source.layout}")
        if len(source.dims) > 12:
            raise Unsupported("rank")
        shapes = "".join(f", {shape}" for shape, _ in function_calls(step, mapped=False))
        steps.append(body(step, numpy_array(source), [f"src = reshape(src{shapes})"]))
    imports = ["import math", "import ncnn", *numpy_imports(row)]
    return script(Parts(imports, "(ValueError, RuntimeError, TypeError)", LOOK, steps, BEFORE))
