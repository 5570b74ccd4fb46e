"""Reshape-1 of OpenVINO as a script: on the CPU plugin, and by the core's own evaluation."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from textwrap import indent

from conformance.model import Declared, Graph, Operand, Unsupported
from conformance.plan.memory import TensorSpec
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep

from ..shared import graph_of_model, node_attributes
from .plain import check_steps, spell
from .script import NUMPY, ScriptParts, find_memory_layout, write_memory, write_numpy_imports

TYPES = {
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "bool": "boolean", "s8": "i8", "u8": "u8", "s16": "i16",
    "u16": "u16", "s32": "i32", "u32": "u32", "s64": "i64", "u64": "u64",
}  # fmt: skip
THREADS = {"openvino": 2, "openvino-one-thread": 1}
LOOK = """
def look(answer):
    data = answer.data if answer.get_size() else np.empty(0)
    return answer.element_type.get_type_name(), answer.shape, data.tobytes()
"""
REJECTIONS = "(RuntimeError, ValueError, OverflowError, OVError)"


def write_script(row: Row, backend: str) -> ScriptParts:
    threads = THREADS.get(backend)
    checked = check_steps(row)
    graphs = [graph_of_model(step.graph) for step in checked]
    names = {graph: f"model_{number}" for number, graph in enumerate(dict.fromkeys(graphs), 1)}
    models = "".join(model(graph, name, threads) for graph, name in names.items())
    steps = [write_step(step, names[graph], threads is not None) for step, graph in zip(checked, graphs, strict=True)]
    imports = ["from functools import cache", *write_numpy_imports(row), "import openvino as ov"]
    imports += ["from openvino.exceptions import OVError", "from openvino.utils.node_factory import NodeFactory"]
    return ScriptParts(imports, REJECTIONS, LOOK, steps, models)


def model(graph: Graph, name: str, threads: int | None) -> str:
    """A function that makes the model of a graph and, for the plugin, compiles it."""
    extra = max(0, *(node.inputs - 1 for node in graph.nodes))
    data = [f"src{k}" if k else "src" for k in range(extra + 1)]
    lines, arriving, value = [f"{each} = {parameter(graph.src)}" for each in data], [], "src"
    for number, node in enumerate(graph.nodes):
        operands = [value][: node.inputs]
        if node.shape is not None:
            operands.append(f"shape{number}")
            if node.shape.values is None:
                arriving.append(operands[-1])
                lines.append(f"{operands[-1]} = {parameter(Declared(node.shape.type, node.shape.dims))}")
            else:
                lines.append(f"{operands[-1]} = {constant(node.shape)}")
        value = f"dst{number}"
        connected = ", ".join(operands + data[1 : node.inputs])
        lines.append(
            f'{value} = NodeFactory("opset1").create("Reshape", [{connected}], {spell(node_attributes(node))})'
        )
    lines.append(f'model = ov.Model([{value}], [{", ".join(data + arriving)}], "graph")')
    if threads is None:
        lines.append("return model")
    else:
        properties = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        lines.append(f'return ov.Core().compile_model(model, "CPU", {properties})')
    return f"\n@cache\ndef {name}():\n{indent(chr(10).join(lines), '    ')}\n"


def parameter(declared: Declared) -> str:
    known = "ov.PartialShape.dynamic()"
    if declared.dims is not None:
        known = f"ov.PartialShape({spell([-1 if n is None else n for n in declared.dims])})"
    return f"ov.op.Parameter(ov.Type.{TYPES[declared.type]}, {known})"


def constant(operand: Operand) -> str:
    dims, values = [n for n in operand.dims if n is not None], list(operand.values or ())
    if operand.type == "string":
        return f"ov.op.Constant(ov.Type.string, ov.Shape({spell(dims)}), {spell(values)})"
    if operand.type == "bf16":
        raise Unsupported("form:shape")
    return f"ov.op.Constant(ov.Tensor(np.array({spell(values)}, {NUMPY[operand.type]}).reshape({spell(dims)})))"


def write_step(step: RowStep, name: str, plugin: bool) -> str:
    inputs = ["src"] * max(1, *(node.inputs for node in step.graph.nodes))
    for type_, dims, values in step.shapes:
        inputs.append(f"ov.Tensor(np.array({spell(list(values))}, {NUMPY[type_]}).reshape({spell(dims)}))")
    lines = [write_memory(step.src_spec), f"src = {write_src(step.src_spec)}"]
    if plugin:
        lines.append(f"request = {name}().create_infer_request()")
        lines += [f"request.set_input_tensor({index}, {each})" for index, each in enumerate(inputs)]
        lines += ["request.infer()", "return words, request.get_output_tensor(0)"]
    else:
        lines.append(f"answers = [ov.Tensor(ov.Type.{TYPES[step.src_spec.type]}, ov.Shape([0]))]")
        lines += [
            f"if not {name}().evaluate(answers, [{', '.join(inputs)}]):",
            '    raise RuntimeError("evaluate returned false")',
        ]
        lines.append("return words, answers[0]")
    return "\n".join(lines)


def write_src(src_spec: TensorSpec) -> str:
    """src in the memory that it lies in, where the library can say so; else its elements in a row."""
    type_, dims = f"ov.Type.{TYPES[src_spec.type]}", list(src_spec.dims)
    at = find_memory_layout(src_spec) if src_spec.layout in ("offset", "padded", "cropped") else None
    if at is None or at.strides[-1:] != (1,):
        return f"ov.Tensor(np.array(words), ov.Shape({spell(dims)}), {type_})"
    around = [dims[0], *(outer // inner for outer, inner in pairwise(at.strides))]
    whole = f"ov.Tensor(np.resize(memory, {at.offset + prod(around)})[{at.offset}:], ov.Shape({around}), {type_})"
    return whole if around == dims else f"ov.Tensor({whole}, {[0] * len(dims)}, {spell(dims)})"
