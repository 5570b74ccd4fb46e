"""pytensor.tensor.reshape as a script, which compiles all nodes as one function."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from .plain import check_steps, spell
from .script import (
    LOOK,
    NUMPY,
    ScriptParts,
    has_special_zero,
    write_function_calls,
    write_memory,
    write_numpy_array,
    write_numpy_imports,
)

MODES = {"pytensor": "CVM", "pytensor-numba": "NUMBA"}
LEFT_OUT = ("u8", "u16", "u32", "u64")
ZEROS_COPY = """
def zeros_copy(src, shape, entries):
    among = range(entries)
    return [pt.switch(pt.eq(shape[i], 0), src.shape[i], shape[i]) if i < src.ndim else shape[i] for i in among]
"""


def write_script(row: Row, backend: str) -> ScriptParts:
    steps = [write_step(step, MODES[backend]) for step in check_steps(row)]
    imports = [*write_numpy_imports(row), "import pytensor", "import pytensor.tensor as pt"]
    before = ZEROS_COPY if any("zeros_copy(" in step for step in steps) else ""
    return ScriptParts(imports, "(ValueError, RuntimeError, OverflowError, AssertionError)", LOOK, steps, before)


def write_step(step: RowStep, mode: str) -> str:
    """A call; where the shape comes with it, of src only the rank is told beforehand."""
    if step.src_spec.type == "bf16":
        raise Unsupported("type:bf16")
    calls, arriving = [*write_function_calls(step)], iter(step.shapes)
    inputs, given, lines = ["first"], ["tensor"], []
    for number, (node, (shape, type_)) in enumerate(zip(step.graph.nodes, calls, strict=True)):
        if type_ in LEFT_OUT:
            raise Unsupported(f"shape-type:{type_}")
        assert node.shape is not None
        lengths, rank = shape, len(node.shape.values or ())
        if node.shape.values is None:
            values = next(arriving)[2]
            lengths, rank = f"shape{number}", len(values)
            lines.append(f'{lengths} = pt.tensor("{lengths}", dtype={NUMPY[type_]}, shape=({rank},))')
            inputs.append(lengths)
            given.append(f"np.array({spell(list(values))}, {NUMPY[type_]})")
            lengths = f"zeros_copy(src, {lengths}, {rank})" if has_special_zero(node) else lengths
        lines.append(f"src = pt.reshape(src, {lengths}, ndim={rank})")
    dims = (None,) * len(step.src_spec.dims) if step.shapes else "tensor.shape"
    before = [write_memory(step.src_spec), f"tensor = {write_numpy_array(step.src_spec)}"]
    before.append(f'src = first = pt.tensor("src", dtype=tensor.dtype, shape={dims})')
    lines.append(f'program = pytensor.function([{", ".join(inputs)}], src, mode="{mode}", on_unused_input="ignore")')
    return "\n".join([*before, *lines, f"return words, program({', '.join(given)})"])
