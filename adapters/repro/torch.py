"""torch.reshape as a script: eager, compiled, and on the tensors of PyTorch's own oneDNN."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.memory import TensorSpec, volume_of
from conformance.plan.rows import Row

from . import Parts, body, compile_calls, dense, function_calls, memory_layout, script
from .literals import python
from .plain import checked_steps

TYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "bool": "bool", "s8": "int8",
    "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64",
}  # fmt: skip
LOOK = """
def look(answer):
    answer = answer.cpu()
    return answer.dtype, answer.shape, answer.flatten().view(torch.uint8).numpy().tobytes()
"""
COMPILED = {"torch-compile": "aot_eager", "torch-inductor": "inductor"}


def write_script(row: Row, backend: str) -> str:
    """The script of a row; what follows an @ is a device."""
    name, _, device = backend.partition("@")
    steps = []
    for step in checked_steps(row):
        src = src_code(step.source) + (f".to({python(device)})" if device else "")
        call = "src = src.reshape{}" if name == "torch-method" else "src = torch.reshape(src, {})"
        shapes = [shape for shape, _ in function_calls(step, mapped=name != "torch-raw")]
        calls = [call.format(f"({shape})" if shape == "()" and name == "torch-method" else shape) for shape in shapes]
        if name in COMPILED:
            if row.given == "runtime":
                raise Unsupported("runtime-shape")
            decorator = f'@torch.compile(fullgraph=True, dynamic=False, backend="{COMPILED[name]}")'
            steps.append(body(step, src, ["torch.set_grad_enabled(False)", *compile_calls(decorator, calls)]))
        elif name == "torch-mkldnn":
            steps.append(body(step, f"{src}.to_mkldnn()", calls, "src.to_dense()"))
        else:
            steps.append(body(step, src, calls))
    return script(Parts(["import torch"], "(ValueError, RuntimeError, OverflowError, TypeError)", LOOK, steps))


def src_code(source: TensorSpec) -> str:
    """src as PyTorch code, of any rank."""
    if source.layout == "reversed":
        raise Unsupported("layout:reversed")
    type_ = f"torch.{TYPES[source.type]}"
    if not volume_of(source.dims):
        return f"torch.empty({python(source.dims)}, dtype={type_})"
    at = memory_layout(source)
    memory, strides, offset = ("memory", at.strides, at.offset) if at else ("words", dense(source.dims), 0)
    return f"torch.as_strided(torch.frombuffer({memory}, dtype={type_}), {python(source.dims)}, {strides}, {offset})"
