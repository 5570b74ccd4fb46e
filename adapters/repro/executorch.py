"""ExecuTorch's view_copy as a script: a program of one kernel call for each reshape."""

from __future__ import annotations

from conformance.model import Unsupported
from conformance.plan.rows import Row

from . import Parts, body, constant_steps, function_calls, numpy_array, numpy_imports, script

TYPES = {
    "f16": "HALF", "bf16": "BFLOAT16", "f32": "FLOAT", "f64": "DOUBLE", "bool": "BOOL", "s8": "CHAR", "u8": "BYTE",
    "s16": "SHORT", "s32": "INT", "s64": "LONG",
}  # fmt: skip
BEFORE = """
def tensor(code, sizes, dynamism, place):
    return schema.EValue(schema.Tensor(
        scalar_type=code, storage_offset=0, sizes=list(sizes), dim_order=list(range(len(sizes))), requires_grad=False,
        layout=0, data_buffer_idx=0, allocation_info=schema.AllocationDetails(1, place, 0), shape_dynamism=dynamism,
    ))


def reshape(src, shape, code):
    count, room = src.numel(), max(src.numel() * src.element_size() + 15 & ~15, 16)
    bound = (count, *(1,) * (len(shape) - 1)) if shape else ()
    kinds = schema.TensorShapeDynamism
    values = [tensor(code, src.shape, kinds.STATIC, 0), tensor(code, bound, kinds.DYNAMIC_BOUND, room)]
    values += [schema.EValue(schema.Int(entry)) for entry in shape]
    values += [schema.EValue(schema.IntList(list(range(2, 2 + len(shape)))))]
    call = schema.Instruction(schema.KernelCall(op_index=0, args=[0, len(values) - 1, 1, 1]))
    plan = schema.ExecutionPlan(
        name="forward", container_meta_type=schema.ContainerMetadata("", ""), values=values, inputs=[0], outputs=[1],
        chains=[schema.Chain(inputs=[], outputs=[], instructions=[call], stacktrace=None)],
        operators=[schema.Operator("aten::view_copy", "out")], delegates=[], non_const_buffer_sizes=[0, 2 * room],
    )
    program = schema.Program(
        version=0, execution_plan=[plan], constant_buffer=[schema.Buffer(storage=b"")], backend_delegate_data=[],
        segments=[], constant_segment=schema.SubsegmentOffsets(0, []),
    )
    content = bytes(serialize_pte_binary(PTEFile(program=program)))
    return Runtime.get().load_program(content).load_method("forward").execute([src])[0]
"""
LOOK = """
def look(answer):
    return answer.dtype, tuple(answer.shape), answer.reshape(-1).view(torch.uint8).numpy().tobytes()
"""


def write_script(row: Row, backend: str) -> str:
    """The script of a row."""
    steps = []
    for step in constant_steps(row, TYPES):
        type_ = step.source.type
        if step.source.layout != "dense":
            raise Unsupported(f"layout:{step.source.layout}")
        array = numpy_array(step.source)
        src = f"torch.from_numpy({array})"
        if type_ == "bf16":
            src = f"torch.from_numpy({array}.view(np.int16)).view(torch.bfloat16)"
        code = f"schema.ScalarType.{TYPES[type_]}"
        steps.append(body(step, src, [f"src = reshape(src, {shape}, {code})" for shape, _ in function_calls(step)]))
    imports = [
        *numpy_imports(row), "import torch", "from executorch.exir import schema",
        "from executorch.exir._serialize._program import PTEFile, serialize_pte_binary",
        "from executorch.runtime import Runtime",
    ]  # fmt: skip
    return script(Parts(imports, "(ValueError, RuntimeError, TypeError)", LOOK, steps, BEFORE))
